import itertools
from typing import Any

import numpy as np
import pytest
from tests.workloads.streaming import FACTORS, factor, matrix

from defocus.errors import InvalidParameterError
from defocus.workloads.streams.strategies import Factor, Tree, merging


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_the_longest_column_is_that_of_the_matrix_in_use(kind: dict[str, Any], steps: int) -> None:
    """In Python integers and at the finest precision, where 64 bits would not hold the squares."""
    strategy = factor(steps, **kind)
    C = matrix(strategy)
    columns = [sum(x * x for x in column) for column in C.T]
    assert [int(n) * strategy.weight(s) ** 2 for s, n in enumerate(strategy.norms())] == columns
    assert strategy.squared_sensitivity(1, 1) == max(columns)
    assert all(C[t, s] == 0 for t in range(steps) for s in range(t + 1, steps)), "a row looks ahead"


@pytest.mark.parametrize("kind", FACTORS)
def test_no_row_adds_up_to_more_than_its_reach(kind: dict[str, Any]) -> None:
    strategy = factor(40, **kind)
    assert max(sum(row) for row in matrix(strategy)) <= strategy.reach


@pytest.mark.parametrize("kind", FACTORS)
def test_variances_are_those_of_the_matrix_in_use(kind: dict[str, Any]) -> None:
    strategy = factor(40, **kind)
    B = np.tri(40) @ np.linalg.inv(matrix(strategy).astype(float))
    assert list(strategy.variances()) == pytest.approx((B**2).sum(axis=1).tolist(), rel=1e-12)


def patterns(steps: int, participations: int, separation: int) -> Any:
    for times in range(1, participations + 1):
        for pattern in itertools.combinations(range(steps), times):
            if all(b - a >= separation for a, b in itertools.pairwise(pattern)):
                yield list(pattern)


@pytest.mark.parametrize(("participations", "separation"), [(2, 1), (2, 3), (3, 2), (4, 4), (3, 1)])
@pytest.mark.parametrize("kind", [k for k in FACTORS if not k.get("normalised")])
def test_no_pattern_of_participations_exceeds_the_sensitivity(
    kind: dict[str, Any], participations: int, separation: int
) -> None:
    strategy = factor(14, **kind)
    C = matrix(strategy)
    worst = max(sum(x * x for x in C[:, p].sum(axis=1)) for p in patterns(14, participations, separation))
    declared = strategy.squared_sensitivity(participations, separation)
    assert worst <= declared
    if "spread" not in kind:
        assert worst == declared


@pytest.mark.parametrize("signs", [(1, -1), (-1, -1), (1, 1)])
def test_signs_of_contributions_cannot_make_it_worse(signs: tuple[int, int]) -> None:
    C = matrix(factor(10))
    declared = factor(10).squared_sensitivity(2, 2)
    for i, j in (p for p in patterns(10, 2, 2) if len(p) == 2):
        assert sum(x * x for x in signs[0] * C[:, i] + signs[1] * C[:, j]) <= declared


def test_normalised_columns_are_never_used_for_several_participations() -> None:
    with pytest.raises(InvalidParameterError, match="one participation"):
        factor(8, normalised=True).squared_sensitivity(2, 1)


@pytest.mark.parametrize("steps", [1, 2, 3, 8, 13, 16])
def test_a_tree_is_as_sensitive_as_its_blocks_say(steps: int) -> None:
    tree = Tree(steps, scale=4)
    C = matrix(tree)
    assert C.shape == (tree.rows, steps)
    assert tree.squared_sensitivity(1, 1) == max(sum(x * x for x in c) for c in C.T)
    assert tree.sensitivity(1, 1) == max(sum(c) for c in C.T)
    for participations, separation in ((2, 1), (3, 2), (2, 4)):
        if steps < 2:
            continue
        found = list(patterns(steps, participations, separation))
        assert max(sum(x * x for x in C[:, p].sum(axis=1)) for p in found) <= tree.squared_sensitivity(
            participations, separation
        )
        assert max(sum(C[:, p].sum(axis=1)) for p in found) <= tree.sensitivity(participations, separation)


def unit_variances(strategy: Factor | Tree) -> tuple[float, float]:
    found = np.array(list(strategy.variances())) * float(strategy.squared_sensitivity(1, 1))
    return float(found.mean()), float(found.max())


def test_published_variances_of_prefix_sums_over_1024_steps() -> None:
    """Mean and largest variance at noise 1 for sensitivity 1; Henzinger, Upadhyay, Upadhyay (2023) for the roots."""
    assert unit_variances(Tree(1024, scale=1)) == pytest.approx((55, 110), rel=2e-3)
    assert unit_variances(factor(1024)) == pytest.approx((9.671, 10.710), rel=2e-4)
    assert unit_variances(factor(1024, normalised=True)) == pytest.approx((8.948, 9.491), rel=2e-4)


def test_groups_cost_one_percent_of_variance_and_save_most_of_the_memory() -> None:
    mean, largest = unit_variances(factor(1024, normalised=True, spread=16))
    assert 8.948 < mean < 1.012 * 8.948
    assert 9.491 < largest < 1.014 * 9.491
    assert factor(1024, normalised=True, spread=16).memory == 112
    assert factor(2**20, bits=(14, 12), spread=16).memory < 280


def test_groups_are_aligned_and_old_enough() -> None:
    groups: list[tuple[int, int]] = []
    for row in range(300):
        for first, size in merging(row, 3):
            halves = [(first, size // 2), (first + size // 2, size // 2)]
            assert [g for g in groups if first <= g[0] < first + size] == halves
            groups = sorted([g for g in groups if g not in halves] + [(first, size)])
            assert row - (first + size - 1) == 3 * size
        groups.append((row, 1))
        assert len(groups) <= factor(300, spread=3).capacity
    assert len(groups) == factor(300, spread=3).memory
