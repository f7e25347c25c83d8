"""Linear regression: what is learned, in the units of the data, and what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.learning import LinearRegression
from defocus.learning.estimators.descent import PULL
from defocus.learning.estimators.linear import shortfalls
from defocus.noise.testing import seeded


def made(n: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 5)) / 5**0.5
    return X, 20 + X @ [30.0, -10.0, 0.0, 5.0, 0.0] + rng.normal(0, 1, n)


@pytest.mark.parametrize("solver", ["descent", "moments"])
def test_it_learns_coefficients_in_the_units_of_the_data(solver: str) -> None:
    X, y = made()
    model = LinearRegression(solver=solver, epsilon=1, delta=1e-6, target=(0, 40), bits=seeded(1)).fit(X, y)
    assert model.score(X, y) > 0.98
    assert model.coef_ == pytest.approx([30, -10, 0, 5, 0], abs=1.5)
    assert model.intercept_ == pytest.approx(20, abs=0.3)
    assert model.predict(X) == pytest.approx(X @ model.coef_ + model.intercept_, abs=0.1)


def test_bounds_and_target_are_undone_in_coefficients() -> None:
    X, y = made()
    moved = 100 + 10 * X
    model = LinearRegression(epsilon=1, delta=1e-6, bounds=(90, 110), target=(0, 40), bits=seeded(1)).fit(moved, y)
    assert model.coef_ == pytest.approx([3, -1, 0, 0.5, 0], abs=0.3)
    assert model.predict(moved) == pytest.approx(moved @ model.coef_ + model.intercept_, abs=0.2)


def test_few_rows_are_shrunk_and_not_blown_up() -> None:
    X, y = made(30)
    model = LinearRegression(epsilon=0.1, delta=1e-6, target=(0, 40), bits=seeded(1)).fit(X, y)
    assert np.abs(model.predict(X) - 20).max() < 200


def test_a_missing_target_is_the_middle_and_one_outside_is_cut() -> None:
    X = np.zeros((4000, 1))
    y = np.tile([np.nan, np.inf, -np.inf, 1e9], 1000)
    model = LinearRegression(solver="moments", epsilon=1, delta=1e-6, target=(0, 2), bits=seeded(1)).fit(X, y)
    assert model.intercept_ == pytest.approx(1.25, abs=0.1)


def test_descent_needs_far_fewer_rows_for_many_features() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (5000, 50)) / 50**0.5
    y = X @ rng.normal(0, 0.6, 50) + rng.normal(0, 0.1, 5000)
    descent, moments = (
        LinearRegression(solver=solver, epsilon=1, delta=1e-6, bits=seeded(1)).fit(X, y).score(X, y)
        for solver in ("descent", "moments")
    )
    assert descent > 0.85
    assert moments < 0.7


@given(score=st.integers(-(2**40), 2**40), aim=st.integers(-1024, 1024), clip=st.floats(1e-3, 2))
def test_no_row_pulls_harder_than_the_bound(score: int, aim: int, clip: float) -> None:
    found = shortfalls(np.array([[float(score)]]), np.array([float(aim)]), clip)
    assert abs(found[0, 0]) <= PULL
    assert found[0, 0] == np.trunc(found[0, 0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"solver": "magic"}, "choose solver="),
        ({"clip": 0}, "clip"),
        ({"clip": 5}, "clip"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_refuses_bad_parameters_and_says_what_to_pass(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        LinearRegression(**options).fit([[0.0]], [1.0])


def test_refuses_a_target_that_is_no_range() -> None:
    with pytest.raises(InvalidParameterError, match="least and the largest"):
        LinearRegression(target=5).fit([[0.0]], [1.0])
