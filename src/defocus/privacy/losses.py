"""What an accountant makes of an event: a loss, which answers every question about the guarantee."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from defocus.errors import DefocusError, Number, non_negative, probability
from defocus.privacy import events
from defocus.privacy.numbers import PAD, above, below, bisect, least

__all__ = [
    "Bounded",
    "Interval",
    "Loss",
    "checked_delta",
    "checked_epsilon",
    "largest_loss",
    "least_delta",
    "squared_mu",
]


_ROUNDING = 1e-15
"""More than the rounding of a difference of probabilities."""
_FAR = 150.0
"""An epsilon beyond which no guarantee is worth the name."""


class Interval(NamedTuple):
    """A lower and an upper bound on the true epsilon.

    >>> from defocus.privacy import Gaussian, account
    >>> found = account(100 * Gaussian(10)).interval(1e-6)
    >>> found.lower <= found.upper, round(found.upper, 2)
    (True, 4.89)
    """

    lower: float
    upper: float


class Loss(ABC):
    """The privacy loss of an event. All answers are upper bounds on the loss, never below the truth.

    >>> from defocus.privacy import Gaussian, account
    >>> loss = account(100 * Gaussian(20))
    >>> round(loss.epsilon(1e-6), 2), round(loss.tradeoff(0.05), 2), round(loss.posterior(0.5, delta=1e-6), 2)
    (2.25, 0.87, 0.93)
    """

    __slots__ = ()

    @property
    @abstractmethod
    def accountant(self) -> str:
        """Which accountant made it."""

    @abstractmethod
    def epsilon(self, delta: Number = 0) -> float:
        """The least epsilon this accountant can vouch for at ``delta``; infinite where there is none."""

    @abstractmethod
    def delta(self, epsilon: Number) -> float:
        """The least delta this accountant can vouch for at ``epsilon``."""

    def directions(self, epsilon: Number) -> tuple[float, float]:
        """The least deltas it can vouch for, one for each direction of a change; the same where it tells none apart."""
        return self.delta(epsilon), self.delta(epsilon)

    def interval(self, delta: Number) -> Interval:
        """Certified bounds on the true epsilon, where the accountant has a lower one."""
        checked_delta(delta)
        raise _lacks(self, "a certified interval", 'use account(event, method="pld").interval(delta).')

    def rho(self) -> float:
        """The zero-concentrated loss, where the accountant has one."""
        raise _lacks(self, "rho", 'use account(event, method="zcdp"), or a budget in epsilon and delta.')

    def mu(self) -> float:
        """The Gaussian-DP loss, where it is exact."""
        raise _lacks(self, "mu", 'use account(event, method="gdp"), or a budget in epsilon and delta.')

    def tradeoff(self, alpha: Number) -> float:
        r"""The least false-negative rate of any test for one unit's presence with false-positive rate ``alpha``.

        Guarantee:
            Every :math:`(\varepsilon, \delta)` on the curve bounds it from below by
            :math:`\max(0, 1-\delta-e^\varepsilon\alpha, e^{-\varepsilon}(1-\delta-\alpha))`;
            any epsilon is sound, and the best one found is used.
        Reference:
            Dong, Roth, Su (2022), Gaussian differential privacy, Proposition 2.12.
        """
        a = above(probability("alpha", alpha))

        def bound(epsilon: float) -> float:
            kept = 1 - min(self.delta(epsilon), 1.0) - _ROUNDING
            e = math.exp(epsilon)
            return max(0.0, kept - e * a, (kept - a) / e)

        # Beyond the epsilon where only what is lost for certain remains of delta, bounds get worse.
        failing = self.delta(_FAR) * PAD + 1e-9
        end = min(self.epsilon(failing), _FAR) if failing < 1 else _FAR
        found = -least(lambda t: -bound(math.expm1(t)), 0.0, math.log1p(end), points=8, steps=16) if end else 0.0
        return max(bound(0.0), bound(end), found) / PAD

    def posterior(self, prior: Number, *, delta: Number = 0) -> float:
        r"""The highest probability anyone can reach about one unit's secret, starting from ``prior``.

        Guarantee:
            Except with probability ``delta`` over the release, posterior odds are at most
            :math:`e^{\varepsilon'}` times prior odds. With :math:`\delta(\varepsilon)` the
            curve, :math:`\Pr[L > \varepsilon'] \le \delta(\varepsilon)/(1-e^{\varepsilon-\varepsilon'})`
            for every :math:`\varepsilon < \varepsilon'`, and the least such
            :math:`\varepsilon'` found is used.
        """
        p = above(probability("prior", prior))
        target = checked_delta(delta)
        if p in {0.0, 1.0}:
            return p
        odds = math.log(p) - math.log1p(-p) + self._certain(target)
        return min(1.0, PAD / (1 + math.exp(-odds))) if odds > -40 else math.nextafter(math.exp(odds) * PAD, 1)

    def _certain(self, target: float) -> float:
        """The least epsilon' found such that the loss exceeds it with probability at most ``target``."""
        if target == 0:
            return self.epsilon(0)

        def reach(share: float) -> float:
            # delta(eps) = share * target at eps, so 1 - e^(eps - eps') must be at least share.
            return self.epsilon(share * target) - math.log1p(-share) * PAD

        return least(reach, 1e-3, 1 - 1e-3, points=6, steps=8)


def checked_delta(delta: Number) -> float:
    """Return ``delta`` as a float in [0, 1), rounded down: a smaller delta is never cheaper."""
    return below(probability("delta", delta, one=False))


def checked_epsilon(epsilon: Number) -> float:
    """Return ``epsilon`` as a float of at least zero, rounded down: a smaller epsilon is never cheaper."""
    return below(non_negative("epsilon", epsilon))


def _lacks(loss: Loss, what: str, fix: str) -> DefocusError:
    return DefocusError(f"The {loss.accountant} accountant does not give {what}.", fix=fix)


_SMALLEST = -744.0


def least_delta(epsilon_at: Callable[[float], float], epsilon: float) -> float:
    """The least delta found with ``epsilon_at(delta) <= epsilon``: checked, not interpolated; one if there is none."""
    high = math.log1p(-(2.0**-53))
    if epsilon_at(math.exp(high)) > epsilon:
        return 1.0
    return math.exp(bisect(lambda t: epsilon_at(math.exp(t)) <= epsilon, _SMALLEST, high, width=1e-10).yes)


Bounded: TypeAlias = (
    events.Laplace
    | events.DiscreteLaplace
    | events.Pure
    | events.Exponential
    | events.RandomizedResponse
    | events.SubsetResponse
)
"""The events whose loss is bounded by their own parameters."""


def largest_loss(event: Bounded) -> Fraction:
    """The pure epsilon of one release.

    >>> largest_loss(events.DiscreteLaplace(10, sensitivity=3))
    Fraction(3, 10)
    """
    match event:
        case events.Laplace(ratio):
            return 1 / Fraction(ratio)
        case events.DiscreteLaplace(scale, sensitivity):
            return sensitivity / Fraction(scale)
        case _:
            return Fraction(event.epsilon)


def squared_mu(event: events.Gaussian | events.DiscreteGaussian) -> Fraction:
    """The squared sensitivity over the variance of Gaussian noise: twice its rho.

    >>> squared_mu(events.Gaussian(2)), squared_mu(events.DiscreteGaussian(4, sensitivity=2))
    (Fraction(1, 4), Fraction(1, 4))
    """
    if isinstance(event, events.Gaussian):
        return 1 / Fraction(event.ratio) ** 2
    return (Fraction(event.sensitivity) / Fraction(event.sigma)) ** 2
