"""Noisy second moments: exact, symmetric, and of a sensitivity that is never exceeded."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from defocus.learning.estimators.moments import moment_error, moment_sum, moments, noisy_moments
from defocus.mechanisms import Gaussian
from defocus.noise.testing import seeded


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=6))
def test_one_row_measures_at_most_five_times_its_squared_length(row: list[int]) -> None:
    vector = moments(np.array([row], dtype=np.float64)).astype(object)
    assert (vector**2).sum() <= 25 * sum(x * x for x in row) ** 2


def test_without_noise_to_speak_of_the_matrix_is_the_sum_of_products() -> None:
    rows = np.array([[3.0, -2.0, 1.0], [5.0, 5.0, 0.0]])
    found = noisy_moments(rows, Gaussian(sigma=1e-6, sensitivity=5, dimension=6), seeded(1))
    assert (found == rows.T @ rows).all()
    assert moment_sum(3, 10, 1.0).dimension == 6


def test_the_stated_error_bounds_the_eigenvalues_of_the_noise() -> None:
    noise = Gaussian(sigma=7000, sensitivity=5, dimension=60 * 61 // 2)
    values = np.linalg.eigvalsh(noisy_moments(np.zeros((1, 60)), noise, seeded(2)))
    assert 0.7 * moment_error(noise, 60) < np.abs(values).max() < 1.3 * moment_error(noise, 60)
