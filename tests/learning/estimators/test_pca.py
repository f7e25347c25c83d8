"""Principal components: directions, variances, and what is refused."""

from typing import Any

import numpy as np
import pytest

from defocus import Budget
from defocus.errors import InvalidParameterError
from defocus.learning import PCA, StandardScaler
from defocus.learning.estimators import pca
from defocus.noise.testing import seeded
from defocus.privacy.accounting import account
from defocus.privacy.events import DiscreteLaplace, parts_of


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


def test_it_standardises_within_declared_bounds() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal([50, -3], [10, 0.5], (20_000, 2))
    model = StandardScaler(bounds=([0, -6], [120, 0]), epsilon=1, delta=1e-6, bits=seeded(1)).fit(X)
    Z = model.transform(X)
    assert Z.mean(axis=0) == pytest.approx([0, 0], abs=0.05)
    assert Z.std(axis=0) == pytest.approx([1, 1], rel=0.05)
    assert model.inverse_transform(Z) == pytest.approx(X)
    assert (model.error_ > 0).all()


def test_bounds_nobody_declared_are_found_and_charged_within_the_budget() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal([40, -2], [10, 0.3], (20_000, 2))
    model = StandardScaler(epsilon=1, delta=1e-6, bits=seeded(1)).fit(X)
    assert model.low_[0] <= 16
    assert model.high_[0] == 128 or model.high_[0] == 64
    assert model.transform(X).std(axis=0) == pytest.approx([1, 1], rel=0.15)
    kinds = [(type(part), times) for part, times in parts_of(model.event_)]
    assert (DiscreteLaplace, 2) in kinds
    assert Budget(1, 1e-6).covers(account(model.event_))


def test_means_and_deviations_can_be_left_alone() -> None:
    X = np.tile([[2.0], [8.0]], (3000, 1))
    plain: dict[str, Any] = {"bounds": (0, 10), "epsilon": 1, "delta": 1e-6, "bits": seeded(1)}
    shifted = StandardScaler(with_std=False, **plain).fit(X)
    assert shifted.transform(X)[:2].ravel() == pytest.approx([-3, 3], abs=0.1)
    spread = StandardScaler(with_mean=False, **plain).fit(X)
    assert spread.transform(X)[:2].ravel() == pytest.approx([2 / 3, 8 / 3], abs=0.1)
    for model in (shifted, spread):
        assert model.inverse_transform(model.transform(X)) == pytest.approx(X)


def test_declared_bounds_cost_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pca, "_finder", None)  # nor its time
    model = StandardScaler(bounds=(0, 1), epsilon=1, delta=1e-6).fit(np.zeros((5, 2)))
    assert not any(isinstance(part, DiscreteLaplace) for part, _ in parts_of(model.event_))


def test_missing_values_are_the_middle_when_fitting_and_stay_missing() -> None:
    X = np.full((2000, 1), np.nan)
    model = StandardScaler(bounds=(0, 10), epsilon=1, delta=1e-6, bits=seeded(1)).fit(X)
    assert model.mean_ == pytest.approx([5], abs=0.5)
    assert np.isnan(model.transform(X)).all()
    assert np.isfinite(StandardScaler(epsilon=1, delta=1e-6).fit(X).scale_).all()
