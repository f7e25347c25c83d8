"""Estimators made of sums: how far neighbours move each sum, how much noise it gets, and that no more is released.

One law for all of them: whatever a fit hands to a mechanism moves by at most the declared sensitivity when a row comes
or goes, however extreme it is, and the noise that it gets has the scale that was charged.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from tests.learning.estimators.every import EVERY

from defocus import Budget, user
from defocus.learning import (
    PCA,
    AdditiveModel,
    KMeans,
    LinearRegression,
    LogisticRegression,
    NaiveBayes,
    StandardScaler,
)
from defocus.learning.estimators.fit_budget import FitBudget
from defocus.mechanisms import Laplace
from defocus.noise.testing import seeded
from defocus.privacy.accounting import account
from defocus.privacy.events import DiscreteGaussian, DiscreteLaplace, parts_of

EXTREME = [
    [0.0, 0.0, 0.0],
    [1e9, -1e9, 1e9],
    [np.inf, -np.inf, np.nan],
    [1.0, 0.0, 0.0],
    [0.57, 0.57, 0.57],
    [-1.0, 1.0, 1.0],
]

MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], max_iter=1),
    "three classes": lambda: LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1, 2], max_iter=1),
    "logistic in bounds": lambda: LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], max_iter=1, bounds=(-1, 1)),
    "output": lambda: LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], solver="output", C=0.01),
    "additive": lambda: AdditiveModel(epsilon=1, delta=1e-6, classes=[0, 1], max_iter=1, max_depth=3),
    "linear": lambda: LinearRegression(epsilon=1, delta=1e-6, max_iter=1),
    "linear by moments": lambda: LinearRegression(epsilon=1, delta=1e-6, solver="moments"),
    "bayes": lambda: NaiveBayes(epsilon=1, delta=1e-6, classes=[0, 1], n_bins=4),
    "k-means": lambda: KMeans(2, epsilon=1, delta=1e-6, max_iter=1),
    "pca": lambda: PCA(epsilon=1, delta=1e-6),
    "scaler": lambda: StandardScaler(epsilon=1, delta=1e-6, bounds=(-1, 1)),
}


PURE = ("output", "linear by moments", "bayes", "k-means", "pca", "scaler")
"""What releases sums at a pure price, too: the others perturb their objectives."""
TERMS = [*((name, 1e-6) for name in MODELS), *((name, 0) for name in PURE)]


@pytest.mark.parametrize(("name", "delta"), TERMS)
def test_no_row_moves_a_sum_by_more_than_was_charged_for(name: str, delta: float, watched: Any) -> None:
    rng = np.random.default_rng(1)
    base, y = rng.uniform(-1, 1, (9, 3)), np.arange(10) % 2
    MODELS[name]().set_params(bits=seeded(20), delta=delta).fit(base, y[:9])
    reference, asked = list(watched.exact), list(watched.asked)
    largest = [0.0] * len(reference)
    for row in EXTREME:
        watched.clear()
        model = MODELS[name]().set_params(bits=seeded(20), delta=delta).fit(np.vstack([base, row]), y)
        largest = farther(largest, reference, watched)
        assert charged(model) == asked_for(watched)
        assert Budget(1, delta).covers(account(model.event_))
    bounds = [float(by.sensitivity) for by in asked]
    assert all(moved <= bound for moved, bound in zip(largest, bounds, strict=True))
    assert all(moved > 0.4 * bound for moved, bound in zip(largest, bounds, strict=True))  # and no slack


def farther(largest: list[float], reference: list[Any], watched: Any) -> list[float]:
    """How far sums have moved at most, in the norm that their noise goes by."""
    moved = [(here - there).astype(object) for here, there in zip(reference, watched.exact, strict=True)]
    norms = [
        float(abs(each).sum() if isinstance(by, Laplace) else np.sqrt((each**2).sum()))
        for each, by in zip(moved, watched.asked, strict=True)
    ]
    return [max(pair) for pair in zip(largest, norms, strict=True)]


def asked_for(watched: Any) -> Counter[tuple[Any, Any]]:
    """The noise and the sensitivity of every sum that was released."""
    return Counter((by.scale if isinstance(by, Laplace) else by.sigma, by.sensitivity) for by in watched.asked)


PERSONS = {name: make for name, make in MODELS.items() if name != "output"}
OWNED = [[row] for row in EXTREME] + [EXTREME, EXTREME[:2], EXTREME[3:] * 3, [EXTREME[1]] * 7, [EXTREME[5]] * 1500]
"""All rows of one person: one, several that differ, many that are the same."""


@pytest.mark.parametrize(("name", "delta"), [each for each in TERMS if each[0] in PERSONS])
def test_no_person_moves_a_sum_by_more_than_was_charged_for(name: str, delta: float, watched: Any) -> None:
    rng = np.random.default_rng(1)
    base, y, users = rng.uniform(-1, 1, (9, 3)), np.arange(9) % 2, ["a", "b", "c", None, "a", "b", "d", "d", "d"]
    told: dict[str, Any] = {"bits": seeded(20), "unit": user("patient"), "delta": delta}
    PERSONS[name]().set_params(**told).fit(base, y, users=users)
    reference, asked = list(watched.exact), list(watched.asked)
    largest = [0.0] * len(reference)
    for owned in OWNED:
        for labels in (np.zeros(len(owned)), np.arange(len(owned)) % 2):
            watched.clear()
            made = PERSONS[name]().set_params(**{**told, "bits": seeded(20)})
            model = made.fit(
                np.vstack([base, owned]), np.concatenate([y, labels]), users=[*users, *["new"] * len(owned)]
            )
            largest = farther(largest, reference, watched)
            assert charged(model) == asked_for(watched)
            assert Budget(1, delta).covers(account(model.event_))
    bounds = [float(by.sensitivity) for by in asked]
    assert all(moved <= bound for moved, bound in zip(largest, bounds, strict=True))
    assert all(moved > 0.4 * bound for moved, bound in zip(largest, bounds, strict=True))  # and no slack


cells = st.one_of(st.floats(-2, 2), st.sampled_from([np.nan, np.inf, -1.0, 1.0, 1e300]))
somebody = st.lists(st.tuples(cells, cells, cells, st.integers(0, 2)), min_size=1, max_size=5)


@pytest.mark.parametrize("name", sorted(set(PERSONS) - {"k-means"}))  # whose centres follow from noisy sums
@given(persons=st.lists(somebody, min_size=2, max_size=4), gone=st.integers(0, 3))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nobody_who_leaves_moves_a_sum_by_more_than_was_charged_for(
    name: str, watched: Any, persons: list[Any], gone: int
) -> None:
    found = []
    for left in (None, gone % len(persons)):
        watched.clear()
        told = [(*row, who) for who, own in enumerate(persons) if who != left for row in own]
        X, y, users = np.array([row[:3] for row in told]), [row[3] for row in told], [row[4] for row in told]
        PERSONS[name]().set_params(bits=seeded(20), unit=user("id")).fit(X, y, users=users)
        found.append(list(watched.exact))
    for here, there, by in zip(*found, watched.asked, strict=True):
        assert ((here - there).astype(object) ** 2).sum() <= by.sensitivity**2


@pytest.mark.parametrize("name", PERSONS)
def test_persons_of_one_row_each_are_rows(name: str, watched: Any) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.uniform(-1, 1, (40, 3)), np.arange(40) % 2
    plain = PERSONS[name]().set_params(bits=seeded(20)).fit(X, y)
    persons = PERSONS[name]().set_params(bits=seeded(20), unit=user("id")).fit(X, y, users=rng.permutation(40))
    half = len(watched.exact) // 2
    assert all(np.array_equal(a, b) for a, b in zip(watched.exact[:half], watched.exact[half:], strict=True))
    assert all(
        np.array_equal(a, b) for a, b in zip(plain.released().values(), persons.released().values(), strict=True)
    )
    assert plain.event_ == persons.event_


@pytest.mark.parametrize("name", PERSONS)
def test_rows_of_one_person_that_are_the_same_count_once_and_rows_of_nobody_never(name: str, watched: Any) -> None:
    X, y = np.random.default_rng(2).uniform(-1, 1, (10, 3)), np.arange(10) % 2
    told: dict[str, Any] = {"unit": user("id")}
    PERSONS[name]().set_params(bits=seeded(20), **told).fit(X, y, users=range(10))
    once = list(watched.exact)
    watched.clear()
    more, users = np.vstack([X, X, X, X[:4]]), [*range(10)] * 3 + [None, float("nan"), None, [1]]
    PERSONS[name]().set_params(bits=seeded(20), **told).fit(more, np.concatenate([y, y, y, y[:4]]), users=users)
    assert all(np.array_equal(a, b) for a, b in zip(once, watched.exact, strict=True))


def test_rows_of_nobody_alone_are_a_fit_to_nobody(watched: Any) -> None:
    for make in PERSONS.values():
        watched.clear()
        make().set_params(bits=seeded(1), unit=user("id")).fit(np.ones((3, 3)), [0, 1, 1], users=[None] * 3)
        assert all(not exact.any() for exact in watched.exact)


def charged(model: Any) -> Counter[tuple[Any, Any]]:
    """The noise and the sensitivity of every sum that was paid for."""
    parts: list[tuple[Any, int]] = [
        (part, times) for part, times in parts_of(model.event_) if isinstance(part, DiscreteGaussian | DiscreteLaplace)
    ]
    scales = [part.scale if isinstance(part, DiscreteLaplace) else part.sigma for part, _ in parts]
    return sum(
        (Counter({(scale, part.sensitivity): n}) for scale, (part, n) in zip(scales, parts, strict=True)), Counter()
    )


def test_a_row_replaced_moves_sums_by_at_most_twice_as_much(watched: Any) -> None:
    base = np.zeros((5, 2))
    PCA(epsilon=1, delta=1e-6).fit(np.vstack([base, [1, 0]]))
    PCA(epsilon=1, delta=1e-6).fit(np.vstack([base, [0, -1]]))
    moved = [float(np.linalg.norm(a - b)) for a, b in zip(watched.exact[:3], watched.exact[3:], strict=True)]
    assert all(step <= 2 * by.sensitivity for step, by in zip(moved, watched.asked[:3], strict=True))


@pytest.mark.statistical
@pytest.mark.parametrize(
    "name", ["logistic", "output", "linear", "intervals", "odds", "bayes", "pca", "scaler", "k-means"]
)
def test_noise_has_the_scale_that_was_charged_and_no_other(name: str, watched: Any, fits: Callable[..., float]) -> None:
    told: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "bits": seeded(20)}
    y = np.zeros(5)
    made: dict[str, Callable[[], Any]] = {
        "logistic": lambda: LogisticRegression(**told, classes=[0, 1], max_iter=20).fit(np.zeros((5, 200)), y),
        "output": lambda: LogisticRegression(**told, solver="output", classes=[0, 1], C=1 / 9).fit(
            np.zeros((5, 4000)), y
        ),
        "linear": lambda: LinearRegression(**told, solver="moments").fit(np.zeros((5, 80)), y),
        "intervals": lambda: LinearRegression(**told, intervals=True).fit(np.zeros((5, 60)), y),
        "odds": lambda: LogisticRegression(**told, intervals=True, classes=[0, 1], max_iter=20).fit(
            np.zeros((5, 50)), y
        ),
        "bayes": lambda: NaiveBayes(**told, classes=[0, 1]).fit(np.zeros((5, 200)), y),
        "pca": lambda: PCA(**told).fit(np.zeros((5, 80))),
        "scaler": lambda: StandardScaler(**told, bounds=(0, 1)).fit(np.zeros((5, 1600))),
        "k-means": lambda: KMeans(10, **told).fit(np.zeros((5, 60))),
    }
    model = made[name]()
    assert charged(model) == asked_for(watched)
    standard = watched.standardised()
    assert len(standard) > 3000
    assert fits(standard) > 1e-6
    assert fits(standard, 1.1) < 1e-6
    assert fits(standard, 0.9) < 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("name", PURE)
def test_noise_at_a_pure_price_is_laplace_of_the_scale_that_was_charged_and_no_other(
    name: str, watched: Any, fits_laplace: Callable[..., float]
) -> None:
    told: dict[str, Any] = {"epsilon": 1, "delta": 0, "bits": seeded(21)}
    y = np.zeros(5)
    made: dict[str, Callable[[], Any]] = {
        "output": lambda: LogisticRegression(**told, solver="output", classes=[0, 1], C=1 / 9).fit(
            np.zeros((5, 6000)), y
        ),
        "linear by moments": lambda: LinearRegression(**told, solver="moments").fit(np.zeros((5, 110)), y),
        "bayes": lambda: NaiveBayes(**told, classes=[0, 1]).fit(np.zeros((5, 400)), y),
        "k-means": lambda: KMeans(10, **told).fit(np.zeros((5, 60))),
        "pca": lambda: PCA(**told).fit(np.zeros((5, 110))),
        "scaler": lambda: StandardScaler(**told, bounds=(0, 1)).fit(np.zeros((5, 3000))),
    }
    model = made[name]()
    assert charged(model) == asked_for(watched)
    standard = watched.standardised()
    assert len(standard) > 5000
    assert fits_laplace(standard) > 1e-6
    assert fits_laplace(standard, 1.1) < 1e-6
    assert fits_laplace(standard, 0.9) < 1e-6


@pytest.mark.parametrize("unfitted", EVERY, ids=lambda each: type(each).__name__)
def test_what_is_set_while_a_fit_lasts_changes_nothing_that_it_releases(
    unfitted: Any, watched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spend, model = FitBudget.spend, clone(unfitted).set_params(bits=seeded(20))

    def meddled(self: FitBudget, *given: Any, **told: Any) -> Any:  # as another thread may, once the price is known
        model.set_params(**{name: 7 for name in model.get_params() if name not in {"bounds", "norm"}})
        return spend(self, *given, **told)

    monkeypatch.setattr(FitBudget, "spend", meddled)
    model.fit(np.zeros((50, 2)), np.arange(50) % 2)
    assert model.bits == 7
    assert charged(model) == asked_for(watched)
