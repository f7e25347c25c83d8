from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import NoiseOverflowError
from defocus.noise import tables
from defocus.noise.tables import (
    GUIDE_BITS,
    UNSURE,
    Grid,
    Law,
    Table,
    draw,
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


def every_table() -> list[Table]:
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
    for table in every_table():
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
    for table in every_table():
        lows, highs = table.grid.thresholds(64)
        assert table.lows.tolist() == lows
        assert all(last >= high - 1 for last, high in zip(table.lasts.tolist(), highs, strict=True))
        assert all(last <= high for last, high in zip(table.lasts.tolist(), highs, strict=True))


def test_the_guide_never_says_more_than_its_bits_prove() -> None:
    span = 1 << (64 - GUIDE_BITS)
    for table in every_table():
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
    for table in every_table():
        assert (table.guide == UNSURE).mean() < 0.05


def test_a_tie_falls_to_the_side_that_further_bits_show() -> None:
    checked = 0
    for table in every_table():
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
    for table in every_table():
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
    for table in every_table():
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


@pytest.mark.slow
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


WIDE = [make(scale) for make in (laplace_table, gaussian_table) for scale in map(Fraction, (64, 1000, 10**9, 2**40))]


def wedge_points(table: Table, count: int) -> tuple[Any, Any]:
    """Blocks from the innermost to the outermost, and points from the inner end to the outer one."""
    index = np.linspace(0, table.grid.blocks - 1, count).astype(np.int64)
    width = 1 << table.grid.k
    distance = np.array([int(mpmath.frac(i * mpmath.phi) * (width + 1)) for i in range(count)], np.int64)
    distance[:3], distance[-3:] = [0, width, width // 2], [width, 0, 1]
    return index, distance


def true_share(table: Table, index: int, distance: int, exact: Exact) -> Any:
    """(f(x) - F_{A+1}) / (F_A - F_{A+1}) at sixty digits, from f alone."""
    law, width = table.grid.law, 1 << table.grid.k
    ends = [mpmath.exp(-exact(law.exponent((index + i) * width) - law.exponent(index * width))) for i in (0, 1)]
    here = mpmath.exp(-exact(law.exponent(index * width + distance) - law.exponent(index * width)))
    return (here - ends[1]) / (ends[0] - ends[1])


@pytest.mark.parametrize("table", WIDE)
def test_the_fixed_point_room_is_within_its_proven_bound(table: Table, exact: Exact) -> None:
    index, distance = wedge_points(table, 150)
    heights = seeded(1).words(150)
    room = tables._room(table, index, distance, heights)
    law, width = table.grid.law, 1 << table.grid.k
    for i in range(150):
        start = law.exponent(int(index[i]) * width)
        here = mpmath.exp(-exact(law.exponent(int(index[i]) * width + int(distance[i])) - start))
        end = mpmath.exp(-exact(law.exponent((int(index[i]) + 1) * width) - start))
        truth = mpmath.ldexp(here - end - mpmath.ldexp(int(heights[i]), -64) * (1 - end), 32)
        assert abs(int(room[i]) - truth) < 14
    assert tables._MARGIN > 14


@pytest.mark.parametrize("table", WIDE)
def test_a_wedge_is_accepted_exactly_under_the_curve(table: Table, exact: Exact) -> None:
    """The law, read off: heights are kept up to the true share to 64 bits, however close to it."""
    index, distance = wedge_points(table, 40)
    inner = (distance > 0) & (distance < 1 << table.grid.k)
    for A, d in zip(index[inner].tolist(), distance[inner].tolist(), strict=True):
        at = int(mpmath.floor(mpmath.ldexp(true_share(table, A, d, exact), 64)))
        for delta in (1, 2, 1 << 20, 1 << 33, 1 << 36, 1 << 40, 1 << 50):
            for height, expected in ((at - delta, True), (at + delta, False)):
                if 0 <= height <= TOP:
                    for block, offset in ((A, d), (~A, (1 << table.grid.k) - d)):
                        bits = replay([height], seeded(0))
                        under = tables._under(table, np.array([block]), np.array([offset]), bits)
                        assert bool(under[0]) is expected


@pytest.mark.parametrize("table", WIDE)
def test_a_tie_in_a_wedge_is_settled_by_further_bits(table: Table, exact: Exact) -> None:
    block, distance = table.grid.blocks // 2, (1 << table.grid.k) - 1
    if distance > 1:
        distance //= 2
    at = int(mpmath.floor(mpmath.ldexp(true_share(table, block, distance, exact), 128)))
    word, rest = at >> 64, at & TOP
    for further, expected in ((rest - 1, True), (rest + 1, False)):
        bits = replay([word, further], seeded(0))
        assert bool(tables._under(table, np.array([block]), np.array([distance]), bits)[0]) is expected


def test_shares_at_the_ends_of_a_block_are_one_and_zero() -> None:
    unit = gaussian_table(Fraction(1000)).grid.unit
    low, high = tables._share(unit, 7, Fraction(0), 96)
    assert low >= (1 << 96) - 2
    assert high == 1 << 96
    low, high = tables._share(unit, 7, Fraction(1), 96)
    assert low == 0
    assert high <= 2


@pytest.mark.parametrize("make", [laplace_table, gaussian_table])
@pytest.mark.parametrize("scale", [3, 1000, 2**40])
def test_a_sure_word_gives_its_block_and_its_lowest_bits(make: Callable[[Fraction], Table], scale: int) -> None:
    table = make(Fraction(scale))
    words = [w for w in seeded(2).words(300).tolist() if table.guide[w >> (64 - GUIDE_BITS)] != UNSURE]
    expected = [int(table.guide[w >> (64 - GUIDE_BITS)]) + w % (1 << table.grid.k) for w in words]
    assert draw(table, len(words), replay(words, seeded(0))).tolist() == expected


def test_an_unsure_word_that_ties_is_settled_by_further_bits() -> None:
    table = gaussian_table(Fraction(3))
    lows, _ = table.grid.thresholds(128)
    cell = table.grid.blocks + 2
    word, rest = divmod(lows[cell], 1 << 64)
    assert draw(table, 1, replay([word, rest - 2], seeded(0))).tolist() == [2]
    assert draw(table, 1, replay([word, rest + 2], seeded(0))).tolist() == [3]


@pytest.mark.parametrize("table", [*WIDE, laplace_table(Fraction(2)), gaussian_table(Fraction(2))])
def test_the_last_words_lead_to_the_tails(table: Table) -> None:
    reach = table.grid.blocks << table.grid.k
    negative = int(table.lasts[-2]) + 1
    for word, sign in ((negative, -1), (TOP, 1)):
        seen = 0
        for seed in range(40):
            values, kept = tables._attempt(table, np.array([word], np.uint64), seeded(seed))
            if kept[0]:
                assert sign * int(values[0]) >= reach
                seen += 1
        assert seen


@pytest.mark.parametrize("table", [*WIDE, laplace_table(Fraction(2)), gaussian_table(Fraction(2))])
@pytest.mark.parametrize("negative", [False, True])
def test_a_tail_is_kept_with_exactly_the_weight_of_its_integer(
    table: Table, negative: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The law, read off: proposal times coins is f(x), up to the area of the tail."""
    grid, width = table.grid, 1 << table.grid.k
    law, seen = grid.law, list[Fraction]()

    def coin_exp(numerator: int, denominator: int, _bits: object) -> bool:
        seen.append(Fraction(numerator, denominator))
        return True

    def geometric(rate: Fraction, _bits: object, m: int) -> int:
        seen.append(rate * m)
        return m

    monkeypatch.setattr(tables, "coin_exp", coin_exp)
    for m in (0, 1, 2, 57):
        for seed in range(5):
            seen.clear()
            monkeypatch.setattr(tables, "geometric_one", partial(geometric, m=m))
            x = tables._tail(table, seeded(seed), negative=negative)
            assert x is not None
            assert (x < 0) is negative
            assert grid.blocks + m == (-x - 1 if negative else x) // width
            assert sum(seen) == law.exponent(abs(x)) - law.exponent(grid.blocks * width)


def test_a_word_whose_proposal_is_refused_starts_again() -> None:
    table = laplace_table(Fraction(1000))
    wedge = int(table.lows[2 * table.grid.blocks + 5]) - 10
    refused = replay([wedge, 0, TOP, 1 << 63], seeded(0))  # offset 0, the greatest height, then a fresh word
    (value,) = draw(table, 1, refused).tolist()
    assert value == table.guide[1 << (GUIDE_BITS - 1)] + value % (1 << table.grid.k)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("k", "blocks"),
    [
        (0, 20),
        (1, 12),
        (1, 30),
        (2, 9),
        pytest.param(0, 1, marks=pytest.mark.long),
        pytest.param(1, 1, marks=pytest.mark.long),
        pytest.param(2, 1, marks=pytest.mark.long),
    ],
)
def test_the_law_is_the_same_however_the_integers_are_cut(
    fit: Fit, laplace_pmf: Pmfs, gaussian_pmf: Pmfs, k: int, blocks: int
) -> None:
    """With few blocks the tails are common; with many, the wedges."""
    laws = ((Law.laplace(Fraction(33)), laplace_pmf, 12_000), (Law.gaussian(Fraction(33)), gaussian_pmf, 6000))
    for law, pmf, size in laws:
        sample = draw(Table.of(Grid(law, k, blocks)), size, seeded(10 * k + blocks))
        assert fit(sample, pmf(33.0)) > 1e-6
        assert fit(sample, pmf(33.0 * 1.1)) < 1e-6
        assert fit(sample, pmf(33.0 * 0.9)) < 1e-6


def test_a_tail_beyond_64_bits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_tail", lambda *_, **__: 1 << 63)
    with pytest.raises(NoiseOverflowError):
        tables._attempt(gaussian_table(Fraction(2)), np.array([TOP], np.uint64), seeded(0))


def test_pieces_join_seamlessly() -> None:
    size = tables._CHUNK + 5
    sample = draw(gaussian_table(Fraction(50)), size, seeded(0))
    assert sample.shape == (size,)
    assert np.abs(sample).max() < 50 * 9
    assert abs(sample[-5:]).max() > 0
