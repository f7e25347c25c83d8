"""Shares of Laplace noise: each has its law, and together they are the noise."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from defocus.errors import InvalidParameterError
from defocus.noise import shares
from defocus.noise.ranges import coin
from defocus.noise.shares import laplace_share
from defocus.noise.testing import replay, seeded

Fit = Callable[[object, object], float]
Pmfs = Callable[[float], object]


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize(("scale", "parties"), [(Fraction(1, 2), 3), (1, 2), (10, 5), (64, 1), (100.5, 7)])
def test_so_many_shares_add_up_to_laplace_noise_of_the_scale_and_no_other(
    fit: Fit, laplace_pmf: Pmfs, scale: float, parties: int
) -> None:
    bits = seeded(5)
    total = sum((laplace_share(scale, parties, 100_000, bits) for _ in range(parties)), np.zeros(100_000, np.int64))
    assert fit(total, laplace_pmf(float(scale))) > 1e-6
    assert fit(total, laplace_pmf(float(scale) * 1.1)) < 1e-6
    assert fit(total, laplace_pmf(float(scale) * 0.9)) < 1e-6


@pytest.mark.statistical
def test_one_share_has_the_law_of_a_difference_of_polya_numbers() -> None:
    scale, parties, size = 4, 3, 60_000
    one = shares._polya(Fraction(scale), parties, size, seeded(6))
    ratio = math.exp(-1 / scale)
    expected = stats.nbinom.pmf(np.arange(13), 1 / parties, 1 - ratio) * size
    seen = np.bincount(np.minimum(one, 12), minlength=13)
    expected[12] = size - expected[:12].sum()
    assert stats.chisquare(seen, expected).pvalue > 1e-6
    wrong = stats.nbinom.pmf(np.arange(13), 1 / parties, 1 - ratio**0.9) * size
    wrong[12] = size - wrong[:12].sum()
    assert stats.chisquare(seen, wrong).pvalue < 1e-6


@pytest.mark.statistical
def test_wide_shares_have_the_variance_of_their_part() -> None:
    scale, parties = 2**20, 4
    sample = laplace_share(scale, parties, 200_000, seeded(7)).astype(float)
    assert abs(sample.var() * parties / (2 * scale**2) - 1) < 0.06
    assert abs(sample.mean()) < 6 * math.sqrt(2 / parties) * scale / math.sqrt(len(sample))


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 7)])
def test_a_word_that_64_bits_leave_open_is_settled_by_further_ones(rate: Fraction) -> None:
    """At the edge between two numbers the next word decides, and so does the exact one-by-one way."""
    low, high = shares._bounds(rate, Fraction(1), 64)
    assert 0 <= high - low <= 3
    for word in (low, high - 1):
        for following in (0, (1 << 64) - 1):
            drawn = shares._poisson(rate, 1, replay([word, following], seeded(1)))[0]
            real = Fraction((word << 64) + following, 1 << 128)
            below, above = (Fraction(end, 1 << 160) for end in shares._bounds(rate, Fraction(1), 160))
            assert real + Fraction(1, 1 << 128) <= below or real >= above
            assert drawn == (0 if real < below else 1)


def test_the_largest_words_find_their_number_however_rare() -> None:
    drawn = shares._poisson(Fraction(1, 2), 3, replay([0, (1 << 64) - 1, (1 << 64) - 1], seeded(2)))
    assert drawn[0] == 0
    assert 10 < drawn[2] < 40


def test_coins_that_floats_leave_open_are_settled_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    jumps, power, scale = np.array([5, 5]), np.array([2, 2]), Fraction(10)
    chance = 4 / 5 * math.exp(-0.5)
    near = int(chance * 2**64)
    settled: list[int] = []

    def watched(p: object, bits: object, *, prefix: int, length: int) -> bool:
        settled.append(prefix)
        return coin(p, bits, prefix=prefix, length=length)  # type: ignore[arg-type]

    monkeypatch.setattr(shares, "coin", watched)
    kept = shares._kept(jumps, power, scale, replay([near - (1 << 14), near + (1 << 14)], seeded(3)))
    assert settled == [near - (1 << 14), near + (1 << 14)]
    assert kept.tolist() == [True, False]


@pytest.mark.parametrize(
    ("scale", "parties"), [(0, 2), (-1, 2), (math.nan, 2), (2**41, 2), (1, 0), (1, 1.5), (1, True)]
)
def test_what_is_no_scale_or_number_of_parties_is_refused(scale: float, parties: int) -> None:
    with pytest.raises(InvalidParameterError, match="To fix"):
        laplace_share(scale, parties, 3)


def test_no_numbers_are_drawn_for_no_entries() -> None:
    assert laplace_share(3, 4, 0).tolist() == []
