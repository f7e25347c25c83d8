"""Laplace noise on a number, on the device."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

from defocus.errors import InvalidParameterError, Number, whole
from defocus.local.designs.numeric import Numeric
from defocus.local.domains import Interval
from defocus.local.layouts import Totals
from defocus.local.levels import growth
from defocus.privacy import events

__all__ = ["LocalLaplace"]


@final
@dataclass(frozen=True, slots=True)
class LocalLaplace(Numeric):
    r"""Add discrete Laplace noise to the number on a grid. The number is clipped; the noisy one is not.

    Guarantee:
        :math:`\varepsilon`-LDP: two numbers are at most ``steps`` apart on the grid, and the noise has scale
        ``steps`` / epsilon. Values beyond 64 scales are cut off afterwards, one in :math:`e^{64}`.

    Error:
        Unbiased. On [-1, 1] the variance is :math:`8/\varepsilon^2`; cutting the noisy value to the interval, as is
        sometimes done, would make 0 read .316 of the interval and 1 read .684 at epsilon = 1.
    Reference:
        Dwork, McSherry, Nissim, Smith (2006); the discrete law as in Ghosh, Roughgarden, Sundararajan (2012).

    >>> round(LocalLaplace(Interval(-1, 1), 1).worst_variance, 2)
    8.0
    """

    domain: Interval
    epsilon: Number
    steps: int = 1 << 10

    def _complete(self) -> None:
        object.__setattr__(self, "steps", whole("steps", self.steps))
        if not 16 <= self.steps <= 1 << 14:
            raise InvalidParameterError(f"{self.steps} steps are no use.", fix="choose 16 to 2**14 steps.")

    @property
    def name(self) -> str:
        """What it is called."""
        return "laplace"

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on the grid."""
        return self.steps / Fraction(self.epsilon)

    @property
    def layout(self) -> Totals:
        """The noisy number on the grid."""
        return Totals(self.steps + int(64 * self.scale))

    @property
    def law(self) -> dict[str, int]:
        """Numerator and denominator of the scale."""
        return {"numerator": self.scale.numerator, "denominator": self.scale.denominator}

    @property
    def options(self) -> dict[str, Any]:
        """How fine the grid is."""
        return {"steps": self.steps}

    @property
    def ratio(self) -> Fraction:
        """e**epsilon, which is not rational: a number just above it."""
        return growth(self.epsilon)[1]

    @property
    def rounding(self) -> float:
        """A quarter of a squared step, for a number half-way between two points of the grid."""
        return 0.25 / self.steps**2

    @property
    def event(self) -> events.Event:
        """Discrete Laplace noise on a number that can move by all steps."""
        return events.DiscreteLaplace(self.scale, self.steps)

    def share_variance(self, share: Fraction) -> float:
        """That of the noise, and that of putting the number on the grid."""
        up = share * self.steps % 1
        return _laplace_variance(self.scale) / self.steps**2 + float(up * (1 - up)) / self.steps**2


@lru_cache(maxsize=64)
def _laplace_variance(scale: Fraction) -> float:
    """2a / (1 - a)² with a = exp(-1/scale)."""
    a = math.exp(-1 / float(scale))
    return 2 * a / (1 - a) ** 2
