"""Random real numbers of which as many bits are known as it takes."""

from fractions import Fraction
from functools import partial
from typing import final

from defocus.noise.bits import Bits
from defocus.noise.coins import coin
from defocus.noise.enclosures import exp_bounds
from defocus.noise.laws import geometric_one

__all__ = ["ExponentialReal"]

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
