"""Principal components: directions, variances, and what is refused."""

import numpy as np
import pytest

from defocus.errors import InvalidParameterError
from defocus.learning import PCA
from defocus.noise.testing import seeded


def test_it_finds_directions_variances_and_the_mean() -> None:
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    X = rng.normal(size=(20_000, 6)) * [0.25, 0.15, 0.05, 0.02, 0.02, 0.02] @ turn + 0.1
    model = PCA(2, epsilon=1, delta=1e-6, norm=2.0, bits=seeded(1)).fit(X)
    assert abs(model.components_ @ turn.T)[[0, 1], [0, 1]] == pytest.approx([1, 1], abs=0.01)
    assert model.explained_variance_ == pytest.approx([0.0625, 0.0225], rel=0.1)
    assert model.mean_ == pytest.approx(np.full(6, 0.1), abs=0.01)
    back = model.inverse_transform(model.transform(X))
    assert ((X - back) ** 2).sum(axis=1).mean() < 0.006
    assert model.get_feature_names_out().tolist() == ["pca0", "pca1"]


def test_bounds_are_undone_by_the_inverse() -> None:
    rng = np.random.default_rng(0)
    X = 100 + 10 * rng.uniform(-1, 1, (5000, 2))
    model = PCA(epsilon=1, delta=1e-6, bounds=(90, 110), bits=seeded(1)).fit(X)
    assert model.inverse_transform(model.transform(X)) == pytest.approx(X)
    assert model.mean_ == pytest.approx([100, 100], abs=0.5)  # in the units of the data
    assert model.transform(X).mean(axis=0) == pytest.approx([0, 0], abs=0.05)


@pytest.mark.parametrize("number", [0, 3, 1.5, "two"])
def test_refuses_more_components_than_features(number: object) -> None:
    with pytest.raises(InvalidParameterError, match="components"):
        PCA(number).fit([[0.0, 0.1]])
