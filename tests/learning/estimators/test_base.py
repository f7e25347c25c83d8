"""What estimators share: bounds, cloning, and what is said about data that does not fit."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from defocus.errors import InvalidParameterError, UnfitDataError
from defocus.learning import (
    PCA,
    AdditiveModel,
    KMeans,
    LinearRegression,
    LogisticRegression,
    NaiveBayes,
    StandardScaler,
)
from defocus.learning.estimators.base import ends, in_units_of_data, scaled
from defocus.noise.testing import seeded


def test_bounds_go_to_minus_one_and_one_and_missing_to_the_middle() -> None:
    X = np.array([[0.0, 10.0], [50.0, np.nan], [1e9, -np.inf]])
    moved, norm = scaled(X, ([0, 0], [100, 20]), None)
    assert moved.tolist() == [[-1.0, 0.0], [0.0, 0.0], [1.0, -1.0]]
    assert norm == pytest.approx(2**0.5)


def test_bounds_as_wide_as_floats_go_do_not_overflow() -> None:
    moved, _ = scaled(np.array([[0.0], [1.7e308]]), (-1.7e308, 1.7e308), None)
    assert moved.ravel().tolist() == [0.0, 1.0]


@pytest.mark.parametrize("bounds", [None, 5, "ab", (1,), (0, 1, 2), (2, 1), (0, np.nan), (0, np.inf), ([0], [1, 2, 3])])
def test_refuses_what_are_no_bounds(bounds: Any) -> None:
    with pytest.raises(InvalidParameterError, match="not from the data"):
        ends(bounds, 2)


def test_coefficients_of_scaled_features_are_told_for_features_as_they_come() -> None:
    rng = np.random.default_rng(0)
    X, coef, intercept = rng.uniform(0, 20, (5, 2)), np.array([[2.0, -1.0]]), np.array([0.5])
    moved, _ = scaled(X, ([0, 0], [20, 40]), None)
    plain, shifted = in_units_of_data(coef, intercept, ([0, 0], [20, 40]))
    assert X @ plain.T + shifted == pytest.approx(moved @ coef.T + intercept)


def test_a_clone_has_the_same_parameters_and_keeps_how_it_hands_out_frames() -> None:
    bits = seeded(1)
    model = PCA(1, norm=3.0, bits=bits).set_output(transform="pandas")
    copied = clone(model)
    assert copied.bits is bits
    assert copied.norm == 3.0
    frame = copied.fit_transform(np.zeros((3, 2)))
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["pca0"]


def test_other_features_than_fitted_are_refused_by_name_and_number() -> None:
    frame = pd.DataFrame({"age": [0.1, 0.2], "height": [0.3, 0.4]})
    model = StandardScaler(bounds=(0, 1)).fit(frame)
    assert model.get_feature_names_out().tolist() == ["age", "height"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"age": "weight"}))
    with pytest.raises(ValueError, match="features"):
        KMeans(2).fit(np.zeros((3, 2))).predict(np.zeros((1, 3)))


ROWS = 997
EVERY = [
    LogisticRegression(classes=[0, 1], steps=5),
    NaiveBayes(classes=[0, 1], bounds=(0, 1)),
    AdditiveModel(classes=[0, 1], bounds=(0, 1), depth=3, steps=5),
    LinearRegression(target=(0, 1), steps=5),
    KMeans(2, iterations=1),
    PCA(),
    StandardScaler(bounds=(0, 1)),
]


def lengths(value: Any) -> set[int]:
    return {*np.shape(value)} if isinstance(value, np.ndarray | list | tuple) else set()


@pytest.mark.parametrize("unfitted", EVERY, ids=lambda each: type(each).__name__)
def test_nothing_with_an_entry_for_each_row_is_released_or_pickled(unfitted: Any) -> None:
    rng = np.random.default_rng(0)
    model = clone(unfitted).fit(rng.random((ROWS, 2)), rng.integers(0, 2, ROWS))
    released = model.released()
    assert {"n_features_in_"} < set(released)
    assert all(ROWS not in lengths(value) for value in released.values())
    fitted = {name for name in vars(model) if name.endswith("_")}
    assert fitted - set(released) <= {"event_", "receipt_", "labels_"}
    kept = pickle.loads(pickle.dumps(model))  # noqa: S301  # our own
    assert all(ROWS not in lengths(value) for value in vars(kept).values())
    assert not hasattr(kept, "labels_")


def refusal(model: Any, X: Any, *y: Any) -> BaseException:
    with pytest.raises((UnfitDataError, TypeError)) as caught:
        model.fit(X, *y)
    return caught.value


def of_objects(*entries: Any) -> Any:
    made = np.empty((len(entries), 1), dtype=object)
    made[:, 0] = entries
    return made


@pytest.mark.parametrize(
    "X",
    [
        np.array([1234.5, 2.0, 3.0]),
        np.array([[1234.5 + 1j], [2.0], [3.0]]),
        of_objects("1234.5 secret", 2.0, 3.0),
        of_objects("The feature names should match 1234.5", 2.0, 3.0),
        of_objects({"secret": 1234.5}, 2.0, 3.0),
        of_objects(1234.5j, 2.0, 3.0),
        of_objects(1234 * 10**400, 2.0, 3.0),
        [[1.0, 1234.5], [2.0], [3.0]],
    ],
)
def test_no_refusal_of_features_quotes_them(X: Any) -> None:
    for said in (refusal(PCA(), X), refusal(LinearRegression(target=(0, 1)), X, [0.0, 1.0, 0.0])):
        assert "1234" not in str(said)
        assert "secret" not in str(said)
        assert said.__context__ is None


@pytest.mark.parametrize(
    "y", [["secret", "b", "c"], np.array(["secret", 1, None], dtype=object), [["secret"], [1, 2], []]]
)
def test_no_refusal_of_targets_quotes_them_without_a_ledger_either(y: Any) -> None:
    said = refusal(LinearRegression(target=(0, 1)), np.eye(3), y)
    assert "secret" not in str(said)
    assert said.__context__ is None
