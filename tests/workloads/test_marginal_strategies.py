import itertools
import math
from typing import Any

import numpy as np
import pytest

from defocus import workloads as w
from defocus.workloads.marginal_strategies import best_cover, laplace_design

PURE: dict[str, Any] = {"epsilon": 1}


@pytest.mark.parametrize(
    ("sizes", "tables"),
    [([4, 3, 5, 2, 6], [(0, 1, 4), (2, 3, 4), (0, 1, 2, 3)]), ([7, 2, 9, 4], [(0, 2), (0, 1, 3), (1, 2, 3)])],
)
def test_two_way_tables_are_not_stuck_at_single_cells(sizes: list[int], tables: list[tuple[int, ...]]) -> None:
    """Measuring these tables with equal weights was better than the plan, which measured every cell."""
    matrix = w.marginals(sizes, tables).products().matrix()
    known = w.plan(w.union(w.marginals(sizes, ways=2)), **PURE, strategy=w.strategy(matrix)).error.total
    plan = w.plan(w.marginals(sizes, ways=2), **PURE)
    assert plan.error.total < known
    assert plan.error.total < 0.84 * plan.identity_error
    assert "tables" in plan.measurement.name


def test_a_plan_that_measures_every_cell_says_so() -> None:
    plan = w.plan(w.marginals([2, 3, 4], ways=2), **PURE)
    assert plan.error.total == pytest.approx(plan.identity_error, rel=1e-6)
    assert "this plan: every cell" in str(plan)


@pytest.mark.parametrize(("sizes", "ways"), [([2, 3, 4], 2), ([4, 2, 5, 3], 2), ([2, 6, 3], 1)])
def test_no_few_tables_with_equal_weights_are_better(sizes: list[int], ways: int) -> None:
    """Every set of up to three tables, by brute force through the pseudoinverse."""
    workload = w.marginals(sizes, ways=ways)
    gram = workload.products().gram()
    found = best_cover(workload)
    assert found is not None
    assert found.weights.sum() == pytest.approx(1)
    every = [
        chosen for order in range(1, len(sizes) + 1) for chosen in itertools.combinations(range(len(sizes)), order)
    ]
    blocks = {chosen: w.marginals(sizes, [chosen]).products().gram() for chosen in every}
    asked = workload.sets()
    for number in (1, 2, 3):
        for tables in itertools.combinations(every, number):
            if not all(any(set(one) <= set(table) for table in tables) for one in asked):
                continue
            squared = sum(blocks[table] for table in tables) / number**2
            assert found.error <= 1.0001 * float(np.trace(gram @ np.linalg.pinv(squared, hermitian=True)))


@pytest.mark.parametrize("sizes", [[4, 3, 5, 2, 6], [2, 1, 3], [9]])
def test_the_error_of_a_cover_is_that_of_its_tables(sizes: list[int]) -> None:
    workload = w.marginals(sizes, up_to=min(2, len(sizes)))
    found = best_cover(workload)
    assert found is not None
    strategy = laplace_design(workload).make(30)
    assert strategy.total(workload) * strategy.norms().l1 ** 2 <= found.error * (1 + 1e-4)
    x = np.arange(math.prod(sizes))
    np.testing.assert_allclose(strategy.answers(workload, strategy.measure(x)), workload.answer(x), atol=1e-6)


def test_with_hundreds_of_tables_only_their_subsets_are_considered() -> None:
    workload = w.marginals([3] * 40, ways=2)
    assert best_cover(workload) is None
    plan = w.plan(workload, **PURE)
    assert plan.error.total < plan.direct_error
    assert "weighted tables" in plan.measurement.name


def test_a_union_of_marginals_is_planned_as_the_same_sets_in_one_call() -> None:
    sizes = [4, 3, 5, 2]
    ones, pairs = w.marginals(sizes, ways=1), w.marginals(sizes, ways=2)
    both = w.union(pairs, ones, weights=[1, 3])
    whole = w.marginals(sizes, [*pairs.sets(), *ones.sets()], weights=[1] * 6 + [3] * 4)
    price: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
    assert isinstance(both, w.Marginals)
    assert both.sets() == whole.sets()
    assert w.plan(both, **price).error.total == w.plan(whole, **price).error.total
    assert w.plan(both, **price).error.total < w.plan(w.union(whole), **price).error.total


def test_a_table_that_two_parts_of_a_union_ask_for_is_answered_once_with_both_weights() -> None:
    first, second = w.marginals([4, 3], ways=1), w.marginals([4, 3], [(0,), (0, 1)], weights=[2, 5])
    both = w.union(first, second)
    assert isinstance(both, w.Marginals)
    assert dict(zip(both.sets(), both.set_weights(), strict=True)) == {(0,): 3, (1,): 1, (0, 1): 5}
