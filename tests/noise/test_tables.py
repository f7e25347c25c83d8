from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.noise.tables import (
    GUIDE_BITS,
    UNSURE,
    Grid,
    Law,
    Table,
    gaussian_one,
    gaussian_table,
    geometric_one,
    laplace_one,
    laplace_table,
)
from defocus.noise.testing import replay, seeded

Exact = Callable[[Fraction | int], Any]
SCALES = [Fraction(1e-6), Fraction(1, 3), Fraction(1), Fraction(10), Fraction(200, 3), Fraction(1000), Fraction(2**40)]
TOP = (1 << 64) - 1


def tables() -> list[Table]:
    return [make(scale) for make in (laplace_table, gaussian_table) for scale in SCALES]


def true_areas(grid: Grid, exact: Exact) -> list[Any]:
    """The areas in the words of the module's docstring, at sixty digits."""
    width = 1 << grid.k
    f = [mpmath.exp(-exact(grid.law.exponent(A * width))) for A in range(grid.blocks + 1)]
    alpha = exact(grid.law.a * width + 2 * grid.law.b * width**2 * grid.blocks)
    tail = f[-1] / (1 - mpmath.exp(-alpha))
    if grid.k == 0:
        return [*reversed(f[1:]), *f[:-1], tail, tail]
    wedge = [f[A] - f[A + 1] for A in range(grid.blocks)]
    return [*reversed(f[1:]), *f[1:], *reversed(wedge), *wedge, tail, tail]


@pytest.mark.parametrize("nbits", [64, 128])
def test_thresholds_enclose_the_true_ones_at_sixty_digits(exact: Exact, nbits: int) -> None:
    for table in tables():
        areas = true_areas(table.grid, exact)
        lows, highs = table.grid.thresholds(nbits)
        total, sums = sum(areas), mpmath.mpf(0)
        assert len(lows) == len(highs) == len(areas) - 1
        for low, high, area in zip(lows, highs, areas, strict=False):
            sums += area
            assert low <= mpmath.ldexp(sums / total, nbits) <= high
            assert high - low <= 2
        assert lows == sorted(lows)


def test_the_cells_of_a_small_scale_carry_the_published_probabilities(exact: Exact) -> None:
    """Normalised by the theta function, a law computed without this code."""
    for sigma in (Fraction(1, 2), Fraction(1), Fraction(3)):
        grid = gaussian_table(sigma).grid
        lows, _ = grid.thresholds(128)
        assert grid.k == 0
        kept = mpmath.mpf(0)
        for x in range(-grid.blocks, grid.blocks):
            kept += mpmath.exp(-exact(grid.law.exponent(abs(x))))
        theta = mpmath.jtheta(3, 0, mpmath.exp(-exact(grid.law.b)))
        inside = mpmath.ldexp(lows[2 * grid.blocks - 1], -128)
        for x in range(-grid.blocks + 1, grid.blocks):
            cell = x + grid.blocks
            chance = mpmath.ldexp(lows[cell] - lows[cell - 1], -128) / inside * kept / theta
            assert abs(chance - mpmath.exp(-exact(grid.law.exponent(abs(x)))) / theta) < mpmath.mpf(2) ** -120


def test_thresholds_at_64_bits_are_what_the_arrays_hold() -> None:
    for table in tables():
        lows, highs = table.grid.thresholds(64)
        assert table.lows.tolist() == lows
        assert all(last >= high - 1 for last, high in zip(table.lasts.tolist(), highs, strict=True))
        assert all(last <= high for last, high in zip(table.lasts.tolist(), highs, strict=True))


def test_the_guide_never_says_more_than_its_bits_prove() -> None:
    span = 1 << (64 - GUIDE_BITS)
    for table in tables():
        grid = table.grid
        lows, highs = grid.thresholds(64)
        for slot in [*range(0, 1 << GUIDE_BITS, 7), 0, (1 << GUIDE_BITS) - 1]:
            first, last = slot * span, slot * span + span - 1
            passed, reached = bisect_right(highs, first), bisect_right(lows, last)
            sure = passed == reached and passed < 2 * grid.blocks
            said = int(table.guide[slot])
            assert said in (UNSURE, (passed - grid.blocks) << grid.k)
            assert sure or said == UNSURE


def test_the_guide_answers_for_almost_every_word() -> None:
    for table in tables():
        assert (table.guide == UNSURE).mean() < 0.05


def test_a_tie_falls_to_the_side_that_further_bits_show() -> None:
    checked = 0
    for table in tables():
        lows, _ = table.grid.thresholds(128)
        for i in range(0, len(lows), max(1, len(lows) // 9)):
            word, rest = divmod(lows[i], 1 << 64)
            if 2 < rest < TOP - 2 and word != lows[i - 1] >> 64 and (i + 1 == len(lows) or word != lows[i + 1] >> 64):
                assert table.grid.locate(word, replay([rest - 2], seeded(0))) == i
                assert table.grid.locate(word, replay([rest + 2], seeded(0))) == i + 1
                checked += 1
    assert checked > 40


def test_a_tie_of_128_bits_is_settled_by_the_next_64() -> None:
    grid = gaussian_table(Fraction(10)).grid
    lows, _ = grid.thresholds(192)
    words = [lows[40] >> 128, lows[40] >> 64 & TOP, lows[40] & TOP]
    assert grid.locate(words[0], replay([words[1], words[2] - 2], seeded(0))) == 40
    assert grid.locate(words[0], replay([words[1], words[2] + 2], seeded(0))) == 41


@given(scale=st.fractions(Fraction(1, 10**6), 2**40))
def test_grids_of_any_scale_keep_what_the_proofs_assume(scale: Fraction) -> None:
    for law in (Law.laplace(scale), Law.gaussian(scale)):
        grid = Grid.of(law, scale)
        unit = grid.unit
        assert 0 <= grid.k <= 35  # so that the bits of a block lie outside the guide's
        assert grid.k == 0 or scale / 64 < 1 << grid.k <= scale / 32
        assert grid.blocks <= 1024
        assert unit.exponent(grid.blocks) >= 16 > unit.exponent(grid.blocks - 1)
        if grid.k:
            assert unit.exponent(grid.blocks) - unit.exponent(grid.blocks - 1) <= Fraction(1, 4)


def test_steps_and_slopes_are_those_of_the_law(exact: Exact) -> None:
    for table in tables():
        grid, unit = table.grid, table.grid.unit
        for A, (low, high) in enumerate(grid.steps(96)):
            true = mpmath.ldexp(mpmath.exp(-exact(unit.exponent(A + 1) - unit.exponent(A))), 96)
            assert low <= true <= high
            assert 0 <= mpmath.ldexp(1, 32) - mpmath.ldexp(true, -64) - int(table.drops[A]) < 2
        for A, slope in enumerate(grid.slopes(32)):
            assert 0 <= (unit.a + 2 * unit.b * A) * 2**32 - slope < 1


def test_tables_are_made_once() -> None:
    assert gaussian_table(Fraction(5)) is gaussian_table(Fraction(5))


def test_blocks_are_laid_without_gap_or_overlap() -> None:
    for table in tables():
        grid = table.grid
        starts = table.starts[: 2 * grid.blocks]
        assert (np.diff(starts) == 1 << grid.k).all()
        assert starts[grid.blocks] == 0
        assert (table.starts[2 * grid.blocks :] == starts).all()


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
