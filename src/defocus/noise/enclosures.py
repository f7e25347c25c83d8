"""Integer enclosures of real numbers: the arithmetic that settles every tie."""

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

__all__ = ["Enclosure", "exp_bounds", "ln2_bounds", "ratio_bounds"]

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
