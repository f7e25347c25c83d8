import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.workloads.lattice import Lattice, all_sets, levels_of

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
