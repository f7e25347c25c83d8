"""The same edges from every kind of source; and sources that cannot be used."""

from collections.abc import Callable
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
from tests.graphs.conftest import FRIENDS, NAMES, TABLE, named_edges

from defocus import weight
from defocus.errors import InvalidParameterError, NotDeclaredError, SourceError, UnknownColumnError
from defocus.graphs import Network

igraph = pytest.importorskip("igraph")
networkx = pytest.importorskip("networkx")


NUMBERS = np.array([[NAMES.index(u), NAMES.index(v)] for u, v in FRIENDS])


NUMBERED = pa.table({"u": NUMBERS[:, 0], "v": NUMBERS[:, 1]})


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


@pytest.mark.slow
@pytest.mark.parametrize("sort", ["parquet", "csv", "tsv", "duckdb"])
def test_files_of_names_and_of_numbers(opened: Callable[..., Network], tmp_path: Path, sort: str) -> None:
    data, said = in_files(tmp_path, TABLE)[sort]
    named = opened(data, **said)
    assert named_edges(named) == {tuple(sorted(pair)) for pair in FRIENDS}
    assert named.name == "e"
    data, said = in_files(tmp_path, NUMBERED)[sort]
    assert named_edges(opened(data, nodes=6, **said)) == {tuple(sorted(pair)) for pair in NUMBERS.tolist()}
    assert named_edges(opened(data, nodes=range(6), **said)) == {tuple(sorted(pair)) for pair in NUMBERS.tolist()}


@pytest.mark.parametrize(
    "data",
    [
        FRIENDS,
        set(FRIENDS),
        frozenset(FRIENDS),
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
    assert named_edges(opened(data)) == {tuple(sorted(pair)) for pair in FRIENDS}


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
    assert named_edges(opened(data, nodes=6)) == {tuple(sorted(pair)) for pair in NUMBERS.tolist()}


def test_zeros_of_a_matrix_are_no_edges(opened: Callable[..., Network]) -> None:
    matrix = sp.coo_array(([1.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert named_edges(opened(matrix, nodes=3)) == {(0, 1)}


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
    for held in ("dia", "dok", "lil"):
        with pytest.raises(SourceError, match="weight zero"):
            opened(sp.eye_array(3).asformat(held), nodes=3, weights="w", unit=weight(bound=2))


def test_columns_are_named_or_have_usual_names(opened: Callable[..., Network]) -> None:
    other = TABLE.rename_columns(["giver", "taker"])
    with pytest.raises(InvalidParameterError, match="not clear among giver, taker") as caught:
        opened(other)
    assert "ends=(" in caught.value.fix
    assert named_edges(opened(other, ends=("giver", "taker"))) == {tuple(sorted(pair)) for pair in FRIENDS}
    assert named_edges(opened(TABLE.rename_columns(["Target", "Source"]))) == {tuple(sorted(pair)) for pair in FRIENDS}


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


def test_a_tuple_is_two_columns_however_many_edges_there_are(opened: Callable[..., Network]) -> None:
    assert named_edges(opened(((0, 2), (1, 3)), nodes=4)) == {(0, 1), (2, 3)}
    assert named_edges(opened([(0, 2), (1, 3)], nodes=4)) == {(0, 2), (1, 3)}
    for edges in ((), ((0, 1),), ((0, 1), (1, 2), (2, 3))):
        with pytest.raises(SourceError, match="two columns") as caught:
            opened(edges, nodes=4)
        assert "list" in caught.value.fix
    with pytest.raises(InvalidParameterError, match="list or an array"):
        opened(("ab", "cd"), nodes=4)
