"""Sensitivities against brute force: every pair of neighbouring histograms of small domains."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus import rows, user
from defocus import workloads as w
from defocus.privacy.units import Unit
from defocus.workloads import matrices
from defocus.workloads.marginal_strategies import MarginalStrategy, laplace_design, residual_design
from defocus.workloads.matrices import MatrixStrategy, column_norms
from defocus.workloads.products import ProductStrategy
from defocus.workloads.strategy import Norms, Strategy, l1_sensitivity, l2_sensitivity


def made() -> Iterator[Any]:
    tables = w.marginals([2, 3, 2], up_to=2)
    yield pytest.param(residual_design(tables).make(8), id="residuals")
    yield pytest.param(laplace_design(tables).make(8), id="whole marginals")
    left, right = np.array([[1, -2], [3, 1]]), np.array([[1, 1, 1], [0, 5, -1]])
    yield pytest.param(ProductStrategy((MatrixStrategy.of((2,), left), MatrixStrategy.of((3,), right))), id="product")
    yield pytest.param(MatrixStrategy.of((4,), np.array([[3, 0, -1, 2], [1, 1, 1, 1]])), id="matrix")
    ones = MatrixStrategy.of((3,), np.array([[2, 2, 2]]))
    yield pytest.param(ProductStrategy((ones, MatrixStrategy.of((2,), np.eye(2, dtype=int)))), id="totals and cells")
    yield pytest.param(ProductStrategy((ones, ones)), id="product of totals")
    near = MatrixStrategy.of((2,), np.array([[10, 9]]))
    yield pytest.param(ProductStrategy((near, near)), id="product of columns that hardly differ")


def moves(cells: int, unit: Unit, contribution: int) -> Iterator[np.ndarray[Any, Any]]:
    """Every change that one unit can make to a histogram."""
    bundles = [
        np.bincount(held, minlength=cells)
        for size in range(contribution + 1)
        for held in itertools.combinations_with_replacement(range(cells), size)
    ]
    if unit == rows(replace=True) and contribution == 1:
        bundles = [bundle for bundle in bundles if bundle.sum() == 1]
    if unit.adjacency == "add_remove":
        yield from bundles
    else:
        yield from (a - b for a in bundles for b in bundles)


@pytest.mark.parametrize("strategy", list(made()))
@pytest.mark.parametrize("unit", [rows(), rows(replace=True), user("id", replace=True)])
@pytest.mark.parametrize("contribution", [1, 2])
def test_no_neighbour_is_further_away_than_the_sensitivity(strategy: Any, unit: Unit, contribution: int) -> None:
    cells = int(np.prod(strategy.sizes))
    changes = np.array(list(moves(cells, unit, contribution)), np.int64)
    matrix = np.array([strategy.measure(cell) for cell in np.eye(cells, dtype=np.int64)])
    apart = changes @ matrix
    assert apart[-1].tolist() == strategy.measure(changes[-1]).tolist()
    norms = strategy.norms()
    furthest_1 = int(np.abs(apart).sum(axis=1).max())
    furthest_2 = int((apart * apart).sum(axis=1).max())
    assert furthest_1 <= l1_sensitivity(norms, unit, contribution)
    assert furthest_2 <= l2_sensitivity(norms, unit, contribution) ** 2
    if unit.adjacency == "add_remove":
        assert furthest_1 == contribution * norms.l1
        assert furthest_2 == contribution**2 * norms.l2_squared
        assert float(l2_sensitivity(norms, unit, contribution)) ** 2 == pytest.approx(furthest_2, rel=1e-5)
    elif isinstance(strategy, MatrixStrategy) or (isinstance(strategy, MarginalStrategy) and not strategy.residual):
        assert furthest_1 == l1_sensitivity(norms, unit, contribution)


@given(st.lists(st.lists(st.integers(-(2**40), 2**40), min_size=3, max_size=3), min_size=1, max_size=5))
def test_column_norms_are_exact_however_large_the_coefficients(entries: list[list[int]]) -> None:
    columns = list(zip(*entries, strict=True))
    norms = column_norms(np.array(entries, np.int64))
    assert norms.l1 == max(sum(map(abs, column)) for column in columns)
    assert norms.l2_squared == max(sum(x * x for x in column) for column in columns)
    apart = max(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) for a in columns for b in columns)
    assert norms.apart_l2_squared >= apart


@pytest.mark.parametrize(("a", "b"), [(94906265, 94906264), (94906263, 94906262)])
def test_columns_whose_distance_floats_do_not_hold_are_compared_in_integers(a: int, b: int) -> None:
    """Each inner product is below 2**53, and what they add up to is not."""
    assert a * a < 2**53 < (a + b) ** 2
    assert column_norms(np.array([[a, -b]])).apart_l2_squared == (a + b) ** 2


@given(st.lists(st.lists(st.integers(-9, 9), min_size=4, max_size=4), min_size=1, max_size=5).filter(np.any))
def test_many_columns_are_not_further_apart_than_the_bound(entries: list[list[int]]) -> None:
    exact = column_norms(np.array(entries)).apart_l1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrices, "_PAIRS", 0)
        bound = column_norms(np.array(entries)).apart_l1
    assert exact <= bound <= 2 * column_norms(np.array(entries)).l1


@pytest.mark.parametrize("replaced", [w.total(6), w.kron(w.total(2), w.total(3)), w.marginals([2, 3], [()])])
def test_a_total_is_not_noised_where_units_replace_each_other_one_for_one(replaced: Any) -> None:
    plan = w.plan(replaced, epsilon=1, unit=rows(replace=True))
    assert plan.error.largest < 1e-6


def test_the_total_of_a_replaced_person_has_the_noise_of_one_and_not_of_two() -> None:
    added, replaced = (w.plan(w.total(6), epsilon=1, unit=user("id", replace=other)) for other in (False, True))
    assert replaced.error.total == pytest.approx(added.error.total, rel=1e-6)


@given(st.integers(1, 10**30), st.integers(1, 50))
def test_irrational_sensitivities_are_rounded_up_and_hardly(square: int, contribution: int) -> None:
    bound = l2_sensitivity(Norms(1, square, 1, square), rows(), contribution)
    assert square * contribution**2 <= bound**2 <= square * contribution**2 * (1 + 2e-5)


def test_replacing_a_row_leaves_the_total_alone_but_replacing_a_person_may_not() -> None:
    total = MatrixStrategy.of((3,), np.array([[7, 7, 7]])).norms()
    assert l2_sensitivity(total, rows(replace=True), 1) == 0
    assert l2_sensitivity(total, user("id", replace=True), 1) == 7


def test_products_of_integers_that_do_not_fit_are_reduced_and_not_refused() -> None:
    strategy: Strategy = MatrixStrategy.of((2,), np.array([[2**40, 1], [0, 1]]))
    assert strategy.measure(np.array([2**40, 5])).tolist() == [5, 5]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_event_carries_the_exact_sensitivity_of_the_integers_in_use(noise: str) -> None:
    plan = w.plan(w.prefix(8), epsilon=1, delta=1e-6, noise=noise, contribution=3)
    norms = plan.measurement.strategy.norms()
    sensitivity = plan.measurement.noise.sensitivity
    exact = 9 * norms.l2_squared if noise == "gaussian" else (3 * norms.l1) ** 2
    assert exact <= sensitivity**2 <= exact * (1 + 1e-5)
    if noise == "gaussian":
        assert plan.event.dimension == plan.measurement.strategy.rows  # type: ignore[attr-defined]  # a DiscreteGaussian
