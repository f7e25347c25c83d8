"""The additive model: trees of whole weights, and the curves that are learned."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.learning import AdditiveModel
from defocus.learning.estimators.additive import Steps, Trees
from defocus.noise.testing import seeded


@given(features=st.integers(1, 30), depth=st.integers(1, 6))
def test_every_row_measures_the_same_and_no_more_than_the_radius(features: int, depth: int) -> None:
    trees = Trees(features, depth)
    cells = np.random.default_rng(features).integers(0, 2**depth, (3, features))
    rows = Steps(trees, trees.placed(cells))
    plain = (trees.placed(cells) @ trees.spread()).toarray()
    assert ((plain**2).sum(axis=1) == rows.squares()).all()
    assert rows.squares().max() <= 4**13
    assert plain.shape[1] == rows.width == trees.width


def test_products_and_sums_are_those_of_the_plain_matrix() -> None:
    trees = Trees(2, 3)
    cells = np.array([[0, 7], [3, 3], [5, 0]])
    rows, plain = Steps(trees, trees.placed(cells)), (trees.placed(cells) @ trees.spread()).toarray()
    w = np.arange(float(trees.width))[:, np.newaxis]
    assert (rows.times(w) == plain @ w).all()
    weights = np.array([[1.0], [-2.0], [3.0]])
    assert (rows.tallied(weights) == plain.T @ weights).all()


def test_it_learns_a_curve_for_each_feature() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (8000, 3))
    y = (np.sin(X[:, 0]) + (X[:, 1] > 7) > 0.5).astype(int)
    model = AdditiveModel(bounds=(0, 10), epsilon=1, delta=1e-6, classes=[0, 1], max_iter=150, bits=seeded(1)).fit(X, y)
    assert model.score(X, y) > 0.93
    assert model.curves_.shape == (3, 128, 1)
    assert np.ptp(model.curves_[2]) < 0.5 * np.ptp(model.curves_[0])


def test_several_classes_have_curves_of_their_own() -> None:
    X = np.linspace(-1, 1, 3000)[:, np.newaxis]
    y = np.digitize(X.ravel(), [-0.3, 0.3])
    model = AdditiveModel(epsilon=3, delta=1e-6, classes=[0, 1, 2], max_depth=4, max_iter=100, bits=seeded(1)).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(3000))


@pytest.mark.parametrize("depth", [0, 11, 2.5])
def test_refuses_depths_that_are_none(depth: object) -> None:
    with pytest.raises(InvalidParameterError, match="max_depth"):
        AdditiveModel(max_depth=depth, classes=[0, 1]).fit([[0.0]], [0])  # type: ignore[arg-type]  # refused
