from typing import Any

import numpy as np
import pytest

from defocus.workloads.atoms import Identity
from defocus.workloads.ordered import Prefix, Ranges
from defocus.workloads.trees import best_trees


def error(rows: Any, gram: Any) -> float:
    """The total variance at L1 sensitivity one, of single cells with these sums beside them."""
    full = np.vstack([np.eye(len(gram)), rows])
    reach = float(np.abs(full).sum(axis=0).max())
    return reach**2 * float(np.trace(gram @ np.linalg.inv(full.T @ full)))


@pytest.mark.parametrize("n", [64, 81])
def test_on_a_power_of_its_branches_the_error_of_a_tree_is_the_closed_form(n: int) -> None:
    gram = Ranges(n).gram()
    exact = [tree for tree in best_trees(gram, 99) if n % tree.widths[-1] == 0]
    assert exact
    for tree in exact:
        assert tree.error == pytest.approx(error(tree.rows(), gram), rel=2e-2)  # faint levels are left out


@pytest.mark.parametrize("n", [37, 100, 200])
def test_on_other_domains_the_closed_form_is_a_bound(n: int) -> None:
    gram = Prefix(n).gram()
    for tree in best_trees(gram, 99):
        assert error(tree.rows(), gram) <= 1.02 * tree.error
        assert tree.rows().shape == (tree.sums, n)


def test_weighted_levels_are_better_than_even_ones() -> None:
    gram = Ranges(256).gram()
    tree = best_trees(gram, 1)[0]
    even = np.where(tree.rows() > 0, 1.0, 0.0)
    assert error(tree.rows(), gram) < error(even, gram)


def test_where_single_cells_are_asked_no_tree_is_worth_it() -> None:
    assert best_trees(Identity(64).gram(), 3) == []
