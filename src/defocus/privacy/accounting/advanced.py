r"""Advanced composition: epsilon grows with the root of the number of releases, for a little delta more.

Guarantee:
    Releases that are :math:`(\varepsilon_i, \delta_i)`-DP, with parameters fixed in advance, are together
    :math:`(\varepsilon, \delta' + \sum\delta_i)`-DP for every :math:`\delta' > 0`, where :math:`\varepsilon` is the
    lesser of :math:`\sum\varepsilon_i` and
    :math:`\sum\varepsilon_i\tanh(\varepsilon_i/2) + \sqrt{2\ln(1/\delta')\sum\varepsilon_i^2}`.
    The textbook version has :math:`e^{\varepsilon_i}-1` in place of the hyperbolic tangent.
Reference:
    Kairouz, Oh, Viswanath (2015), The composition theorem for differential privacy, Theorem 3.5; Dwork, Rothblum,
    Vadhan (2010) and Dwork, Roth (2014), Theorem 3.20, for the textbook version.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from defocus.errors import FormulaOutOfRangeError, InvalidParameterError, Number
from defocus.privacy.accounting.basic import Spend, fixed_delta, spends
from defocus.privacy.accounting.shuffling import replaced_only
from defocus.privacy.events import Event
from defocus.privacy.losses import Loss, checked_delta, checked_epsilon, least_delta
from defocus.privacy.numbers import PAD, above
from defocus.privacy.units import Adjacency

__all__ = ["AdvancedLoss", "account"]

_SPLITS = (1 / 2, 1 / 8, 1 / 64, 1 / 1024)


@final
@dataclass(frozen=True, slots=True)
class AdvancedLoss(Loss):
    """Releases as (epsilon, delta) pairs under advanced composition."""

    releases: tuple[tuple[Spend, int], ...]
    theorem: Literal["optimal", "textbook"]
    accountant: ClassVar[str] = "advanced"

    def epsilon(self, delta: Number = 0) -> float:
        """The epsilon of the theorem at ``delta``, which must leave something for the theorem itself."""
        target = checked_delta(delta)
        left = target - fixed_delta(self.releases)
        if self.releases and left <= 0:
            raise FormulaOutOfRangeError(
                f"Advanced composition needs a delta above the {target - left:g} the releases already use, "
                f"but it is {target:g}.",
                fix='pass a larger delta, or use account(event, method="basic").',
            )
        return self._epsilon(left)

    def delta(self, epsilon: Number) -> float:
        """The least delta at which the theorem gives ``epsilon``; one if none does."""
        used = fixed_delta(self.releases)
        return min(1.0, used + least_delta(self._epsilon, checked_epsilon(epsilon)))

    def _epsilon(self, left: float) -> float:
        shares = above(sum(one.shares * times for one, times in self.releases))
        if not shares:
            return self._compose(left, 0.0)
        # Any split of delta between the theorem and the Gaussian releases is valid; the best of these counts.
        return min(self._compose(left * t, left * (1 - t) / shares * (1 - 1e-15)) for t in _SPLITS)

    def _compose(self, spare: float, share: float) -> float:
        """The theorem: the only composition rule of this accountant."""
        spent = ((one.epsilon(share), times) for one, times in self.releases)
        found = [(e, above(times)) for e, times in spent if e]
        plain = sum((e * times for e, times in found), 0.0)
        if not found or math.isinf(plain):
            return plain
        if spare <= 0:
            return plain * PAD if self.theorem == "optimal" else math.inf
        drift = math.tanh if self.theorem == "optimal" else math.expm1
        half = 0.5 if self.theorem == "optimal" else 1.0
        mean = sum(times * e * drift(min(e * half, 700.0)) for e, times in found)
        spread = math.sqrt(-2 * math.log(spare) * sum(times * e * e for e, times in found))
        return (mean + spread if self.theorem == "textbook" else min(plain, mean + spread)) * PAD


def account(
    event: Event,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    *,
    theorem: Literal["optimal", "textbook"] = "optimal",
) -> AdvancedLoss:
    """What ``event`` costs by advanced composition; ``theorem="textbook"`` is the one in the books.

    >>> from defocus.privacy.events import Laplace
    >>> [round(account(1000 * Laplace(10), theorem=t).epsilon(1e-6), 2) for t in ("optimal", "textbook")]
    [21.62, 27.14]
    """
    replaced_only(event, adjacency)  # every other (epsilon, delta) form used here holds under both
    if theorem not in {"optimal", "textbook"}:
        raise InvalidParameterError(
            f"theorem must be 'optimal' or 'textbook', but it is {theorem!r}.", fix='leave it out, or pass "textbook".'
        )
    return AdvancedLoss(tuple(spends(event)), theorem)
