r"""What a local randomiser looks like to shuffling: two levels of likelihood, a factor of e^ε apart.

Fix two values, x and x'. A report y of a randomiser has likelihood r(y) under x and r'(y) under x'. For every other
user's value its likelihood is at least some m(y), the *blanket*. Everything that shuffling does to the odds is in the
law of one variable (:mod:`~defocus.privacy.accounting.shuffling.blanket`), and for two-level randomisers, where r/m and
r'/m are 1 or :math:`e^\varepsilon`, that law has four masses: of reports likelier under x alone, under x' alone,
under both and under neither.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import final

from defocus.errors import UnsupportedEventError
from defocus.privacy.events import Composed, Event, RandomizedResponse, Sampled, Shuffled, SubsetResponse
from defocus.privacy.losses import Bounded, largest_loss
from defocus.privacy.numbers import above, below
from defocus.privacy.units import Adjacency

__all__ = ["Reports", "replaced_only", "reports_of"]


_LARGEST = 300.0
"""A local epsilon beyond this hides nothing, and its odds are hard to hold in a float."""


@final
@dataclass(frozen=True, slots=True)
class Reports:
    r"""The blanket of a randomiser for its worst pair of values.

    ``odds`` is :math:`e^\varepsilon`, rounded up; ``alone`` the blanket's mass on reports likelier under the one value
    alone, and as much under the other alone; ``both`` and ``neither`` its masses on reports likelier under both and
    under neither. They satisfy :math:`(e^\varepsilon + 1)\,alone + e^\varepsilon\,both + neither = 1`.
    """

    epsilon: float
    odds: float
    gain: float
    """The odds less one, which a small epsilon would not survive as a difference."""
    alone: float
    both: float
    neither: float

    @property
    def silent(self) -> float:
        """What the blanket lacks to one, as a sum of positive numbers."""
        return self.gain * (self.alone + self.both)

    @property
    def spread(self) -> float:
        """The standard deviation of the loss, times the root of the number of users, where that is large."""
        return self.gain * math.sqrt(2 * self.alone)


@singledispatch
def reports_of(event: Event) -> Reports:
    """The blanket of the randomiser that ``event`` describes."""
    raise UnsupportedEventError(
        event,
        who="Shuffling",
        why="amplification is proven for randomisers with a pure local epsilon",
        fix="describe what each user sends as Pure(epsilon), RandomizedResponse or SubsetResponse.",
    )


@reports_of.register
def _(event: Bounded) -> Reports:
    r"""Any :math:`\varepsilon`-DP randomiser: no law is worse than that of a fair coin's blanket.

    See *Any randomiser* in :mod:`~defocus.privacy.accounting.shuffling.blanket` for the proof.
    """
    epsilon, odds, gain = _odds(event, largest_loss(event))
    return Reports(epsilon, odds, gain, 1 / (odds + 1), 0.0, 0.0)


@reports_of.register
def _(event: RandomizedResponse) -> Reports:
    """Each category is a report; the blanket is uniform."""
    epsilon, odds, gain = _odds(event, Fraction(event.epsilon))
    alone = 1 / (odds + above(event.categories - 1))
    return Reports(epsilon, odds, gain, alone, 0.0, below(event.categories - 2) * alone)


@reports_of.register
def _(event: SubsetResponse) -> Reports:
    """Sets that hold a value, and sets that hold two, have known shares of the blanket."""
    epsilon, odds, gain = _odds(event, Fraction(event.epsilon))
    inside, both = Fraction(event.inside), Fraction(event.both)
    blanket = 1 / (1 + gain * float(inside))
    alone, neither = inside - both, 1 - 2 * inside + both
    return Reports(epsilon, odds, gain, *(blanket * float(share) for share in (alone, both, neither)))


def _odds(event: Event, epsilon: Fraction) -> tuple[float, float, float]:
    rounded = above(epsilon)
    if rounded > _LARGEST:
        raise UnsupportedEventError(
            event,
            who="Shuffling",
            why=f"a local epsilon above {_LARGEST:g} hides nothing",
            fix="randomise more on the client.",
        )
    return rounded, math.exp(rounded) * (1 + 2.0**-50), math.expm1(rounded) * (1 + 2.0**-50)


def replaced_only(event: Event, adjacency: Adjacency) -> None:
    """Refuse an ``event`` with shuffled reports unless neighbours differ in one unit's value.

    Shuffled reports are counted by whoever sees them, so a user who is there or not is told apart for certain; and a
    Poisson sample of them has, under either adjacency, a size that depends on one user.
    """
    _walk(event, adjacency, sampled=False)


def _walk(event: Event, adjacency: Adjacency, *, sampled: bool) -> None:
    if isinstance(event, Composed):
        for part, _ in event.parts:
            _walk(part, adjacency, sampled=sampled)
        return
    if isinstance(event, Shuffled):
        if sampled:
            raise UnsupportedEventError(
                event,
                who="A Poisson sample",
                why="how many reports are shuffled would depend on one user",
                fix="shuffle a batch of fixed size with SampledBatch, or the reports of all users.",
            )
        if adjacency is not Adjacency.REPLACE:
            raise UnsupportedEventError(
                event,
                who="Add-or-remove adjacency",
                why="shuffled reports can be counted, so a user added or removed is seen; amplification protects the "
                "value of a user whose participation is public",
                fix='account with adjacency="replace"; for a ledger, take a unit with replace=True.',
            )
    inner = getattr(event, "event", None)
    if isinstance(inner, Event):
        _walk(inner, adjacency, sampled=sampled or isinstance(event, Sampled))
