"""Naive Bayes: what is learned, and what is refused."""

import numpy as np
import pytest

from defocus.errors import InvalidParameterError
from defocus.learning import NaiveBayes
from defocus.noise.testing import seeded


def test_it_learns_shapes_that_no_line_could_separate() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 2))
    y = (np.abs(X[:, 0]) > 0.5).astype(int)
    model = NaiveBayes(epsilon=1, delta=1e-6, classes=[0, 1], bits=seeded(1)).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(len(X)))
    assert np.exp(model.class_log_prior_) == pytest.approx([0.5, 0.5], abs=0.02)


def test_pure_noise_is_never_taken_for_certainty() -> None:
    model = NaiveBayes(epsilon=0.1, delta=1e-6, classes=[0, 1], bits=seeded(1)).fit(np.zeros((4, 3)), [0, 1, 0, 1])
    chance = model.predict_proba(np.zeros((1, 3)))
    assert np.isfinite(chance).all()
    assert chance.max() < 0.999


@pytest.mark.parametrize("bins", [1, 0, -3, 2.5, "8", True, 10**6])
def test_refuses_numbers_of_bins_that_are_none(bins: object) -> None:
    with pytest.raises(InvalidParameterError, match="bins"):
        NaiveBayes(n_bins=bins, classes=[0, 1]).fit([[0.0]], [0])  # type: ignore[arg-type]  # refused
