"""The integers in which noise is returned, and the scales it may have."""

from fractions import Fraction
from typing import overload

import numpy as np
import numpy.typing as npt

from defocus.errors import InvalidParameterError, NoiseOverflowError, positive, whole
from defocus.noise.bits import Bits, source

__all__ = ["LARGEST_SCALE", "Integers", "fitting", "permutation", "rational_scale", "uniform", "uniform_below"]


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
