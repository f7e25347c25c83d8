"""Answers: as text, pages, files, frames and pictures; and names that try to act on any of them."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from defocus import item, report
from defocus.errors import InvalidParameterError, LedgerDamagedError, UnknownColumnError
from defocus.graphs import Network, Released
from defocus.graphs.question import from_record, to_record
from defocus.noise.testing import seeded

HOSTILE = [
    "=HYPERLINK(1)",
    "\x1b[2J",
    "<b>bold</b>",
    "\u202egnirts",
    "$x^2$",
    'a,b\n"c"',
    "",
    "'; DROP TABLE x",
    "x" * 900,
]


@pytest.fixture
def degrees(friends: Network) -> Released:
    return friends.degrees().release(epsilon=1, bits=seeded(3))


@pytest.fixture
def hostile(opened: Callable[..., Network]) -> Released:
    return opened([tuple(HOSTILE[:2])], nodes=HOSTILE).degrees().release(epsilon=1, bits=seeded(3))


def test_a_single_number_is_a_number(friends: Network) -> None:
    answer = friends.edges().release(epsilon=1)
    assert type(answer.value) is int
    assert answer.error == pytest.approx(0.85, abs=0.01)
    assert len(answer) == 1
    assert answer["edges"].low[0] < answer.value < answer["edges"].high[0]
    assert repr(answer) == "<answer: number of edges>"
    with pytest.raises(UnknownColumnError, match="no column 'edge'") as caught:
        answer["edge"]
    assert "did you mean 'edges'" in caught.value.fix


@pytest.mark.parametrize("name", [0, None, 1.5, ("edges",), -1])
def test_columns_are_asked_for_by_name(friends: Network, name: Any) -> None:
    with pytest.raises(UnknownColumnError, match="asked for by name") as caught:
        friends.edges().release(epsilon=1)[name]
    assert "edges" in caught.value.fix


def test_entries_come_one_by_one_as_in_the_table(degrees: Released) -> None:
    assert list(degrees) == degrees.to_arrow().to_pylist()
    assert next(iter(degrees))["node"] == "ada"


def test_answers_go_into_reports_one_or_several(friends: Network, degrees: Released, tmp_path: Path) -> None:
    edges = friends.edges().release(epsilon=1)
    one = report(edges, tmp_path / "one.html", title="Friends").read_text(encoding="utf-8")
    both = report([edges, degrees], tmp_path / "both.html", title="Friends", ledger=friends.ledger)
    assert one.count("<h2>") == 1
    assert both.read_text(encoding="utf-8").count("<h2>") == 3
    assert "degree of every node" in both.read_text(encoding="utf-8")


def test_frames_and_files_hold_the_same_numbers(degrees: Released, tmp_path: Path) -> None:
    table = degrees.to_arrow()
    assert table.column_names == ["node", "degree", "degree_error", "degree_low", "degree_high"]
    assert table.schema.metadata[b"defocus.question"] == b"degree of every node"
    assert degrees.to_pandas()["degree"].tolist() == degrees.value.tolist()
    assert degrees.to_polars()["node"].to_list() == list(degrees.keys["node"])
    assert isinstance(degrees.to_polars(), pl.DataFrame)
    degrees.to_parquet(tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").equals(table)
    text = degrees.to_csv(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == text
    assert pa.csv.read_csv(io.BytesIO(text.encode()))["degree"].to_pylist() == degrees.value.tolist()
    assert json.loads(degrees.to_json(tmp_path / "a.json")) == degrees.to_dict()
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["keys"] == ["node"]


def test_numbers_that_are_not_known_are_null(friends: Network) -> None:
    answer = friends.degree_histogram().release(epsilon=1)
    assert np.isnan(answer["nodes"].errors).all()
    assert answer.to_dict()["rows"][0]["nodes_error"] is None
    assert ",," in answer.to_csv()


def test_an_explanation_names_everything_a_reader_needs(friends: Network) -> None:
    answer = friends.triangles().release(epsilon=1, delta=1e-6, method="noisy local sensitivity")
    text = answer.explain()
    for word in (
        "question:",
        "protected:",
        "for one edge:",
        "by rule:",
        "noise:",
        "exactness:",
        "found:",
        "cost:",
        "left:",
    ):
        assert word in text
    assert "except with probability" in text
    assert "a released bound" in str(answer)
    assert "<table>" in answer.explain(html=True)


def test_long_answers_are_shortened_for_people_only(opened: Callable[..., Network]) -> None:
    answer = opened(np.array([[0, 1]]), nodes=500).degrees().release(epsilon=1)
    assert len(str(answer).splitlines()) < 40
    assert "500 entries, 470 of them not shown" in str(answer)
    assert len(answer.to_arrow()) == 500


def test_hostile_names_act_on_nothing(hostile: Released, tmp_path: Path) -> None:
    text = str(hostile)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert max(map(len, text.splitlines())) < 120
    page = hostile._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    csv = pa.csv.read_csv(
        io.BytesIO(hostile.to_csv().encode()), parse_options=pa.csv.ParseOptions(newlines_in_values=True)
    )
    assert csv["node"].to_pylist()[0] == "'=HYPERLINK(1)"
    assert csv.num_rows == len(HOSTILE)
    assert list(hostile.to_pandas()["node"]) == HOSTILE
    assert json.loads(hostile.to_json())["rows"][1]["node"] == HOSTILE[1]
    hostile.plot().savefig(tmp_path / "a.png")


def test_names_of_several_types_become_text(opened: Callable[..., Network]) -> None:
    names: list[Any] = ["ada", 7, (1, 2)]
    answer = opened([("ada", 7)], nodes=names).degrees().release(epsilon=1)
    assert answer.to_arrow()["node"].to_pylist() == ["ada", "7", "(1, 2)"]
    assert json.loads(answer.to_json())["rows"][2]["node"] == "(1, 2)"
    assert from_record(to_record(answer), answer.receipt).keys["node"] == ["ada", 7, "(1, 2)"]


@pytest.mark.slow
def test_answers_can_be_drawn(friends: Network, opened: Callable[..., Network], tmp_path: Path) -> None:
    big = opened(np.array([[0, 1]]), nodes=60)
    for place, answer in enumerate(
        [
            friends.edges().release(epsilon=1),
            friends.degrees().release(epsilon=1),
            friends.joint().release(epsilon=1),
            big.degrees().release(epsilon=1),
            big.degree_histogram().release(epsilon=1),
            big.degree_sequence().release(epsilon=1),
        ]
    ):
        answer.plot().savefig(tmp_path / f"{place}.png")
        assert (tmp_path / f"{place}.png").stat().st_size > 1000
    drawn = big.degrees().release(epsilon=1).plot()
    assert "the 25 of 60 entries with the largest degree" in drawn.get_supxlabel()
    assert drawn.get_suptitle() == "degree of every node"
    with pytest.raises(UnknownColumnError):
        friends.edges().release(epsilon=1).plot("nodes")


def test_every_number_of_several_is_drawn_with_its_interval(friends: Network) -> None:
    figure = friends.joint().release(epsilon=1).plot()
    assert [axes.get_yticklabels()[0].get_text() for axes in figure.axes] == ["edges", "2-stars", "triangles"]
    answer = friends.edges().release(epsilon=1)
    (axes,) = answer.plot().axes
    low, high = axes.get_xlim()
    assert low < answer["edges"].low[0] < answer["edges"].high[0] < high
    assert not axes.patches, "no bar that hides where the interval is"
    assert len(friends.joint().release(epsilon=1).plot("triangles").axes) == 1


def test_days_are_drawn_in_their_order_all_of_them(opened: Callable[..., Network]) -> None:
    times = pd.DataFrame({"a": ["ada"], "b": ["bob"], "at": pd.to_datetime(["2024-01-03"])})
    network = opened(times, ends=("a", "b"), unit=item(), time="at")
    answer = network.interactions(every="1d", start="2024-01-01", end="2024-01-31").release(epsilon=1)
    figure = answer.plot()
    assert len(figure.axes[0].lines[0].get_ydata()) == 30
    assert "largest" not in figure.get_supxlabel()
    assert answer.to_pandas()["from"].dtype.kind == "M"
    again = from_record(json.loads(json.dumps(to_record(answer))), answer.receipt)
    assert list(again.keys["from"]) == list(answer.keys["from"])


def test_counts_of_degrees_are_whole_numbers(friends: Network) -> None:
    answer = friends.degree_histogram().release(epsilon=20, method="cumulative, laplace", bits=seeded(1))
    assert answer["nodes"].integral
    assert ".0" not in str(answer)


def test_degrees_that_nobody_has_are_not_drawn(opened: Callable[..., Network]) -> None:
    network = opened(np.array([[0, 1], [1, 2], [2, 3]]), nodes=3000)
    answer = network.degree_histogram().release(epsilon=20, bits=seeded(1))
    figure = answer.plot()
    assert figure.axes[0].get_xlim()[1] < 1000
    assert "more are zero" in figure.get_supxlabel()


@pytest.mark.parametrize("path", ["nowhere/a.csv", 3, "a\0b"])
def test_a_file_that_cannot_be_written_is_refused(degrees: Released, path: Any) -> None:
    for write in (degrees.to_csv, degrees.to_json, degrees.to_parquet):
        with pytest.raises(InvalidParameterError, match="could not be written"):
            write(path)


def test_records_that_are_not_answers_are_refused(degrees: Released) -> None:
    for record in (None, {}, {"columns": 3}, [1], {**to_record(degrees), "columns": [{"name": "x"}]}):
        with pytest.raises(LedgerDamagedError, match="not the answer to a question about a graph"):
            from_record(record, degrees.receipt)


@pytest.mark.parametrize(
    "name",
    ["\ud800", "a\udcff", 10**5000, -(10**5000), (10**5000, "a"), 2**70, b"\xff", (1, "a"), 2.5, "a\0"],
    ids=range(10),
)
def test_names_that_have_no_text_of_their_own_are_spelt_everywhere(
    opened: Callable[..., Network], tmp_path: Path, name: Any
) -> None:
    g = opened([("ada", name)], nodes=["ada", name])
    answer = g.degrees().release(epsilon=5, request="named")
    for text in (str(answer), answer._repr_html_(), answer.explain(), answer.to_csv(), answer.to_json()):
        assert text.encode()
    assert json.loads(answer.to_json(tmp_path / "a.json"))["rows"] == answer.to_dict()["rows"]
    answer.to_csv(tmp_path / "a.csv")
    answer.to_parquet(tmp_path / "a.parquet")
    assert answer.to_arrow().column("node").to_pylist() == answer.to_pandas()["node"].tolist()
    answer.plot()
    again = g.degrees().release(epsilon=5, request="named")
    assert (str(again), again.to_csv()) == (str(answer), answer.to_csv())


FIRST: dict[str, Any] = {
    "kind": "graph",
    "keys": {"degree": {"range": [0, 3, 1]}, "node": ["ada", 7, None]},
    "columns": [
        {
            "name": "nodes",
            "how": "Laplace noise of scale 4",
            "integral": True,
            "values": [12.0, -1.0, 3.0],
            "errors": [4.0, "nan", 4.0],
            "low": [0.0, "-inf", -9.0],
            "high": [24.0, "inf", 15.0],
        }
    ],
    "question": "number of nodes of each degree",
    "rules": ["an edge from a node to itself is left out"],
    "method": "laplace",
    "processing": ["fitted"],
    "notes": ["found"],
    "facts": "a digest",
}
"""As the first version wrote it."""


def test_a_record_of_the_first_version_is_read(friends: Network) -> None:
    receipt = friends.edges().release(epsilon=1, bits=seeded(1)).receipt
    answer = from_record(FIRST, receipt)
    assert answer.keys == {"degree": range(3), "node": ["ada", 7, None]}
    (column,) = answer.columns
    assert column.absolute
    assert list(column.values) == [12, -1, 3]
    assert column.low.tolist() == [0, float("-inf"), -9]
    assert (answer.method, answer.rules, answer.asked) == ("laplace", tuple(FIRST["rules"]), None)
    again = to_record(answer)
    added = [(each.pop("absolute"), each.pop("tails"), each.pop("error_of")) for each in again["columns"]]
    assert added == [(True, "unknown", "the noise")]  # since
    assert {name: again[name] for name in FIRST if name != "facts"} == {
        name: FIRST[name] for name in FIRST if name != "facts"
    }
    for text in (str(answer), answer.explain()):
        assert "fitted" in text
        assert "found" in text


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_what_was_asked_for_is_kept(friends: Network, delta: float | None) -> None:
    answer = friends.edges().release(epsilon=1, delta=delta, bits=seeded(1))
    back = from_record(to_record(answer), answer.receipt)
    assert back.asked == answer.asked is not None
    assert back.explain() == answer.explain()
