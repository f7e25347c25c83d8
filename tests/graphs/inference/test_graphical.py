import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.graphs.certificates import all_graphs
from defocus.graphs.inference import graphical, is_graphical, realised


@cache
def sequences(n: int) -> set[tuple[int, ...]]:
    return {tuple(g.degrees.tolist()) for g in all_graphs(n)}


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5])
def test_exactly_the_degrees_of_graphs_are_graphical(n: int) -> None:
    for degrees in itertools.product(range(-1, n + 1), repeat=n):
        assert is_graphical(degrees) == (degrees in sequences(n)), degrees


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_no_degrees_of_a_graph_are_nearer(n: int) -> None:
    """Karwa, Slavković (2016), Theorem 3, against all graphs of n nodes."""
    every = np.array(sorted(sequences(n)))
    for wanted in itertools.combinations_with_replacement(range(n), n):
        found = graphical(wanted)
        assert tuple(found.tolist()) in sequences(n)
        assert np.abs(found - wanted).sum() == np.abs(every - np.array(wanted)).sum(axis=1).min(), wanted


@given(st.lists(st.integers(-20, 60), min_size=0, max_size=40))
def test_the_graph_has_these_degrees_and_degrees_of_graphs_stay(wanted: list[int]) -> None:
    found = graphical(wanted)
    assert is_graphical(found)
    assert realised(wanted).degrees.tolist() == found.tolist()
    assert graphical(found).tolist() == found.tolist()


def test_fractions_are_rounded_and_what_is_no_number_counts_as_zero() -> None:
    assert graphical([1.4, 0.6, float("nan")]).tolist() == [1, 1, 0]


def test_order_of_nodes_is_kept() -> None:
    assert graphical([0, 3, 1, 1, 1]).tolist() == [0, 3, 1, 1, 1]
