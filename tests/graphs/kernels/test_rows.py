"""Rows by counting, beside sets of pairs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from defocus.graphs.kernels.rows import directed_rows, undirected_rows

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
