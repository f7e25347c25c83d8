r"""Shares of discrete Laplace noise: numbers that several parties draw apart, and that are such noise when added up.

The geometric law with ratio :math:`q = e^{-1/b}` has the generating function

.. math:: \frac{1-q}{1-qz} = \exp \sum_{k \ge 1} \frac{q^k}{k} (z^k - 1),

so it is a sum of jumps: of each size k a Poisson number with mean :math:`q^k/k`. One party of n draws jumps with means
:math:`q^k/(nk)`; the jumps of all n together are geometric, and the difference of two such numbers is discrete Laplace.

Jumps are drawn by thinning. Of sizes from :math:`2^j` to :math:`2^{j+1} - 1`, a Poisson number with mean 1/n is
proposed, each size alike, and size k is kept with probability :math:`2^j q^k / k`. With :math:`L = 2^J \ge b`, larger
sizes are proposed by a Poisson number with mean 1/n, too: in the block from :math:`(m+1)L` on with probability
:math:`2^{-m-1}`, kept with probability :math:`2^{m+1} (L/k) q^k \le (2/e)^{m+1}`.

Reference: Dwork, Kenthapadi, McSherry, Mironov, Naor (2006), Our data, ourselves, for noise that nobody knows;
Goryczka, Xiong (2017), A comprehensive comparison of multiparty secure additions with differential privacy, for Pólya
shares.
"""

import math
from fractions import Fraction
from functools import partial

import numpy as np

from defocus.errors import Number, count, whole
from defocus.noise.bits import Bits, Words, source
from defocus.noise.enclosures import exp_bounds
from defocus.noise.ranges import Coins, Integers, coin, rational_scale

__all__ = ["laplace_share"]

_GUARD = 32
_CLOSE = 2.0**-40
"""Floats are trusted that far, relative to their value: their error is below a 64th of it."""
_AT_ONCE = 1 << 20
"""Poisson numbers that are drawn at once."""


def laplace_share(scale: Number, parties: int, size: int, bits: Bits | None = None) -> Integers:
    r"""Return ``size`` integers such that the sums of those of so many ``parties`` are discrete Laplace noise.

    Guarantee:
        The law is exact: the difference of two independent Pólya numbers with shape 1/parties and ratio
        :math:`e^{-1/scale}`. Sums over exactly that many independent shares have
        :math:`P(x) \propto e^{-|x|/scale}`; further shares only add independent noise.

    >>> laplace_share(10, 1, 5).dtype
    dtype('int64')
    """
    exact, n, generator = rational_scale("scale", scale), whole("size", size), source(bits)
    shares = count("parties", parties)
    return _polya(exact, shares, n, generator) - _polya(exact, shares, n, generator)


def _polya(scale: Fraction, parties: int, size: int, bits: Bits) -> Integers:
    """The sums of all jumps of one party, for each entry."""
    levels = max(0, (math.ceil(scale) - 1).bit_length())  # 2**levels is at least the scale
    total = np.zeros(size, np.int64)
    at_once = max(1, _AT_ONCE // (levels + 1))
    for start in range(0, size, at_once):
        entries = min(at_once, size - start)
        numbers = _poisson(Fraction(1, parties), entries * (levels + 1), bits)
        entry, level = np.divmod(np.repeat(np.arange(len(numbers)), numbers), levels + 1)
        if len(entry):
            power = level.copy()
            rest = bits.words(len(entry)) & ((np.uint64(1) << level.astype(np.uint64)) - np.uint64(1))
            jumps = (np.int64(1) << level) + rest.view(np.int64)
            large = np.flatnonzero(level == levels)
            blocks = _halvings(len(large), bits)
            jumps[large] += blocks << levels
            power[large] += blocks + 1
            kept = _kept(jumps, power, scale, bits)
            np.add.at(total, start + entry[kept], jumps[kept])
    return total


def _poisson(rate: Fraction, size: int, bits: Bits) -> Integers:
    """Poisson numbers with a rational mean of at most one: how many sums of probabilities a uniform real exceeds."""
    sums: list[Fraction] = []
    low, high = [0], [0]
    while not sums or (low[-1] < (1 << 64) - 8 and len(sums) < 40):  # the rest is settled one by one
        sums.append(_sum_of_weights(rate, len(sums)))
        below, above = _bounds(rate, sums[-1], 64)
        low.append(below)
        high.append(above)
    words = bits.words(size)
    edges = np.array(low[1:], np.uint64)
    numbers = np.searchsorted(edges, words, side="right")  # how many lower ends lie at or below a word
    ends = np.array([max(1, end) - 1 for end in high], np.uint64)[numbers]
    unclear = np.flatnonzero((numbers == len(edges)) | ((numbers > 0) & (words <= ends)))
    found = numbers.astype(np.int64)
    for i in unclear:
        found[i] = _poisson_one(rate, int(words[i]), bits)
    return found


def _sum_of_weights(rate: Fraction, m: int) -> Fraction:
    """The sum of rate**i / i! for i up to m."""
    total = term = Fraction(1)
    for i in range(1, m + 1):
        term = term * rate / i
        total += term
    return total


def _bounds(rate: Fraction, weight: Fraction, precision: int) -> tuple[int, int]:
    """Integers around 2**precision * weight * exp(-rate), and at most 2**precision."""
    finer = _GUARD + int(weight).bit_length()  # so that a large weight does not widen them
    low, high = exp_bounds(rate.numerator, rate.denominator, precision + finer)
    scale = weight.denominator << finer
    return low * weight.numerator // scale, min(-(-high * weight.numerator // scale), 1 << precision)


def _poisson_one(rate: Fraction, prefix: int, bits: Bits) -> int:
    """The Poisson number of a uniform real that begins with 64 given bits."""
    length, m = 64, 0
    while True:
        low, high = _bounds(rate, _sum_of_weights(rate, m), length + _GUARD)
        if (prefix + 1) << _GUARD <= low:
            return m
        if prefix << _GUARD >= high:
            m += 1
        else:
            prefix, length = prefix << 64 | bits.integer(64), length + 64


def _halvings(size: int, bits: Bits) -> Integers:
    """Numbers m with probability 2**-(m+1)."""
    found, left = np.zeros(size, np.int64), np.arange(size)
    while left.size:
        heads = bits.words(left.size) >> np.uint64(63) == 0
        left = left[~heads]
        found[left] += 1
    return found


def _kept(jumps: Integers, power: Integers, scale: Fraction, bits: Bits) -> Coins:
    """Coins with bias 2**power / jump * exp(-jump / scale); those that floats leave open are settled exactly."""
    words: Words = bits.words(len(jumps))
    chance = np.exp2(power.astype(np.float64)) / jumps * np.exp(-jumps / float(scale))
    place = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    slack = chance * _CLOSE + 2.0**-50
    kept: Coins = place < chance - slack
    for i in np.flatnonzero(np.abs(place - chance) <= slack):
        rate, weight = int(jumps[i]) / scale, Fraction(1 << int(power[i]), int(jumps[i]))
        kept[i] = coin(partial(_bounds, rate, weight), bits, prefix=int(words[i]), length=64)
    return kept
