"""Trees of counts: least squares in two passes, whole numbers that add up, and how a budget is divided."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize

from defocus.errors import InvalidParameterError
from defocus.workloads.trees import Pooled, Tree, divided, level_errors, shares


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    top = draw(st.integers(1, 3))
    parents, above = [], top
    for _ in range(draw(st.integers(0, 3))):
        children = draw(st.lists(st.integers(1, 3), min_size=above, max_size=above))
        parents.append(np.repeat(np.arange(above), children))
        above = sum(children)
    return Tree(tuple(parents), top)


@st.composite
def measured(draw: st.DrawFn) -> tuple[Tree, list[Any], list[float]]:
    tree = draw(trees())
    numbers = st.floats(-20, 50)
    noisy = [np.array(draw(st.lists(numbers, min_size=size, max_size=size))) for size in tree.sizes]
    variances = [draw(st.sampled_from([0.25, 1.0, 4.0, np.inf])) for _ in tree.sizes[:-1]]
    return tree, noisy, [*variances, draw(st.sampled_from([0.25, 1.0, 4.0]))]


def design(tree: Tree, variances: Sequence[float]) -> tuple[Any, Any, Any]:
    """The matrix of all sums, that of the measured ones, and their precisions."""
    rows = np.concatenate(tree.sums(np.eye(tree.sizes[-1])))
    weights = np.concatenate([np.full(n, 1 / v) for n, v in zip(tree.sizes, variances, strict=True)])
    return rows, rows[weights > 0], weights[weights > 0]


@settings(deadline=None, max_examples=60)
@given(measured())
def test_two_passes_are_generalised_least_squares(given: tuple[Tree, list[Any], list[float]]) -> None:
    tree, noisy, variances = given
    rows, kept, weights = design(tree, variances)
    told = np.concatenate([n for n, v in zip(noisy, variances, strict=True) if np.isfinite(v)])
    covariance = np.linalg.inv(kept.T @ (weights[:, None] * kept))
    best = rows @ covariance @ kept.T @ (weights * told)
    values, spread = tree.estimates(tree.pooled(noisy, variances))
    assert np.concatenate(values) == pytest.approx(best, abs=1e-8)
    assert np.concatenate(spread) == pytest.approx(np.diag(rows @ covariance @ rows.T), rel=1e-8)


@settings(deadline=None, max_examples=60)
@given(measured())
def test_whole_counts_add_up_and_are_not_negative(given: tuple[Tree, list[Any], list[float]]) -> None:
    tree, noisy, variances = given
    counts = tree.whole(tree.pooled(noisy, variances))
    assert all(level.dtype == np.int64 and (level >= 0).all() for level in counts)
    for level, sums in zip(counts, tree.sums(counts[-1]), strict=True):
        assert level.tolist() == sums.tolist()


@settings(deadline=None, max_examples=60)
@given(measured(), st.data())
def test_exact_levels_are_held(given: tuple[Tree, list[Any], list[float]], data: st.DataObject) -> None:
    tree, noisy, variances = given
    n = tree.sizes[-1]
    truth = tree.sums(np.array(data.draw(st.lists(st.integers(0, 30), min_size=n, max_size=n)), np.int64))
    held = data.draw(st.integers(0, len(tree.sizes) - 1))
    released = [*(level.astype(float) for level in truth[:held]), *noisy[held:]]
    pooled = tree.pooled(released, [0.0] * held + variances[held:])
    values, spread = tree.estimates(pooled)
    counts = tree.whole(pooled, truth[:held])
    for level in range(held):
        assert counts[level].tolist() == truth[level].tolist()
        assert values[level] == pytest.approx(truth[level], abs=1e-9)
        assert spread[level] == pytest.approx(0, abs=1e-12)
    assert tree.sums(counts[-1])[0].tolist() == counts[0].tolist()


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.floats(-30, 30), st.sampled_from([0.5, 1.0, 3.0])), min_size=1, max_size=6),
)
def test_a_total_is_divided_as_by_a_quadratic_program(total: int, wanted: list[tuple[float, float]]) -> None:
    z, v = (np.array(part) for part in zip(*wanted, strict=True))
    best = minimize(
        lambda x: ((x - z) ** 2 / v).sum(),
        np.full(len(z), total / len(z)),
        jac=lambda x: 2 * (x - z) / v,
        bounds=[(0, None)] * len(z),
        constraints=[{"type": "eq", "fun": lambda x: x.sum() - total, "jac": lambda x: np.ones(len(x))}],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    counts = divided(np.array([total]), z, v, np.zeros(len(z), np.int64))
    assert counts.sum() == total
    assert np.abs(counts - best.x).max() <= 1 + 1e-4  # rounded to a neighbouring whole number


def test_rounding_is_by_the_largest_remainders() -> None:
    z, parents = np.array([1.7, 2.6, 0.7, 5.0, 5.0]), np.array([0, 0, 0, 1, 1])
    assert divided(np.array([5, 9]), z, np.ones(5), parents).tolist() == [2, 2, 1, 5, 4]
    assert divided(np.array([0, 3]), z, np.ones(5), parents).tolist() == [0, 0, 0, 2, 1]


def test_whole_counts_that_need_no_change_are_kept() -> None:
    tree = Tree((np.repeat(np.arange(1), 3), np.repeat(np.arange(3), 4)))
    truth = tree.sums(np.arange(12))
    exactly = [level.astype(float) for level in truth]
    pooled = tree.pooled(exactly, [1.0, 2.0, 3.0])
    assert [level.tolist() for level in tree.whole(pooled)] == [level.tolist() for level in truth]
    assert np.concatenate(tree.estimates(pooled)[0]) == pytest.approx(np.concatenate(truth))


def test_sums_of_integers_are_exact_beyond_floats() -> None:
    tree = Tree((np.zeros(2, np.int64),))
    assert tree.sums(np.array([2**60 + 1, 2**60 + 1]))[0].tolist() == [2**61 + 2]


@pytest.mark.parametrize("parents", [[], [1, 1], [0, 2], [1, 0], [0, 0, 1, 0]], ids=str)
def test_a_tree_is_refused_whose_nodes_are_not_in_order(parents: list[int]) -> None:
    with pytest.raises(InvalidParameterError, match="do not stand in the order"):
        Tree((np.array([0, 0]), np.array(parents, np.int64)))


def test_counts_that_floats_cannot_tell_apart_are_refused() -> None:
    huge = Pooled([np.array([2.0**53])], [np.ones(1)])
    with pytest.raises(InvalidParameterError, match="not exact"):
        Tree(()).whole(huge)


def test_one_level_is_a_tree() -> None:
    pooled = Tree((), 3).pooled([np.array([-1.2, 3.4, 7.5])], [1.0])
    assert Tree((), 3).whole(pooled)[0].tolist() == [0, 3, 8]


@given(st.lists(st.integers(2, 6), min_size=1, max_size=3), st.data())
def test_errors_of_levels_are_those_of_an_even_tree(branches: list[int], data: st.DataObject) -> None:
    sizes = list(itertools.accumulate(branches, lambda a, b: a * b, initial=1))
    tree = Tree(tuple(np.repeat(np.arange(n), b) for n, b in zip(sizes, branches, strict=False)))
    variances = [data.draw(st.sampled_from([0.5, 2.0, np.inf])) for _ in branches] + [1.5]
    exact = tree.estimates(tree.pooled([np.zeros(n) for n in sizes], variances))[1]
    assert level_errors(sizes, variances) == pytest.approx([level[0] for level in exact])


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("sizes", [(1, 50, 1000, 20_000), (1, 2, 4), (3, 600)])
def test_no_other_division_of_the_budget_is_better_by_much(sizes: tuple[int, ...], power: int) -> None:
    def total(parts: Any) -> float:
        with np.errstate(divide="ignore"):
            return float(level_errors(sizes, np.asarray(parts) ** -float(power)).sum())

    number = len(sizes)
    found = shares(lambda v: level_errors(sizes, v), number, needed=[number - 1], power=power)
    assert sum(found) == pytest.approx(1)
    others = np.random.default_rng(5).dirichlet(np.ones(number), 500)
    assert total(found) <= 1.01 * min(total(parts) for parts in others)
    assert total(found) <= total([0] * (number - 1) + [1]) * (1 + 1e-9)


def test_every_level_errs_less_than_top_down() -> None:
    """In the mean over runs: the same noise, once with all measurements of a subtree and once with its own only."""
    rng = np.random.default_rng(3)
    tree = Tree((np.repeat(np.arange(1), 4), np.repeat(np.arange(4), 5), np.repeat(np.arange(20), 6)))
    truth = tree.sums(rng.poisson(rng.exponential(6, 120)))
    ours, theirs = np.zeros(4), np.zeros(4)
    for _ in range(400):
        noisy = [level + rng.normal(0, 4, len(level)) for level in truth]
        counts = tree.whole(tree.pooled(noisy, [16.0] * 4))
        down = [np.rint(np.maximum(noisy[0], 0)).astype(np.int64)]
        for level in range(1, 4):
            down.append(divided(down[-1], noisy[level], np.ones(len(noisy[level])), tree.parents[level - 1]))
        ours += [((a - b) ** 2).mean() for a, b in zip(counts, truth, strict=True)]
        theirs += [((a - b) ** 2).mean() for a, b in zip(down, truth, strict=True)]
    assert (ours < theirs).all()
    assert ours[1] < 0.9 * theirs[1]


def test_a_small_tree_is_near_the_best_fit_that_is_not_negative() -> None:
    """Over one level below a known total, the way down is that fit; scipy finds the same."""
    z, v = np.array([4.0, -3.0, 1.0, 0.5]), np.array([1.0, 2.0, 1.0, 4.0])
    heavy = 1e6
    rows = np.vstack([np.diag(1 / np.sqrt(v)), heavy * np.ones(4)])
    best = lsq_linear(rows, [*(z / np.sqrt(v)), heavy * 6], (0, np.inf), tol=1e-14).x
    assert np.abs(divided(np.array([6]), z, v, np.zeros(4, np.int64)) - best).max() < 1
