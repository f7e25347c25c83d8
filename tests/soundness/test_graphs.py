"""Graphs: every way to open edges, and every question of a network by every method, with one odd edge more."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import igraph  # type: ignore[import-untyped]
import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from tests.soundness.odd_rows import VALUES
from tests.soundness.watching import Base, Difference, attempt, compared, no_differences

import defocus as dp
from defocus.graphs import GraphQuery, Network

NODES = ["a", "b", "c", "d", "e", "f"]
BASE: list[tuple[Any, ...]] = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"), ("d", "e")]

GIVEN: Mapping[str, dict[str, Any]] = {
    "interactions": {"every": 1, "start": 0, "end": 4},
    "communities": {"at_most": 3},
    "partition": {"k": 2},
    "group_edges": {"groups": list("aabbcc")},
    "top_degrees": {"k": 2},
}
"""What a question is given that a graph of six nodes needs."""
WORDS: Mapping[str, Sequence[Any]] = {
    "joint": ("edges", "triangles"),
    "ergm": ("edges",),
    "subgraph_counts": ("triangles",),
}
"""What a question with any number of words is given, by its name."""
UNITS: Mapping[str, Any] = {
    "edge": dp.edge(), "node": dp.node(), "bounded node": dp.node(max_degree=3), "replaced edge": dp.edge(replace=True),
}  # fmt: skip


PRICE: dict[str, Any] = {"epsilon": 2}
FEW = ["edges", "degrees"]


def questions() -> Iterator[str]:
    """Every method of a network that makes a question."""
    for name, method in inspect.getmembers(Network, inspect.isfunction):
        if not name.startswith("_") and inspect.signature(method).return_annotation is GraphQuery and name != "ask":
            yield name


def asked(network: Network, name: str) -> GraphQuery:
    query: GraphQuery = getattr(network, name)(*WORDS.get(name, ()), **GIVEN.get(name, {}))
    return query


def everything(network: Network, names: Sequence[str], price: Mapping[str, Any]) -> Any:
    """Every question, by every method: what it would cost, and its answer."""
    found: list[Any] = [str(network), repr(network)]
    for name in names:
        refused = {"refused": "no noise of this kind|are asked of|is private, and this question|Nodes without an edge"}
        found.append(attempt(lambda name=name: repr(asked(network, name)), **refused))  # type: ignore[misc]
        ways = attempt(lambda name=name: [each.name for each in asked(network, name).methods(**price)], **refused)  # type: ignore[misc]
        found.append(ways)
        for way in ways[1][1] if ways[0] == "result" else ():
            query, given = asked(network, name), {**price, "method": way}
            found.append(attempt(lambda query=query, given=given: str(query.preview(**given))))  # type: ignore[misc]
            found.append(attempt(lambda query=query, given=given: shown(query.release(**given))))  # type: ignore[misc]
    return found


def shown(answer: Any) -> Any:
    return [str(answer), answer.explain(), answer.to_arrow(), answer.to_json()]


Edge = Any


def _columns(edges: Sequence[Edge]) -> tuple[list[Any], list[Any]]:
    if any(not isinstance(edge, tuple) or len(edge) != 2 for edge in edges):
        raise ValueError
    return [edge[0] for edge in edges], [edge[1] for edge in edges]


def _frame(edges: Sequence[Edge]) -> Any:
    left, right = _columns(edges)
    made = np.empty((len(edges), 2), dtype=object)
    for i, (one, other) in enumerate(zip(left, right, strict=True)):
        made[i, 0], made[i, 1] = one, other
    return pd.DataFrame({"from": made[:, 0], "to": made[:, 1]})


def _texts(edges: Sequence[Edge]) -> pa.Table:
    left, right = _columns(edges)
    return pa.table({"from": pa.array(left, pa.string()), "to": pa.array(right, pa.string())})


def _file(suffix: str, separator: str, header: str) -> Callable[[Path, Sequence[Edge]], Any]:
    def put(home: Path, edges: Sequence[Edge]) -> Any:
        lines = [separator.join(edge) if isinstance(edge, tuple) else edge for edge in edges]
        (home / f"v{suffix}").write_bytes("\n".join([*([header] if header else []), *lines, ""]).encode())
        return home / f"v{suffix}"

    return put


def _parquet(home: Path, edges: Sequence[Edge]) -> Any:
    pq.write_table(_texts(edges), home / "v.parquet")
    return home / "v.parquet"


def _networkx(home: Path, edges: Sequence[Edge]) -> Any:
    del home
    _columns(edges)
    made = nx.Graph()
    made.add_nodes_from(NODES)
    made.add_edges_from(edges)
    return made


def _igraph(home: Path, edges: Sequence[Edge]) -> Any:
    del home
    _columns(edges)
    names = list(dict.fromkeys([*NODES, *(end for edge in edges for end in edge)]))
    if not all(isinstance(name, str) for name in names):
        raise TypeError
    made = igraph.Graph()
    made.add_vertices(names)
    made.add_edges(edges)
    return made


def _number(end: Any) -> int:
    return NODES.index(end) if isinstance(end, str) and end in NODES else int(np.int64(end))


def _numbered(edges: Sequence[Edge]) -> list[tuple[int, int]]:
    left, right = _columns(edges)
    return [(_number(one), _number(other)) for one, other in zip(left, right, strict=True)]


def _sparse(home: Path, edges: Sequence[Edge]) -> Any:
    del home
    made = scipy.sparse.lil_matrix((6, 6), dtype=np.float64)
    for one, other in _numbered(edges):
        if not (0 <= one < 6 and 0 <= other < 6):
            raise ValueError
        made[one, other] = 1
    return made.tocsr()


WAYS: Mapping[str, tuple[Callable[[Path, Sequence[Edge]], Any], Any]] = {
    "list": (lambda _, edges: list(edges), NODES),
    "frame": (lambda _, edges: _frame(edges), NODES),
    "arrow": (lambda _, edges: _texts(edges), NODES),
    "polars": (lambda _, edges: pl.from_arrow(_texts(edges)), NODES),
    "two columns": (lambda _, edges: _columns(edges), NODES),
    "csv": (_file(".csv", ",", "from,to"), NODES),
    "tsv": (_file(".tsv", "\t", "from\tto"), NODES),
    "txt": (_file(".txt", " ", ""), NODES),
    "parquet": (_parquet, NODES),
    "networkx": (_networkx, NODES),
    "igraph": (_igraph, NODES),
    "numbers": (lambda _, edges: np.array(_numbered(edges), np.int64), 6),
    "list of numbers": (lambda _, edges: _numbered(edges), 6),
    "sparse": (_sparse, 6),
}


def odd_edges(way: str, home: Path) -> dict[str, Any]:
    """Every odd edge that this way can hold."""
    put, _ = WAYS[way]
    found: dict[str, Any] = {
        "an ordinary edge": ("b", "e"),
        "an edge again": ("a", "b"),
        "an edge backwards": ("b", "a"),
        "a loop": ("a", "a"),
        "an unknown node": ("a", "zed"),
        "no end": ("a",),
        "three ends": ("a", "b", "c"),
        "no edge": (),
        "an edge of text": "ab",
        "a line of text": 'a,"b',
        "an edge that is none": None,
        "a list": ["a", "c"],
    }
    for name, make in VALUES.items():
        found[f"{name} at one end"] = ("a", make())
        found[f"{name} at both ends"] = (make(), make())
    kept = {}
    for name, edge in found.items():
        try:
            put(home, [*BASE, edge])
        except Exception:  # noqa: BLE001, S112 -- whatever its library says: it cannot hold this
            continue
        kept[name] = edge
    return kept


def tried(
    way: str,
    unit: Any,
    names: Sequence[str],
    where: Path,
    *,
    apart: bool = False,
    engine: str | None = None,
    price: Any = PRICE,
) -> list[Difference]:
    put, nodes = WAYS[way]
    replaced = unit.adjacency is dp.privacy.Adjacency.REPLACE
    where.mkdir(exist_ok=True)

    def drive(home: Path, added: Sequence[Any]) -> Any:
        book: dict[str, Any] = {"budget": dp.Budget(1000, 1e-2), "ledger": home / "g.ledger", "name": "g"}
        told = {} if unit.kind == "node" else {"nodes": nodes}
        edges = [*BASE[len(added) :], *added] if replaced else [*BASE, *added]
        with dp.open_graph(put(home, edges), unit=unit, **book, **told, engine=engine) as network:
            return everything(network, names, price)

    entry = f"open_graph({way}{'' if engine is None else f', {engine}'}), {unit}"
    odds = odd_edges(way, where)
    # Sensitivity to nodes is certified elsewhere: an odd edge between known nodes is not a node more or less.
    return compared(entry, drive, odds, apart=apart or replaced, measured=unit.kind == "edge")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_no_edge_is_told_by_any_way_to_open_a_graph(way: str, tmp_path: Path) -> None:
    no_differences(tried(way, dp.edge(), FEW, tmp_path / "try"))


@pytest.mark.parametrize(
    "unit", ["edge", "node", "bounded node", pytest.param("replaced edge", marks=pytest.mark.long)]
)
def test_no_edge_is_told_by_any_question(unit: str, tmp_path: Path) -> None:
    names = sorted(questions())
    assert len(names) >= 14
    no_differences(tried("list", UNITS[unit], FEW if "replaced" in unit else names, tmp_path / "try"))


@pytest.mark.slow
def test_no_edge_is_told_by_any_question_that_needs_a_delta(tmp_path: Path) -> None:
    no_differences(tried("list", dp.edge(), [*FEW, "triangles"], tmp_path, price={"epsilon": 2, "delta": 1e-4}))


VALUED = [("a", "b", 0.5, 0), ("b", "c", 0.25, 1), ("c", "a", 1.0, 2), ("a", "d", 0.0, 3)]
"""Edges with weights and times."""


@pytest.mark.parametrize("unit", ["event", pytest.param("weight", marks=pytest.mark.slow)])
def test_no_value_of_an_edge_is_told(unit: str) -> None:
    protects, column = {"weight": (dp.weight(bound=1), "weights"), "event": (dp.item(), "time")}[unit]

    def drive(home: Path, odd: Sequence[Any]) -> Any:
        more_rows = [("a", "d", value, value) for value in odd]
        rows = [*(VALUED[:-1] if odd and unit == "weight" else VALUED), *more_rows]
        held = np.empty((len(rows), 2), dtype=object)
        for i, row in enumerate(rows):
            held[i, 0], held[i, 1] = row[2], row[3]
        ends = {"from": [row[0] for row in rows], "to": [row[1] for row in rows]}
        frame = pd.DataFrame({**ends, "value": held[:, 0] if unit == "weight" else held[:, 1]})
        book: dict[str, Any] = {"budget": dp.Budget(1000, 1e-2), "ledger": home / "g.ledger", "name": "g"}
        more: dict[str, Any] = {column: "value", "ends": ("from", "to")}
        with dp.open_graph(frame, unit=protects, nodes=NODES, **book, **more) as network:
            return everything(network, ["weights" if unit == "weight" else "interactions", "edges"], PRICE)

    odds = {name: make() for name, make in VALUES.items()}
    no_differences(compared(f"open_graph(frame, {column}=…), {protects}", drive, odds, apart=unit == "weight"))


def test_every_question_is_answered_for_somebody() -> None:
    """A question that everybody is refused is not tried at all."""
    frame = pd.DataFrame(VALUED, columns=["from", "to", "w", "t"])
    answered: set[str] = set()
    for unit, more in ((dp.edge(), {}), (dp.weight(bound=1), {"weights": "w"}), (dp.item(), {"time": "t"})):

        def drive(home: Path, unit: Any = unit, more: Any = more) -> Any:
            book: dict[str, Any] = {"budget": dp.Budget(1000, 1e-2), "ledger": home / "g.ledger", "name": "g"}
            with dp.open_graph(frame, unit=unit, nodes=NODES, ends=("from", "to"), **book, **more) as network:
                for name in questions():
                    if attempt(lambda name=name: asked(network, name).release(**PRICE), refused=".")[0] == "result":  # type: ignore[misc]
                        answered.add(name)

        Base("questions", drive)
    assert answered == set(questions())


@pytest.mark.parametrize("way", ["csv", *(pytest.param(w, marks=pytest.mark.slow) for w in ("parquet", "arrow"))])
def test_no_edge_is_told_by_an_engine(way: str, tmp_path: Path) -> None:
    no_differences(tried(way, dp.edge(), ["edges", "triangles"], tmp_path / way, engine="duckdb"))


def test_no_node_is_told_by_sums_over_neighbours() -> None:
    lists: Mapping[str, list[int]] = {
        "nobody": [],
        "all": [0, 1, 2, 3, 4],
        "itself": [5],
        "one twice": [1, 1],
        "no node": [6, -1, 2**62, -(2**63), 2**63 - 1],
    }
    values: Mapping[str, list[float]] = {
        "ones": [1.0, 1.0],
        "NaN": [np.nan, 0.5],
        "infinities": [np.inf, -np.inf],
        "the least and the largest": [5e-324, 1.7e308],
        "less than nothing": [-0.0, -1.0],
    }

    def drive(home: Path, odd: Sequence[Any]) -> Any:
        mine, knows = odd[0] if odd else ([], [0.0, 0.0])
        columns = np.array([[0, 1], [1, 2], [2, 0], [0, 5], *([5, other] for other in mine)], np.int64)
        known = np.array([[1, 0], [0, 1], [0.6, 0.8], [0, 0], [0.2, 0.2], knows])
        book: dict[str, Any] = {"budget": dp.Budget(1000, 1e-2), "unit": dp.user("page"), "dataset": "pages"}
        with dp.Ledger.open(home / "g.ledger", **book) as ledger:
            made = dp.graphs.neighbour_sums(
                (columns[:, 0], columns[:, 1]), known, nodes=6, ledger=ledger, request="a", epsilon=2, delta=1e-4
            )
            return [str(made), made.explain(), made.value.dtype, made.value.shape, made.to_dict()["error"]]

    odds = {f"{one} listed, {other}": (lists[one], values[other]) for one in lists for other in values}
    no_differences(compared("neighbour_sums", drive, odds, apart=True))


@pytest.mark.long
@pytest.mark.parametrize("way", ["list"])
def test_no_edge_is_told_by_itself(way: str, tmp_path: Path) -> None:
    no_differences(tried(way, dp.edge(), FEW, tmp_path / "try", apart=True))
