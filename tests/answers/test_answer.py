"""Answers of all rooms are one class: what one of them can do, all can."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.answers.making import charged, column

import defocus as dp
from defocus import local, workloads
from defocus.answers import Answer, Effect, Released, Rule, Tails
from defocus.answers.answer import columns_in, columns_out, read, written
from defocus.errors import InvalidParameterError, LedgerDamagedError, UnknownColumnError
from defocus.ledger import Ledger, Receipt
from defocus.noise.testing import seeded
from defocus.privacy.budgets import Budget
from defocus.tables import report

ROOMS = ["table", "graph", "counts", "mean", "strings", "workload", "step", "steps", "coefficients"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Answer]]:
    home = tmp_path_factory.mktemp("rooms")
    (home / "visits.csv").write_text("ward\n" + "a\n" * 300 + "b\n" * 200, encoding="utf-8")
    opened: dict[str, Any] = {"unit": dp.rows(), "budget": dp.Budget(9, 1e-5)}
    with (
        dp.open(home / "visits.csv", ledger=home / "v.ledger", **opened) as table,
        dp.open_graph(
            [(0, 1), (1, 2)], unit=dp.edge(), budget=dp.Budget(9), nodes=3, ledger=home / "g.ledger", name="g"
        ) as graph,
        Ledger.open(home / "w.ledger", dataset="w", **opened) as ledger,
    ):
        asked, hours = local.oracle("oue", ["x", "y"], 3), local.mean("hybrid", 0, 24, 1)
        single, several = (workloads.RunningSum(9, epsilon=1, delta=1e-6, entries=entries) for entries in (None, 3))
        yield {
            "table": table.group_by("ward", keys=["a", "b"]).agg(n=dp.count()).release(epsilon=1, bits=seeded(1)),
            "graph": graph.degrees().release(epsilon=1, bits=seeded(1)),
            "counts": asked.estimate(asked.encode(["x"] * 300 + ["y"] * 100, seeded(1))),
            "mean": hours.estimate(hours.encode([7.5] * 1000, seeded(1))),
            "strings": local.heavy_hitters(["ab"] * 4000, alphabet="ab", length=2, epsilon=4, bits=seeded(1)),
            "workload": workloads.plan(workloads.prefix(4), epsilon=1).release(
                [9, 8, 7, 6], ledger=ledger, purpose="ages", bits=seeded(1)
            ),
            "step": single.start(ledger=ledger, purpose="visits", bits=seeded(1)).add(40),
            "steps": several.start(ledger=ledger, purpose="visits", bits=seeded(1)).add([1, 2, 3]),
            "coefficients": dp.learning.LinearRegression(ledger=ledger, epsilon=1, intervals=True, bits=seeded(1))
            .fit(np.tile([[-0.9], [0.0], [0.9]], (3000, 1)), np.tile([-0.5, 0.1, 0.6], 3000))
            .coefficients(),
        }


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_every_answer_leaves_as_frames_files_and_pictures(
    room: str, answers: dict[str, Answer], tmp_path: Path
) -> None:
    answer = answers[room]
    name, table = answer.columns[0].name, answer.to_arrow()
    assert table.num_rows == len(answer) == len(list(answer)) > 0
    assert {f"{name}{part}" for part in ("", "_error", "_low", "_high")} <= set(table.column_names)
    values = answer[name].values.tolist()
    assert table[name].to_pylist() == answer.to_pandas()[name].tolist() == answer.to_polars()[name].to_list() == values
    answer.to_parquet(tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").equals(table)
    assert answer.to_csv(tmp_path / "a.csv") == (tmp_path / "a.csv").read_text(encoding="utf-8")
    told = json.loads(answer.to_json(tmp_path / "a.json"))
    assert told == answer.to_dict()
    assert [row[name] for row in told["rows"]] == values
    answer.plot().savefig(tmp_path / "a.png")
    page = report(answer, tmp_path / "a.html", title="all").read_text(encoding="utf-8")
    assert "data:image/svg+xml" in page
    for text in (answer.explain(), page):
        assert name in text
    assert "<table>" in answer._repr_html_()
    assert "95 %" in str(answer)


@pytest.mark.parametrize("room", ROOMS)
def test_every_answer_has_intervals_of_any_confidence(room: str, answers: dict[str, Answer]) -> None:
    answer = answers[room]
    first = answer.columns[0]
    widths = []
    for confidence in (0.5, 0.95, 0.99, 0.999):
        low, high = answer.interval(confidence, column=first.name)
        assert isinstance(low, np.ndarray if answer.keys else float)
        assert np.all(np.asarray(low) <= first.values)
        assert np.all(first.values <= np.asarray(high))
        widths.append(float(np.max(np.asarray(high) - np.asarray(low))))
    assert widths == sorted(widths)
    assert widths[1] < widths[2] < widths[3]
    assert np.allclose(answer.interval()[0], first.low if answer.keys else first.low[0])
    with pytest.raises(InvalidParameterError, match="confidence"):
        answer.interval(1)
    with pytest.raises(UnknownColumnError):
        answer.interval(column="nothing")


def test_rules_are_told_where_they_matter(answers: dict[str, Answer]) -> None:
    made = answers["table"]
    assert isinstance(made, Released)
    rules = tuple(Rule(f"rule to {effect}", effect) for effect in Effect)
    answer = Released(made.keys, made.columns, "q", made.receipt, rules)
    assert "not in the intervals: rule to bound; rule to cut" in str(answer)
    assert "rule to told" in str(answer)
    assert "rule to read" not in str(answer)
    assert "95 % of the noise only" in answer._repr_html_()
    for effect in Effect:
        assert f"rule to {effect}" in answer.explain()
    assert "outside: rule to bound; rule to cut; ends are open: rule to open" in answer.to_dict()["intervals"]
    plain = Released(made.keys, made.columns, "q", made.receipt, rules[:2])
    assert "95 % interval" in str(plain)
    assert plain.to_dict()["intervals"] == "the truth, with 95 %"


def test_answers_of_a_graph_are_ordered_and_cut_like_those_of_a_table(answers: dict[str, Answer]) -> None:
    degrees = answers["graph"]
    assert isinstance(degrees, Released)
    top = degrees.order_by("degree", descending=True).head(2)
    assert top["degree"].values.tolist() == sorted(degrees["degree"].values.tolist(), reverse=True)[:2]
    assert top.order_by("node").keys["node"] == sorted(top.keys["node"])
    assert top.processing[-1] == "the first 2 entries kept"
    assert degrees.non_negative()["degree"].values.min() >= 0
    with pytest.raises(InvalidParameterError, match="no interval with 99 %"):
        degrees.non_negative().interval(0.99)


def test_several_numbers_asked_for_at_once_are_found_by_name(tmp_path: Path) -> None:
    opened: dict[str, Any] = {"unit": dp.edge(), "budget": dp.Budget(9), "nodes": 9, "name": "g"}
    with dp.open_graph([(0, 1), (1, 2), (0, 2)], ledger=tmp_path / "g.ledger", **opened) as graph:
        joint = graph.joint("edges", "triangles").release(epsilon=1, bits=seeded(1))
        alone = graph.edges().release(epsilon=1, bits=seeded(1))
    assert joint.value == {column.name: round(column.values[0]) for column in joint.columns}
    assert len(joint.value) == 2
    assert isinstance(alone.value, int)


@pytest.mark.parametrize("absolute", [True, False])
def test_columns_come_back_whole_also_where_numbers_are_not_finite(absolute: bool) -> None:
    made = column(values=[1.5, np.nan, -np.inf])
    kept = json.loads(json.dumps(columns_out([made]), allow_nan=False))
    assert (kept[0].pop("absolute"), kept[0].pop("tails")) == (False, "unknown")
    (back,) = columns_in(kept, absolute=absolute)  # as an earlier version wrote it
    for part in ("values", "errors", "low", "high"):
        assert np.array_equal(getattr(back, part), getattr(made, part), equal_nan=True)
    assert (back.name, back.how, back.integral) == (made.name, made.how, made.integral)
    assert (back.absolute, back.tails) == (absolute, Tails.UNKNOWN)


def test_whether_errors_are_absolute_and_what_the_tails_are_is_written_down() -> None:
    for absolute in (True, False):
        kept = columns_out([replace(column(values=[1.5]), absolute=absolute, tails=Tails.LOG_CONCAVE)])
        assert [columns_in(kept, absolute=other)[0].absolute for other in (True, False)] == [absolute] * 2
        assert columns_in(kept, absolute=absolute)[0].tails is Tails.LOG_CONCAVE


def back(record: Any, receipt: Receipt, **more: Any) -> Released:
    def made(**parts: Any) -> Released:
        return Released(keys={}, **parts)

    return read(record, receipt, "a graph", made, absolute=False, earlier={"at most": Effect.CUT}, **more)


@pytest.mark.parametrize("asked", [None, Budget(0.5, 1e-7)])
def test_an_answer_comes_back_whole(asked: Budget | None, tmp_path: Path) -> None:
    rules = (Rule("plain"), Rule("at least 3", Effect.CUT), Rule("told", Effect.TOLD))
    answer = Released({}, (column(values=[1.5]),), "q", charged(tmp_path), rules, processing=("p",), asked=asked)
    again = back(json.loads(json.dumps(written(answer), allow_nan=False)), answer.receipt)
    assert (again.asked, again.question, again.processing) == (asked, "q", ("p",))
    assert [(rule, rule.effect) for rule in again.rules] == [(rule, rule.effect) for rule in rules]


def test_rules_of_an_earlier_version_are_known_by_their_words(tmp_path: Path) -> None:
    receipt = charged(tmp_path)
    kept = written(Released({}, (column(values=[1.5]),), "q", receipt, (Rule("a"), Rule("at most 3"))))
    del kept["effects"], kept["asked"]
    assert [rule.effect for rule in back(kept, receipt).rules] == [Effect.READ, Effect.CUT]
    assert back(kept, receipt).asked is None


@pytest.mark.parametrize("problem", [{"asked": [1, 2, 3]}, {"rules": [5]}, {"effects": ["x"]}, {"columns": [{}]}, None])
def test_what_is_no_record_is_told_as_such_without_its_text(problem: dict[str, Any] | None, tmp_path: Path) -> None:
    receipt = charged(tmp_path)
    kept = written(Released({}, (column(values=[1.5]),), "q", receipt, (Rule("a"),)))
    if problem is not None and "rules" in problem:
        del kept["effects"]
    refused = pytest.raises(LedgerDamagedError, match="charge 1 is not the answer to a question about a graph")
    with refused as caught:
        back(None if problem is None else {**kept, **problem}, receipt)
    assert caught.value.__cause__ is None
