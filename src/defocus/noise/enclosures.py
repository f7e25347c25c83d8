"""Integer enclosures of real numbers: the arithmetic that settles every tie."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from typing import NamedTuple, TypeAlias

__all__ = [
    "NOTHING",
    "Enclosed",
    "Enclosure",
    "aligned",
    "exp_bounds",
    "exponential",
    "ln2_bounds",
    "plus",
    "ratio_bounds",
    "times",
]


Enclosure: TypeAlias = Callable[[int], tuple[int, int]]
"""A real number p given as n -> (low, high) with low <= 2**n * p <= high and high - low small."""


def exp_bounds(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
    r"""Return integers around :math:`2^{precision} e^{-x}` for the rational x = numerator / denominator >= 0.

    Guarantee:
        low <= 2**precision * exp(-x) <= high, and high - low <= 3 (0 when x = 0).

        With s such that :math:`r = x/2^s < 2^{-5}`, working precision P and
        :math:`R = \lfloor 2^P r\rfloor`, the k-th Taylor term :math:`\tau_k = 2^P r^k/k!` is computed as
        :math:`T_k = \lfloor\lfloor T_{k-1} R / 2^P\rfloor / k\rfloor`. The deficit
        :math:`d_k = \tau_k - T_k` obeys :math:`0 \le d_k \le d_{k-1} r/k + 3`, because replacing r by R costs
        at most one unit and the two floors one each; so :math:`d_k < 4`. Once :math:`T_n = 0`,
        :math:`\tau_n < 4` and the terms from n on sum to less than 5. Hence the alternating sum of n terms is
        within 4 n + 5 units of :math:`2^P e^{-r}`. The s squarings are rounded outwards.

    >>> exp_bounds(1, 1, 40)
    (404487723187, 404487723188)
    """
    if numerator == 0:
        return 1 << precision, 1 << precision
    whole = numerator // denominator
    if whole > precision:  # exp(-x) < 2**-precision
        return 0, 1
    halvings = whole.bit_length() + 5
    work = precision + 2 * halvings + 10 + precision.bit_length()
    small = (numerator << (work - halvings)) // denominator
    total, term, k = 0, 1 << work, 0
    while term:
        total += -term if k & 1 else term
        k += 1
        term = (term * small >> work) // k
    low, high = total - 4 * k - 5, total + 4 * k + 5
    for _ in range(halvings):
        low, high = low * low >> work, (high * high >> work) + 1
    extra = work - precision
    return low >> extra, min((high >> extra) + 1, 1 << precision)


def ratio_bounds(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
    """Return the floor and the ceiling of 2**precision * numerator / denominator.

    >>> ratio_bounds(1, 3, 4)
    (5, 6)
    """
    low, rest = divmod(numerator << precision, denominator)
    return low, low + (rest > 0)


@cache
def ln2_bounds(precision: int) -> tuple[int, int]:
    r"""Return integers around :math:`2^{precision}\ln 2 = 2^{precision}\sum_{k\ge1} 2^{-k}/k`.

    Guarantee:
        Each of the ``precision`` floored terms loses less than one unit, and so does the rest of the series.

    >>> ln2_bounds(10)
    (707, 718)
    """
    low = sum((1 << (precision - k)) // k for k in range(1, precision + 1))
    return low, low + precision + 1


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
