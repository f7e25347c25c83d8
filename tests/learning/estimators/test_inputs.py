"""What is said about data that does not fit: its type and its shape, and nothing that is in it."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from tests.learning.estimators.every import EVERY

from defocus.errors import InvalidParameterError, UnfitDataError
from defocus.learning import PCA, KMeans, LinearRegression, LogisticRegression, NaiveBayes, StandardScaler
from defocus.learning.estimators.inputs import bounds_of, held, in_units_of_data, marks, numbers, scaled, table


def test_other_features_than_fitted_are_refused_by_name_and_number() -> None:
    frame = pd.DataFrame({"age": [0.1, 0.2], "height": [0.3, 0.4]})
    model = StandardScaler(bounds=(0, 1)).fit(frame)
    assert model.get_feature_names_out().tolist() == ["age", "height"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"age": "weight"}))
    with pytest.raises(ValueError, match="features"):
        KMeans(2).fit(np.zeros((3, 2))).predict(np.zeros((1, 3)))


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
        [1234.5, 2.0, 3.0],
        pa.table({"sex": ["secret", "f", "f"]}),
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
    LinearRegression(target=(0, 1), max_iter=2).fit(np.eye(3), y)
    with pytest.raises(UnfitDataError, match="encode it first") as caught:
        LinearRegression(target=(0, 1)).fit(np.eye(3), np.array(list(map(str, y))))
    assert "secret" not in str(caught.value)


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


def test_no_number_makes_a_fit_warn_however_large_it_is() -> None:
    X, y = np.full((20, 2), 0.5, np.longdouble), np.zeros(20, np.longdouble)
    X[3, 1] = y[3] = np.longdouble("1e4000")
    for unfitted in EVERY:
        clone(unfitted).fit(X, y)


WIDE = (-1.7e308, 1.7e308)
WAYS = [
    *EVERY,
    LogisticRegression(classes=[0, 1], solver="output"),
    LogisticRegression(classes=[0, 1], solver="objective"),
    LogisticRegression(classes=[0, 1], bounds=WIDE, max_iter=2),
    LinearRegression(solver="moments", target=(-1e300, 1e300)),
    NaiveBayes(classes=[0, 1], bounds=WIDE),
    KMeans(3, bounds=WIDE),
    PCA(bounds=WIDE),
    StandardScaler(),
    StandardScaler(bounds=WIDE),
]


def test_no_rows_make_a_fit_fail_or_warn_and_what_is_found_is_finite() -> None:
    rng = np.random.default_rng(0)
    extreme = [np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324, 0.0, -0.0, 1e150, 1e-300]
    for _ in range(3):
        X, y = rng.choice(extreme, (4, 2)), rng.choice([*extreme, 1.0], 4)
        for unfitted in WAYS:
            released = clone(unfitted).fit(X, y).released()
            assert all(np.isfinite(value).all() for name, value in released.items() if name not in {"var_", "error_"})


def test_an_odd_cell_counts_as_missing_and_changes_no_other() -> None:
    rows = [[0.1, 1], ["0.25", "?"], [True, None], [10**400, -(10**400)]]
    with pytest.warns(UserWarning, match="type object"):
        typed = table(np.array(rows, dtype=object))
    for made in (typed, table(rows)):
        np.testing.assert_array_equal(made, [[0.1, 1], [0.25, np.nan], [1, np.nan], [np.inf, -np.inf]])
    missing = [cell for cell in ODD if not isinstance(cell, int | float) and str(cell) != "1.5"]
    assert all(np.isnan(table([[cell], [1.0]])[0, 0]) for cell in missing)


@pytest.mark.parametrize("column", [pd.array([1, None, 3], dtype="Int64"), pd.Categorical([1.0, 2.0, np.nan])])
def test_columns_of_numbers_of_other_libraries_are_numbers(column: Any) -> None:
    frame = pd.DataFrame({"age": column})
    assert np.isnan(table(frame)[:, 0]).sum() == 1
    assert table(pl.DataFrame({"age": [1, None, 3]}))[2].tolist() == [3.0]


@pytest.mark.parametrize(
    "odd",
    [[9.0], [9.0, 9.0, 9.0], [], None, 9.0, "99", b"99", {0: 9.0, 1: 9.0}, np.zeros((2, 2)), bytearray(b"ab"), 1j],
    ids=repr,
)
@pytest.mark.parametrize("unfitted", EVERY, ids=lambda each: type(each).__name__)
def test_a_row_that_is_no_list_as_the_others_are_is_missing_and_changes_no_other(unfitted: Any, odd: Any) -> None:
    rows = [[0.5, 1], (2**60, True), np.array([0.25, 0.5])]
    plain = [[0.5, 1.0], [2.0**60, 1.0], [0.25, 0.5]]
    np.testing.assert_array_equal(table(rows), plain)
    for place in range(4):
        made = table([*rows[:place], odd, *rows[place:]])
        assert np.isnan(made[place]).all()
        np.testing.assert_array_equal(np.delete(made, place, axis=0), plain)
    clone(unfitted).fit([*rows, odd], [0, 1, 0, 1])


class Unruly(list[Any]):
    """Fails where it can."""

    def __iter__(self) -> Any:
        message = "secret"
        raise OverflowError(message)

    __len__ = __getitem__ = __gt__ = __iter__  # type: ignore[assignment]


class UnrulyNumber(float):
    """Too large for itself, and not even comparable."""

    def __float__(self) -> float:
        message = "secret"
        raise OverflowError(message)

    __gt__ = __ge__ = __le__ = __lt__ = __int__ = __float__  # type: ignore[assignment]


class Exits:
    """Ends the process when it is looked at."""

    @property
    def ndim(self) -> int:
        raise SystemExit


def test_no_object_makes_a_row_or_a_cell_fail_whatever_it_does() -> None:
    made = table([[1.0, 2.0], Unruly(), Exits(), [Unruly(), UnrulyNumber(1)], [Exits(), 4.0]])
    assert np.isnan(made).tolist() == [[False] * 2, [True] * 2, [True] * 2, [True, False], [True, False]]
    assert numbers([Unruly(), Exits(), UnrulyNumber(1), [2.0], np.array(3.0)]).tolist()[2:] == [1, 2, 3]
    assert list(marks([Unruly(), Exits(), UnrulyNumber(1), 1]).values) == [None, None, 1, 1]


@pytest.mark.parametrize(
    "column",
    [
        lambda cells: pd.Series(cells, dtype="Int64"),
        lambda cells: pd.Series(cells, dtype="int64[pyarrow]"),
        lambda cells: pd.Series(cells, dtype="Float64"),
        lambda cells: pd.Series(pd.Categorical(cells)),
        lambda cells: pl.Series(cells, dtype=pl.UInt64),
        lambda cells: pl.Series(cells, dtype=pl.Decimal(20, 0)),
        lambda cells: pa.chunked_array([pa.array(cells, pa.uint64())]),
        lambda cells: pa.chunked_array([pa.array(cells).dictionary_encode()]),
    ],
)
def test_a_missing_cell_of_a_feature_is_nan_and_changes_no_other(column: Any) -> None:
    for cells in ([2**53 + 2, 1], [2**53 + 2, 1, None]):
        one = column(cells)
        frame = pd.DataFrame if isinstance(one, pd.Series) else pl.DataFrame if isinstance(one, pl.Series) else pa.table
        found = table(frame({"a": one}))
        assert found.dtype.kind in "fiu"
        assert found[:2, 0].tolist() == [2**53 + 2, 1]
        assert np.isnan(found[2:].astype(float)).all()


def test_bounds_go_to_minus_one_and_one_and_missing_to_the_middle() -> None:
    X = np.array([[0.0, 10.0], [50.0, np.nan], [1e9, -np.inf]])
    moved, norm = scaled(X, ([0, 0], [100, 20]), None)
    assert moved.tolist() == [[-1.0, 0.0], [0.0, 0.0], [1.0, -1.0]]
    assert norm == pytest.approx(2**0.5)


def test_bounds_as_wide_as_floats_go_do_not_overflow() -> None:
    moved, _ = scaled(np.array([[0.0], [1.7e308]]), (-1.7e308, 1.7e308), None)
    assert moved.ravel().tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "bounds",
    [None, 5, "ab", (1,), (0, 1, 2), (2, 1), (0, np.nan), (0, np.inf), ([0], [1, 2, 3]), ([0], [1]), ([[0]], [[1]])],
)
def test_refuses_what_are_no_bounds(bounds: Any) -> None:
    with pytest.raises(InvalidParameterError, match="not from the data"):
        bounds_of(bounds, 2)


@given(st.floats(allow_nan=True, allow_infinity=True), st.integers(2, 100))
def test_every_value_has_a_cell(value: float, parts: int) -> None:
    found = int(bounds_of((-1, 2), 1).cells(np.array([[value]]), parts)[0, 0])
    assert 0 <= found < parts
    assert abs(float(bounds_of((-1, 2), 1).inward(np.array([[value]]))[0, 0])) <= 1


def test_coefficients_of_scaled_features_are_told_for_features_as_they_come() -> None:
    rng = np.random.default_rng(0)
    X, coef, intercept = rng.uniform(0, 20, (5, 2)), np.array([[2.0, -1.0]]), np.array([0.5])
    moved, _ = scaled(X, ([0, 0], [20, 40]), None)
    plain, shifted = in_units_of_data(coef, intercept, ([0, 0], [20, 40]))
    assert X @ plain.T + shifted == pytest.approx(moved @ coef.T + intercept)


def test_rows_to_predict_are_held_to_the_norm_or_the_bounds() -> None:
    X = np.array([[0.5, 0.0], [50.0, 0.0], [np.nan, -np.inf]])
    assert held(X, None, 1.0)[:2].tolist() == pytest.approx(np.array([[0.5, 0.0], [1.0, 0.0]]), abs=1e-6)
    assert held(X, ([0, -1], [10, 3]), None).tolist() == [[0.5, 0.0], [10.0, 0.0], [5.0, -1.0]]


def test_pairs_for_each_feature_are_not_taken_for_the_two_ends() -> None:
    with pytest.raises(InvalidParameterError, match="can be read as one pair for each feature"):
        bounds_of([(18, 90), (60, 220)], 2)
    assert bounds_of([[18, 60], [90, 220]], 2).low.tolist() == [18, 60]
