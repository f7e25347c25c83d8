import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus import workloads as w
from defocus.errors import UnmeasuredTablesError
from defocus.workloads import residuals
from defocus.workloads.marginal_strategies import MarginalStrategy, flat_weights, laplace_design, residual_design
from defocus.workloads.marginals import Lattice, all_sets, levels_of

PRICE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@settings(max_examples=25)
@given(SIZES, st.integers(0, 3), st.integers(0, 10**6))
def test_the_closed_form_attains_the_svd_bound_whatever_the_weights(sizes: list[int], most: int, seed: int) -> None:
    """Xiao, He, Zhang, Kifer (2023)."""
    count = sum(math.comb(len(sizes), r) for r in range(min(most, len(sizes)) + 1))
    weights = np.random.default_rng(seed).uniform(0.1, 10, count).tolist()
    workload = w.marginals(sizes, up_to=min(most, len(sizes)), weights=weights)
    gram = workload.products().gram()
    roots = np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0))
    bound = float(roots[roots > 1e-7 * roots.max()].sum()) ** 2 / len(gram)
    assert residuals.total_bound(workload) == pytest.approx(bound, rel=1e-6)
    strategy = residual_design(workload).make(30)
    assert strategy.total(workload) * strategy.norms().l2_squared == pytest.approx(bound, rel=1e-6)


@settings(max_examples=15)
@given(SIZES, st.booleans())
def test_exact_measurements_give_exact_marginals(sizes: list[int], gaussian: bool) -> None:
    workload = w.marginals(sizes, up_to=min(2, len(sizes)))
    x = np.arange(math.prod(sizes)) ** 2
    strategy = (residual_design if gaussian else laplace_design)(workload).make(20)
    np.testing.assert_allclose(strategy.answers(workload, strategy.measure(x)), workload.answer(x), atol=1e-6)


def test_all_two_way_marginals_of_two_three_and_four_values() -> None:
    """The closed form by hand: (Σ_A √(v_A p_A))², equal to the squared sum of singular values over 24."""
    workload = w.marginals([2, 3, 4], [(0, 1), (0, 2), (1, 2)])
    gram = workload.products().gram()
    assert residuals.total_bound(workload) == pytest.approx(np.sqrt(np.linalg.eigvalsh(gram).clip(0)).sum() ** 2 / 24)


def test_no_marginal_is_much_worse_than_another_when_the_largest_variance_is_minimised() -> None:
    workload = w.marginals([2, 3, 8, 5], ways=2)
    weights = flat_weights(workload)
    p, v = residuals.shares(workload), residuals.importances(workload, weights)
    dual = float(np.sqrt(v * p).sum()) ** 2
    strategy = residual_design(workload, weights).make(30)
    assert strategy.greatest(workload) * strategy.norms().l2_squared == pytest.approx(dual, rel=2e-3)


def test_attributes_with_one_value_and_the_empty_marginal_are_welcome() -> None:
    workload = w.marginals([1, 3], [(), (0,), (0, 1)])
    plan = w.plan(workload, **PRICE, noise="gaussian")
    assert np.isfinite(plan.variances()).all()
    assert plan.variances()[0] == pytest.approx(plan.variances()[1])


def test_sets_that_were_not_planned_for_are_refused() -> None:
    strategy = residual_design(w.marginals([2, 3, 2], [(0, 1)])).make(10)
    strategy.check(w.marginals([2, 3, 2], [(1,)]))
    with pytest.raises(UnmeasuredTablesError, match=r"did not measure the table over attributes \(0, 2\), alone"):
        strategy.check(w.marginals([2, 3, 2], [(0, 2)]))
    with pytest.raises(UnmeasuredTablesError, match=r"attributes \(2,\) and of 3 more, alone") as refusal:
        strategy.check(w.marginals([2, 3, 2], [(0, 1, 2), (0, 2), (1, 2), (2,)]))
    assert "plan and release again" in refusal.value.fix


@pytest.mark.parametrize("design", [residual_design, laplace_design])
def test_a_value_that_everybody_has_does_not_hide_what_was_not_measured(design: Any) -> None:
    strategy = design(w.marginals([2, 1, 3], [(0, 1)])).make(10)
    strategy.check(w.marginals([2, 1, 3], [(0,)]))
    with pytest.raises(UnmeasuredTablesError):
        strategy.check(w.marginals([2, 1, 3], [(1, 2)]))
    table = w.marginals([2, 1], [(0, 1)])
    total = MarginalStrategy((2, 1), table.lattice, np.array([1, 0, 0, 0]), residual=False)
    with pytest.raises(UnmeasuredTablesError):
        total.check(table)


def test_weights_move_accuracy_to_where_it_matters() -> None:
    even, uneven = (
        w.plan(w.marginals([4, 4, 4], ways=2, weights=k), **PRICE, noise="gaussian") for k in ([1] * 3, [9, 1, 1])
    )
    assert uneven.variances()[0] < even.variances()[0]
    assert uneven.variances()[-1] > even.variances()[-1]


def test_weights_follow_sets_given_in_any_order() -> None:
    workload = w.marginals([2, 3, 4], [(0, 1), (2,), (1,)], weights=[5, 7, 11])
    assert workload.sets() == [(2,), (1,), (0, 1)]
    assert workload.importance().tolist() == [7] * 4 + [11] * 3 + [5] * 6
    assert (2 * workload).importance()[0] == 14


SETS = st.lists(st.sets(st.integers(0, 5), max_size=4), min_size=1, max_size=6)


@given(SETS)
def test_every_subset_is_there_once_and_links_name_it(sets: list[set[int]]) -> None:
    named = sorted({tuple(sorted(chosen)) for chosen in sets})
    levels, _ = levels_of(named)
    lattice = Lattice.below(levels, 6)
    names = lattice.names()
    expected = {sub for chosen in named for r in range(len(chosen) + 1) for sub in itertools.combinations(chosen, r)}
    assert len(names) == lattice.count == len(expected)
    assert set(names) == expected
    for order, rows in lattice.levels.items():
        for row, links in zip(rows.tolist(), lattice.links[order].tolist(), strict=True):
            for pattern, number in enumerate(links):
                assert names[number] == tuple(m for c, m in enumerate(row) if pattern >> c & 1)
    assert lattice.again(6).names() == names


@pytest.mark.parametrize("attributes", [5, 10**9])
def test_numbers_do_not_depend_on_how_sets_are_told_apart(attributes: int) -> None:
    lattice = Lattice.below(all_sets(5, [3]), attributes)
    assert lattice.count == 1 + 5 + 10 + 10
    assert lattice.names() == Lattice.below(all_sets(5, [3]), 5).names()


def test_products_run_over_the_attributes_of_each_set() -> None:
    lattice = Lattice.below(all_sets(3, [2]), 3)
    values = lattice.product(np.array([2.0, 3.0, 5.0]))
    assert dict(zip(lattice.names(), values.tolist(), strict=True))[(0, 2)] == 10
    spread = lattice.spread(2, np.array([2.0, 3.0, 5.0]), np.array([1.0, 1.0, 7.0]))
    assert spread[1].tolist() == [7, 14, 5, 10]  # the set {0, 2}: none, 0, 2, both
