import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.graphs.certificates import all_graphs
from defocus.graphs.inference import falling, graphical, is_graphical, plausible_counts, realised, rising
from defocus.mechanisms import Laplace
from defocus.noise.testing import seeded


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


numbers = st.lists(st.integers(-50, 50), min_size=1, max_size=12)


@given(numbers)
def test_the_result_never_falls_and_keeps_the_sum(values: list[int]) -> None:
    fit = rising(values)
    assert (np.diff(fit) >= -1e-9).all()
    assert abs(fit.sum() - sum(values)) < 1e-6


@given(numbers, numbers)
def test_no_rising_vector_is_nearer(values: list[int], other: list[int]) -> None:
    size = min(len(values), len(other))
    given_values, rival = np.array(values[:size]), np.sort(other[:size])
    assert ((rising(given_values) - given_values) ** 2).sum() <= ((rival - given_values) ** 2).sum() + 1e-6


def test_a_rising_vector_stays_as_it_is_and_an_empty_one_is_empty() -> None:
    assert rising([1, 1, 5]).tolist() == [1, 1, 5]
    assert rising([]).tolist() == []


@pytest.mark.slow
@given(numbers)
def test_falling_is_rising_upside_down(values: list[int]) -> None:
    assert np.allclose(falling(values), -rising([-v for v in values]))


def test_runs_of_equal_degrees_are_averaged_over() -> None:
    """Hay, Rastogi, Miklau, Suciu (2010): the squared error falls from n to the order of the number of runs."""
    generator = np.random.default_rng(3)
    truth = np.repeat([1.0, 40.0, 300.0], 500)
    noise = generator.laplace(0, 2, truth.size)
    before, after = (noise**2).sum(), ((rising(truth + noise) - truth) ** 2).sum()
    assert after < before / 40


def power_law(nodes: int, largest: int) -> np.ndarray:
    """Degrees that fall as a power, with the scatter that real ones have."""
    generator = np.random.default_rng(5)
    weights = np.arange(1, largest + 1) ** -1.6
    degrees = generator.choice(np.arange(1, largest + 1), size=nodes, p=weights / weights.sum())
    return np.bincount(degrees, minlength=nodes)


@pytest.mark.parametrize(("nodes", "epsilon"), [(4000, 1.0), (4000, 0.2), (20_000, 1.0)])
def test_it_errs_less_than_isotonic_regression(nodes: int, epsilon: float) -> None:
    counts = power_law(nodes, 300)
    mechanism, bits = Laplace(scale=2 / epsilon, sensitivity=2), seeded(11)
    plain, better = 0.0, 0.0
    for _ in range(5):
        noisy = mechanism.sample(np.cumsum(counts)[:-1], bits)
        fit = np.diff(np.concatenate([[0], np.clip(rising(noisy), 0, nodes), [nodes]]))
        plain += np.abs(fit - counts).sum()
        better += np.abs(plausible_counts(noisy, nodes, scale=2 / epsilon) - counts).sum()
    assert better < 0.9 * plain


def test_gaussian_noise_is_read_as_such() -> None:
    counts = power_law(4000, 300)
    noisy = np.rint(np.cumsum(counts)[:-1] + np.random.default_rng(1).normal(0, 6, 3999))
    fit = np.diff(np.concatenate([[0], np.clip(rising(noisy), 0, 4000), [4000]]))
    better = plausible_counts(noisy, 4000, scale=6, gaussian=True)
    assert np.abs(better - counts).sum() < 0.9 * np.abs(fit - counts).sum()


@given(st.lists(st.integers(0, 9), min_size=3, max_size=20))
def test_without_noise_the_truth_comes_back(counts: list[int]) -> None:
    total = sum(counts)
    found = plausible_counts(np.cumsum(counts)[:-1], total, scale=0.01)
    assert found.tolist() == counts


@given(
    st.lists(st.integers(-200, 300), min_size=0, max_size=30), st.integers(0, 100), st.sampled_from([0.5, 2.0, 20.0])
)
def test_whatever_comes_in_counts_that_are_not_negative_go_out(noisy: list[int], total: int, scale: float) -> None:
    found = plausible_counts(noisy, total, scale=scale)
    assert found.shape == (len(noisy) + 1,)
    assert np.isfinite(found).all()
    assert (found >= 0).all()


def test_too_much_work_gives_the_simple_answer() -> None:
    noisy = np.arange(3000.0)
    found = plausible_counts(noisy, 3000, scale=1000.0)
    assert np.allclose(found[1:], 1)
