"""Positive real numbers of any size between two integers times a power of two."""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from defocus.noise.enclosures import exp_bounds, ln2_bounds

__all__ = ["NOTHING", "Enclosed", "aligned", "exponential", "plus", "times"]


class Enclosed(NamedTuple):
    """A number of at least low * 2**exponent and at most high * 2**exponent."""

    low: int
    high: int
    exponent: int


NOTHING = Enclosed(0, 0, 0)
"""Zero."""


def exponential(x: Fraction, precision: int) -> Enclosed:
    r"""Enclose :math:`e^x`, as :math:`2^k e^{-r}` with r between 0 and 1, to about so many bits.

    >>> exponential(Fraction(10**12), 64).exponent > 10**12
    True
    """
    digits = precision + math.floor(abs(x)).bit_length() + 8
    low_ln2, high_ln2 = ln2_bounds(digits)
    k = math.ceil(x * (1 << digits) / (low_ln2 if x > 0 else high_ln2))  # so that k ln 2 is not below x
    least, most = sorted(Fraction(k * end, 1 << digits) - x for end in (low_ln2, high_ln2))
    low, _ = exp_bounds(most.numerator, most.denominator, precision)
    _, high = exp_bounds(least.numerator, least.denominator, precision)
    return Enclosed(low, high, k - precision)


def times(a: Enclosed, b: Enclosed, precision: int) -> Enclosed:
    """Enclose the product."""
    return _short(Enclosed(a.low * b.low, a.high * b.high, a.exponent + b.exponent), precision)


def plus(terms: Iterable[Enclosed], precision: int) -> Enclosed:
    """Enclose the sum."""
    some = [term for term in terms if term.high]
    if not some:
        return NOTHING
    # A term far below the largest is enclosed by zero and the last bit that counts.
    floor = max(term.exponent + term.high.bit_length() for term in some) - 2 * precision
    level = max(min(term.exponent for term in some), floor)
    pairs = [_shifted(term, level) for term in some]
    return _short(Enclosed(sum(low for low, _ in pairs), sum(high for _, high in pairs), level), precision)


def aligned(terms: Iterable[Enclosed]) -> list[tuple[int, int]]:
    """The same numbers, all over one power of two: bounds that can be added up and compared."""
    every = list(terms)
    some = [term for term in every if term.high]
    if not some:
        return [(0, 0) for _ in every]
    width = max(term.high.bit_length() for term in some)
    level = max(term.exponent + term.high.bit_length() for term in some) - 2 * width
    return [_shifted(term, level) if term.high else (0, 0) for term in every]


def _shifted(term: Enclosed, level: int) -> tuple[int, int]:
    """The bounds as multiples of 2**level, rounded outwards."""
    move = term.exponent - level
    if move >= 0:
        return term.low << move, term.high << move
    return term.low >> -move, -(-term.high >> -move)


def _short(term: Enclosed, precision: int) -> Enclosed:
    """The same with at most ``precision`` bits, rounded outwards."""
    extra = term.high.bit_length() - precision
    if extra <= 0:
        return term
    return Enclosed(term.low >> extra, -(-term.high >> extra), term.exponent + extra)
