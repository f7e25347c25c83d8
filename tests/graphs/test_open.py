"""Opening a graph: what is public is said, and everything wrong is refused before a ledger is made."""

import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.graphs.conftest import FRIENDS, NAMES

import defocus as dp
from defocus import Budget, edge, item, node, rows, user, weight
from defocus.errors import (
    DefocusError,
    InvalidParameterError,
    LedgerMismatchError,
    MissingExtraError,
    NotDeclaredError,
)
from defocus.graphs import Network
from defocus.graphs.node_names import Lines
from defocus.graphs.open import open_graph
from defocus.graphs.statistics.node_level import CappedEdges, ProjectedHistogram
from defocus.ledger import Ledger

nx = pytest.importorskip("networkx")


def test_the_front_door_opens_it(tmp_path: Path) -> None:
    assert dp.open_graph is open_graph
    with dp.open_graph(FRIENDS, unit=edge(), budget=Budget(1), nodes=NAMES, ledger=tmp_path / "a.ledger") as g:
        assert "6 public nodes, undirected" in str(g)
        assert repr(g) == "<graph 'a'>"
        assert g.remaining().epsilon == pytest.approx(1)


def test_nodes_must_be_said_under_edge_privacy(opened: Callable[..., Network], tmp_path: Path) -> None:
    with pytest.raises(NotDeclaredError, match="its nodes are public, and nobody said") as caught:
        opened(nodes=None)
    assert '"as listed"' in caught.value.fix
    assert not list(tmp_path.glob("*.ledger"))


@pytest.mark.parametrize("nodes", [6, np.int64(6), NAMES, tuple(NAMES), pd.Series(NAMES), pa.array(NAMES), "as listed"])
def test_nodes_are_a_number_a_list_or_declared_as_listed(opened: Callable[..., Network], nodes: Any) -> None:
    data = np.array([[0, 1], [4, 5], [1, 2], [3, 3]]) if isinstance(nodes, int | np.integer) else None
    g = opened(data, nodes=nodes)
    assert g.public.nodes == (5 if isinstance(nodes, str) else 6)
    assert g.data.nodes == g.public.nodes


@pytest.mark.parametrize("nodes", [-1, True, 6.0, 2**31, 2**80, float("nan"), "6", "all", b"6", {"a": 1}, object()])
def test_nodes_that_are_neither_are_refused(opened: Callable[..., Network], tmp_path: Path, nodes: Any) -> None:
    with pytest.raises(InvalidParameterError):
        opened(nodes=nodes)
    assert not list(tmp_path.glob("*.ledger"))


def test_edges_with_strangers_missing_ends_loops_and_repetitions_are_left_out(opened: Callable[..., Network]) -> None:
    noise: list[Any] = [("ada", "zoe"), ("ada", None), (None, None), ("eve", "eve"), ("bob", "ada"), ("ada", "bob")]
    noise += [("ada", float("nan")), (3, "ada"), ((), "ada"), ("ada",), None, 7, ("ada", ["bob"])]
    clean, noisy = opened(), opened([*FRIENDS, *noise])
    assert np.array_equal(clean.data.graph.targets, noisy.data.graph.targets)
    assert noisy.public == clean.public


@pytest.mark.parametrize("numbers", [[-1, 5], [2**62, 5], [6, 5], [5, 5]])
def test_numbers_outside_of_the_nodes_are_left_out(opened: Callable[..., Network], numbers: list[int]) -> None:
    assert opened(np.array([numbers, [0, 1]]), nodes=6).data.graph.edges == 1


def test_no_edges_and_no_nodes_are_fine(opened: Callable[..., Network]) -> None:
    assert opened([]).data.graph.edges == 0
    assert opened(np.zeros((0, 2), int), nodes=0).data.graph.nodes == 0
    assert opened(FRIENDS, nodes=[]).data.graph.nodes == 0
    assert opened([], nodes="as listed").public.nodes == 0
    for g in (opened([], nodes=["a"]), opened([], nodes=["a", "b"])):
        assert g.edges().release(epsilon=100).value == 0


@pytest.mark.parametrize("unit", [rows(), user("person")])
def test_units_of_tables_are_refused(opened: Callable[..., Network], tmp_path: Path, unit: Any) -> None:
    with pytest.raises(InvalidParameterError, match="edges, nodes, weights or events"):
        opened(unit=unit)
    assert not list(tmp_path.glob("*.ledger"))


@pytest.mark.parametrize(("unit", "what"), [(weight(bound=2), "weights="), (item(), "time=")])
def test_units_that_need_a_column_say_so(opened: Callable[..., Network], unit: Any, what: str) -> None:
    with pytest.raises(NotDeclaredError, match="no column of them is named") as caught:
        opened(unit=unit)
    assert what in caught.value.fix


def test_under_node_privacy_the_nodes_are_private(opened: Callable[..., Network]) -> None:
    with pytest.raises(InvalidParameterError, match="nodes cannot be a number"):
        opened(unit=node(), nodes=6)
    listed, unlisted = opened(unit=node(), nodes=NAMES), opened(unit=node(), nodes=None)
    assert listed.public.nodes is None
    assert unlisted.public.nodes is None
    assert listed.public.listed
    assert not unlisted.public.listed
    assert "a private number of nodes" in str(listed)
    assert (listed.data.nodes, unlisted.data.nodes) == (6, 5)
    assert any("without an edge are not known" in rule for rule in unlisted.rules)


def test_a_histogram_under_node_privacy_needs_the_nodes_without_edges(opened: Callable[..., Network]) -> None:
    for nodes in (None, "as listed"):
        g = opened(unit=node(), nodes=nodes)
        assert not g.public.listed
        for ask in (
            lambda g=g: g.degree_histogram(at_most=2),
            lambda g=g: g.joint(ProjectedHistogram(1), CappedEdges(1)),
        ):
            with pytest.raises(NotDeclaredError, match="Nodes without an edge are not known"):
                ask()  # type: ignore[no-untyped-call]  # a default that mypy cannot infer
    assert opened(nx.Graph(FRIENDS), unit=node(), nodes="as listed").public.listed


PATHS = [(f"{k:03}{a}", f"{k:03}{b}") for k in range(100) for a, b in ("ab", "bc", "cd")]
FOURS = [f"{k:03}{a}" for k in range(100) for a in "abcd"]


@pytest.mark.parametrize("odd", ["v", 7, 2**80, (), 2.5, None])
@pytest.mark.parametrize("nodes", ["given", "own"])
def test_who_is_present_does_not_decide_the_order_of_the_others(
    opened: Callable[..., Network], odd: Any, nodes: str
) -> None:
    with_odd, histogram = [odd, *sorted(FOURS, key=lambda name: "bcad".index(name[-1]))], ProjectedHistogram(1)
    graphs = [nx.Graph(), nx.Graph()]
    for graph, names in zip(graphs, (FOURS, with_odd), strict=True):
        graph.add_nodes_from(name for name in names if name is not None)
        graph.add_edges_from(PATHS)
    if odd is not None:
        graphs[1].add_edges_from((odd, name) for name in FOURS[::2])
    told: list[dict[str, Any]] = [{"nodes": FOURS}, {"nodes": with_odd}] if nodes == "given" else [{"nodes": None}] * 2
    counts = [
        histogram.exact(opened(graph, unit=node(), **said).data.graph) for graph, said in zip(graphs, told, strict=True)
    ]
    assert np.abs(counts[0] - counts[1]).sum() <= 3


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["x", "", "1" * 30, "007"])
def test_one_name_in_a_list_of_numbers_leaves_the_other_edges_alone(
    opened: Callable[..., Network], tmp_path: Path, odd: str
) -> None:
    place = tmp_path / "e.csv"
    place.write_text("u,v\n" + "".join(f"{i},{i + 1}\n" for i in range(200)), encoding="utf-8")
    listed: list[Any] = [*map(str, range(201)), odd]
    for names in (listed, Lines(listed), [*range(201), odd]):
        assert opened(place, unit=node(), nodes=names).data.graph.edges == 200
    numbers = pa.table({"u": np.arange(200), "v": np.arange(1, 201)})
    assert opened(numbers, unit=node(), nodes=Lines(listed)).data.graph.edges == 200
    assert opened(numbers, unit=node(), nodes=[*range(201), odd]).data.graph.edges == 200
    assert opened(place, unit=item(), time="v", nodes=None).data.nodes == 201


def test_no_edge_is_read_when_a_file_is_opened(tmp_path: Path) -> None:
    place = tmp_path / "e.parquet"
    pq.write_table(pa.table({"u": [0, 1], "v": [1, 2]}), place)
    with open_graph(place, unit=edge(), budget=Budget(1), nodes=3) as g:
        assert (tmp_path / "e.ledger").exists()
        place.unlink()
        with pytest.raises(DefocusError, match="charged"):
            g.edges().release(epsilon=0.5)


def test_data_without_a_place_needs_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(NotDeclaredError, match="no place of its own") as caught:
        open_graph(FRIENDS, unit=edge(), budget=Budget(1), nodes=NAMES)
    assert "ledger=" in caught.value.fix
    assert not list(tmp_path.iterdir())


def test_an_open_ledger_can_be_shared_and_must_agree(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l", budget=Budget(1), unit=edge(), dataset="friends") as book:
        g = open_graph(FRIENDS, nodes=NAMES, ledger=book)
        assert g.name == "friends"
        assert g.public.unit == edge()
        g.edges().release(epsilon=0.25)
        assert book.remaining().epsilon == pytest.approx(0.75)
        with pytest.raises(LedgerMismatchError, match="made for something else"):
            open_graph(FRIENDS, unit=node(), nodes=NAMES, ledger=book)
        with pytest.raises(LedgerMismatchError, match="dataset"):
            open_graph(FRIENDS, nodes=NAMES, ledger=book, name="enemies")
    with open_graph(FRIENDS, nodes=NAMES, ledger=tmp_path / "l", name="friends") as again:
        assert again.remaining().epsilon == pytest.approx(0.75)


def test_a_new_ledger_needs_a_unit_and_a_budget(tmp_path: Path) -> None:
    for said in ({"unit": edge()}, {"budget": Budget(1)}, {}):
        with pytest.raises(DefocusError):
            open_graph(FRIENDS, nodes=NAMES, ledger=tmp_path / "l.ledger", **said)
        assert not (tmp_path / "l.ledger").exists()


@pytest.mark.parametrize(
    "said", [{"unit": "edge"}, {"budget": 1}, {"purposes": []}, {"purposes": 3}, {"name": "\x1b[2J"}]
)
def test_parameters_of_the_wrong_kind_are_refused(opened: Callable[..., Network], said: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError):
        opened(**said)


def test_a_ledger_answers_for_edges_with_a_direction_or_without_one(tmp_path: Path) -> None:
    said: dict[str, Any] = {"nodes": NAMES, "ledger": tmp_path / "l", "unit": edge(), "budget": Budget(1)}
    with open_graph(FRIENDS, directed=True, **said) as g:
        assert g.name == "l"
        assert g.ledger.dataset == "l, directed"
        with open_graph(FRIENDS, nodes=NAMES, ledger=g.ledger, directed=True) as again:
            assert again.name == "l"
    with pytest.raises(LedgerMismatchError, match="dataset"):
        open_graph(FRIENDS, **said)
    with open_graph(FRIENDS, directed=True, **said) as g:
        assert g.public.directed


@pytest.mark.parametrize("bound", [10**400, Fraction(1, 10**400), 1e300], ids=["huge", "tiny", "float"])
def test_bounds_of_weights_that_no_float_holds_are_refused(opened: Callable[..., Network], bound: Any) -> None:
    frame = pd.DataFrame({"u": ["ada"], "v": ["bob"], "w": [1.0]})
    with pytest.raises(InvalidParameterError, match="bound"):
        opened(frame, weights="w", unit=weight(bound=bound))


def test_purposes_are_held(opened: Callable[..., Network]) -> None:
    g = opened(purposes=["monthly report", "teaching"])
    with pytest.raises(InvalidParameterError, match="named purposes only"):
        g.edges().release(epsilon=1)
    with pytest.raises(InvalidParameterError, match="none of them") as caught:
        g.edges().release(epsilon=1, purpose="monthly reports")
    assert "did you mean 'monthly report'" in caught.value.fix
    assert g.edges().release(epsilon=1, purpose="teaching").receipt.purpose == "teaching"


def test_edges_are_read_again_where_they_were_forgotten(opened: Callable[..., Network]) -> None:
    g = opened()
    assert g.data.graph.edges == 5
    assert len(g.data.pairs) == 5
    assert g.data.directed.edges == 5
    assert list(g.data.labels) == NAMES


def test_without_numba_no_ledger_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingExtraError, match="numba"):
        dp.open_graph([(0, 1)], unit=dp.edge(), budget=dp.Budget(1), nodes=2, ledger=tmp_path / "l", name="g")
    assert not list(tmp_path.iterdir())


def test_the_words_of_the_terminal_are_taken_too(opened: Callable[..., Network]) -> None:
    assert opened(nodes="as-listed").public.nodes == opened(nodes="as listed").public.nodes == 5


@pytest.mark.parametrize("unit", ["edge", "node", edge, 1])
def test_a_unit_that_is_none_is_answered_by_those_of_graphs(opened: Callable[..., Network], unit: Any) -> None:
    with pytest.raises(InvalidParameterError, match="unit must be a unit") as caught:
        opened(unit=unit)
    assert "unit=dp.edge()" in caught.value.fix


@pytest.mark.parametrize("kind", ["weight", "event"])
def test_edges_from_a_node_to_itself_are_left_out_of_everything_and_said_to_be(
    opened: Callable[..., Network], kind: str
) -> None:
    frame = pd.DataFrame({"u": ["ada", "ada"], "v": ["bob", "ada"], "w": [1.0, 3.0], "t": [1, 1]})
    if kind == "weight":
        g = opened(frame, unit=weight(bound=5), weights="w")
        answer = g.weights().release(epsilon=400)
        assert answer.value == pytest.approx(1, abs=0.2)
        assert g.weights("strength").release(epsilon=400).value[0] == pytest.approx(1, abs=0.2)
    else:
        answer = opened(frame, unit=item(), time="t").interactions(every=1, start=0, end=2).release(epsilon=100)
        assert answer.value.tolist() == [0, 1]
    assert "an edge from a node to itself is left out" in answer.explain()
