"""Coefficients with intervals: what a unit moves, whether intervals hold, and what is kept, said and refused."""

import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy.special import expit
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

import defocus as dp
from defocus.errors import InvalidParameterError
from defocus.learning import LinearRegression, LogisticRegression
from defocus.learning.estimators import descent
from defocus.learning.estimators.coefficients import Inference
from defocus.mechanisms import Gaussian
from defocus.mechanisms.mechanism import add
from defocus.noise.testing import seeded

BOUNDS = ([-1, -2], [1, 2])
MUCH = 1e9
"""A rho with which noise is next to nothing."""


def linear(**more: Any) -> LinearRegression:
    return LinearRegression(**{"bounds": BOUNDS, "target": (-3, 3), "intervals": True, "bits": seeded(1), **more})


def logistic(**more: Any) -> LogisticRegression:
    return LogisticRegression(**{"bounds": BOUNDS, "classes": [0, 1], "intervals": True, "bits": seeded(1), **more})


MODELS: dict[str, Callable[..., Any]] = {"linear": linear, "logistic": logistic}


def made(kind: str, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features that are correlated, and residuals whose size depends on them."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(-1, 1, n)
    X = np.column_stack([first, first + rng.uniform(-1, 1, n)])
    score = 0.5 + 1.2 * X[:, 0] - 0.4 * X[:, 1]
    if kind == "linear":
        return X, (score + rng.uniform(-1, 1, n) * (0.4 + np.abs(X[:, 1]))).clip(-3, 3)
    return X, (rng.random(n) < expit(score)).astype(int)


def sandwich(kind: str, X: Any, y: Any, owners: Any = None) -> tuple[Any, Any]:
    """Coefficients and robust errors without privacy, over the averages of owners' rows."""
    rows, owners = np.column_stack([X, np.ones(len(X))]), np.arange(len(X)) if owners is None else owners
    weight = 1 / np.bincount(owners)[owners]
    w, inverse, each = np.zeros(rows.shape[1]), np.eye(rows.shape[1]), rows
    for _ in range(20):
        p = rows @ w if kind == "linear" else expit(rows @ w)
        bend = weight * (1 if kind == "linear" else p * (1 - p))
        inverse = np.linalg.inv((rows * bend[:, None]).T @ rows)
        each = rows * (weight * (y - p))[:, None]
        w = w + inverse @ each.sum(axis=0)
    scores = np.stack([np.bincount(owners, column) for column in each.T], axis=1)
    return w, np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))


def parts(found: Any) -> tuple[Any, Any]:
    table = found.to_arrow()
    return table["noise"].to_numpy(), table["sampling"].to_numpy()


class Replayed:
    """Exact sums of a fit, whose noisy answers are given again in the next, so that it asks the same things."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.exact: list[Any] = []
        self.asked: list[Any] = []
        self.told: list[Any] = []
        drawn, added = Gaussian.sample, add

        def answer(value: Any, noisy: Callable[[], Any], by: Any) -> Any:
            self.exact.append(np.atleast_1d(np.asarray(value, dtype=object)))
            self.asked.append(by)
            if len(self.told) < len(self.exact):
                self.told.append(noisy())
            return self.told[len(self.exact) - 1]

        monkeypatch.setattr(
            Gaussian, "sample", lambda by, value, bits=None: answer(value, lambda: drawn(by, value, bits), by)
        )
        monkeypatch.setattr(descent, "add", lambda value, noise: answer(value, lambda: added(value, noise), None))

    def again(self) -> list[Any]:
        found, self.exact, self.asked = self.exact, [], []
        return found


EXTREME = [[0.0, 0.0], [1e9, -1e9], [np.inf, np.nan], [1.0, 2.0], [-1.0, 2.0], [-1.0, -2.0]]


@pytest.mark.parametrize("owned", [None, 1, 7], ids=["rows", "persons of one row", "persons of several rows"])
@pytest.mark.parametrize("kind", MODELS)
def test_no_unit_moves_a_sum_by_more_than_was_charged_for(
    kind: str, owned: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed, (X, y) = Replayed(monkeypatch), made(kind, 9)
    more = {} if kind == "linear" else {"max_iter": 3}
    unit = dp.rows() if owned is None else dp.user("person")
    users = None if owned is None else [0, 0, 1, 1, 1, 2, None, 3, 4]

    def fitted(X: Any, y: Any, users: Any) -> Any:
        return MODELS[kind](rho=0.1, unit=unit, **more).fit(X, y, users=users)

    asked = fitted(X, y, users)
    reference, largest = replayed.again(), np.zeros(len(replayed.told))
    gradients = 2 ** (descent.ROW_BITS + 13)
    for row in EXTREME:
        for label in (-1e9, 0, 1, 1e9) if kind == "linear" else (0, 1, 7):
            many = owned or 1
            rows, labels = np.vstack([X, [row] * many]), np.append(y, [label] * many)
            asked = fitted(rows, labels, None if users is None else [*users, *["new"] * many])
            bounds = [gradients if by is None else int(by.sensitivity) for by in replayed.asked]
            moved = [((a - b) ** 2).sum() for a, b in zip(reference, replayed.again(), strict=True)]
            assert all(m <= bound**2 for m, bound in zip(moved, bounds, strict=True))
            largest = np.maximum(largest, [math.sqrt(m) / bound for m, bound in zip(moved, bounds, strict=True)])
    assert dp.Budget(rho=0.1).covers(dp.privacy.account(asked.event_, method="zcdp"))
    assert (largest[-3:] > 0.2).all()  # gradient, curvature and meat: the bounds are of the right size


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", MODELS)
def test_without_noise_it_is_the_sandwich(kind: str, sparse: bool) -> None:
    X, y = made(kind, 4000)
    told: dict[str, Any] = {"bounds": None, "norm": 4} if sparse else {}
    found = MODELS[kind](rho=MUCH, **told).fit(sp.csr_matrix(X) if sparse else X, y).coefficients()
    estimates, errors = sandwich(kind, X, y)
    assert found.value == pytest.approx(estimates, abs=2e-3)
    noise, sampling = parts(found)
    assert sampling == pytest.approx(errors, rel=5e-3)
    assert (noise < 0.01 * errors).all()
    low, high = found.interval(0.9)
    assert (high - low) / 2 == pytest.approx(norm.ppf(0.95) * errors, rel=0.01)


@pytest.mark.parametrize("kind", MODELS)
def test_persons_count_once_and_sampling_error_is_between_them(kind: str) -> None:
    X, y = made(kind, 3000)
    owners = np.sort(np.random.default_rng(1).integers(0, 600, 3000))
    _, owners = np.unique(owners, return_inverse=True)
    y = y[np.searchsorted(owners, owners)]  # of one person all alike, so that rows are no sample of their own
    model = MODELS[kind](rho=MUCH, unit=dp.user("person")).fit(X, y, users=owners)
    estimates, errors = sandwich(kind, X, y, owners)
    found = model.coefficients()
    assert found.value == pytest.approx(estimates, abs=3e-3)
    sampling = parts(found)[1]
    assert sampling == pytest.approx(errors, rel=0.01)
    assert (sampling > 1.2 * sandwich(kind, X, y)[1]).any()


@pytest.mark.parametrize("kind", MODELS)
def test_many_rows_of_a_person_that_are_alike_are_one_row(kind: str) -> None:
    X, y = made(kind, 300)
    once = MODELS[kind](rho=1).fit(X, y)
    often = MODELS[kind](rho=1, unit=dp.user("person"), bits=seeded(1)).fit(
        np.repeat(X, 4, axis=0), np.repeat(y, 4), users=np.repeat(np.arange(300), 4)
    )
    assert (once.inference_ == often.inference_).all()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "rho"), [("linear", 0.1), ("logistic", 0.4)])
def test_intervals_hold_and_neither_of_their_parts_would(kind: str, rho: float) -> None:
    X, y = made(kind, 100_000, seed=5)
    truth = sandwich(kind, X, y)[0]
    rng, whole, noise, sampling = np.random.default_rng(6), [], [], []
    for draw in range(200 if kind == "linear" else 100):
        chosen = rng.integers(0, len(X), 2000)
        found = MODELS[kind](rho=rho, bits=seeded(draw)).fit(X[chosen], y[chosen]).coefficients()
        low, high = found.interval()
        off = np.abs(found.value - truth)
        whole.append((low <= truth) & (truth <= high))
        alone = [off <= 1.96 * part for part in parts(found)]
        noise.append(alone[0])
        sampling.append(alone[1])
    assert (np.mean(whole, axis=0) >= 0.92).all()
    assert np.mean(whole) <= 0.98
    assert np.mean(noise, axis=0).min() < 0.9
    assert np.mean(sampling, axis=0).min() < 0.9


@pytest.mark.parametrize("kind", MODELS)
def test_too_few_rows_are_told_and_no_interval_is_too_short(kind: str) -> None:
    X, y = made(kind, 40)
    found = MODELS[kind](rho=0.05).fit(X, y).coefficients()
    low, high = found.interval()
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()
    assert "3 of 3 intervals are unbounded" in str(found)
    assert "-∞ to ∞" in str(found)
    assert json.loads(found.to_json())["rows"][0]["coefficient_low"] is None
    found.plot()


def test_an_interval_is_fiellers() -> None:
    known = Inference(*np.array([[2.0, 2.0, 2.0], [3.0] * 3, [4.0] * 3, [0.0, 0.5, 0.0], [0.0, 0.1, 0.5], [1e12] * 3]))
    low, high = known.ends(0.95)
    z2 = norm.ppf(0.975) ** 2
    assert (low[0], high[0]) == pytest.approx((2 - 5 * math.sqrt(z2), 2 + 5 * math.sqrt(z2)))
    for end in (low[1] - 2, high[1] - 2):
        assert end**2 == pytest.approx(z2 * (25 + 0.5 * end + 0.1 * end**2))
    assert (low[2], high[2]) == (-math.inf, math.inf)
    assert known.ends(0.5)[0][2] > -math.inf
    few = Inference(*np.array([[2.0], [3.0], [4.0], [0.0], [0.0], [5.0]]))
    assert few.ends(0.95)[1][0] == pytest.approx(2 + 5 * 2.5706, abs=1e-3)


@pytest.mark.parametrize("kind", MODELS)
def test_an_answer_names_features_parts_and_what_it_is_about(kind: str, tmp_path: Path) -> None:
    X, y = made(kind, 3000)
    frame = pd.DataFrame(X, columns=["age", "dose"])
    model = MODELS[kind](epsilon=1, delta=1e-6, ledger=str(tmp_path / "a"), budget=dp.Budget(1, 1e-6)).fit(frame, y)
    found = model.coefficients()
    rows = list(found)
    assert [row["feature"] for row in rows] == ["age", "dose", "(intercept)"]
    assert list(rows[0]) == [
        "feature",
        *("coefficient", "coefficient_error", "coefficient_low", "coefficient_high"),
        *("noise", "sampling"),
    ]
    assert rows[0]["coefficient_error"] == pytest.approx(math.hypot(rows[0]["noise"], rows[0]["sampling"]))
    assert found.receipt == model.receipt_
    assert found.to_dict()["intervals"] == "the truth, with 95 %"
    assert "features are cut to their bounds" in str(found)
    assert "standard error of noise and sampling" in found.explain()
    assert "sample of rows, drawn independently" in found.explain()
    assert len(found.plot().axes) == 3
    flat = np.ravel(model.coef_).tolist()
    assert [*flat, float(np.ravel(model.intercept_)[0])] == found.value.tolist()


def test_examples_of_a_table_bring_their_names(tmp_path: Path) -> None:
    X, y = made("linear", 500)
    rows = pa.table({"id": np.arange(500) // 2, "age": X[:, 0], "dose": X[:, 1], "days": y})
    terms: Any = {"unit": dp.user("id"), "budget": dp.Budget(9, 1e-5), "ledger": str(tmp_path / "a")}
    with dp.open(rows, **terms, name="stays") as table:
        declared = table.declare(age=(-1, 1), dose=(-2, 2), days=(-4, 4))
        model = LinearRegression(epsilon=9, delta=1e-6, intervals=True).fit(declared.examples(["age", "dose"], "days"))
    found = model.coefficients()
    assert found.keys["feature"] == ["age", "dose", "(intercept)"]
    assert "persons, each of whom counts once" in found.explain()


@pytest.mark.parametrize("kind", MODELS)
def test_without_an_intercept_there_is_none_in_the_answer(kind: str) -> None:
    X, y = made(kind, 2000)
    model = MODELS[kind](rho=1, fit_intercept=False, bounds=(-2, 2)).fit(X, y)
    found = model.coefficients()
    assert found.keys["feature"] == ["x0", "x1"]
    assert np.isfinite(found.interval()).all()
    assert np.ravel(model.intercept_)[0] == 0


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_kept_has_the_same_intervals(kind: str) -> None:
    X, y = made(kind, 2000)
    model = MODELS[kind](rho=1, bits=None).fit(X, y)
    kept = {name: np.asarray(each).tolist() for name, each in model.released().items()}
    again = type(model).restored(json.loads(json.dumps(kept, allow_nan=False)), bounds=BOUNDS)
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301
    for other in (again, copied):
        assert np.array_equal(other.coefficients().interval(0.8), model.coefficients().interval(0.8))
        assert np.array_equal(other.predict(X[:9]), model.predict(X[:9]))
        if kind == "logistic":
            assert np.array_equal(other.predict_proba(X[:9]), model.predict_proba(X[:9]))
    with pytest.raises(InvalidParameterError, match="not what"):
        type(model).restored({**kept, "inference_": kept["inference_"][1:]}, bounds=BOUNDS)
    assert again.coefficients().receipt is None
    assert again.coefficients().explain()


def test_drowned_intervals_are_kept_as_numbers() -> None:
    model = linear(rho=0.01).fit(*made("linear", 10))
    kept = json.dumps({name: np.asarray(each).tolist() for name, each in model.released().items()}, allow_nan=False)
    again = LinearRegression.restored(json.loads(kept), bounds=BOUNDS)
    assert np.isinf(again.coefficients().interval()).all()


def test_probabilities_are_those_of_log_odds() -> None:
    X, y = made("logistic", 3000)
    model = logistic(rho=MUCH).fit(X, y)
    score = X @ model.coef_[0] + model.intercept_
    assert model.predict_proba(X)[:, 1] == pytest.approx(expit(score))
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=1e-3)


@pytest.mark.parametrize("kind", MODELS)
def test_a_fit_without_intervals_forgets_those_of_the_last(kind: str) -> None:
    X, y = made(kind, 200)
    model = MODELS[kind](rho=1).fit(X, y)
    model.coefficients()
    model.set_params(intervals=False).fit(X, y)
    assert "inference_" not in model.released()
    with pytest.raises(InvalidParameterError, match="fit again, with intervals=True"):
        model.coefficients()


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_not_fitted_has_no_coefficients(kind: str) -> None:
    with pytest.raises(NotFittedError):
        MODELS[kind]().coefficients()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (linear(alpha=1), "alpha"),
        (linear(solver="descent"), "leave solver= out"),
        (logistic(C=1), "C="),
        (logistic(solver="objective"), "leave solver= out"),
        (logistic(classes=[0, 1, 2]), "two classes"),
        (logistic(classes=None, epsilon=1, delta=1e-6), "two classes"),
    ],
)
def test_refuses_what_no_interval_holds_for(model: Any, words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        model.fit(*made("linear", 20))
