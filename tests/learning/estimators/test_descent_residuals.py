"""What a row pulls by: never more than the bound, and never depending on the rows beside it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.learning.estimators.descent import PULL, chances, largest, pulls

UNIT = 2**29


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 6), spread=st.sampled_from([0.0, 1.0, 30.0, 1e6]))
@settings(max_examples=80, deadline=None)
def test_no_row_pulls_harder_than_the_bound_and_each_pulls_by_itself(seed: int, classes: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    columns = 1 if classes == 2 else classes
    scores = np.rint(rng.normal(size=(9, columns)) * spread * UNIT)
    labels = rng.integers(-1, classes, size=9)
    found = pulls(scores, labels, unit=UNIT, classes=classes)
    assert ((found**2).sum(axis=1) <= PULL**2).all()
    assert (found[labels < 0] == 0).all()
    for i in range(9):
        assert (pulls(scores[i : i + 1], labels[i : i + 1], unit=UNIT, classes=classes)[0] == found[i]).all()


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_everybody_pulls_by_the_bound_before_anything_is_learned(classes: int) -> None:
    found = pulls(np.zeros((classes, 1 if classes == 2 else classes)), np.arange(classes), unit=UNIT, classes=classes)
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.full(classes, PULL), rel=1e-3)


def test_right_rows_pull_as_the_logistic_loss_does() -> None:
    scores = np.array([0.5, 1.0, 3.0])
    found = pulls(np.rint(scores * UNIT)[:, np.newaxis], np.ones(3, np.int64), unit=UNIT, classes=2)
    assert found.ravel() / (2 * PULL) == pytest.approx(-1 / (1 + np.exp(scores)), abs=1e-4)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_probabilities_are_those_at_which_nothing_pulls(classes: int) -> None:
    rng = np.random.default_rng(classes)
    scores = rng.normal(size=(20, classes))
    eta = chances(scores)
    assert eta.sum(axis=1) == pytest.approx(np.ones(20))
    column = (scores[:, 1:] - scores[:, :1]) if classes == 2 else scores
    expected = np.zeros((20, column.shape[1]))
    for y in range(classes):
        pull = pulls(np.rint(column * UNIT), np.full(20, y), unit=UNIT, classes=classes)
        expected += eta[:, y : y + 1] * pull * largest(classes) / PULL
    assert np.abs(expected).max() < 2e-3
