"""Cells: every one has an outcome, whatever is in it."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from tests.learning.estimators.every import EVERY

from defocus.learning import PCA, KMeans, LinearRegression, LogisticRegression, NaiveBayes, StandardScaler
from defocus.learning.estimators.cells import table

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
    LogisticRegression(classes=[0, 1], by="output"),
    LogisticRegression(classes=[0, 1], by="objective"),
    LogisticRegression(classes=[0, 1], bounds=WIDE, steps=2),
    LinearRegression(by="moments", target=(-1e300, 1e300)),
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
