import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from defocus import noise
from defocus.errors import InvalidParameterError
from defocus.noise.tables import gaussian_table, laplace_table
from defocus.noise.testing import seeded

Fit = Callable[[object, object], float]
Pmfs = Callable[[float], object]


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, 2.5, 10, 63, 64, 100, 1000])
def test_laplace_noise_has_the_declared_scale_and_no_other(fit: Fit, laplace_pmf: Pmfs, scale: float) -> None:
    sample = noise.discrete_laplace(scale, 100_000, seeded(7))
    assert fit(sample, laplace_pmf(float(scale))) > 1e-6
    assert fit(sample, laplace_pmf(float(scale) * 1.1)) < 1e-6
    assert fit(sample, laplace_pmf(float(scale) * 0.9)) < 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [10**5, 10**6 + 0.5, 2**33, 2**40])
def test_wide_laplace_noise_follows_the_continuous_law(scale: float) -> None:
    sample = (noise.discrete_laplace(scale, 100_000, seeded(8)) + 0.5) / scale
    assert stats.kstest(sample, "laplace").pvalue > 1e-6
    assert stats.kstest(sample * 1.1, "laplace").pvalue < 1e-6
    assert stats.kstest(sample / 1.1, "laplace").pvalue < 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.7, 30, 5000])
def test_mean_variance_and_symmetry_of_laplace_noise_are_those_of_the_docstring(scale: float) -> None:
    sample = noise.discrete_laplace(scale, 400_000, seeded(9)).astype(float)
    q = math.exp(-1 / scale)
    variance = 2 * q / (1 - q) ** 2
    assert abs(sample.mean()) < 6 * math.sqrt(variance / sample.size)
    assert abs(sample.var() / variance - 1) < 0.03
    signs = np.sign(sample)
    assert stats.binomtest(int((signs > 0).sum()), int((signs != 0).sum())).pvalue > 1e-6


@pytest.mark.statistical
def test_the_lowest_bits_of_wide_laplace_noise_are_even() -> None:
    """No lattice: what gives floating-point samplers away."""
    sample = noise.discrete_laplace(2**40, 100_000, seeded(10))
    for bit in range(32):
        assert stats.binomtest(int((sample >> bit & 1).sum()), sample.size).pvalue > 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [2, 100])
def test_few_and_many_samples_of_laplace_noise_have_one_law(scale: int) -> None:
    bits = seeded(11)
    few = np.concatenate([noise.discrete_laplace(scale, 60, bits) for _ in range(300)])
    many = noise.discrete_laplace(scale, 200_000, bits)
    edges = np.quantile(many, np.linspace(0, 1, 11)[1:-1])
    table = [np.bincount(np.searchsorted(edges, x), minlength=10) for x in (few, many)]
    table = [row[np.add(*table) > 20] for row in table]
    assert stats.chi2_contingency(table).pvalue > 1e-6


@given(scale=st.one_of(st.floats(1e-12, 2.0**40), st.fractions(Fraction(1, 10**9), 2**40)), size=st.integers(0, 70))
def test_any_scale_and_size_give_64_bit_integers(scale: float | Fraction, size: int) -> None:
    sample = noise.discrete_laplace(scale, size, seeded(size))
    assert sample.dtype == np.int64
    assert sample.shape == (size,)


@pytest.mark.parametrize("size", [3, 1000])
@pytest.mark.parametrize("scale", [1e-6, 1e-9, 5e-324, Fraction(1, 10**40)])
def test_a_tiny_scale_adds_nothing(scale: float | Fraction, size: int) -> None:
    assert not noise.discrete_laplace(scale, size).any()


@pytest.mark.parametrize("size", [10, 1000])
def test_the_same_bits_give_the_same_laplace_noise_whatever_was_drawn_before(size: int) -> None:
    first = noise.discrete_laplace(12, size, seeded(1))
    laplace_table.cache_clear()
    assert (noise.discrete_laplace(12, size, seeded(1)) == first).all()
    assert (noise.discrete_laplace(Fraction(12), size, seeded(1)) == first).all()
    assert (noise.discrete_laplace(12, size, seeded(2)) != first).any()


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, -math.inf, "1", True, None, 2**41, 10**400, 1 + 0j])
def test_a_scale_outside_its_range_is_refused(scale: object) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)scale must.*To fix:"):
        noise.discrete_laplace(scale, 3)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("size", [-1, 2.0, "3", None, True, (2, 3)])
def test_a_size_that_is_no_count_of_laplace_noise_is_refused(size: object) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)size must.*To fix:"):
        noise.discrete_laplace(1, size)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", [Fraction(1, 2), 1, 2.5, 10, 63, 64, 100, 1000])
def test_gaussian_noise_has_the_declared_scale_and_no_other(fit: Fit, gaussian_pmf: Pmfs, sigma: float) -> None:
    sample = noise.discrete_gaussian(sigma, 100_000, seeded(7))
    assert fit(sample, gaussian_pmf(float(sigma))) > 1e-6
    assert fit(sample, gaussian_pmf(float(sigma) * 1.1)) < 1e-6
    assert fit(sample, gaussian_pmf(float(sigma) * 0.9)) < 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", [10**5, 10**6 + 0.5, 2**33, 2**40])
def test_wide_gaussian_noise_follows_the_continuous_law(sigma: float) -> None:
    sample = (noise.discrete_gaussian(sigma, 100_000, seeded(8)) + 0.5) / sigma
    assert stats.kstest(sample, "norm").pvalue > 1e-6
    assert stats.kstest(sample * 1.1, "norm").pvalue < 1e-6
    assert stats.kstest(sample / 1.1, "norm").pvalue < 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", [0.4, 0.7, 30, 5000])
def test_mean_variance_and_symmetry_of_gaussian_noise_are_those_of_the_docstring(sigma: float) -> None:
    sample = noise.discrete_gaussian(sigma, 400_000, seeded(9)).astype(float)
    q = mpmath.exp(-1 / (2 * mpmath.mpf(sigma) ** 2))
    variance = float(sigma**2) if sigma > 5 else float(q * mpmath.diff(lambda z: mpmath.log(mpmath.jtheta(3, 0, z)), q))
    assert variance <= sigma**2 * (1 + 1e-12)  # Corollary 9
    assert abs(sample.mean()) < 6 * math.sqrt(variance / sample.size)
    assert abs(sample.var() / variance - 1) < 0.03
    signs = np.sign(sample)
    assert stats.binomtest(int((signs > 0).sum()), int((signs != 0).sum())).pvalue > 1e-6


@pytest.mark.statistical
def test_the_lowest_bits_of_wide_gaussian_noise_are_even() -> None:
    """No lattice: what gives floating-point samplers away."""
    sample = noise.discrete_gaussian(2**40, 100_000, seeded(10))
    for bit in range(32):
        assert stats.binomtest(int((sample >> bit & 1).sum()), sample.size).pvalue > 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", [2, 100])
def test_few_and_many_samples_of_gaussian_noise_have_one_law(sigma: int) -> None:
    bits = seeded(11)
    few = np.concatenate([noise.discrete_gaussian(sigma, 60, bits) for _ in range(150)])
    many = noise.discrete_gaussian(sigma, 200_000, bits)
    edges = np.quantile(many, np.linspace(0, 1, 11)[1:-1])
    table = [np.bincount(np.searchsorted(edges, x), minlength=10) for x in (few, many)]
    table = [row[np.add(*table) > 20] for row in table]
    assert stats.chi2_contingency(table).pvalue > 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", [3, 300])
def test_the_far_tails_of_gaussian_noise_carry_their_share(sigma: int) -> None:
    """Beyond 4.5 standard deviations: about 80 of twelve million samples."""
    bits = seeded(12)
    beyond = sum(int((np.abs(noise.discrete_gaussian(sigma, 4_000_000, bits)) >= 4.5 * sigma).sum()) for _ in range(3))
    reach = np.arange(-40 * sigma, 40 * sigma + 1)
    far = np.abs(reach) >= 4.5 * sigma

    def p_value(s: float) -> float:
        weight = np.exp(-(reach**2) / (2 * s**2))
        return float(stats.binomtest(beyond, 12_000_000, float(weight[far].sum() / weight.sum())).pvalue)

    assert p_value(sigma) > 1e-6
    assert p_value(sigma * 1.1) < 1e-6
    assert p_value(sigma * 0.9) < 1e-6


@given(sigma=st.one_of(st.floats(1e-12, 2.0**40), st.fractions(Fraction(1, 10**9), 2**40)), size=st.integers(0, 70))
def test_any_sigma_and_size_give_64_bit_integers(sigma: float | Fraction, size: int) -> None:
    sample = noise.discrete_gaussian(sigma, size, seeded(size))
    assert sample.dtype == np.int64
    assert sample.shape == (size,)


@pytest.mark.parametrize("size", [3, 1000])
@pytest.mark.parametrize("sigma", [1e-6, 1e-9, 5e-324, Fraction(1, 10**40)])
def test_a_tiny_sigma_adds_nothing(sigma: float | Fraction, size: int) -> None:
    assert not noise.discrete_gaussian(sigma, size).any()


@pytest.mark.parametrize("size", [10, 1000])
def test_the_same_bits_give_the_same_gaussian_noise_whatever_was_drawn_before(size: int) -> None:
    first = noise.discrete_gaussian(12, size, seeded(1))
    gaussian_table.cache_clear()
    assert (noise.discrete_gaussian(12, size, seeded(1)) == first).all()
    assert (noise.discrete_gaussian(Fraction(12), size, seeded(1)) == first).all()
    assert (noise.discrete_gaussian(12, size, seeded(2)) != first).any()


@pytest.mark.parametrize("sigma", [0, -1, math.nan, math.inf, -math.inf, "1", True, None, 2**41, 10**400, 1 + 0j])
def test_a_sigma_outside_its_range_is_refused(sigma: object) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)sigma must.*To fix:"):
        noise.discrete_gaussian(sigma, 3)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("size", [-1, 2.0, "3", None, True, (2, 3)])
def test_a_size_that_is_no_count_of_gaussian_noise_is_refused(size: object) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)size must.*To fix:"):
        noise.discrete_gaussian(1, size)  # type: ignore[arg-type]  # wrong on purpose
