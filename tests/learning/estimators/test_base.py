"""What estimators share: bounds, cloning, and what is said about data that does not fit."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
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
from defocus.learning.estimators.base import ends, held, in_units_of_data, scaled
from defocus.learning.estimators.cells import table
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


@pytest.mark.parametrize("unfitted", EVERY, ids=lambda each: type(each).__name__)
def test_what_was_released_is_enough_to_predict_with(unfitted: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((50, 2)) * 2 - 0.5
    model = clone(unfitted).fit(X, rng.integers(0, 2, 50))
    given = {name: getattr(model, name) for name in ("bounds", "norm") if hasattr(model, name)}
    again = type(model).restored(model.released(), **given)
    name = next(name for name in ("predict_proba", "predict", "transform") if hasattr(model, name))
    np.testing.assert_array_equal(getattr(again, name)(X), getattr(model, name)(X))


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"coef_": None},
        {"coef_": [[1.0]]},
        {"coef_": [["one", "two"]]},
        {"coef_": [[np.nan, 1.0]]},
        {"coef_": [[1.0, 2.0], [3.0, 4.0]]},
        {"classes_": [0, 1, 2]},
        {"classes_": [0, {}]},
        {"intercept_": 1.0},
        {"n_features_in_": 3},
    ],
)
def test_what_was_not_released_is_refused(wrong: Any) -> None:
    good = {"n_features_in_": 2, "classes_": [0, 1], "coef_": [[1.0, 2.0]], "intercept_": [0.5]}
    assert LogisticRegression.restored(good).predict([[0.5, 0.5]]).tolist() == [1]
    with pytest.raises(InvalidParameterError, match="not what a LogisticRegression released"):
        LogisticRegression.restored({**good, **wrong} if wrong else {})


def test_rows_to_predict_are_held_to_the_norm_or_the_bounds() -> None:
    X = np.array([[0.5, 0.0], [50.0, 0.0], [np.nan, -np.inf]])
    assert held(X, None, 1.0)[:2].tolist() == pytest.approx(np.array([[0.5, 0.0], [1.0, 0.0]]), abs=1e-6)
    assert held(X, ([0, -1], [10, 3]), None).tolist() == [[0.5, 0.0], [10.0, 0.0], [5.0, -1.0]]


ODD = ["secret", "1.5", None, np.nan, np.inf, 10**400, -(10**400), 1j, {}, [1, 2], b"1", np.datetime64("2020"), pd.NA]
ODD += [np.zeros((2, 2)), pd.DataFrame({"a": [1]})]


def with_odd(values: Any) -> Any:
    """Each odd cell in a row of its own."""
    made = values.astype(object)
    for place, cell in enumerate(ODD):
        made[(place, *[1] * (values.ndim - 1))] = cell
    return made


@pytest.mark.filterwarnings("ignore:.*is of type object")
@pytest.mark.parametrize("unfitted", EVERY, ids=lambda each: type(each).__name__)
def test_no_cell_makes_a_fit_fail_whatever_is_in_it(unfitted: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = with_odd(rng.random((20, 2))), with_odd(rng.integers(0, 2, 20))
    for rows, targets in ((X, y), (X.tolist(), y.tolist()), (pd.DataFrame(X, columns=["a", "b"]), pd.Series(y))):
        clone(unfitted).fit(rows, targets)


def test_an_odd_cell_counts_as_missing_and_changes_no_other() -> None:
    rows = [[0.1, 1], ["0.25", "?"], [True, None], [10**400, -(10**400)]]
    with pytest.warns(UserWarning, match="type object"):
        typed = table(np.array(rows, dtype=object))
    for made in (typed, table(rows)):
        np.testing.assert_array_equal(made, [[0.1, 1], [0.25, np.nan], [1, np.nan], [np.inf, -np.inf]])
    missing = [cell for cell in ODD if not isinstance(cell, int | float) and str(cell) != "1.5"]
    assert all(np.isnan(table([[cell], [1.0]])[0, 0]) for cell in missing)


@pytest.mark.parametrize(
    "X",
    [
        np.array([1234.5, 2.0, 3.0]),
        np.array([[1234.5 + 1j], [2.0], [3.0]]),
        np.array([["secret"], ["2"], ["3"]]),
        np.array([["2020"], ["2021"], ["2022"]], dtype="M8[Y]"),
        pd.DataFrame({"sex": ["secret", "f", "f"]}),
        pd.DataFrame({"sex": pd.Categorical(["secret", "f", "f"])}),
        pl.DataFrame({"sex": ["secret", "f", "f"]}),
        [[1.0, 1234.5], [2.0], [3.0]],
    ],
)
def test_types_and_shapes_of_features_are_refused_and_no_cell_is_quoted(X: Any) -> None:
    with pytest.raises(UnfitDataError) as caught:
        LinearRegression(target=(0, 1)).fit(X, [0.0, 1.0, 0.0])
    assert "1234" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("y", [["secret", "b", "c"], [["secret"], [1, 2], []]])
def test_targets_without_a_type_are_numbers_or_missing(y: Any) -> None:
    LinearRegression(target=(0, 1), steps=2).fit(np.eye(3), y)
    with pytest.raises(UnfitDataError, match="encode it first") as caught:
        LinearRegression(target=(0, 1)).fit(np.eye(3), np.array(list(map(str, y))))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("column", [pd.array([1, None, 3], dtype="Int64"), pd.Categorical([1.0, 2.0, np.nan])])
def test_columns_of_numbers_of_other_libraries_are_numbers(column: Any) -> None:
    frame = pd.DataFrame({"age": column})
    assert np.isnan(table(frame)[:, 0]).sum() == 1
    assert table(pl.DataFrame({"age": [1, None, 3]}))[2].tolist() == [3.0]
