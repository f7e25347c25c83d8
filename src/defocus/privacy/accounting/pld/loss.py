"""The loss of an event by its privacy-loss distribution, computed for the question asked."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from defocus.errors import DefocusError, Number, positive
from defocus.privacy import events
from defocus.privacy.accounting.pld.direction import (
    both_ways,
    delta_above,
    epsilon_above,
    epsilon_below,
    epsilon_near,
)
from defocus.privacy.accounting.pld.lowering import Term, lower
from defocus.privacy.losses import Interval, Loss, checked_delta, checked_epsilon
from defocus.privacy.rounding import above
from defocus.privacy.units import Adjacency

__all__ = ["PldLoss", "account"]

_TOLERANCE = 5e-6
"""Default half-width of the certified interval, relative to epsilon."""
_ROUGH = 1e-3


def account(
    event: events.Event, adjacency: Adjacency = Adjacency.ADD_REMOVE, *, tolerance: float = _TOLERANCE
) -> "PldLoss":
    """Account for ``event`` by its privacy-loss distribution.

    >>> loss = account(1000 * events.Sampled(events.Gaussian(1), 0.01))
    >>> round(loss.epsilon(1e-5), 3)
    1.828
    """
    return PldLoss(tuple(lower(event, Adjacency(adjacency))), float(positive("tolerance", tolerance)))


@final
@dataclass(frozen=True, slots=True)
class PldLoss(Loss):
    r"""Certified bounds by tilted connect-the-dots.

    Guarantee:
        ``epsilon`` and ``delta`` are never below the truth, rounding included, and
        ``interval`` contains it. Both directions of the adjacency are evaluated.

    Error:
        Each side of the interval is about ``tolerance`` times epsilon from the truth; a
        requested delta may be as small as 1e-100.

    Reference:
        Doroshenko et al. (2022) for the discretisation; Zhu, Dong, Wang (2022) for sampling.
    """

    terms: tuple[Term, ...]
    tolerance: float = _TOLERANCE

    @property
    def accountant(self) -> str:
        """See :class:`Loss`."""
        return "pld"

    def epsilon(self, delta: Number = 0) -> float:
        """The certified upper bound on epsilon at ``delta``."""
        d = checked_delta(delta)
        pure = self._pure()
        if d == 0 or not self.terms:
            return pure
        first, *others = both_ways(self.terms)
        answer = epsilon_above(first, d, self.tolerance)
        for direction in others:
            # Usually one direction is clearly worse, and a rough bound on the other shows it.
            if answer < math.inf and not delta_above(direction, answer, max(self.tolerance, _ROUGH)) <= d:
                answer = max(answer, epsilon_above(direction, d, self.tolerance))
        return min(pure, answer)

    def delta(self, epsilon: Number) -> float:
        """The certified upper bound on delta at ``epsilon``."""
        e = checked_epsilon(epsilon)
        if not self.terms or e >= self._pure():
            return 0.0
        return min(1.0, max(delta_above(direction, e, self.tolerance) for direction in both_ways(self.terms)))

    def interval(self, delta: Number) -> Interval:
        """Certified bounds on the true epsilon at ``delta``."""
        d = checked_delta(delta)
        upper = self.epsilon(d)
        if any(term.witness is None for term in self.terms):
            raise DefocusError(
                "There is no certified lower bound for this event: no single mechanism is known to attain it.",
                fix="use epsilon(delta), which is certified from above.",
            )
        if d == 0 or upper in {0.0, math.inf}:
            # The largest loss was rounded up, by a few hundred units at most.
            return Interval(upper * (1 - 1e-12) if d == 0 and upper < math.inf else 0.0, upper)
        best = 0.0
        for direction in both_ways([term._replace(profile=term.witness or term.profile) for term in self.terms]):
            if best == 0 or delta_above(direction, best, max(self.tolerance, _ROUGH)) > d:
                best = max(best, epsilon_below(direction, d, self.tolerance))
        return Interval(min(upper, best), upper)

    def estimate(self, delta: float) -> float:
        """A fast saddle-point estimate of epsilon, for searches; carries no guarantee."""
        return epsilon_near(self.terms, delta) if self.terms else 0.0

    def _pure(self) -> float:
        """The sum of the largest losses: exact where the parameters are."""
        bounds = [term.times * term.pure for term in self.terms if term.pure is not None]
        return above(sum(bounds, Fraction(0))) if len(bounds) == len(self.terms) else math.inf
