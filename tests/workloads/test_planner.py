"""Plans: never below the bound, never above the naive ways, and what the literature says."""

from collections.abc import Callable
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits  # type: ignore[import-untyped]  # it has no types

from defocus import Budget, rows, user, weight
from defocus import workloads as w
from defocus.errors import (
    CannotCalibrateError,
    DefocusError,
    InvalidParameterError,
    MismatchedDomainError,
    UnanswerableWorkloadError,
    WrongSensitivityError,
)
from defocus.privacy.accounting import account

PRICE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
WORKLOADS: dict[str, w.Workload | w.Marginals] = {
    "identity": w.identity(6),
    "total": w.total(6),
    "prefix": w.prefix(12),
    "ranges": w.ranges(9),
    "explicit": w.explicit([[1, 1, 0, 0], [0, 0.5, 1, -1]], weights=[1, 3]),
    "product": w.kron(w.prefix(5), w.ranges(3)),
    "union": w.union(w.kron(w.prefix(5), w.total(3)), w.kron(w.total(5), w.identity(3)), weights=[1, 4]),
    "marginals": w.marginals([2, 3, 4], ways=2),
}


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_plan_is_between_the_bound_and_the_naive_ways(name: str, noise: str) -> None:
    plan = w.plan(WORKLOADS[name], **PRICE, noise=noise)
    assert plan.lower_bound <= plan.error.total * (1 + 1e-6)
    assert plan.error.total <= 1.005 * min(plan.identity_error, plan.direct_error)
    assert plan.error.largest * (1 + 1e-9) >= plan.error.mean
    assert Budget(**PRICE).covers(account(plan.event))


@pytest.mark.parametrize("name", WORKLOADS)
def test_variances_are_those_of_the_pseudoinverse_of_the_integers_in_use(name: str) -> None:
    workload = WORKLOADS[name]
    plan = w.plan(workload, **PRICE, noise="gaussian")
    strategy = plan.measurement.strategy
    cells = int(np.prod(workload.sizes))
    real = np.array([strategy.measure(column) for column in np.eye(cells, dtype=np.int64)], np.float64).T
    queries = np.array([workload.answer(column) for column in np.eye(cells, dtype=np.int64)], np.float64).T
    answers = queries @ np.linalg.pinv(real, rcond=1e-10)
    expected = (answers**2).sum(axis=1) * plan.measurement.noise.variance
    np.testing.assert_allclose(plan.variances(), expected, rtol=1e-6)
    assert plan.error.total == pytest.approx(float((workload.importance() * expected).sum()), rel=1e-6)
    assert plan.error.largest == pytest.approx(float(expected.max()), rel=1e-6)
    if name == "marginals":
        np.testing.assert_allclose(np.diagonal(plan.covariance((1, 2))), plan.variances()[-12:], rtol=1e-9)
        covariance = answers[-12:] @ answers[-12:].T * plan.measurement.noise.variance
        np.testing.assert_allclose(plan.covariance((1, 2)), covariance, rtol=1e-6, atol=1e-6 * expected.max())
    else:
        covariance = answers @ answers.T * plan.measurement.noise.variance
        np.testing.assert_allclose(plan.covariance(), covariance, rtol=1e-5, atol=1e-6 * expected.max())


@settings(max_examples=15)
@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4).filter(any), min_size=1, max_size=6))
def test_any_integer_workload_is_answered_without_bias(rows_: list[list[int]]) -> None:
    workload = w.explicit(rows_)
    plan = w.plan(workload, **PRICE, noise="gaussian")
    x = np.array([5, 0, -2, 1000])
    exact = plan.measurement.strategy.answers(workload, plan.measurement.strategy.measure(x))
    np.testing.assert_allclose(exact, workload.answer(x), atol=1e-4)
    assert plan.lower_bound <= plan.error.total * (1 + 1e-6)


def unit_variance(plan: w.Plan) -> float:
    return plan.law


def test_prefix_sums_beat_the_normalised_square_root() -> None:
    """Henzinger, Upadhyay (2024): mean 6.54 at n = 256 by the normalised square root; the optimum is near 6.38."""
    plan = w.plan(w.prefix(256), **PRICE, noise="gaussian")
    assert plan.error.mean / unit_variance(plan) < 6.41
    flat = w.plan(w.prefix(256), **PRICE, noise="gaussian", objective="max")
    assert flat.error.largest / unit_variance(flat) < 6.54


def test_the_largest_variance_is_lower_when_that_is_the_objective() -> None:
    for workload in (w.ranges(24), w.marginals([2, 3, 7], up_to=2), w.kron(w.prefix(6), w.prefix(4))):
        total, flat = (w.plan(workload, **PRICE, noise="gaussian", objective=o) for o in ("total", "max"))
        assert flat.error.largest <= total.error.largest
        assert flat.error.total >= total.error.total * (1 - 1e-3)


def test_all_three_way_marginals_of_a_hundred_attributes_meet_the_bound() -> None:
    """Xiao, He, Zhang, Kifer (2023): residuals attain the SVD bound; McKenna et al. (2018) never materialise either."""
    plan = w.plan(w.marginals([10] * 100, ways=3), **PRICE, noise="gaussian")
    assert plan.error.total == pytest.approx(plan.lower_bound, rel=1e-9)
    assert plan.workload.cells == 10**100


def test_tighter_budgets_larger_units_and_replacement_cost_accuracy() -> None:
    base = w.plan(w.prefix(8), **PRICE, noise="gaussian").error.total
    assert w.plan(w.prefix(8), epsilon=0.5, delta=1e-6, noise="gaussian").error.total > 2 * base
    assert w.plan(w.prefix(8), **PRICE, noise="gaussian", contribution=2).error.total == pytest.approx(
        4 * base, rel=1e-3
    )
    replaced = w.plan(w.prefix(8), **PRICE, noise="gaussian", unit=rows(replace=True))
    assert base < replaced.error.total < 4 * base
    assert replaced.lower_bound <= replaced.error.total
    assert w.plan(w.prefix(8), **PRICE, noise="gaussian", unit=user("id", replace=True)).error.total >= base


def test_the_noise_with_the_smaller_error_is_chosen_and_pure_budgets_get_laplace() -> None:
    assert w.plan(w.identity(4), epsilon=1).noise == "laplace"
    both = [w.plan(w.prefix(64), epsilon=1, delta=1e-3, noise=kind).error.total for kind in ("gaussian", "laplace")]
    assert w.plan(w.prefix(64), epsilon=1, delta=1e-3).error.total == pytest.approx(min(both))
    assert w.plan(w.prefix(8), rho=0.5).noise == "gaussian"


def test_weights_may_stand_on_either_side_and_come_from_numpy() -> None:
    for workload in (w.prefix(3), w.marginals([3, 2], ways=1)):
        for doubled in (2 * workload, workload * 2, np.float64(2) * workload, workload * np.float64(2)):
            assert doubled.importance().tolist() == (2 * workload.importance()).tolist()


def test_true_counts_as_one_in_a_matrix() -> None:
    held = np.array([[True, True, False], [False, True, True]])
    assert w.explicit(held).answer([1, 2, 4]).tolist() == [3, 6]


@pytest.mark.parametrize(("workload", "size"), [(w.identity(5000), 5000), (3 * w.total(5000), 1)])
def test_cells_and_totals_of_large_domains_need_no_matrix(workload: w.Workload, size: int) -> None:
    plan = w.plan(workload, **PRICE, noise="laplace")
    assert plan.variances() == pytest.approx(np.full(size, plan.law), rel=1e-6)
    assert plan.error.total == pytest.approx(float(workload.importance().sum()) * plan.law, rel=1e-6)
    assert plan.measurement.strategy.answers(
        plan.workload, plan.measurement.strategy.measure(np.arange(5000))
    ) == pytest.approx(workload.answer(np.arange(5000)))


def test_a_given_strategy_is_used_as_it_is() -> None:
    tree = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], *np.eye(4).tolist()]
    plan = w.plan(w.prefix(4), **PRICE, noise="laplace", strategy=w.strategy(tree, l1=3, l2=3**0.5))
    expected = np.trace(w.prefix(4).gram() @ np.linalg.inv(np.array(tree).T @ np.array(tree))) * 9
    assert plan.error.total / plan.law == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", None])
def test_progress_is_told_in_percentages_that_rise_to_a_hundred(noise: str | None) -> None:
    told: list[float] = []
    w.plan(w.prefix(40), **PRICE, noise=noise, progress=told.append)
    assert len(told) > 3
    assert told == sorted(told)
    assert told[0] < 50
    assert told[-1] == 100


def threads() -> int:
    return max(int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas")


def test_linear_algebra_has_one_thread_while_planning_and_its_own_afterwards() -> None:
    """On two busy cores, waiting threads made plans ten times as slow."""
    seen: set[int] = set()
    with threadpool_limits(2):
        before = threads()
        w.plan(w.prefix(40), **PRICE, progress=lambda _: seen.add(threads()) if len(seen) < 1 else None)
        assert threads() == before
    assert seen == {1}


def test_errors_and_bounds_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = w.plan(w.prefix(16), **PRICE)
    shown = str(plan)

    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(import_module("defocus.workloads.plans"), "spectrum", fail)
    monkeypatch.setattr(type(plan.measurement.strategy), "total", fail)
    assert str(plan) == shown


def test_the_table_shows_the_gain() -> None:
    plan = w.plan(w.ranges(16), **PRICE, noise="gaussian")
    assert "every cell by itself" in str(plan)
    page = plan._repr_html_()
    assert "no strategy is below" in page
    for line in str(plan).splitlines()[:2]:
        assert escape(line) in page
    assert repr(w.strategy(np.eye(3))) == "<strategy of 3 rows over 3 cells>"
    assert plan.comparison()[0][2] == 1


REFUSALS: dict[str, tuple[Callable[[], object], type[DefocusError], str]] = {
    "rank-deficient strategies": (
        lambda: w.plan(w.prefix(3), **PRICE, strategy=w.strategy([[1, 1, 1], [1, 0, 0]])),
        UnanswerableWorkloadError,
        "rank 2 over 3 cells",
    ),
    "strategies that miss a query of hardly any weight": (
        lambda: w.plan(
            w.union(w.total(4), w.identity(4), weights=[1, 1e-12]), **PRICE, strategy=w.strategy(np.ones((1, 4)))
        ),
        UnanswerableWorkloadError,
        "rank 1 over 4 cells",
    ),
    "strategies that miss a row of hardly any weight": (
        lambda: w.plan(w.explicit([[1, 1], [1, 0]], weights=[1, 1e-12]), **PRICE, strategy=w.strategy(np.ones((1, 2)))),
        UnanswerableWorkloadError,
        "rank 1 over 2 cells",
    ),
    "strategies whose rows would not fit": (
        lambda: w.plan(w.identity(2), **PRICE, strategy=w.strategy([[1, 2**19 + 1], [0, 1]]), total=2**45),
        CannotCalibrateError,
        "more than 64 bits",
    ),
    "strategies that are matrices": (
        lambda: w.plan(w.prefix(3), **PRICE, strategy=np.eye(3)),  # type: ignore[arg-type]
        InvalidParameterError,
        "made by workloads.strategy",
    ),
    "strategies for marginals": (
        lambda: w.plan(w.marginals([2, 2], ways=1), **PRICE, strategy=w.strategy(np.eye(4))),
        InvalidParameterError,
        "take no strategy",
    ),
    "coefficients without a square": (lambda: w.explicit([[1e200, 1]]), InvalidParameterError, "largest coefficient"),
    "coefficients too small for a square": (
        lambda: w.strategy([[1e-200, 0], [1, 1]]),
        InvalidParameterError,
        "largest coefficient",
    ),
    "weights without an end": (
        lambda: w.plan(1e200 * (1e200 * w.prefix(3)), **PRICE),
        InvalidParameterError,
        "weights of the workload",
    ),
    "weights of more than a contribution": (
        lambda: w.plan(w.prefix(3), **PRICE, unit=weight(bound=5), contribution=4),
        InvalidParameterError,
        "can move a count by 5",
    ),
    "progress that cannot be told": (
        lambda: w.plan(w.prefix(3), **PRICE, progress=7),  # type: ignore[arg-type]
        InvalidParameterError,
        "called with a percentage",
    ),
    "one weight for all queries": (
        lambda: w.explicit([[1, 2], [2, 1]], weights=2),  # type: ignore[arg-type]
        InvalidParameterError,
        "weights must be a list of numbers, but it is int",
    ),
    "too few weights": (
        lambda: w.explicit(np.eye(30), weights=[1, 2, 3]),
        InvalidParameterError,
        "weights holds 3, but there are 30 queries",
    ),
    "one weight for all tables": (
        lambda: w.marginals([2, 3], ways=1, weights=3),  # type: ignore[arg-type]
        InvalidParameterError,
        "weights must be a list of numbers, but it is int",
    ),
    "weights of numpy below zero": (
        lambda: w.union(w.prefix(3), weights=np.array([-0.99])),  # type: ignore[arg-type]
        InvalidParameterError,
        "but it is -0.99.",
    ),
    "factors that are text": (lambda: w.prefix(3) * "a", InvalidParameterError, "finite number"),  # type: ignore[operator]
    "factors of marginals below zero": (lambda: w.marginals([2], ways=1) * -1, InvalidParameterError, "positive"),
    "attributes where sets belong": (
        lambda: w.marginals([3, 2], [0, 1]),  # type: ignore[list-item]
        InvalidParameterError,
        "a set must be a list, but it is int",
    ),
    "a number where sets belong": (
        lambda: w.marginals([3, 2], 2),  # type: ignore[arg-type]
        InvalidParameterError,
        "sets must be a list, but it is int",
    ),
    "a number where sizes belong": (
        lambda: w.marginals(5, ways=1),  # type: ignore[arg-type]
        InvalidParameterError,
        "sizes must be a list, but it is int",
    ),
    "more tables than memory holds": (
        lambda: w.marginals([2] * 30, ways=10),
        InvalidParameterError,
        "30045015 tables",
    ),
    "sets of more attributes than memory holds": (
        lambda: w.marginals([2] * 40, [range(40)]),
        InvalidParameterError,
        "1 tables with 1099511627776 subsets",
    ),
    "mismatched domains": (
        lambda: w.plan(w.prefix(3), **PRICE, strategy=w.strategy(np.eye(4))),
        MismatchedDomainError,
        "over the domain",
    ),
    "unions over different domains": (
        lambda: w.union(w.prefix(3), w.identity(4)),
        MismatchedDomainError,
        "over the domain",
    ),
    "a declared L1 sensitivity that is wrong": (
        lambda: w.strategy([[1, 1], [0, 2]], l1=2),
        WrongSensitivityError,
        "columns reach 3",
    ),
    "a declared L2 sensitivity that is wrong": (
        lambda: w.strategy([[1, 1], [0, 2]], l2=3),
        WrongSensitivityError,
        "columns reach 2.236",
    ),
    "negative weights": (lambda: w.union(w.prefix(3), weights=[-1]), InvalidParameterError, "must be positive"),
    "negative weights of queries": (
        lambda: w.explicit([[1, 2]], weights=[-2]),
        InvalidParameterError,
        "must be positive",
    ),
    "negative factors": (lambda: -1 * w.prefix(3), InvalidParameterError, "must be positive"),
    "weights that are not numbers": (
        lambda: w.marginals([2, 2], ways=1, weights=[float("nan"), 1]),
        InvalidParameterError,
        "finite",
    ),
    "empty unions": (w.union, InvalidParameterError, "empty"),
    "empty sets of marginals": (lambda: w.marginals([2, 3], []), InvalidParameterError, "empty"),
    "empty matrices": (lambda: w.explicit(np.zeros((0, 4))), InvalidParameterError, "at least one row"),
    "queries that ask nothing": (lambda: w.explicit([[0, 0], [1, 1]]), InvalidParameterError, "asks nothing"),
    "matrices with infinities": (lambda: w.explicit([[np.inf, 1]]), InvalidParameterError, "not finite"),
    "matrices of text": (lambda: w.explicit([["a", "b"]]), InvalidParameterError, "matrix of numbers"),
    "ragged matrices": (lambda: w.explicit([[1], [1, 2]]), InvalidParameterError, "matrix of numbers"),
    "domains without cells": (lambda: w.prefix(0), InvalidParameterError, "at least 1"),
    "domains of true": (lambda: w.identity(True), InvalidParameterError, "whole number"),
    "domains too large for a matrix": (lambda: w.plan(w.prefix(5000), **PRICE), InvalidParameterError, "4096"),
    "attributes that do not exist": (lambda: w.marginals([2, 3], [(0, 2)]), InvalidParameterError, "there are 2"),
    "marginals of more ways than attributes": (
        lambda: w.marginals([2, 3], ways=3),
        InvalidParameterError,
        "no 3-way",
    ),
    "unknown noise": (lambda: w.plan(w.prefix(3), **PRICE, noise="cauchy"), InvalidParameterError, "no noise named"),
    "Gaussian noise without a delta": (
        lambda: w.plan(w.prefix(3), epsilon=1, noise="gaussian"),
        CannotCalibrateError,
        "without a delta",
    ),
    "plans without a price": (lambda: w.plan(w.prefix(3)), InvalidParameterError, "got none"),
    "two prices": (lambda: w.plan(w.prefix(3), epsilon=1, rho=1), InvalidParameterError, "got epsilon, rho"),
    "bounds that leave no room": (
        lambda: w.plan(w.prefix(3), **PRICE, total=2**62),
        CannotCalibrateError,
        "bits for the strategy",
    ),
    "contributions of zero": (
        lambda: w.plan(w.prefix(3), **PRICE, contribution=0),
        InvalidParameterError,
        "at least 1",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_it_refuses(name: str) -> None:
    attempt, kind, words = REFUSALS[name]
    with pytest.raises(kind, match=words) as refusal:
        attempt()
    assert refusal.value.fix
