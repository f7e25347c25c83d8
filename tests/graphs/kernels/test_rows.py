"""Rows by counting, beside sets of pairs."""

import builtins
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from defocus import machine_code
from defocus.errors import InvalidParameterError, MissingExtraError
from defocus.graphs import Graph, build
from defocus.graphs.certificates import all_graphs, without_node
from defocus.graphs.kernels import in_pieces, rows
from defocus.graphs.kernels.rows import directed_rows, projected, projected_degrees, undirected_rows

PAIRS = st.lists(st.tuples(st.integers(-3, 12), st.integers(-3, 12)), max_size=80)


def ends(pairs: list[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


def rows_of(nodes: int, arcs: set[tuple[int, int]]) -> list[list[int]]:
    return [sorted(v for u, v in arcs if u == node) for node in range(nodes)]


def split(rows: tuple[NDArray[np.int64], NDArray[np.int32]]) -> list[list[int]]:
    offsets, targets = rows
    return [part.tolist() for part in np.split(targets, offsets[1:-1])] if len(offsets) > 1 else []


@given(st.integers(0, 10), PAIRS)
def test_undirected_rows_are_those_of_the_set_of_edges(nodes: int, pairs: list[tuple[int, int]]) -> None:
    fine = {(u, v) for u, v in pairs if u != v and 0 <= u < nodes and 0 <= v < nodes}
    assert split(undirected_rows(nodes, *ends(pairs))) == rows_of(nodes, fine | {(v, u) for u, v in fine})


@given(st.integers(0, 10), PAIRS)
def test_directed_rows_are_those_of_the_set_of_arcs(nodes: int, pairs: list[tuple[int, int]]) -> None:
    fine = {(u, v) for u, v in pairs if u != v and 0 <= u < nodes and 0 <= v < nodes}
    assert split(directed_rows(nodes, *ends(pairs))) == rows_of(nodes, fine)


def plainly(graph: Graph, most: int) -> list[tuple[int, int]]:
    degrees = [0] * graph.nodes
    kept = []
    for u, v in zip(*(side.tolist() for side in graph.pairs()), strict=True):
        if degrees[u] < most and degrees[v] < most:
            degrees[u] += 1
            degrees[v] += 1
            kept.append((u, v))
    return kept


@pytest.mark.parametrize("most", [1, 2, 3])
def test_edges_are_kept_while_both_ends_have_room(most: int) -> None:
    for graph in all_graphs(5):
        after = projected(graph, most)
        assert list(zip(*(side.tolist() for side in after.pairs()), strict=True)) == plainly(graph, most)
        assert np.array_equal(after.degrees, projected_degrees(graph, most))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_node_that_leaves_moves_the_degrees_of_others_by_the_cap_in_all(most: int) -> None:
    furthest = 0
    for graph in all_graphs(5):
        before = projected_degrees(graph, most)
        for node in range(5):
            moved = np.abs(np.delete(before, node) - projected_degrees(without_node(graph, node), most))
            furthest = max(furthest, int(moved.sum()))
    assert furthest == most


def test_a_cap_above_every_degree_changes_nothing() -> None:
    graph = build(5, [0, 0, 0, 0], [1, 2, 3, 4])
    assert projected(graph, 10**12).edges == 4
    assert projected_degrees(graph, 4).tolist() == [4, 1, 1, 1, 1]


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "3", 2**63])
def test_a_cap_that_is_no_count_is_refused(most: object) -> None:
    with pytest.raises(InvalidParameterError, match="most"):
        projected_degrees(build(2, [0], [1]), most)  # type: ignore[arg-type]  # the refusal is the test


@pytest.mark.slow
def test_the_room_opens_without_compiling() -> None:
    code = "import sys, defocus.graphs, defocus.graphs.kernels.rows; print('numba' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own interpreter
    assert found.stdout.strip() == "False"


def test_without_numba_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(machine_code, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"Counting in graphs.*numba"):
        rows.ready()


@pytest.mark.parametrize("cores", [1, 3])
def test_pieces_come_back_in_order(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    monkeypatch.setattr(rows, "cores", lambda: cores)
    assert in_pieces(lambda piece: piece * piece, 5) == [0, 1, 4, 9, 16]


def test_what_fails_in_a_piece_fails_outside() -> None:
    with pytest.raises(ZeroDivisionError):
        in_pieces(lambda piece: builtins.divmod(1, piece), 2)
