from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.noise.laws import Law, gaussian_one, geometric_one, laplace_one
from defocus.noise.testing import seeded

Fit = Callable[[object, object], float]
Pmfs = Callable[[float], object]


@given(scale=st.fractions(Fraction(1, 100), 100), x=st.integers(0, 1000), k=st.integers(0, 5))
def test_exponents_are_those_of_the_named_laws_in_any_unit(scale: Fraction, x: int, k: int) -> None:
    assert Law.laplace(scale).exponent(x) == x / scale
    assert Law.gaussian(scale).exponent(x) == x**2 / (2 * scale**2)
    for law in (Law.laplace(scale), Law.gaussian(scale)):
        assert law.widened(1 << k).exponent(x) == law.exponent(x << k)


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(7, 5), Fraction(3)])
def test_geometric_numbers_have_the_declared_rate_and_no_other(fit: Fit, rate: Fraction) -> None:
    bits = seeded(3)
    sample = np.array([geometric_one(rate, bits) for _ in range(12_000)])

    def pmf(r: float) -> Callable[[int], float]:
        return lambda m: float((1 - np.exp(-r)) * np.exp(-r * m)) if m >= 0 else 0.0

    assert fit(sample, pmf(float(rate))) > 1e-6
    assert fit(sample, pmf(float(rate) * 1.1)) < 1e-6
    assert fit(sample, pmf(float(rate) * 0.9)) < 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(20)])
def test_single_laplace_noise_has_the_declared_scale_and_no_other(fit: Fit, laplace_pmf: Pmfs, scale: Fraction) -> None:
    bits = seeded(5)
    sample = np.array([laplace_one(scale, bits) for _ in range(15_000)])
    assert fit(sample, laplace_pmf(float(scale))) > 1e-6
    assert fit(sample, laplace_pmf(float(scale) * 1.1)) < 1e-6
    assert fit(sample, laplace_pmf(float(scale) * 0.9)) < 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(7, 3), Fraction(20)])
def test_single_gaussian_noise_has_the_declared_scale_and_no_other(
    fit: Fit, gaussian_pmf: Pmfs, sigma: Fraction
) -> None:
    bits = seeded(6)
    sample = np.array([gaussian_one(sigma, bits) for _ in range(8000)])
    assert fit(sample, gaussian_pmf(float(sigma))) > 1e-6
    assert fit(sample, gaussian_pmf(float(sigma) * 1.1)) < 1e-6
    assert fit(sample, gaussian_pmf(float(sigma) * 0.9)) < 1e-6


@pytest.mark.parametrize("one", [laplace_one, gaussian_one])
def test_extreme_scales_are_drawn_at_once(one: Callable[[Fraction, object], int]) -> None:
    assert [one(Fraction(1e-9), seeded(i)) for i in range(20)] == [0] * 20
    wide = [one(Fraction(2**40), seeded(i)) for i in range(50)]
    assert 2**38 < np.abs(wide).mean() < 2**42
    assert min(wide) < 0 < max(wide)
