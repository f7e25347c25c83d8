"""Output and objective perturbation: the bounds of their proofs, tried on small problems."""

import itertools
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
from sklearn.base import clone

from defocus import Budget, Ledger, rows, user
from defocus.errors import InvalidParameterError, NotDeclaredError
from defocus.learning import AdditiveModel, LinearRegression, LogisticRegression
from defocus.learning.estimators import perturbation
from defocus.learning.estimators.perturbation import (
    ScoreLoss,
    clipped_logistic,
    descended_to,
    huber,
    minimised,
    objective_delta,
    objective_epsilon,
)
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
        here, there = (minimised(x[:k], clipped_logistic(s[:k]), ridge, np.zeros(3), 0.25) for k in (29, 30))
        worst = max(worst, float(np.linalg.norm(here - there)))
    assert worst <= (0.5 + 2e-6) / ridge
    assert worst > 0.1 / (ridge + 30)


def test_the_solver_leaves_next_to_no_gradient() -> None:
    x, s = problem(5, n=400, d=8)
    w = minimised(x, clipped_logistic(s), 0.3, np.full(8, 2.0), 0.25)
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
                assert lost <= objective_delta(epsilon, sigma, math.log1p(0.25 / ridge), 0.5) + 1e-7


def test_epsilon_and_delta_of_the_curve_are_each_other_s_inverse() -> None:
    for sigma, ridge in ((0.5, 0.3), (5.0, 2.0)):
        for delta in (1e-3, 1e-6):
            bent = math.log1p(0.25 / ridge)
            epsilon = objective_epsilon(sigma, bent, delta, 0.5)
            assert delta * (1 - 1e-3) <= objective_delta(epsilon, sigma, bent, 0.5) <= delta


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

    def spied(x: np.ndarray, loss: ScoreLoss, ridge: float, slope: np.ndarray, bend: float) -> np.ndarray:
        assert ridge == 9.0
        slopes.append(slope)
        return minimised(x, loss, ridge, slope, bend)

    monkeypatch.setattr(perturbation, "minimised", spied)
    told: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "classes": [0, 1], "C": 1 / 9, "bits": seeded(4)}
    model = LogisticRegression(solver="objective", **told).fit(np.zeros((5, 5000)), np.zeros(5))
    (own,) = [part for part, _ in parts_of(model.event_) if isinstance(part, Approximate)]
    sigma = brentq(
        lambda s: objective_epsilon(s, math.log1p(0.25 / 9), float(own.delta), 0.5) - float(own.epsilon), 0.1, 100
    )
    drawn = np.concatenate(slopes) / sigma
    assert len(drawn) == 5001
    assert fits(drawn) > 1e-6
    assert fits(drawn, 1.1) < 1e-6
    assert fits(drawn, 0.9) < 1e-6


def test_refuses_undeclared_classes_replaced_rows_and_other_budgets(tmp_path: Path) -> None:
    X, y = np.zeros((10, 1)), np.arange(10) % 2
    with pytest.raises(NotDeclaredError, match="declare them"):
        LogisticRegression(solver="output").fit(X, y)
    with pytest.raises(InvalidParameterError, match="price of epsilon"):
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
        w = minimised(x, clipped_logistic(s), ridge, np.full(4, 2.0), 0.25)
        left = -x.T @ (s * np.minimum(expit(-s * (x @ w)), 0.5)) + ridge * w + 2.0
        assert np.linalg.norm(left) <= 1e-6


def test_the_slow_way_ends_after_the_proven_steps_even_if_rounding_never_lets_it_arrive() -> None:
    steps = []

    def gradient(w: np.ndarray) -> np.ndarray:
        steps.append(1)
        return np.asarray(w + 1e-3 * (-1) ** len(steps))

    descended_to(1e-9, gradient, np.array([1.0]), 4.0, 1.0)
    assert 2 < len(steps) < 200


def laplace_log_density(w: float, loss: Any, xs: np.ndarray, scale: float, ridge: float) -> float:
    """Of the minimum in one dimension with a Laplace slope: its change of variables."""
    slope = float(xs @ loss.slope(xs * w)) + ridge * w
    bend = float((xs**2) @ loss.curve(xs * w)) + ridge
    return -abs(slope) / scale + math.log(bend)


LOSSES: dict[str, tuple[Callable[[np.ndarray], ScoreLoss], float, float]] = {
    "logistic": (clipped_logistic, 0.5, 0.25),
    "huber": (lambda aims: huber(aims * 0.9, 0.3), 0.3, 1.0),
}


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize(("scale", "ridge"), [(0.5, 0.3), (1.0, 1.0), (3.0, 0.1)])
def test_at_a_pure_price_no_minimum_tells_more_of_a_row_than_epsilon(kind: str, scale: float, ridge: float) -> None:
    make, slope, bend = LOSSES[kind]
    allowed, lost = math.log1p(bend / ridge) + slope / scale, 0.0
    rows_of_one = [(x, y) for x in (-1.0, 0.4, 1.0) for y in (-1.0, 1.0)]
    for size in (0, 1, 2):
        for base in itertools.combinations_with_replacement(rows_of_one, size):
            for extra in rows_of_one:
                few, more = (np.array(each, dtype=float).reshape(-1, 2).T for each in (base, [*base, extra]))
                for w in np.linspace(-9, 9, 61):
                    densities = [laplace_log_density(float(w), make(y), x, scale, ridge) for x, y in (few, more)]
                    lost = max(lost, abs(densities[0] - densities[1]))
    assert lost <= allowed + 1e-9
    assert lost > 0.5 * allowed


def test_what_a_person_bends_an_objective_by_is_bounded_by_the_trace() -> None:
    rng = np.random.default_rng(3)
    for width in (1, 2, 5):
        for _ in range(200):
            ridge, owned = float(rng.uniform(0.05, 2)), int(rng.integers(1, 8))
            x = rng.normal(size=(owned, width))
            x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)
            root = rng.normal(size=(width, width))
            base = ridge * np.eye(width) + root @ root.T
            bent = 0.25 * x.T @ x / owned
            grown = np.linalg.slogdet(base + bent)[1] - np.linalg.slogdet(base)[1]
            assert 0 <= grown + 1e-12 <= width * math.log1p(0.25 / ridge / width) + 1e-9
    corners = np.eye(4)  # attained by a person with a row along each axis
    grown = np.linalg.slogdet(0.1 * np.eye(4) + 0.25 * corners / 4)[1] - 4 * math.log(0.1)
    assert grown == pytest.approx(4 * math.log1p(0.25 / 0.1 / 4))


@pytest.mark.parametrize("step", [1.0, 0.3, 1e-3])
def test_discrete_laplace_noise_lies_within_a_step_of_laplace_noise(step: float) -> None:
    q = math.exp(-step)
    for u in np.geomspace(1e-4, 0.5, 2001):
        b = math.log(2 * u)  # the quantile of Laplace noise of scale one
        k = 0
        while q ** (k + 1) / (1 + q) >= u:  # P(noise <= -(k + 1)) still holds it
            k += 1
        assert abs(b + k * step) <= step * (1 + 1e-9)


@pytest.mark.statistical
def test_the_random_slope_of_a_pure_fit_is_laplace_of_the_scale_that_was_accounted_for(
    fits_laplace: Callable[..., float], monkeypatch: pytest.MonkeyPatch
) -> None:
    slopes: list[np.ndarray] = []

    def spied(x: np.ndarray, loss: ScoreLoss, ridge: float, slope: np.ndarray, bend: float) -> np.ndarray:
        slopes.append(slope)
        return minimised(x, loss, ridge, slope, bend)

    monkeypatch.setattr(perturbation, "minimised", spied)
    told: dict[str, Any] = {"epsilon": 1, "delta": 0, "C": 1 / 9, "bits": seeded(4), "fit_intercept": False}
    model = LogisticRegression(classes=[0, 1], **told).fit(np.zeros((5, 6400)), np.zeros(5))
    (own,) = [part for part, _ in parts_of(model.event_) if isinstance(part, Approximate)]
    scale = 0.5 * 80 / (float(own.epsilon) - math.log1p(0.25 / 9))
    drawn = np.concatenate(slopes) / scale
    assert len(drawn) == 6400
    assert fits_laplace(drawn) > 1e-6
    assert fits_laplace(drawn, 1.1) < 1e-6
    assert fits_laplace(drawn, 0.9) < 1e-6


def test_sparse_rows_with_a_declared_l1_norm_get_less_noise() -> None:
    X, y = np.zeros((5, 64)), np.zeros(5)
    told: dict[str, Any] = {"epsilon": 1, "delta": 0, "classes": [0, 1], "C": 0.1}
    scales = []
    for l1_norm in (None, 1.0):
        model = LogisticRegression(**told, l1_norm=l1_norm, bits=seeded(1)).fit(X, y)
        (own,) = [part for part, _ in parts_of(model.event_) if isinstance(part, Approximate)]
        scales.append(float(np.abs(model.coef_).mean()))
        assert Budget(1).covers(account(model.event_))
        assert float(own.epsilon) > 0.99
    beside = 0.25 / math.sqrt(1 + 0.25**2)  # the intercept
    assert scales[0] / scales[1] == pytest.approx(math.sqrt(65) / (math.sqrt(1 - beside**2) + beside), rel=1e-3)
    with pytest.raises(InvalidParameterError, match="bounds= moves"):
        LogisticRegression(**told, l1_norm=1.0, bounds=(0, 1)).fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(classes=[0, 1], epsilon=1),
        LogisticRegression(classes=[0, 1], epsilon=1, solver="output"),
        AdditiveModel(classes=[0, 1], epsilon=1, max_depth=3),
        LinearRegression(target=(0, 1), epsilon=1),
        LinearRegression(target=(0, 1), epsilon=1, solver="moments"),
    ],
    ids=str,
)
@pytest.mark.parametrize("unit", [rows(), rows(replace=True), user("id")], ids=str)
def test_pure_fits_learn_and_stay_within_their_epsilon_for_every_unit(model: Any, unit: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.7, 0.7, size=(6000, 2))
    y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
    users = {"users": np.arange(6000) // 2} if unit == user("id") else {}
    found = clone(model).set_params(delta=0, unit=unit, bits=seeded(3)).fit(X, y, **users)
    assert (((found.predict(X) > 0.5) == y).mean()) > 0.9
    loss = account(found.event_, adjacency=unit.adjacency)
    assert Budget(1).covers(loss)
    assert loss.epsilon(0) > 0.999


def test_a_replaced_row_costs_a_pure_fit_twice_as_much() -> None:
    X, y = np.zeros((5, 3)), np.zeros(5)
    one, both = (
        LinearRegression(epsilon=3, delta=0, alpha=50, unit=rows(replace=way), bits=seeded(2)).fit(X, y)
        for way in (False, True)
    )
    once, twice = (np.abs(each.coef_).mean() for each in (one, both))
    bent = math.log1p(1 / 50)
    assert twice / once == pytest.approx((2.985 - bent) / (2.985 / 2 - bent), rel=0.05)


def test_noise_makes_up_for_all_that_a_person_may_bend_an_objective_by(monkeypatch: pytest.MonkeyPatch) -> None:
    slopes: list[np.ndarray] = []

    def spied(x: np.ndarray, loss: ScoreLoss, ridge: float, slope: np.ndarray, bend: float) -> np.ndarray:
        slopes.append(slope)
        return minimised(x, loss, ridge, slope, bend)

    monkeypatch.setattr(perturbation, "minimised", spied)
    told: dict[str, Any] = {"epsilon": 1, "delta": 0, "alpha": 4, "fit_intercept": False}
    X, y = np.zeros((6, 9)), np.zeros(6)
    for unit, users in ((rows(), None), (user("id"), [0, 0, 1, 1, 2, None])):
        LinearRegression(**told, unit=unit, bits=seeded(5)).fit(X, y, users=users)
    own = 1 - 0.005
    wanted = (own - math.log1p(1 / 4)) / (own - 9 * math.log1p(1 / 4 / 9))
    assert np.linalg.norm(slopes[1]) / np.linalg.norm(slopes[0]) == pytest.approx(wanted, rel=1e-4)
