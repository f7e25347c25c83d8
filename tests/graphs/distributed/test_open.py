"""What opens in an engine, what is refused before a ledger is made or charged, and what the answers are like."""

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

from defocus import Budget, edge, item, node, weight
from defocus.errors import BudgetExceededError, DefocusError, EngineError, InvalidParameterError, SourceError
from defocus.graphs import Edges, Network, Triangles, open_graph
from defocus.graphs.node_names import Lines
from defocus.graphs.statistics import PageRank

FRIENDS = pa.table({"source": [0, 1, 2, 0, 3, 3], "target": [1, 2, 0, 3, 4, 9]})


@pytest.fixture
def in_duckdb(opened: Callable[..., Network]) -> Network:
    return opened(FRIENDS, nodes=6, engine="duckdb", memory="500MB", threads=1)


def test_questions_are_answered_as_in_memory(in_duckdb: Network) -> None:
    graph = in_duckdb
    assert graph.edges().release(epsilon=60).value == pytest.approx(5, abs=1)
    assert graph.triangles().release(epsilon=60, method="laplace").value == pytest.approx(1, abs=1)
    assert graph.stars(2).release(epsilon=60, method="laplace").value == pytest.approx(8, abs=2)
    assert graph.degrees().release(epsilon=60).value == pytest.approx([3, 2, 2, 2, 1, 0], abs=1)
    assert len(graph.degree_histogram().release(epsilon=5)) == 6
    assert len(graph.degree_sequence().release(epsilon=5)) == 6
    assert len(graph.joint().release(epsilon=5).columns) == 3
    assert len(graph.joint("edges", "degree_histogram").release(epsilon=5)) == 7
    assert len(graph.subgraph_counts("edges", "stars_3").release(epsilon=5).columns) == 2
    assert 0 <= graph.clustering().release(epsilon=5).value["clustering"] <= 1
    assert len(graph.top_degrees(k=2).release(epsilon=5, method="subset")) == 2


def test_every_method_of_triangles_and_stars_runs(in_duckdb: Network) -> None:
    for query in (in_duckdb.triangles(), in_duckdb.stars(3)):
        for method in query.methods(epsilon=1, delta=1e-5):
            assert np.isfinite(query.release(epsilon=1, delta=1e-5, method=method.name).columns[0].values).all()


def test_what_the_noise_follows_is_said(in_duckdb: Network) -> None:
    method = in_duckdb.triangles().plan(epsilon=1, method="ladder")
    assert "or the degree that 8192 nodes reach if that is larger" in method.how


@pytest.mark.parametrize(
    "ask",
    [
        lambda g: g.pagerank(),
        lambda g: g.communities(),
        lambda g: g.communities(labellings=[[0] * 6]),
        lambda g: g.weights(),
        lambda g: g.interactions(every=1, start=0, end=2),
        lambda g: g.joint(Edges(), PageRank()),
    ],
)
def test_what_has_no_form_in_sql_is_refused_before_the_charge(ask: Any, in_duckdb: Network) -> None:
    before = len(list(in_duckdb.ledger.entries()))
    for use in ("preview", "plan", "release"):
        with pytest.raises(InvalidParameterError, match="no way to compute this in an engine") as caught:
            getattr(ask(in_duckdb), use)(epsilon=1)
        assert "leave engine= out" in caught.value.fix
    assert len(list(in_duckdb.ledger.entries())) == before


@pytest.mark.parametrize(
    ("data", "said", "message"),
    [
        (FRIENDS, {"engine": "oracle"}, "is no engine"),
        (FRIENDS, {"engine": 3}, "is no engine"),
        (FRIENDS, {"engine": "postgresql"}, "cannot compute where these edges are"),
        ("postgresql://nowhere/x", {"engine": "duckdb", "table": "e"}, "cannot compute where these edges are"),
        ([(0, 1)], {"engine": "duckdb"}, "in memory already"),
        (np.zeros((2, 2), int), {"engine": "duckdb"}, "in memory already"),
        (FRIENDS, {"memory": "1GB"}, "for an engine, and none was named"),
        (FRIENDS, {"threads": 2}, "for an engine, and none was named"),
        (FRIENDS, {"engine": "duckdb", "unit": node(), "nodes": None}, "a graph protects edges"),
        (FRIENDS, {"engine": "duckdb", "unit": weight(bound=1), "weights": "target"}, "a graph protects edges"),
        (FRIENDS, {"engine": "duckdb", "unit": item(), "time": "target"}, "a graph protects edges"),
        (FRIENDS, {"engine": "duckdb", "weights": "target"}, "without weights and times"),
        (FRIENDS, {"engine": "duckdb", "nodes": None}, "nobody said what they are"),
        (FRIENDS, {"engine": "duckdb", "nodes": ["a"]}, "not named by numbers"),
        (FRIENDS, {"engine": "duckdb", "nodes": [1, 2**70]}, "a whole number beyond 64 bits"),
        (FRIENDS, {"engine": "duckdb", "ends": ("source", "x")}, "x"),
        (pa.table({"a": [1], "b": [2]}), {"engine": "duckdb"}, "Which columns hold the two ends"),
        (pa.table({"u": [True], "v": [False]}), {"engine": "duckdb"}, "of kind boolean"),
        (pa.table({"u": pa.array([b"x"]), "v": pa.array([b"y"])}), {"engine": "duckdb"}, "of kind other"),
        (pa.table({"u": [1.5], "v": [2.0]}), {"engine": "duckdb", "nodes": [1.5, 2]}, "a number with a fraction"),
        (pa.table({"u": [1.5], "v": [2.0]}), {"engine": "duckdb", "nodes": "as listed"}, "not listed in an engine"),
        (pa.table({"u": ["a"], "v": ["b"]}), {"engine": "duckdb", "nodes": ["a\0"]}, "text with a zero byte"),
        (pa.table({"u": ["a"], "v": ["b"]}), {"engine": "duckdb", "nodes": 4}, "called otherwise"),
        (pd.DataFrame({"u": pd.Series([1, "x"], dtype=object), "v": [1, 2]}), {"engine": "duckdb"}, "Python objects"),
        (pl.DataFrame({"u": pl.Series([object()], dtype=pl.Object), "v": [1]}), {"engine": "duckdb"}, "Python objects"),
    ],
)
def test_what_cannot_be_opened_is_refused_without_making_a_ledger(
    data: Any, said: dict[str, Any], message: str, tmp_path: Path
) -> None:
    place = tmp_path / "g.ledger"
    usual: dict[str, Any] = {"unit": edge(), "budget": Budget(1), "nodes": 6, "ledger": place, "name": "g"}
    with pytest.raises(DefocusError, match=message) as caught:
        open_graph(data, **{**usual, **said})
    assert caught.value.fix
    assert not place.exists()


def test_a_duckdb_connection_and_a_file_of_it_are_read_in_place(opened: Callable[..., Network], tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "g.duckdb")) as connection:
        connection.execute("CREATE TABLE edges AS SELECT i AS source, (i + 1) % 5 AS target FROM range(5) AS t(i)")
        assert opened(connection, table="edges", nodes=5).data.graph.edges == 5
    assert opened(tmp_path / "g.duckdb", table="edges", nodes=5, engine="duckdb").data.graph.edges == 5


def test_a_folder_of_files_is_one_graph(opened: Callable[..., Network], tmp_path: Path) -> None:
    folder = tmp_path / "edges"
    folder.mkdir()
    for i in range(3):
        pq.write_table(pa.table({"u": [i, i], "v": [i + 1, 0]}), folder / f"{i}.parquet")
    graph = opened(folder, nodes=4, engine="duckdb")
    assert graph.name == "edges"
    assert graph.data.graph.edges == 4
    assert opened([folder / "0.parquet", folder / "2.parquet"], nodes=4, engine="duckdb").data.graph.edges == 3


def test_typed_frames_are_read_by_the_types_of_their_columns(opened: Callable[..., Network]) -> None:
    text = pd.DataFrame({"u": ["a", "b", None], "v": ["b", "a", "a"]}, dtype="string")
    assert opened(text, nodes=["a", "b"], engine="duckdb").data.graph.edges == 1
    holes = pd.DataFrame({"u": [0.0, 1.0, None], "v": [1.0, 2.0, 0.0]})
    assert opened(holes, nodes=3, engine="duckdb").data.graph.edges == 2


def test_the_same_rows_are_counted_within_one_release_and_the_engine_ends_with_the_graph(in_duckdb: Network) -> None:
    with in_duckdb.data.steady():
        assert in_duckdb.data.graph.edges == 5
    in_duckdb.close()
    with pytest.raises(DefocusError):
        _ = in_duckdb.data.graph.edges


def test_edges_in_an_engine_are_never_read(in_duckdb: Network) -> None:
    with pytest.raises(DefocusError, match="are not read"):
        _ = in_duckdb.data.pairs


def test_a_kept_answer_is_the_same_in_memory_and_in_an_engine(opened: Callable[..., Network], tmp_path: Path) -> None:
    said = {"nodes": 6, "ledger": tmp_path / "one.ledger", "name": "one"}
    with opened(FRIENDS, engine="duckdb", **said) as graph:
        first = graph.edges().release(epsilon=1, request="edges").value
    with opened(FRIENDS, **said) as graph:
        assert graph.edges().release(epsilon=1, request="edges").value == first


def test_an_address_has_no_ledger_beside_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="could not be reached"):
        open_graph("postgresql://127.0.0.1:1/x", table="e", unit=edge(), budget=Budget(1), nodes=3)
    assert list(tmp_path.iterdir()) == []


def test_local_sensitivity_needs_no_compiler_in_an_engine(in_duckdb: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("defocus.machine_code.compiler", lambda *_: pytest.fail("nothing is compiled"))
    assert Triangles().local(in_duckdb.data.graph) == (1, 1)
    assert in_duckdb.stars(2).release(epsilon=1).value is not None


@pytest.mark.parametrize("file", ["a.b.parquet", "g.duckdb"])
def test_a_file_has_one_ledger_in_memory_and_in_an_engine(file: str, tmp_path: Path) -> None:
    """Another name would be another ledger, and the budget would start anew."""
    said: dict[str, Any] = {"unit": edge(), "budget": Budget(1), "nodes": 5}
    if file.endswith("duckdb"):
        said["table"] = "edges"
        with duckdb.connect(str(tmp_path / file)) as connection:
            connection.execute("CREATE TABLE edges AS SELECT 1 AS u, 2 AS v")
    else:
        pq.write_table(FRIENDS, tmp_path / file)
    with open_graph(tmp_path / file, **said) as graph:
        graph.edges().release(epsilon=0.75)
    with open_graph(str(tmp_path / file), engine="duckdb", **said) as graph:
        assert graph.remaining().epsilon == pytest.approx(0.25)
        with pytest.raises(BudgetExceededError):
            graph.edges().release(epsilon=0.5)
    assert len(list(tmp_path.glob("*.ledger"))) == 1


@pytest.mark.parametrize("sides", [("string", "int64"), ("int64", "string"), ("string", "string")])
def test_lines_of_a_file_name_nodes_as_in_memory(sides: tuple[str, str], opened: Callable[..., Network]) -> None:
    """Lines are numbers where one of the columns holds numbers, and text where both hold text."""
    kinds = {"string": pa.string(), "int64": pa.int64()}
    values: dict[str, list[Any]] = {"string": ["1", "2", "01", None, "3"], "int64": [2, 3, 1, 1, None]}
    made = pa.table({name: pa.array(values[side], kinds[side]) for name, side in zip("uv", sides, strict=True)})
    for engine in (None, "duckdb"):
        graph = opened(made, nodes=Lines(["1", "2", "3", "01"]), engine=engine)
        assert graph.data.graph.edges == (0 if sides[0] == sides[1] else 3)


def test_a_database_that_gave_up_is_refused_before_the_charge(
    in_duckdb: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(list(in_duckdb.ledger.entries()))
    monkeypatch.setattr(in_duckdb.data.graph.engine, "_gone", True)
    with pytest.raises(EngineError, match="gave up"):
        in_duckdb.edges().release(epsilon=1)
    assert len(list(in_duckdb.ledger.entries())) == before


def test_categories_of_pandas_have_no_type_of_their_own(opened: Callable[..., Network]) -> None:
    for values in ([0, 1], ["a", "b"], [0, "b"], [0.5, 1]):
        frame = pd.DataFrame({"u": pd.Categorical(values), "v": pd.Categorical(values[::-1])})
        with pytest.raises(SourceError, match="categories of pandas") as caught:
            opened(frame, nodes=2, engine="duckdb")
        assert "type" in caught.value.fix
    declared = pa.table({"u": pa.array(["a"]).dictionary_encode(), "v": pa.array(["b"]).dictionary_encode()})
    assert opened(declared, nodes=["a", "b"], engine="duckdb").data.graph.edges == 1


@pytest.mark.parametrize("said", [{}, {"ends": ("11", "12")}])
def test_a_first_line_that_looks_like_an_edge_is_neither_lost_nor_shown(tmp_path: Path, said: Any) -> None:
    (tmp_path / "e.csv").write_text("11,12\n12,13\n", encoding="utf-8")
    with pytest.raises(InvalidParameterError, match="does not look like the names of columns") as caught:
        open_graph(tmp_path / "e.csv", engine="duckdb", unit=edge(), budget=Budget(1), nodes=20, **said)
    assert "11" not in str(caught.value)


def test_names_that_may_be_people_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("zoe,yan\nada,bob\n", encoding="utf-8")
    with pytest.raises(InvalidParameterError) as caught:
        open_graph(tmp_path / "e.csv", engine="duckdb", unit=edge(), budget=Budget(1), nodes=["ada", "bob"])
    assert "yan" not in str(caught.value)
