"""Unary encodings: one noisy bit for every category."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, final

from defocus.errors import InvalidParameterError, Number
from defocus.local.designs.design import Frequency, Overlap
from defocus.local.domains import Categories
from defocus.local.layouts import BitRows
from defocus.local.levels import growth

__all__ = ["GRAIN", "BitFlipping", "Unary", "UnaryLaw", "symmetric_law", "unary_law"]

_EXTRA = 0.001
"""A variance within a thousandth of the best is good enough: each digit more costs a random bit for every bit."""
_DEEPEST = 24
"""Binary digits at most, for epsilon up to 16."""
GRAIN = 1 << 63
"""One chance is drawn for each report, so it can be as fine as a word."""


@final
@dataclass(frozen=True, slots=True)
class UnaryLaw:
    """A one in place of a zero has probability ``noise`` / 2**``depth``; a one stays with ``truth`` / 2**63."""

    noise: int
    depth: int
    truth: int

    @property
    def p(self) -> Fraction:
        """The probability that one's own bit is reported as a one."""
        return Fraction(self.truth, GRAIN)

    @property
    def q(self) -> Fraction:
        """The probability that another bit is."""
        return Fraction(self.noise, 1 << self.depth)

    @property
    def ratio(self) -> Fraction:
        """How much more likely one vector of bits is under one category than under another, at most."""
        return self.p * (1 - self.q) / ((1 - self.p) * self.q)


@lru_cache(maxsize=256)
def unary_law(epsilon: Number, target: float, best: float) -> UnaryLaw:
    r"""The coarsest q near ``target`` whose variance :math:`q(1-q)/(p-q)^2` is within 0.1 % of ``best``.

    Guarantee:
        p is the largest multiple of :math:`2^{-63}` with :math:`p/(1-p) \le e^\varepsilon\,q/(1-q)`, so the ratio is
        at most :math:`e^\varepsilon` and, since p has 63 bits, as good as equal to it. All the coarseness goes
        into where between the two bits the noise is, and there the variance has its minimum: a few random bits for
        every category are enough.
    """
    below, _ = growth(epsilon)
    nearest: tuple[float, UnaryLaw] | None = None
    for depth in range(1, _DEEPEST + 1):
        around = int(target * (1 << depth))
        for noise in (around, around + 1):
            if not 0 < noise < 1 << depth:
                continue
            odds = below * noise / ((1 << depth) - noise)
            law = UnaryLaw(noise, depth, int(GRAIN * (odds / (1 + odds))))
            if law.truth >= GRAIN or law.p <= law.q:
                continue
            away = abs(float(law.q * (1 - law.q) / (law.p - law.q) ** 2) / best - 1)
            if nearest is None or away < nearest[0]:
                nearest = away, law
        if nearest is not None and nearest[0] <= _EXTRA:
            break
    if nearest is None:
        raise InvalidParameterError(
            f"No unary encoding has epsilon = {float(epsilon):g} within {_DEEPEST} bits.", fix="choose epsilon <= 16."
        )
    return nearest[1]


def symmetric_law(epsilon: Number) -> UnaryLaw:
    """The law with p = 1 - q: both bits are flipped alike."""
    root = math.exp(float(epsilon) / 2)
    return unary_law(epsilon, 1 / (root + 1), root / (root - 1) ** 2)


class BitFlipping(Frequency):
    """A design whose reports hold bits of a unary encoding, each flipped on its own."""

    __slots__ = ()

    @property
    @abstractmethod
    def bits(self) -> UnaryLaw:
        """The law of the bits."""

    @property
    def law(self) -> dict[str, int]:
        """The integers behind p and q."""
        return {"noise": self.bits.noise, "depth": self.bits.depth, "truth": self.bits.truth}

    @property
    def ratio(self) -> Fraction:
        """p(1 − q) over (1 − p)q."""
        return self.bits.ratio

    @property
    def p(self) -> Fraction:
        """The probability of a one in the category's own place."""
        return self.bits.p

    @property
    def q(self) -> Fraction:
        """The probability of a one in any other place."""
        return self.bits.q


@final
@dataclass(frozen=True, slots=True)
class Unary(BitFlipping):
    r"""Write the category as a one among zeros, and flip every bit at random, independently.

    Guarantee:
        :math:`\varepsilon`-LDP: vectors of two categories differ in two bits, so the ratio of probabilities is at most
        :math:`p(1-q)/((1-p)q)`, a rational number that is at most :math:`e^\varepsilon`.

    Error:
        Optimised (p = ½): variance :math:`4ne^\varepsilon/(e^\varepsilon-1)^2` per category, whatever
        their number. Symmetric (p = 1 − q): :math:`ne^{\varepsilon/2}/(e^{\varepsilon/2}-1)^2`. Ours is within
        0.1 % of these.
    Reference:
        Wang, Blocki, Li, Jha (2017), Locally differentially private protocols for frequency estimation; Erlingsson,
        Pihur, Korolova (2014), RAPPOR, for the symmetric one.

    >>> round(Unary(Categories.of(1000), 1).variance(1), 2)
    3.69
    """

    domain: Categories
    epsilon: Number
    symmetric: bool = False
    overlap: ClassVar[Overlap] = "alike"  # the reports with the category's bit

    def _complete(self) -> None:
        if not isinstance(self.symmetric, bool):
            raise InvalidParameterError("symmetric must be True or False.", fix="choose one of the two.")

    @property
    def bits(self) -> UnaryLaw:
        """The law of the bits."""
        if self.symmetric:
            return symmetric_law(self.epsilon)
        e = math.exp(float(self.epsilon))
        return unary_law(self.epsilon, 1 / (e + 1), 4 * e / (e - 1) ** 2)

    @property
    def name(self) -> str:
        """What it is called."""
        return "sue" if self.symmetric else "oue"

    @property
    def layout(self) -> BitRows:
        """One bit for each category."""
        return BitRows(self.domain.size)
