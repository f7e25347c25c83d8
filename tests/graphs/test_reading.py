"""The same edges from every kind of source; and sources that cannot be used."""

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from tests.graphs.conftest import FRIENDS, NAMES

from defocus import event, node, weight
from defocus.errors import InvalidParameterError, NotDeclaredError, SourceError, UnknownColumnError
from defocus.graphs import Network

igraph = pytest.importorskip("igraph")
networkx = pytest.importorskip("networkx")

NUMBERS = np.array([[NAMES.index(u), NAMES.index(v)] for u, v in FRIENDS])
TABLE = pa.table({"source": [u for u, _ in FRIENDS], "target": [v for _, v in FRIENDS]})
NUMBERED = pa.table({"u": NUMBERS[:, 0], "v": NUMBERS[:, 1]})


def rows(network: Network) -> set[tuple[Any, Any]]:
    """The edges as names; tests may look, questions may not."""
    graph = network.data.graph
    return {(network.data.labels[u], network.data.labels[v]) for u, v in zip(*graph.pairs(), strict=True)}


def in_files(folder: Path, table: pa.Table) -> dict[str, tuple[Any, dict[str, Any]]]:
    pq.write_table(table, folder / "e.parquet")
    frame = table.to_pandas()
    frame.to_csv(folder / "e.csv", index=False)
    frame.to_csv(folder / "e.tsv", index=False, sep="\t")
    with duckdb.connect(str(folder / "e.duckdb")) as connection:
        connection.register("given", table)
        connection.execute('CREATE OR REPLACE TABLE "my ""edges" AS SELECT * FROM given')
    return {
        "parquet": (folder / "e.parquet", {}),
        "csv": (str(folder / "e.csv"), {}),
        "tsv": (folder / "e.tsv", {}),
        "duckdb": (folder / "e.duckdb", {"table": 'my "edges'}),
    }


@pytest.mark.parametrize("sort", ["parquet", "csv", "tsv", "duckdb"])
def test_files_of_names_and_of_numbers(opened: Callable[..., Network], tmp_path: Path, sort: str) -> None:
    data, said = in_files(tmp_path, TABLE)[sort]
    named = opened(data, **said)
    assert rows(named) == {tuple(sorted(pair)) for pair in FRIENDS}
    assert named.name == "e"
    data, said = in_files(tmp_path, NUMBERED)[sort]
    assert rows(opened(data, nodes=6, **said)) == {tuple(sorted(pair)) for pair in NUMBERS.tolist()}
    assert rows(opened(data, nodes=range(6), **said)) == {tuple(sorted(pair)) for pair in NUMBERS.tolist()}


@pytest.mark.parametrize(
    "data",
    [
        FRIENDS,
        tuple(FRIENDS),
        set(FRIENDS),
        [list(pair) for pair in FRIENDS],
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_pandas(),
        pl.from_arrow(TABLE),
        ([u for u, _ in FRIENDS], [v for _, v in FRIENDS]),
        (TABLE.column(0), TABLE.column(1)),
        networkx.Graph(FRIENDS),
        networkx.MultiGraph(FRIENDS * 2),
        igraph.Graph.TupleList(FRIENDS),
    ],
    ids=lambda data: type(data).__module__.partition(".")[0] + "." + type(data).__name__,
)
def test_named_edges_from_every_container(opened: Callable[..., Network], data: Any) -> None:
    assert rows(opened(data)) == {tuple(sorted(pair)) for pair in FRIENDS}


@pytest.mark.parametrize(
    "data",
    [
        NUMBERS,
        NUMBERS.astype(np.uint8),
        NUMBERS.astype(float),
        (NUMBERS[:, 0], NUMBERS[:, 1]),
        NUMBERED,
        NUMBERED.to_pandas(),
        NUMBERED.to_pandas().astype("Int64"),
        pl.from_arrow(NUMBERED),
        sp.coo_array((np.ones(5), (NUMBERS[:, 0], NUMBERS[:, 1])), shape=(6, 6)),
        sp.csr_matrix((np.ones(5), (NUMBERS[:, 0], NUMBERS[:, 1])), shape=(6, 6)),
        igraph.Graph(n=6, edges=NUMBERS.tolist()),
    ],
    ids=lambda data: type(data).__module__.partition(".")[0] + "." + type(data).__name__,
)
def test_numbered_edges_from_every_container(opened: Callable[..., Network], data: Any) -> None:
    assert rows(opened(data, nodes=6)) == {tuple(sorted(pair)) for pair in NUMBERS.tolist()}


def test_zeros_of_a_matrix_are_no_edges(opened: Callable[..., Network]) -> None:
    matrix = sp.coo_array(([1.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert rows(opened(matrix, nodes=3)) == {(0, 1)}


def test_a_weight_of_zero_keeps_its_edge(opened: Callable[..., Network]) -> None:
    for made in (sp.coo_array, sp.csr_array, sp.csc_matrix):
        pairs = [
            opened(
                made(([1.0, w], ([0, 1], [1, 2])), shape=(3, 3)), nodes=3, weights="w", unit=weight(bound=2)
            ).data.pairs
            for w in (0.0, 1.0)
        ]
        assert [len(each) for each in pairs] == [2, 2]
        assert np.array_equal(pairs[0].left, pairs[1].left)
    for held in ("dia", "lil"):
        with pytest.raises(SourceError, match="weight zero"):
            opened(sp.eye_array(3).asformat(held), nodes=3, weights="w", unit=weight(bound=2))


def test_columns_are_named_or_have_usual_names(opened: Callable[..., Network]) -> None:
    other = TABLE.rename_columns(["giver", "taker"])
    with pytest.raises(InvalidParameterError, match="not clear among giver, taker") as caught:
        opened(other)
    assert "ends=(" in caught.value.fix
    assert rows(opened(other, ends=("giver", "taker"))) == {tuple(sorted(pair)) for pair in FRIENDS}
    assert rows(opened(TABLE.rename_columns(["Target", "Source"]))) == {tuple(sorted(pair)) for pair in FRIENDS}


@pytest.mark.parametrize(
    ("data", "said", "refusal"),
    [
        (TABLE, {"ends": ("source", "goal")}, (UnknownColumnError, "no column 'goal'")),
        (TABLE, {"ends": ("source", "source")}, (InvalidParameterError, "Both ends")),
        (TABLE, {"ends": "source"}, (InvalidParameterError, "two columns")),
        (TABLE, {"ends": ("source",)}, (InvalidParameterError, "two columns")),
        (TABLE, {"ends": (1, 2)}, (InvalidParameterError, "two columns")),
        (TABLE, {"weights": "w"}, (UnknownColumnError, "no column 'w'")),
        (TABLE, {"time": "t"}, (UnknownColumnError, "no column 't'")),
        (TABLE, {"nodes": 6}, (InvalidParameterError, "have the type string")),
        (NUMBERED, {}, (InvalidParameterError, "have the type int64")),
        (pl.from_arrow(TABLE).lazy(), {}, (SourceError, "could change between questions")),  # type: ignore[union-attr]  # a frame
        (TABLE.column(0), {}, (SourceError, "not a table")),
        (pd.Series([1, 2]), {}, (SourceError, "not a table")),
        (pd.DataFrame([[1, 2]], columns=["u", "u"]), {}, (SourceError, "Two columns are called")),
        (np.zeros(4, int), {"nodes": 4}, (SourceError, "two columns")),
        (np.zeros((4, 3), int), {"nodes": 4}, (SourceError, "two columns")),
        (([1, 2], [1]), {"nodes": 4}, (SourceError, "differ in length")),
        (sp.coo_array((2, 3)), {"nodes": 3}, (SourceError, "as many rows as columns")),
        (NUMBERS, {"nodes": 6, "ends": ("u", "v")}, (SourceError, "this data has none")),
        (NUMBERS, {"nodes": 6, "weights": "w"}, (SourceError, "this data has none")),
        (NUMBERS, {"nodes": 6, "time": "t"}, (SourceError, "this data has none")),
        (igraph.Graph.TupleList(FRIENDS), {"weights": "w"}, (UnknownColumnError, "no column 'w'")),
        (igraph.Graph.TupleList(FRIENDS).vs, {}, (SourceError, "not a graph")),
        (networkx.Graph(FRIENDS).nodes, {}, (SourceError, "not a graph")),
        (3, {}, (SourceError, "cannot be read from int")),
        ({"ada": "bob"}, {}, (SourceError, "cannot be read from dict")),
        ("edges.xlsx", {}, (SourceError, "ends in .parquet")),
        ("edges", {}, (SourceError, "ends in .parquet")),
        ("nowhere/edges.parquet", {}, (SourceError, "no file")),
    ],
)
def test_a_source_that_cannot_be_used_is_refused_before_a_ledger_is_made(
    opened: Callable[..., Network], tmp_path: Path, data: Any, said: dict[str, Any], refusal: tuple[Any, str]
) -> None:
    with pytest.raises(refusal[0], match=refusal[1]):
        opened(data, **said)
    assert not list(tmp_path.glob("*.ledger"))


def test_files_that_are_not_what_they_say_are_refused_without_a_word_of_them(
    opened: Callable[..., Network], tmp_path: Path
) -> None:
    (tmp_path / "bad.parquet").write_text("secret,edges\n", encoding="utf-8")
    with pytest.raises(SourceError, match="could not be read as a table of edges") as caught:
        opened(tmp_path / "bad.parquet")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    (tmp_path / "e.duckdb").write_text("secret", encoding="utf-8")
    with pytest.raises(SourceError, match="could not be read"):
        opened(tmp_path / "e.duckdb", table="edges")
    with pytest.raises(SourceError, match="name of a table"):
        opened(tmp_path / "e.duckdb")
    pq.write_table(TABLE, tmp_path / "e.parquet")
    with pytest.raises(SourceError, match="name of a table"):
        opened(tmp_path / "e.parquet", table="edges")


def test_crooked_lines_of_a_file_are_left_out(opened: Callable[..., Network], tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("u,v\nada,bob\nada\n\nbob,cyd,dan\n,\ncyd,ada\n", encoding="utf-8")
    assert {("ada", "bob"), ("ada", "cyd")} <= rows(opened(tmp_path / "e.csv"))


HOSTILE = [
    b'a"b,c,1,1', b'"a""b",c,1,1', b'"x\ny",z,2,2', b"\xff\xfe,dan,1,1", b"ada,bob,\xff,1", b"#ada,bob,1,1", b"a;b;c,d",
    b"ada,bob,1,1,1,1,1,1", b"ada", b"", b",,,", b"ada,dan,1e999,9e99", b"ada,eve,nan,infinity", b"x" * 3_000_000,
    b"ada,bob,1,290000-01-01", b"'ada,bob',1", b"ada,bob\\,1,1", b"u,v,w,t",
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda line: ascii(line[:20]))
@pytest.mark.parametrize("at", [0, 30])
def test_no_line_of_a_file_decides_how_others_are_read(
    opened: Callable[..., Network], tmp_path: Path, hostile: bytes, at: int
) -> None:
    lines = [f"{left},{right},1.5,{i}".encode() for i in range(12) for left, right in FRIENDS]
    places = [tmp_path / f"{name}.csv" for name in ("clean", "hostile")]
    places[0].write_bytes(b"\n".join([b"u,v,w,t", *lines, b""]))
    places[1].write_bytes(b"\n".join([b"u,v,w,t", *lines[:at], hostile, *lines[at:], b""]))
    clean, dirty = (opened(place, weights="w", time="t", unit=event()).data.pairs for place in places)
    rows_of: list[list[Any]] = []
    for each in (clean, dirty):
        assert each.weights is not None
        assert each.times is not None
        rows_of.append(list(zip(each.left, each.right, each.weights, each.times, strict=True)))
    assert len(rows_of[1]) - len(rows_of[0]) in {0, 1}
    assert rows_of[0] == [*rows_of[1][:at], *rows_of[1][at + len(rows_of[1]) - len(rows_of[0]) :]]


def test_signs_of_patterns_in_the_name_of_a_file_are_part_of_it(opened: Callable[..., Network], tmp_path: Path) -> None:
    for name in ("e1", "e2", "e[12]", "e*"):
        for ending in ("csv", "parquet"):
            table = pa.table({"u": ["ada"], "v": ["bob" if name.startswith("e[") else "cyd"]})
            place = tmp_path / f"{name}.{ending}"
            pq.write_table(table, place) if ending == "parquet" else table.to_pandas().to_csv(place, index=False)
    for ending in ("csv", "parquet"):
        assert rows(opened(tmp_path / f"e[12].{ending}")) == {("ada", "bob")}


def test_broken_characters_in_parquet_and_arrow_are_read(opened: Callable[..., Network], tmp_path: Path) -> None:
    left = pa.array([b"ada", b"\xff", b"bob"], pa.binary()).view(pa.string())
    table = pa.table({"u": left, "v": ["bob", "ada", "cyd"]})
    pq.write_table(table, tmp_path / "e.parquet")
    for data in (table, tmp_path / "e.parquet"):
        assert rows(opened(data)) == {("ada", "bob"), ("bob", "cyd")}
        assert opened(data, unit=node(), nodes=None).data.graph.edges == 3


def test_a_directed_graph_is_not_taken_for_an_undirected_one(opened: Callable[..., Network]) -> None:
    both = [*FRIENDS, ("bob", "ada")]
    for data in (networkx.DiGraph(both), igraph.Graph.TupleList(both, directed=True)):
        with pytest.raises(NotDeclaredError, match="have a direction") as caught:
            opened(data)
        assert "directed=False" in caught.value.fix
        assert opened(data, directed=True).data.directed.edges == 6
        assert opened(data, directed=False).data.graph.edges == 5
    with pytest.raises(InvalidParameterError, match="have no direction"):
        opened(networkx.Graph(both), directed=True)
    with pytest.raises(InvalidParameterError, match="True or False"):
        opened(both, directed="yes")


def test_weights_and_times_are_read_where_they_are_named(opened: Callable[..., Network], tmp_path: Path) -> None:
    more = TABLE.append_column("w", pa.array([1.5, None, 3.0, float("nan"), 2.0]))
    more = more.append_column("t", pa.array([10, 20, None, 40, 50], pa.timestamp("s")))
    for data in (more, more.to_pandas(), pl.from_arrow(more)):
        pairs = opened(data, weights="w", time="t").data.pairs
        assert pairs.weights is not None
        assert pairs.times is not None
        assert np.array_equal(pairs.weights, [1.5, np.nan, 3.0, np.nan, 2.0], equal_nan=True)
        assert pairs.times.tolist() == [10**7, 2 * 10**7, -(2**63), 4 * 10**7, 5 * 10**7]
    (tmp_path / "w.csv").write_text(
        "source,target,w,t\nada,bob,1.5,1970-01-01 00:00:10\nbob,cyd,much,then\n", encoding="utf-8"
    )
    pairs = opened(tmp_path / "w.csv", weights="w", time="t").data.pairs
    assert pairs.weights is not None
    assert pairs.times is not None
    assert np.array_equal(pairs.weights, [1.5, np.nan], equal_nan=True)
    assert pairs.times.tolist() == [10**7, -(2**63)]
    with_more = networkx.Graph()
    with_more.add_edge("ada", "bob", w=2, t=7)
    with_more.add_edge("bob", "cyd")
    pairs = opened(with_more, weights="w", time="t").data.pairs
    assert pairs.weights is not None
    assert pairs.times is not None
    assert np.array_equal(pairs.weights, [2.0, np.nan], equal_nan=True)
    assert pairs.times.tolist() == [7, -(2**63)]


@pytest.mark.parametrize("column", [["a", "b"], [True, False], [[1], [2]]])
def test_times_that_are_none_are_refused_by_their_type(opened: Callable[..., Network], column: Any) -> None:
    with pytest.raises(InvalidParameterError, match="neither dates nor whole numbers"):
        opened(pa.table({"u": ["ada", "bob"], "v": ["bob", "cyd"], "t": column}), time="t")


@pytest.mark.parametrize("column", [["a", "b"], [[1], [2]]])
def test_weights_that_are_none_are_refused_by_their_type(opened: Callable[..., Network], column: Any) -> None:
    with pytest.raises(InvalidParameterError, match="not numbers"):
        opened(pa.table({"u": ["ada", "bob"], "v": ["bob", "cyd"], "w": column}), weights="w")


def with_values(name: str, values: list[Any]) -> list[Any]:
    """The same column of values in frames of every sort that can hold them."""
    frame = pd.DataFrame({"u": ["ada"] * len(values), "v": ["bob"] * len(values)})
    made = [frame.assign(**{name: pd.Series(values, dtype=object)})]
    graph = networkx.MultiGraph()
    graph.add_nodes_from(NAMES)
    for value in values:
        graph.add_edge("ada", "bob", **{name: value})
    return [*made, graph]


ODD: list[Any] = [2**53 + 1, 10**400, -(10**400), 2**63, "x", b"x", None, True, math.nan, math.inf, Decimal("sNaN")]
ODD += [
    Decimal("1e999999"),
    Fraction(10**400, 3),
    (),
    object(),
    pd.NaT,
    pd.NA,
    dt.date(9999, 12, 31),
    np.datetime64("NaT"),
]
ODD += [np.datetime64("200000-01-01"), dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14))), "\ud800"]


@pytest.mark.parametrize("odd", ODD, ids=lambda value: type(value).__name__)
def test_every_weight_and_every_time_has_an_outcome(opened: Callable[..., Network], odd: Any) -> None:
    for data in with_values("w", [1, odd, 2.5]):
        weights = opened(data, weights="w", unit=weight(bound=2)).data.pairs.weights
        assert weights is not None
        assert weights[[0, 2]].tolist() == [1.0, 2.5]
    for data in with_values("t", [1, odd, 5]):
        times = opened(data, time="t", unit=event()).data.pairs.times
        assert times is not None
        assert times[[0, 2]].tolist() == [1, 5]


@pytest.mark.parametrize(
    "weights",
    [
        pa.array([1, 2**62 + 1, None]),
        pa.array([1, 2**64 - 1, None], pa.uint64()),
        pa.array([Decimal(1), Decimal(10**30), None]),
        pd.array([1, 2**62 + 1, None], dtype="Int64"),
    ],
    ids=lambda column: str(type(column)),
)
def test_weights_that_are_not_exact_as_floats_are_rounded(opened: Callable[..., Network], weights: Any) -> None:
    columns = {"u": ["ada"] * 3, "v": ["bob"] * 3, "w": weights}
    frame = pa.table(columns) if isinstance(weights, pa.Array) else pd.DataFrame(columns)
    found = opened(frame, weights="w", unit=weight(bound=2)).data.pairs.weights
    assert found is not None
    assert found[0] == 1
    assert found[1] > 2**61
    assert np.isnan(found[2])


def test_numbers_of_numpy_are_weights(opened: Callable[..., Network]) -> None:
    graph = networkx.Graph()
    graph.add_edge("ada", "bob", w=np.int64(2))
    graph.add_edge("bob", "cyd", w=np.float32(0.5))
    found = opened(graph, weights="w", unit=weight(bound=2)).data.pairs.weights
    assert found is not None
    assert found.tolist() == [2.0, 0.5]


@pytest.mark.parametrize(
    "times",
    [
        np.array([1, 2**63, 5], np.uint64),
        pa.array([1, 2**63, 5], pa.uint64()),
        pd.array([1, None, 5], dtype="UInt64"),
    ],
    ids=lambda column: str(type(column)),
)
def test_times_beyond_64_bits_are_missing(opened: Callable[..., Network], times: Any) -> None:
    columns = {"u": ["ada"] * 3, "v": ["bob"] * 3, "t": times}
    frame = pa.table(columns) if isinstance(times, pa.Array) else pd.DataFrame(columns)
    found = opened(frame, time="t", unit=event()).data.pairs.times
    assert found is not None
    assert found.tolist() == [1, -(2**63), 5]


@pytest.mark.parametrize(
    "ends",
    [
        pd.Series(pd.Categorical([1, None, 2], categories=[1, 2])),
        pd.Series([1, 2**63, "x"], dtype=object),
        pd.Series(["a", "\ud800", None], dtype=pd.StringDtype("python")),
        pd.Series([pd.Timestamp("2020-01-01"), pd.NaT, pd.Timestamp("2021-01-01")]),
        pa.array([0, 2**60, 5], pa.timestamp("us")),
        pa.array(["a", None, "b"]),
        np.array(["2020", "NaT", "2021"], "datetime64[Y]"),
    ],
    ids=lambda column: str(type(column)),
)
@pytest.mark.parametrize("rows_kept", [0, 1, 3])
def test_ends_of_every_type_open_and_answer_without_a_list_of_nodes(
    opened: Callable[..., Network], ends: Any, rows_kept: int
) -> None:
    part = ends[:rows_kept]
    others = [1] * rows_kept
    graphs = [(part, np.array(others, np.int64))]
    if isinstance(ends, pd.Series):
        graphs.append(pd.DataFrame({"u": part, "v": others}))
    for data in graphs:
        for unit in (node(), node(max_degree=3)):
            assert opened(data, unit=unit, nodes=None).edges(cap=2).release(epsilon=1).value is not None
            assert opened(data, unit=unit, nodes=[1, "x", 2**80]).edges(cap=2).release(epsilon=1).value is not None
