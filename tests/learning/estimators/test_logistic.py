"""Logistic regression by descent: how far a row moves a gradient, how much noise there is, and what is learned."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from defocus import Budget, Ledger, rows
from defocus.errors import InvalidParameterError, UnfitDataError
from defocus.learning import AdditiveModel, LogisticRegression, StandardScaler
from defocus.learning.estimators import descent
from defocus.learning.estimators.descent import PULL, pulls
from defocus.learning.estimators.grid import Ball, Held
from defocus.learning.estimators.labels import class_weights, declared_labels
from defocus.noise.testing import seeded
from defocus.privacy.accounting import account
from defocus.privacy.events import DiscreteGaussian, parts_of

BUDGET = Budget(1, 1e-6)


def made(n: int = 6000, d: int = 4, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d)) / d**0.5
    return X, (rng.random(n) < 1 / (1 + np.exp(-8 * X[:, 0] + 4 * X[:, 1] - 1))).astype(int)


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4), size=st.sampled_from([0.1, 3.0, 100.0]))
@settings(max_examples=60, deadline=None)
def test_a_row_moves_the_gradient_by_at_most_the_bound_at_any_coefficients(
    seed: int, classes: int, size: float
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(7, 3)) * rng.choice([0.01, 1.0, 1e6], size=(7, 1))
    held = Ball(1.0, descent.ROW_BITS, 0.25).hold(X)
    y = rng.integers(0, classes, size=7)
    w = np.rint(rng.normal(size=(4, 1 if classes == 2 else classes)) * size * 2**16)

    def gradient(k: int) -> Any:
        rows = Held(held[:k])
        return rows.tallied(pulls(rows.times(w), y[:k], unit=2 ** (descent.ROW_BITS + 16), classes=classes))

    moved = (gradient(7) - gradient(6)).astype(object)
    assert (moved**2).sum() <= (2**descent.ROW_BITS * PULL) ** 2


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4), given=st.lists(st.floats(1e-9, 1e9), min_size=4))
@settings(max_examples=40, deadline=None)
def test_weights_of_classes_are_shares_of_the_largest_and_lengthen_no_pull(
    seed: int, classes: int, given: list[float]
) -> None:
    rng = np.random.default_rng(seed)
    known = declared_labels(range(classes))
    weights = class_weights(dict(zip(range(classes), given, strict=False)), known)
    assert weights is not None
    shares, places = weights.shares(known.known), rng.integers(-1, classes, size=9)
    scores = rng.normal(size=(9, 1 if classes == 2 else classes)) * 100
    plain = pulls(np.rint(scores), places, unit=16, classes=classes)
    held = weights.held(plain, places, shares)
    assert shares.max() == 1
    assert (abs(held) <= abs(plain)).all()
    assert (held == np.rint(held)).all()
    heaviest = places == shares.argmax()
    assert np.array_equal(held[heaviest], plain[heaviest])
    assert (held**2).sum(axis=1).max() <= PULL**2


def test_a_fit_with_weights_moves_gradients_by_weighted_pulls_and_leans_to_the_heavy_class(watched: Any) -> None:
    X, y = made(400)
    told: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "max_iter": 5}
    LogisticRegression(classes=[0, 1], **told).fit(X, y)
    first = next(each for each in watched.exact if len(each) == 5)
    watched.exact.clear()
    LogisticRegression(classes=[0, 1], class_weight={0: 2, 1: 1}, **told).fit(X, y)
    weighed = next(each for each in watched.exact if len(each) == 5)
    held, sign = Ball(1.0, descent.ROW_BITS, 0.25).hold(X), np.where(y == 1, -1.0, 1.0)
    assert np.array_equal(first, held.T @ (sign * PULL))
    assert np.array_equal(weighed, held.T @ (sign * PULL * np.where(y == 1, 0.5, 1.0)))
    X, y = made(4000)
    plain, leaning = (
        LogisticRegression(epsilon=20, delta=1e-6, max_iter=40, class_weight=each).fit(X, y).predict(X).mean()
        for each in (None, {0: 20, 1: 1})
    )
    assert leaning < plain / 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"class_weight": "balanced"}, "private"),
        ({"class_weight": {0: 0}}, "class_weight must be positive"),
        ({"class_weight": {2: 1}}, "none of the declared"),
        ({"class_weight": {}}, "none of the declared"),
        ({"class_weight": {0: 2}, "solver": "objective"}, "for descent"),
        ({"class_weight": {0: 2}, "intervals": True}, "for descent"),
        ({"class_weight": {0: 2}, "delta": 0}, "for descent"),
    ],
)
def test_weights_that_have_no_proof_or_would_follow_the_rows_are_refused(options: dict[str, Any], words: str) -> None:
    X, y = made(10)
    for kind in (LogisticRegression, AdditiveModel):
        if kind is LogisticRegression or not {"solver", "intervals"} & options.keys():
            with pytest.raises(InvalidParameterError, match=words):
                kind(epsilon=1, classes=[0, 1], **{"delta": 1e-6, **options}).fit(X, y)


def test_a_fit_releases_as_many_gradients_as_it_was_charged_for(watched: Any) -> None:
    X, y = made(200)
    model = LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], max_iter=30).fit(X, y)
    gradients = [each for each in watched.exact if len(each) == 5]
    assert len(gradients) == 30
    (event, times), (_, one) = sorted(parts_of(model.event_), key=lambda part: -part[1])
    assert (times, one) == (30, 1)
    assert isinstance(event, DiscreteGaussian)
    assert event.sensitivity == 2**26
    assert BUDGET.covers(account(model.event_))


def test_neighbours_move_what_is_released_first_by_at_most_the_bound(watched: Any) -> None:
    X, y = made(50)
    for k in (49, 50):
        LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], max_iter=1).fit(X[:k], y[:k])
    (lengths, first), (lengths_, first_) = watched.exact[:2], watched.exact[2:]
    assert abs(int(lengths[0] - lengths_[0])) <= 2**13
    assert 0 < float(np.linalg.norm((first - first_).astype(float))) <= 2**26


def test_it_learns_two_classes_with_calibrated_probabilities() -> None:
    X, y = made(20_000)
    model = LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], bits=seeded(1)).fit(X, y)
    chance = model.predict_proba(X)
    assert model.score(X, y) > 0.83
    assert chance.sum(axis=1) == pytest.approx(np.ones(len(X)))
    assert abs(chance[:, 1].mean() - y.mean()) < 0.02
    low, high = chance[:, 1] < 0.2, chance[:, 1] > 0.8
    assert abs(chance[low, 1].mean() - y[low].mean()) < 0.03
    assert abs(chance[high, 1].mean() - y[high].mean()) < 0.03
    assert ((model.decision_function(X) > 0) == (model.predict(X) == 1)).all()


def test_coefficients_are_in_the_units_of_the_data() -> None:
    X, y = made(20_000)
    model = LogisticRegression(epsilon=8, delta=1e-6, norm=2.0, classes=[0, 1], bits=seeded(1)).fit(X, y)
    assert X @ model.coef_[0] + model.intercept_[0] == pytest.approx(model.decision_function(X), abs=0.02)


def test_it_learns_several_classes_and_their_names() -> None:
    rng = np.random.default_rng(2)
    centres = np.array([[0.8, 0.0], [-0.4, 0.7], [-0.4, -0.7]])
    which = rng.integers(0, 3, size=6000)
    X, y = centres[which] + rng.normal(scale=0.15, size=(6000, 2)), np.array(["ant", "bee", "cat"])[which]
    model = LogisticRegression(epsilon=1, delta=1e-6, classes=["cat", "ant", "bee"], bits=seeded(1)).fit(X, y)
    assert model.classes_.tolist() == ["ant", "bee", "cat"]
    assert model.score(X, y) > 0.97
    assert model.decision_function(X).shape == (6000, 3)


def test_sparse_dense_and_frames_give_the_same_model() -> None:
    X, y = made(300)
    frame = pd.DataFrame(X, columns=list("abcd"))
    found = [
        LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], max_iter=10, bits=seeded(1)).fit(data, y)
        for data in (X, sp.csr_matrix(X), frame)
    ]
    assert (found[0].coef_ == found[1].coef_).all()
    assert (found[0].coef_ == found[2].coef_).all()
    assert found[2].feature_names_in_.tolist() == list("abcd")


def test_bounds_move_features_to_a_cube() -> None:
    X, y = made(20_000)
    moved = 100 + 10 * X
    model = LogisticRegression(epsilon=1, delta=1e-6, bounds=(90, 110), classes=[0, 1], bits=seeded(1)).fit(moved, y)
    assert model.score(moved, y) > 0.8
    assert moved @ model.coef_[0] + model.intercept_[0] == pytest.approx(model.decision_function(moved), abs=0.05)


def test_it_works_in_a_pipeline_that_charges_one_ledger(tmp_path: Path) -> None:
    X, y = made(2000)
    with Ledger.open(tmp_path / "a", budget=Budget(3, 1e-5), unit=rows(), dataset="made up") as book:
        pipe = make_pipeline(
            StandardScaler(ledger=book, bounds=(-1, 1)), LogisticRegression(ledger=book, norm=3.0, classes=[0, 1])
        ).fit(X, y)
        assert pipe.score(X, y) > 0.7
        assert sum(entry.kind == "charge" for entry in book.entries()) == 2


def test_a_search_over_settings_charges_every_fit(tmp_path: Path) -> None:
    X, y = made(300)
    with Ledger.open(tmp_path / "a", budget=Budget(9, 1e-4), unit=rows(), dataset="made up") as book:
        model = LogisticRegression(ledger=book, epsilon=1, delta=1e-6, classes=[0, 1], max_iter=10)
        GridSearchCV(model, {"norm": [0.5, 1.0]}, cv=2, refit=False).fit(X, y)
        assert sum(entry.kind == "charge" for entry in book.entries()) == 4


def test_rows_with_nan_infinity_and_unknown_labels_are_fitted_without_a_word() -> None:
    X, y = made(500)
    X[:3] = [[np.nan] * 4, [np.inf] * 4, [-np.inf, np.nan, 0, 1e300]]
    model = LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], max_iter=10).fit(
        X, np.where(np.arange(500) < 5, 9, y)
    )
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"solver": "magic"}, "choose solver="),
        ({"norm": 0}, "norm must be positive"),
        ({"norm": float("nan")}, "norm"),
        ({"norm": True}, "norm"),
        ({"bounds": 3}, "bounds must be a pair"),
        ({"bounds": (1, 0)}, "bounds must be a pair"),
        ({"bounds": ("a", "b")}, "bounds must be a pair"),
        ({"bounds": ([0, 0], [1, 1])}, "bounds must be a pair"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_iter": 2.5}, "max_iter"),
        ({"C": -1}, "C"),
        ({"C": 1e-320}, "C"),
        ({"bits": 42}, "bits"),
    ],
)
def test_refuses_bad_parameters_and_says_what_to_pass(options: dict[str, Any], words: str) -> None:
    X, y = made(10)
    with pytest.raises(InvalidParameterError, match=words):
        LogisticRegression(classes=[0, 1], **options).fit(X, y)


def test_refuses_targets_of_another_length_and_sparse_rows_with_bounds() -> None:
    with pytest.raises(UnfitDataError, match="one target"):
        LogisticRegression(classes=[0, 1]).fit([[0.1], [0.2]], [0, 1, 1])
    with pytest.raises(InvalidParameterError, match="sparse"):
        LogisticRegression(classes=[0, 1], bounds=(0, 1)).fit(sp.csr_matrix(np.eye(3)), [0, 1, 1])
