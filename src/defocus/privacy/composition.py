"""What a run of releases adds up to, and what is left of a budget, in numbers and in words."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, final

from defocus.errors import InvalidParameterError, Number
from defocus.privacy.accounting import tightest, tightest_at
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import spoken_delta
from defocus.privacy.events import Event
from defocus.privacy.losses import checked_delta
from defocus.privacy.numbers import at_least, at_most, sum_up
from defocus.privacy.units import Adjacency

__all__ = ["Comparison", "Cost", "FixedSequence", "Remaining", "Used", "fixed_sequence_bound", "single_release_bound"]


_CRUMB = 1e-7
"""An epsilon with which the noise of a count is as large as a large country."""


@final
@dataclass(frozen=True, slots=True)
class Cost:
    """What a run added up to: its own deltas first, then one number per elementary filter, all rounded up.

    >>> Cost([0.0, 0.5]) + Cost([1e-9, None])
    Cost(amounts=(1e-09, inf))
    """

    amounts: tuple[float, ...]

    def __init__(self, amounts: Iterable[float | None]) -> None:
        found = tuple(math.inf if amount is None else float(amount) for amount in amounts)
        if not found or not all(amount >= 0 for amount in found):
            raise InvalidParameterError(
                f"A cost is made of numbers of at least zero, but it is {found}.", fix="use filter.cost(event)."
            )
        object.__setattr__(self, "amounts", found)

    def __add__(self, other: object) -> "Cost":
        if not isinstance(other, Cost):
            return NotImplemented
        if len(other.amounts) != len(self.amounts):
            raise InvalidParameterError("Costs of different filters cannot be added.", fix="use one filter per budget.")
        return Cost(sum_up(a, b) for a, b in zip(self.amounts, other.amounts, strict=True))

    def __iter__(self) -> Iterator[float]:
        return iter(self.amounts)

    def to_json(self) -> list[float | None]:
        """The amounts as JSON has them: null where a filter cannot express the run."""
        return [amount if math.isfinite(amount) else None for amount in self.amounts]


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """A release beside what is left, in the measure in which it comes closest to fitting.

    >>> Comparison(requested=0.5, remaining=0.25, measure="epsilon").difference
    0.25
    """

    requested: float
    remaining: float
    measure: str

    @property
    def difference(self) -> float:
        """How much too much it is; negative if it fits."""
        return self.requested - self.remaining


@final
@dataclass(frozen=True, slots=True)
class Used:
    """The parts of a budget that are used: of epsilon, rho or mu, and of the delta that releases may spend themselves.

    1 is all of it; infinite where no measure of the filter can express the run; no delta where the budget has none.

    >>> print(Used("rho", 0.125, None))
    12.5 % of rho
    """

    measure: str
    share: float
    delta: float | None

    def __str__(self) -> str:
        delta = f" and {_percent(self.delta)} of delta" if self.delta else ""
        return f"{_percent(self.share)} of {self.measure}{delta}"

    def to_dict(self) -> dict[str, float | None]:
        """The shares with JSON types only; null where there is none to tell."""
        shares = {self.measure: self.share, **({} if self.delta is None else {"delta": self.delta})}
        return {name: share if math.isfinite(share) else None for name, share in shares.items()}


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %" if math.isfinite(share) else "an unknown part"


@final
@dataclass(frozen=True, slots=True)
class Remaining:
    """What still fits: the largest pure epsilon, or the least ratio of Gaussian noise, or so much delta.

    As text, epsilon is rounded down and noise up, so that what is printed is admitted.

    >>> print(Remaining(epsilon=0.25, ratio=4.4224501, delta=0))
    one release of epsilon 0.25, or Gaussian noise of 4.42246 times the sensitivity
    >>> print(Remaining(epsilon=6.32519e-9, ratio=6.7e8, delta=0))
    next to nothing
    """

    epsilon: float
    ratio: float
    delta: float
    room: float = 0.0
    """How much of that epsilon is there only because a budget in decimals is kept to one part in a billion."""

    @property
    def certain(self) -> float:
        """What is left of epsilon without any room for rounding: for programs, which show all digits.

        >>> Remaining(epsilon=3.000000003, ratio=1.0, delta=0, room=3e-9).certain <= 3
        True
        """
        return max(0.0, math.nextafter(self.epsilon - self.room, 0.0) if self.room else self.epsilon)

    @property
    def usable(self) -> bool:
        """Whether a release that fits could tell anything: rounding leaves crumbs of budgets that are used up."""
        return self.epsilon > _CRUMB or self.ratio < 1 / _CRUMB

    def __str__(self) -> str:
        if not self.usable:
            return "next to nothing" if self.epsilon or math.isfinite(self.ratio) else "nothing"
        pure = f"one release of epsilon {at_most(self.epsilon)}" if self.epsilon else ""
        noise = f"Gaussian noise of {at_least(self.ratio)} times the sensitivity" if math.isfinite(self.ratio) else ""
        return ", or ".join(text for text in (pure, noise) if text)


_CONDITION = "only if the sequence of privacy parameters was fixed in advance"


@final
@dataclass(frozen=True, slots=True)
class FixedSequence:
    """An epsilon that is valid only if the sequence of privacy parameters was fixed in advance.

    >>> print(FixedSequence(1.0, 1e-6, "pld"))
    epsilon 1 at delta 1e-06 by pld: valid only if the sequence of privacy parameters was fixed in advance
    """

    epsilon: float
    delta: float
    accountant: str

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.6g} at delta {self.delta:g} by {self.accountant}: valid {_CONDITION}"

    def to_dict(self) -> dict[str, Any]:
        """The bound with JSON types only, labelled; an infinite epsilon is null."""
        return {
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "delta": self.delta,
            "accountant": self.accountant,
            "valid": _CONDITION,
        }


def fixed_sequence_bound(event: Event, delta: Number, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> FixedSequence:
    """The loss of ``event`` by the tightest accountant that can express it.

    >>> from defocus.privacy.events import Gaussian
    >>> print(fixed_sequence_bound(4 * Gaussian(8), 1e-6))
    epsilon 1.06... at delta 1e-06 by pld: valid only if the sequence of privacy parameters was fixed in advance
    """
    target = checked_delta(delta)
    loss = tightest(event, adjacency)
    return FixedSequence(loss.epsilon(target), target, loss.accountant)


def single_release_bound(event: Event, budget: Budget, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> FixedSequence:
    """What ``event`` costs by itself, said beside ``budget``: without a delta where that is hardly more.

    >>> from defocus.privacy.events import Laplace
    >>> single_release_bound(Laplace(2), Budget(1, 1e-6))
    FixedSequence(epsilon=0.5, delta=0.0, accountant='pld')
    """
    delta = spoken_delta(budget)
    loss = tightest_at(event, delta, adjacency)
    pure, epsilon = loss.epsilon(0), loss.epsilon(delta)
    if pure <= 1.01 * epsilon:
        epsilon, delta = pure, 0.0  # a delta would only weaken the statement
    return FixedSequence(epsilon, delta, loss.accountant)
