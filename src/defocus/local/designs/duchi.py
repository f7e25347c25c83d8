"""One bit for a number: likelier to be a one the larger the number is."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from defocus.errors import Number
from defocus.local.designs.numeric import Guesses, Numeric
from defocus.local.domains import Interval
from defocus.local.layouts import Cells
from defocus.local.levels import growth
from defocus.privacy import events

__all__ = ["STEPS", "Duchi"]

STEPS = 1 << 20
"""Numbers are put on a grid of so many steps before a bit is drawn for them, up or down at random, without bias."""

_GRAIN = 1 << 42
"""Weights have so many bits: times the 2**20 steps between the ends they stay below 2**63."""


@final
@dataclass(frozen=True, slots=True)
class Duchi(Numeric):
    r"""Report one bit, which is a one with a probability that rises linearly with the number.

    Guarantee:
        :math:`\varepsilon`-LDP: that probability lies between two integers over their sum, whose ratio is at most
        :math:`e^\varepsilon`, and so does that of a zero.

    Error:
        On [-1, 1] the variance is :math:`\left(\frac{e^\varepsilon+1}{e^\varepsilon-1}\right)^2 - x^2`.
    Reference:
        Duchi, Jordan, Wainwright (2018), Minimax optimal procedures for locally private estimation; Ding, Kulkarni,
        Yekhanin (2017), Collecting telemetry data privately, where it is called 1-bit mean.

    >>> round(Duchi(Interval(-1, 1), 1).worst_variance, 2)
    4.68
    """

    domain: Interval
    epsilon: Number

    def _complete(self) -> None:
        _ = self.weights  # refused here rather than at the first report

    @property
    def name(self) -> str:
        """What it is called."""
        return "duchi"

    @property
    def weights(self) -> tuple[int, int]:
        """The weight of a one at the low end, and at the high end; a zero has them the other way round."""
        below, above = growth(self.epsilon)
        low = int(_GRAIN / (1 + above))
        return low, int(low * below)

    @property
    def layout(self) -> Cells:
        """One bit."""
        return Cells(2)

    @property
    def law(self) -> dict[str, int]:
        """The two weights."""
        low, high = self.weights
        return {"low": low, "high": high}

    @property
    def ratio(self) -> Fraction:
        """One weight over the other."""
        low, high = self.weights
        return Fraction(high, low)

    @property
    def guesses(self) -> Guesses:
        """What a zero and a one stand for."""
        low, high = self.weights
        return np.array([-low / (high - low), high / (high - low)])

    @property
    def event(self) -> events.Event:
        """Randomised response of one bit, of which the number decides the input."""
        return events.RandomizedResponse(self.epsilon)

    def share_variance(self, share: Fraction) -> float:
        """P(1 - P) over the square of how much P rises."""
        low, high = self.weights
        one = (low + (high - low) * share) / (low + high)
        return float(one * (1 - one) / Fraction(high - low, high + low) ** 2)
