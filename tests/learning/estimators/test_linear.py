"""Linear regression: what is learned, in the units of the data, and what is refused."""

import numpy as np
import pytest

from defocus import Budget
from defocus.errors import InvalidParameterError
from defocus.learning import LinearRegression
from defocus.noise.testing import seeded


def made(n: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 5)) / 5**0.5
    return X, 20 + X @ [30.0, -10.0, 0.0, 5.0, 0.0] + rng.normal(0, 1, n)


def test_it_learns_coefficients_in_the_units_of_the_data() -> None:
    X, y = made()
    model = LinearRegression(budget=Budget(1, 1e-6), target=(0, 40), bits=seeded(1)).fit(X, y)
    assert model.score(X, y) > 0.98
    assert model.coef_ == pytest.approx([30, -10, 0, 5, 0], abs=1.5)
    assert model.intercept_ == pytest.approx(20, abs=0.3)
    assert model.predict(X) == pytest.approx(X @ model.coef_ + model.intercept_, abs=0.1)


def test_bounds_and_target_are_undone_in_coefficients() -> None:
    X, y = made()
    moved = 100 + 10 * X
    model = LinearRegression(budget=Budget(1, 1e-6), bounds=(90, 110), target=(0, 40), bits=seeded(1)).fit(moved, y)
    assert model.coef_ == pytest.approx([3, -1, 0, 0.5, 0], abs=0.3)
    assert model.predict(moved) == pytest.approx(moved @ model.coef_ + model.intercept_, abs=0.2)


def test_few_rows_are_shrunk_and_not_blown_up() -> None:
    X, y = made(30)
    model = LinearRegression(budget=Budget(0.1, 1e-6), target=(0, 40), bits=seeded(1)).fit(X, y)
    assert np.abs(model.predict(X) - 20).max() < 200


def test_a_missing_target_is_the_middle_and_one_outside_is_cut() -> None:
    X = np.zeros((4000, 1))
    y = np.tile([np.nan, np.inf, -np.inf, 1e9], 1000)
    model = LinearRegression(budget=Budget(1, 1e-6), target=(0, 2), bits=seeded(1)).fit(X, y)
    assert model.intercept_ == pytest.approx(1.25, abs=0.1)


def test_refuses_a_target_that_is_no_range() -> None:
    with pytest.raises(InvalidParameterError, match="least and the largest"):
        LinearRegression(target=5).fit([[0.0]], [1.0])
