import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.mechanisms import error_laws

scales = st.floats(0.05, 50)


def laplace(scale: float, reach: int = 2000) -> np.ndarray:
    k = np.arange(-reach, reach + 1)
    q = math.exp(-1 / scale)
    return np.asarray((1 - q) / (1 + q) * np.exp(-np.abs(k) / scale))


@given(scales, scales, st.integers(0, 60))
def test_the_sum_of_two_noises_has_the_convolved_law(a: float, b: float, width: int) -> None:
    pmf = np.convolve(laplace(a), laplace(b))
    size = np.abs(np.arange(-4000, 4001))
    if abs(a - b) < 1e-3 * a:
        b = a
        pmf = np.convolve(laplace(a), laplace(a))
    assert error_laws.sum_error(a, b) == pytest.approx((size * pmf).sum(), rel=1e-8, abs=1e-12)
    assert error_laws.sum_tail(a, b, width) == pytest.approx(pmf[size > width].sum(), rel=1e-6, abs=1e-12)


@given(scales, st.integers(1, 50))
def test_the_largest_of_several_noises_has_the_expectation_of_its_law(scale: float, n: int) -> None:
    pmf = laplace(scale)
    powers = np.cumsum(pmf).clip(0, 1) ** n
    expected = (np.arange(-2000, 2001) * np.diff(powers, prepend=0.0)).sum()
    assert error_laws.laplace_largest(scale, n) == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_the_largest_of_wide_noises_is_bounded_from_above_and_closely() -> None:
    for n in (2, 10, 1000):
        harmonic = quad_largest(n)
        assert harmonic * 1e6 <= error_laws.laplace_largest(1e6, n) <= harmonic * 1e6 * 1.002


def quad_largest(n: int) -> float:
    """The expectation for continuous noise of scale one."""
    above = mpmath.quad(lambda x: 1 - (1 - mpmath.exp(-x) / 2) ** n, [0, 1, 10, 60])
    below = mpmath.quad(lambda x: (mpmath.exp(-x) / 2) ** n, [0, 1, 60])
    return float(above - below)


@pytest.mark.parametrize("sigma", [199.0, 201.0, 1e3, 1e6, 2.0**40])
def test_wide_gaussian_noise_is_nearly_continuous(sigma: float) -> None:
    assert error_laws.gaussian_error(sigma) == pytest.approx(sigma * math.sqrt(2 / math.pi), rel=1e-5)
    assert error_laws.gaussian_variance(sigma) == pytest.approx(sigma**2, rel=1e-9)
    width = error_laws.half_width(lambda t: error_laws.gaussian_tail(sigma, t), 0.95)
    assert width == pytest.approx(1.959963984540054 * sigma, abs=1.01)


@pytest.mark.parametrize("sigma", [201, 350])
@pytest.mark.parametrize("confidence", [0.2, 0.6, 0.68, 0.7, 0.95, 0.999999])
def test_the_bound_for_wide_gaussian_noise_covers_and_is_at_most_a_step_too_wide(sigma: int, confidence: float) -> None:
    k = np.arange(-40 * sigma, 40 * sigma + 1)
    weights = np.exp(-(k.astype(float) ** 2) / (2 * sigma**2))
    law = weights / weights.sum()
    width = error_laws.half_width(lambda t: error_laws.gaussian_tail(sigma, t), confidence)
    assert law[np.abs(k) <= width].sum() >= confidence
    assert law[np.abs(k) <= width - 2].sum() < confidence


def test_expansion_and_sum_agree_where_they_meet() -> None:
    x = np.arange(1, 10_000, dtype=float)
    for sigma in (200.0, 250.0):
        weights = np.exp(-(x**2) / (2 * sigma**2))
        exact = 2 * (x * weights).sum() / (1 + 2 * weights.sum())
        assert error_laws.gaussian_error(sigma) == pytest.approx(exact, rel=1e-10)


def test_noise_that_is_always_zero_has_no_error() -> None:
    tiny = Fraction(1, 2**40)
    assert error_laws.laplace_error(tiny) == error_laws.laplace_variance(tiny) == error_laws.laplace_tail(tiny, 0) == 0
    assert (
        error_laws.gaussian_error(tiny) == error_laws.gaussian_variance(tiny) == error_laws.gaussian_tail(tiny, 0) == 0
    )
    assert error_laws.sum_error(tiny, tiny) == error_laws.sum_tail(tiny, tiny, 0) == 0
    assert error_laws.sum_error(tiny, 2) == pytest.approx(error_laws.laplace_error(2))
    assert error_laws.laplace_largest(tiny, 5) == 0


@given(st.floats(0.01, 2.0**40), st.floats(0.001, 0.999999))
def test_a_half_width_covers_and_the_next_smaller_does_not(scale: float, confidence: float) -> None:
    width = error_laws.half_width(lambda t: error_laws.laplace_tail(scale, t), confidence)
    assert error_laws.laplace_tail(scale, width) <= 1 - confidence
    assert width == 0 or error_laws.laplace_tail(scale, width - 1) > (1 - confidence) * (1 - 1e-11)
