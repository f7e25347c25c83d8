"""Random real numbers of which as many bits are known as it takes."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import TypeAlias, final

from defocus.noise.bits import Bits
from defocus.noise.enclosures import exp_bounds
from defocus.noise.ranges import coin
from defocus.noise.tables import geometric_one

__all__ = ["EnclosedWeights", "ExponentialReal", "enclosed_choice"]


_FIRST = 64


@final
class ExponentialReal:
    r"""One real number with density :math:`e^{-x}` on x > 0, drawn bit by bit.

    Guarantee:
        The law is exact. :math:`\lfloor 2^k x\rfloor` is geometric with ratio :math:`e^{-2^{-k}}`, which is how the
        first bits are drawn. Since :math:`e^{-x}` is the product of :math:`e^{-b_j 2^{-j}}` over the binary digits of
        x, the digits are independent, digit j being one with probability
        :math:`e^{-2^{-j}}/(1 + e^{-2^{-j}})`: that is how :meth:`refine` draws further ones.
    Reference:
        von Neumann (1951), Various techniques used in connection with random digits; Devroye (1986),
        Non-uniform random variate generation, Section IV.2.

    >>> from defocus.noise import system
    >>> x = ExponentialReal(system())
    >>> low, high = x.bounds()
    >>> high - low
    Fraction(1, 18446744073709551616)
    """

    __slots__ = ("_bits", "_length", "_prefix")

    def __init__(self, bits: Bits) -> None:
        self._bits = bits
        self._length = _FIRST
        self._prefix = geometric_one(Fraction(1, 1 << _FIRST), bits)

    def bounds(self) -> tuple[Fraction, Fraction]:
        """Two numbers between which it lies: those that the bits drawn so far allow."""
        return Fraction(self._prefix, 1 << self._length), Fraction(self._prefix + 1, 1 << self._length)

    def refine(self) -> None:
        """Draw one bit more, which halves the distance of the bounds."""
        self._length += 1
        self._prefix = self._prefix << 1 | coin(partial(_digit, self._length), self._bits)


def _digit(place: int, precision: int) -> tuple[int, int]:
    """Enclose 2**precision * e / (1 + e) with e = exp(-2**-place); it rises with e."""
    low, high = exp_bounds(1, 1 << place, precision)
    one = 1 << precision
    return (low << precision) // (one + low), -((-high << precision) // (one + high))


EnclosedWeights: TypeAlias = Callable[[int], Sequence[tuple[int, int]]]
"""Non-negative weights as n -> pairs (low, high) around a common factor times each weight, tighter for larger n."""

_FIRST_WEIGHT = 128


def enclosed_choice(weights: EnclosedWeights, bits: Bits) -> int:
    r"""Return i with probability :math:`w_i / \sum w`, exactly.

    Guarantee:
        A uniform real u of infinitely many bits falls into one of the intervals between the sums
        :math:`w_0 + … + w_{i-1}`, divided by the total. Bits are drawn and the weights enclosed more tightly until
        one interval holds all that u can still be, whatever the weights are within their bounds.
    Assumes:
        The bounds become as tight, relative to the total, as one likes; some weight is positive.

    >>> from defocus.noise import system
    >>> enclosed_choice(lambda n: [(0, 0), (1 << n, 1 << n)], system())
    1
    """
    precision, prefix, length = _FIRST_WEIGHT, bits.integer(_FIRST_WEIGHT), _FIRST_WEIGHT
    while True:
        pairs = weights(precision)
        lows = list(accumulate((low for low, _ in pairs), initial=0))
        highs = list(accumulate((high for _, high in pairs), initial=0))
        below, above = prefix * lows[-1], (prefix + 1) * highs[-1]
        at = _last(highs, below, length)
        if at < len(pairs) and above <= lows[at + 1] << length:
            return at
        prefix, length, precision = prefix << 64 | bits.integer(64), length + 64, precision + 64


def _last(sums: list[int], below: int, length: int) -> int:
    """The last position whose sum, times 2**length, does not exceed ``below``."""
    low, high = 0, len(sums)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sums[middle] << length <= below else (low, middle)
    return low
