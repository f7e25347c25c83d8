import numpy as np
import pytest

from defocus.workloads.queries import Explicit, Identity, Prefix, Ranges, Total


@pytest.mark.parametrize("atom", [Prefix(9), Ranges(6), Identity(5), Total(4), Explicit(np.eye(3), np.ones(3))])
def test_atoms_agree_with_their_matrices(atom: Prefix | Ranges | Identity | Total | Explicit) -> None:
    rng = np.random.default_rng(3)
    matrix, weights = atom.matrix(), rng.random(atom.queries)
    half = rng.normal(size=(atom.n, atom.n))
    covariance = half @ half.T
    x = rng.integers(-5, 5, (2, atom.n))
    assert matrix.shape == (atom.queries, atom.n)
    np.testing.assert_allclose(atom.gram(), matrix.T @ matrix)
    np.testing.assert_allclose(atom.weighted_gram(weights), matrix.T @ np.diag(weights) @ matrix)
    np.testing.assert_allclose(atom.answer(x), x @ matrix.T)
    np.testing.assert_allclose(atom.variances(covariance), np.diagonal(matrix @ covariance @ matrix.T))
    assert atom.reach() == (np.abs(matrix).sum(axis=0).max(), (matrix**2).sum(axis=0).max())
    np.testing.assert_allclose(atom.times_gram(x.astype(np.float64)), x @ matrix.T @ matrix)
    inverse = atom.gram_inverse()
    if inverse is not None:
        full = np.diag(inverse[0]) + np.diag(inverse[1], 1) + np.diag(inverse[1], -1)
        np.testing.assert_allclose(full @ atom.gram(), np.eye(atom.n), atol=1e-12)
    assert atom.importance().tolist() == [1] * atom.queries
