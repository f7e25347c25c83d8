"""Output and objective perturbation: the bounds of their proofs, tried on small problems."""

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit

from defocus import Budget, Ledger, rows
from defocus.errors import InvalidParameterError, NotDeclaredError
from defocus.learning import LogisticRegression
from defocus.learning.estimators import perturbation
from defocus.learning.estimators.perturbation import descended_to, minimised, objective_delta, objective_epsilon
from defocus.noise.testing import seeded
from defocus.privacy.accounting import account
from defocus.privacy.events import Approximate, parts_of


def problem(seed: int, n: int = 30, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True), rng.choice([-1.0, 1.0], size=n)


@pytest.mark.parametrize("ridge", [0.05, 1.0, 20.0])
def test_a_row_more_moves_the_minimum_by_at_most_half_over_the_ridge(ridge: float) -> None:
    worst = 0.0
    for seed in range(12):
        x, s = problem(seed)
        here, there = (minimised(x[:k], s[:k], ridge, np.zeros(3)) for k in (29, 30))
        worst = max(worst, float(np.linalg.norm(here - there)))
    assert worst <= (0.5 + 2e-6) / ridge
    assert worst > 0.1 / (ridge + 30)


def test_the_solver_leaves_next_to_no_gradient() -> None:
    x, s = problem(5, n=400, d=8)
    w = minimised(x, s, 0.3, np.full(8, 2.0))
    left = -x.T @ (s * np.minimum(expit(-s * (x @ w)), 0.5)) + 0.3 * w + 2.0
    assert np.linalg.norm(left) <= 1e-6


def density(w: float, xs: list[float], sigma: float, ridge: float) -> float:
    """Of the minimum in one dimension, all signs positive."""
    slope: float = sum(-x * min(expit(-x * w), 0.5) for x in xs) + ridge * w
    bend: float = sum(x * x * expit(x * w) * expit(-x * w) * (x * w >= 0) for x in xs) + ridge
    return math.exp(-(slope**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi)) * bend


@pytest.mark.parametrize(("sigma", "ridge"), [(0.5, 0.3), (1.0, 1.0), (2.0, 0.2)])
def test_the_curve_of_objective_perturbation_bounds_what_it_really_loses(sigma: float, ridge: float) -> None:
    base, others = [0.7, -0.4], [1.0, -1.0]
    for extra in others:
        for epsilon in (0.1, 0.5, 1.0, 2.0):
            for first, second in ((base, [*base, extra]), ([*base, extra], base)):

                def excess(w: float, first: list[float] = first, second: list[float] = second) -> float:
                    here, there = density(w, first, sigma, ridge), density(w, second, sigma, ridge)
                    return max(0.0, here - math.exp(epsilon) * there)  # noqa: B023 # called within the round

                lost = quad(excess, -60, 60, limit=400, points=[0.0])[0]
                assert lost <= objective_delta(epsilon, sigma, ridge) + 1e-7


def test_epsilon_and_delta_of_the_curve_are_each_other_s_inverse() -> None:
    for sigma, ridge in ((0.5, 0.3), (5.0, 2.0)):
        for delta in (1e-3, 1e-6):
            epsilon = objective_epsilon(sigma, ridge, delta)
            assert delta * (1 - 1e-3) <= objective_delta(epsilon, sigma, ridge) <= delta


@pytest.mark.parametrize("solver", ["output", "objective"])
def test_it_learns_and_stays_within_its_budget(solver: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.7, 0.7, size=(4000, 2))
    y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
    model = LogisticRegression(solver=solver, epsilon=1, delta=1e-6, classes=[0, 1], bits=seeded(3)).fit(X, y)
    assert model.score(X, y) > 0.93
    assert Budget(1, 1e-6).covers(account(model.event_))


@pytest.mark.parametrize("solver", ["output", "objective"])
def test_several_classes_are_several_problems(solver: str) -> None:
    X = np.tile([[0.9, 0.0], [-0.4, 0.8], [-0.4, -0.8]], (1000, 1))
    y = np.tile(["a", "b", "c"], 1000)
    model = LogisticRegression(solver=solver, epsilon=3, delta=1e-6, classes=["a", "b", "c"], bits=seeded(3)).fit(X, y)
    assert model.predict(X[:3]).tolist() == ["a", "b", "c"]
    assert Budget(3, 1e-6).covers(account(model.event_))


@pytest.mark.statistical
def test_the_random_slope_has_the_scale_that_was_accounted_for_and_no_other(
    fits: Callable[..., float], monkeypatch: pytest.MonkeyPatch
) -> None:
    slopes: list[np.ndarray] = []

    def spied(x: np.ndarray, sign: np.ndarray, ridge: float, slope: np.ndarray) -> np.ndarray:
        assert ridge == 9.0
        slopes.append(slope)
        return minimised(x, sign, ridge, slope)

    monkeypatch.setattr(perturbation, "minimised", spied)
    told: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "classes": [0, 1], "C": 1 / 9, "bits": seeded(4)}
    model = LogisticRegression(solver="objective", **told).fit(np.zeros((5, 5000)), np.zeros(5))
    (own,) = [part for part, _ in parts_of(model.event_) if isinstance(part, Approximate)]
    sigma = brentq(lambda s: objective_epsilon(s, 9.0, float(own.delta)) - float(own.epsilon), 0.1, 100)
    drawn = np.concatenate(slopes) / sigma
    assert len(drawn) == 5001
    assert fits(drawn) > 1e-6
    assert fits(drawn, 1.1) < 1e-6
    assert fits(drawn, 0.9) < 1e-6


def test_refuses_undeclared_classes_replaced_rows_and_other_budgets(tmp_path: Path) -> None:
    X, y = np.zeros((10, 1)), np.arange(10) % 2
    with pytest.raises(NotDeclaredError, match="declare them"):
        LogisticRegression(solver="output").fit(X, y)
    with pytest.raises(InvalidParameterError, match="epsilon and delta"):
        LogisticRegression(solver="objective", rho=0.1, classes=[0, 1]).fit(X, y)
    with (
        Ledger.open(tmp_path / "a", budget=Budget(1, 1e-5), unit=rows(replace=True), dataset="x") as book,
        pytest.raises(InvalidParameterError, match="added or removed"),
    ):
        LogisticRegression(solver="objective", ledger=book, classes=[0, 1]).fit(X, y)
    for solver in ("output", "objective"):
        with pytest.raises(InvalidParameterError, match="lower C="):
            LogisticRegression(solver=solver, classes=[0, 1], C=1e4).fit(X, y)
    for classes, enough in (([0, 1], 6.2), ([0, 1, 2], 1.4)):
        with pytest.raises(InvalidParameterError, match=f"C= to {enough} or less"):
            LogisticRegression(solver="objective", classes=classes, C=10).fit(X, y)
        assert LogisticRegression(solver="objective", classes=classes, C=enough).fit(X, y).coef_.shape[1] == 1


def test_where_the_quick_ways_fail_the_slow_one_comes_as_near_for_every_data_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(perturbation, "_NEWTON", 0)
    monkeypatch.setattr(perturbation, "minimize", lambda _loss, start, **_: SimpleNamespace(x=start + 50.0))
    for seed, ridge in ((5, 0.3), (6, 1e-3)):
        x, s = problem(seed, n=60, d=4)
        s = np.sign(x[:, 0]) if ridge < 0.1 else s  # separable
        w = minimised(x, s, ridge, np.full(4, 2.0))
        left = -x.T @ (s * np.minimum(expit(-s * (x @ w)), 0.5)) + ridge * w + 2.0
        assert np.linalg.norm(left) <= 1e-6


def test_the_slow_way_ends_after_the_proven_steps_even_if_rounding_never_lets_it_arrive() -> None:
    steps = []

    def gradient(w: np.ndarray) -> np.ndarray:
        steps.append(1)
        return np.asarray(w + 1e-3 * (-1) ** len(steps))

    descended_to(1e-9, gradient, np.array([1.0]), 4.0, 1.0)
    assert 2 < len(steps) < 200
