"""What a run of releases adds up to, and what is left of a budget, in numbers and in words."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from defocus.errors import InvalidParameterError
from defocus.privacy.digits import at_least, at_most
from defocus.privacy.rounding import sum_up

__all__ = ["Comparison", "Cost", "Remaining"]

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
    """A release beside what is left, in the measure in which it comes closest to fitting."""

    requested: float
    remaining: float
    measure: str

    @property
    def difference(self) -> float:
        """How much too much it is; negative if it fits."""
        return self.requested - self.remaining


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
