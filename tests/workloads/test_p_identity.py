from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad

from defocus import workloads as w
from defocus.workloads.optimum import Gram
from defocus.workloads.p_identity import _value, best_trees, p_identity
from defocus.workloads.queries import Array, Identity, Prefix, Ranges


def test_the_gradient_of_the_p_identity_is_right() -> None:
    rng = np.random.default_rng(1)
    gram = Gram.mixed([(2.0, Ranges(8)), (1.0, Identity(8))])
    off = check_grad(
        lambda t: _value(t.reshape(3, 8), gram)[0],
        lambda t: _value(t.reshape(3, 8), gram)[1].ravel(),
        rng.random(24),
    )
    assert off < 1e-4


def test_the_p_identity_beats_the_identity_on_ranges_with_laplace_noise() -> None:
    gram = Ranges(128).gram()
    matrix, total = p_identity(Gram.mixed([(1.0, Ranges(128))]))
    assert np.abs(matrix).sum(axis=0).max() <= 1 + 1e-9
    assert total == pytest.approx(float(np.trace(gram @ np.linalg.inv(matrix.T @ matrix))), rel=1e-6)
    assert (np.trace(gram) / total) ** 0.5 > 1.37


def plain_tree(n: int, branches: int) -> Array:
    """Every level of the tree alike, as one would build it by hand."""
    widths = [1]
    while widths[-1] < n:
        widths.append(widths[-1] * branches)
    return np.vstack([np.arange(n) // width == np.arange(-(-n // width))[:, None] for width in widths]).astype(float)


@pytest.mark.parametrize("atom", [Ranges(512), Prefix(300)])
def test_no_plain_tree_is_better_with_laplace_noise(atom: Ranges | Prefix) -> None:
    """From block sums alone, the search ended above a tree of 8 or 16 branches for large domains."""
    gram = Gram.mixed([(1.0, atom)])
    _, total = p_identity(gram, rounds=5)
    for branches in (2, 4, 8, 16):
        tree = plain_tree(atom.n, branches)
        reach = float(tree.sum(axis=0).max())
        assert total < 0.9 * reach**2 * float(np.trace(gram.matrix @ np.linalg.inv(tree.T @ tree)))


@pytest.mark.long
def test_ranges_of_two_thousand_cells_beat_the_tree_of_eight_branches() -> None:
    ours = w.plan(w.ranges(2048), epsilon=1)
    theirs = w.plan(w.ranges(2048), epsilon=1, strategy=w.strategy(plain_tree(2048, 8)))
    assert ours.error.total < 0.75 * theirs.error.total  # it was 1.48 times as large


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
