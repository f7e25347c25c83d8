from typing import Any

import numpy as np
import pytest

from defocus import rows
from defocus import workloads as w
from defocus.errors import InvalidParameterError, UnanswerableWorkloadError
from defocus.workloads.matrices import MatrixStrategy
from defocus.workloads.products import ProductStrategy

PRICE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}


def test_a_product_is_as_good_as_its_factors() -> None:
    """With Gaussian noise the optimum of a product is the product of the optima: the conditions factorise."""
    left, right = w.prefix(8), w.ranges(6)
    both = w.plan(w.kron(left, right), **PRICE, noise="gaussian")
    one, other = (w.plan(part, **PRICE, noise="gaussian") for part in (left, right))
    assert both.error.total / both.law == pytest.approx(
        (one.error.total / one.law) * (other.error.total / other.law), rel=1e-3
    )
    assert both.lower_bound / both.law == pytest.approx((one.lower_bound / one.law) * (other.lower_bound / other.law))


def test_a_domain_of_a_hundred_million_cells_is_planned_through_its_factors() -> None:
    workload = w.union(
        w.kron(w.prefix(100), w.total(100), w.identity(100), w.total(100)),
        w.kron(w.total(100), w.prefix(100), w.total(100), w.total(100)),
    )
    assert workload.cells == 10**8
    plan = w.plan(workload, **PRICE, noise="gaussian")
    assert plan.lower_bound <= plan.error.total < 0.5 * min(plan.identity_error, plan.direct_error)


def test_a_factor_that_misses_a_direction_is_refused() -> None:
    half = ProductStrategy((MatrixStrategy.of((2,), np.array([[1, 1]])), MatrixStrategy.of((3,), np.eye(3, dtype=int))))
    half.check(w.kron(w.total(2), w.prefix(3)))
    with pytest.raises(UnanswerableWorkloadError, match="rank 1 over 2 cells"):
        half.check(w.kron(w.identity(2), w.prefix(3)))


def test_an_attribute_too_large_for_a_matrix_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="at most 4096"):
        w.plan(w.kron(w.prefix(5000), w.identity(2)), **PRICE)
    with pytest.raises(InvalidParameterError, match="4096"):
        w.kron(w.prefix(100), w.prefix(100)).gram()


def test_measuring_along_the_axes_is_multiplying_by_the_product() -> None:
    rng = np.random.default_rng(2)
    left, right = rng.integers(-4, 5, (3, 2)), rng.integers(-4, 5, (2, 3))
    strategy = ProductStrategy((MatrixStrategy.of((2,), left), MatrixStrategy.of((3,), right)))
    x = rng.integers(0, 100, 6)
    assert strategy.measure(x).tolist() == (np.kron(left, right) @ x).tolist()
    assert strategy.rows == 6
    assert strategy.largest >= np.abs(np.kron(left, right)).max()


def test_attributes_that_need_no_precision_take_none() -> None:
    many = w.kron(w.prefix(8), *[w.total(3)] * 6, w.identity(4))
    plan = w.plan(many, **PRICE, noise="gaussian")
    alone = w.plan(w.prefix(8), **PRICE, noise="gaussian")
    assert plan.error.total / plan.law == pytest.approx(4 * alone.error.total / alone.law, rel=1e-3)


def test_the_total_is_public_when_rows_are_replaced_and_is_answered_all_the_same() -> None:
    plan = w.plan(w.total(5), **PRICE, noise="gaussian", unit=rows(replace=True))
    assert plan.error.total < 1e-6
