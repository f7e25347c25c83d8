"""Bounds and norms: when fitting, when predicting, and in the units of the data."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.learning.estimators.bounds import bounds_of, held, in_units_of_data, scaled


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
