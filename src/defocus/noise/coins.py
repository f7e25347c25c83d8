"""Coins of exact bias: p rational, or exp(-x) for x rational."""

from fractions import Fraction
from functools import partial
from typing import overload

import numpy as np
import numpy.typing as npt

from defocus.errors import Number, non_negative, probability, whole
from defocus.noise.bits import Bits, source
from defocus.noise.enclosures import Enclosure, exp_bounds, ratio_bounds

__all__ = ["Coins", "bernoulli", "bernoulli_exp", "coin", "coin_exp", "coins"]

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
