"""The one family of laws behind Laplace and Gaussian noise, and how to draw from it one integer at a time."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from defocus.noise.bits import Bits
from defocus.noise.ranges import coin_exp, uniform_below

__all__ = ["Law", "gaussian_one", "geometric_one", "laplace_one"]


@final
@dataclass(frozen=True, slots=True)
class Law:
    r"""The law on the integers with :math:`P(x) \propto e^{-(a|x| + b x^2)}`, a and b rational, not both zero."""

    a: Fraction
    b: Fraction

    @classmethod
    def laplace(cls, scale: Fraction) -> "Law":
        """The discrete Laplace law: a = 1 / scale."""
        return cls(1 / scale, Fraction(0))

    @classmethod
    def gaussian(cls, sigma: Fraction) -> "Law":
        """The discrete Gaussian law: b = 1 / (2 sigma^2)."""
        return cls(Fraction(0), 1 / (2 * sigma * sigma))

    def exponent(self, size: int) -> Fraction:
        """The a abs(x) + b x^2 at abs(x) = ``size``."""
        return size * (self.a + self.b * size)

    def widened(self, width: int) -> "Law":
        """The same exponent as a function of abs(x) / width."""
        return Law(self.a * width, self.b * width * width)


def geometric_one(rate: Fraction, bits: Bits) -> int:
    r"""One m >= 0 with :math:`P(m) = (1-e^{-rate}) e^{-rate \cdot m}`, rate > 0.

    Guarantee:
        With rate = p/q: u uniform on range(q), kept with probability :math:`e^{-u/q}`, plus q times a number of
        successes at bias 1/e, is geometric with ratio :math:`e^{-1/q}`; its quotient by p is the answer.
    Reference:
        Canonne, Kamath, Steinke (2020), Algorithm 2.
    """
    p, q = rate.numerator, rate.denominator
    while True:
        u = uniform_below(q, bits)
        if coin_exp(u, q, bits):
            break
    v = 0
    while coin_exp(1, 1, bits):
        v += 1
    return (u + q * v) // p


def laplace_one(scale: Fraction, bits: Bits) -> int:
    """One discrete Laplace integer, of any size. Reference: Canonne, Kamath, Steinke (2020), Algorithm 2."""
    while True:
        size = geometric_one(1 / scale, bits)
        negative = bits.integer(1)
        if not negative:
            return size
        if size:
            return -size


def gaussian_one(sigma: Fraction, bits: Bits) -> int:
    """One discrete Gaussian integer, of any size. Reference: Canonne, Kamath, Steinke (2020), Algorithm 3."""
    p, q = (sigma * sigma).as_integer_ratio()
    t = int(sigma) + 1
    denominator = 2 * p * q * t * t
    while True:
        y = laplace_one(Fraction(t), bits)
        if coin_exp((abs(y) * t * q - p) ** 2, denominator, bits):
            return y
