"""Uniform integers, coins, and the range of integers in which noise is returned.

The integers in which noise is returned, and the scales it may have.
"""

from fractions import Fraction
from functools import partial
from typing import overload

import numpy as np
import numpy.typing as npt

from defocus.errors import InvalidParameterError, NoiseOverflowError, Number, non_negative, positive, probability, whole
from defocus.noise.bits import Bits, source
from defocus.noise.enclosures import Enclosure, exp_bounds, ratio_bounds

__all__ = [
    "LARGEST_SCALE",
    "Coins",
    "Integers",
    "bernoulli",
    "bernoulli_exp",
    "coin",
    "coin_exp",
    "coins",
    "fitting",
    "permutation",
    "rational_scale",
    "uniform",
    "uniform_below",
]


Integers = npt.NDArray[np.int64]

LARGEST_SCALE = 1 << 40
"""Above this scale a 64-bit integer might no longer hold noise added to a large value."""


def rational_scale(name: str, value: object) -> Fraction:
    """Return the exact rational ``value`` stands for, if it is positive and at most 2**40.

    >>> rational_scale("sigma", 0.1)
    Fraction(3602879701896397, 36028797018963968)
    """
    scale = Fraction(positive(name, value))
    if scale > LARGEST_SCALE:
        raise InvalidParameterError(
            f"{name} must be at most 2**40 on the integer grid, but it is about 2**{_log2(scale)}.",
            fix="release on a coarser grid, so that the noise is a smaller multiple of it.",
        )
    return scale


def fitting(value: int) -> int:
    """Return ``value`` if a 64-bit integer holds it; never wrapped around, never clamped."""
    if not -(1 << 63) <= value < 1 << 63:
        raise NoiseOverflowError(value.bit_length())
    return value


def _log2(scale: Fraction) -> int:
    return int(scale).bit_length() - 1


@overload
def uniform(below: int, size: None = None, bits: Bits | None = None) -> int: ...
@overload
def uniform(below: int, size: int, bits: Bits | None = None) -> Integers: ...
def uniform(below: int, size: int | None = None, bits: Bits | None = None) -> int | Integers:
    """Return ``size`` independent integers, each uniform on range(``below``); one int without a size.

    Guarantee:
        Exactly uniform, by rejection. A single integer may be of any size; arrays hold 64-bit integers and
        refuse ``below`` above 2**63.

    >>> 0 <= uniform(10**40) < 10**40
    True
    >>> uniform(1, 3)
    array([0, 0, 0])
    """
    limit = whole("below", below, at_least=1)
    if size is None:
        return uniform_below(limit, source(bits))
    if limit > 1 << 63:
        raise InvalidParameterError(
            f"An array of uniform integers needs below <= 2**63, but it has {limit.bit_length()} bits.",
            fix="draw one integer at a time by leaving size out.",
        )
    return _many(limit, whole("size", size), source(bits))


def uniform_below(limit: int, bits: Bits) -> int:
    """One integer uniform on range(limit), limit >= 1 of any size."""
    nbits = (limit - 1).bit_length()
    if nbits == 0:
        return 0
    while True:
        value = bits.integer(nbits)
        if value < limit:
            return value


def _many(limit: int, size: int, bits: Bits) -> Integers:
    """Remainders of words, of which the incomplete last run of ``limit`` values is drawn again."""
    words = bits.words(size)
    last = (1 << 64) - (1 << 64) % limit - 1
    again = np.flatnonzero(words > np.uint64(last))
    while again.size:
        words[again] = bits.words(again.size)
        again = again[words[again] > np.uint64(last)]
    words -= (words // np.uint64(limit)) * np.uint64(limit)
    return words.view(np.int64)


def permutation(n: int, bits: Bits | None = None) -> Integers:
    """Return a uniformly random order of range(n); ``x[permutation(len(x))]`` shuffles ``x``.

    Guarantee:
        Each of the n! orders has probability exactly 1/n!. Items are sorted by independent random keys of
        infinitely many bits, of which 64 are drawn; items that agree in those (for a million items, about
        once in 2**25 calls) are ordered among themselves in the same way by further bits.

    >>> sorted(permutation(5).tolist())
    [0, 1, 2, 3, 4]
    """
    return _order(whole("n", n), source(bits))


def _order(n: int, bits: Bits) -> Integers:
    if n < 2:
        return np.arange(n, dtype=np.int64)
    keys = bits.words(n)
    order = np.argsort(keys).astype(np.int64, copy=False)
    keys = keys[order]
    equal = np.flatnonzero(keys[1:] == keys[:-1])
    if equal.size:
        # Runs of equal keys; argsort left each in an order of its own choosing, which a fresh uniform one replaces.
        breaks = np.flatnonzero(np.diff(equal) > 1)
        starts = equal[np.concatenate([[0], breaks + 1])]
        ends = equal[np.concatenate([breaks, [equal.size - 1]])] + 2
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            order[start:end] = order[start:end][_order(end - start, bits)]
    return order


Coins = npt.NDArray[np.bool_]
"""An array of outcomes."""

_GUARD = 32


def coin(p: Enclosure, bits: Bits, *, prefix: int = 0, length: int = 0) -> bool:
    """Whether a uniform real in [0, 1), whose first ``length`` bits are ``prefix``, lies below the real number p.

    Guarantee:
        The answer is that of infinitely many bits: more are drawn, and p is enclosed more tightly, until both
        ends of what is known agree. With probability 1 - 2**-62 the first 64 bits suffice.
    """
    while True:
        if length:
            low, high = p(length + _GUARD)
            if (prefix + 1) << _GUARD <= low:
                return True
            if prefix << _GUARD >= high:
                return False
        prefix, length = prefix << 64 | bits.integer(64), length + 64


def coin_exp(numerator: int, denominator: int, bits: Bits) -> bool:
    """One coin of bias exp(-numerator / denominator), the quotient not negative."""
    return numerator == 0 or coin(partial(exp_bounds, numerator, denominator), bits)


def coins(p: Enclosure, size: int, bits: Bits) -> Coins:
    """Return ``size`` coins of bias p; only the words that 64 bits of p cannot decide are settled one by one."""
    low, high = p(64)
    if low == 1 << 64:
        return np.ones(size, np.bool_)
    words = bits.words(size)
    heads: Coins = words < np.uint64(low)
    if high > low:
        for i in np.flatnonzero((words >= np.uint64(low)) & (words <= np.uint64(high - 1))):
            heads[i] = coin(p, bits, prefix=int(words[i]), length=64)
    return heads


@overload
def bernoulli(p: Number, size: None = None, bits: Bits | None = None) -> bool: ...
@overload
def bernoulli(p: Number, size: int, bits: Bits | None = None) -> Coins: ...
def bernoulli(p: Number, size: int | None = None, bits: Bits | None = None) -> bool | Coins:
    """Return ``size`` independent coins that are True with probability exactly ``p``, or one coin without a size.

    Guarantee:
        Exact for every rational ``p`` in [0, 1]; a float means the dyadic rational it stores.

    >>> bernoulli(Fraction(1, 3), 4).dtype
    dtype('bool')
    >>> bernoulli(1)
    True
    """
    q = Fraction(probability("p", p))
    return _toss(partial(ratio_bounds, q.numerator, q.denominator), size, source(bits))


@overload
def bernoulli_exp(x: Number, size: None = None, bits: Bits | None = None) -> bool: ...
@overload
def bernoulli_exp(x: Number, size: int, bits: Bits | None = None) -> Coins: ...
def bernoulli_exp(x: Number, size: int | None = None, bits: Bits | None = None) -> bool | Coins:
    """Return ``size`` independent coins that are True with probability exactly exp(-x), or one without a size.

    Guarantee:
        Exact for every rational ``x`` >= 0: the uniform real is compared with integer enclosures of exp(-x),
        as many bits of both as it takes.
    Reference:
        Same law as Canonne, Kamath, Steinke (2020), The discrete Gaussian for differential privacy,
        Algorithm 1.

    >>> bernoulli_exp(0)
    True
    >>> bernoulli_exp(10**30)
    False
    """
    q = Fraction(non_negative("x", x))
    return _toss(partial(exp_bounds, q.numerator, q.denominator), size, source(bits))


def _toss(p: Enclosure, size: int | None, bits: Bits) -> bool | Coins:
    return coin(p, bits) if size is None else coins(p, whole("size", size), bits)
