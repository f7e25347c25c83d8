"""Looking before spending: what a release would cost and how far off it would be, free of charge."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from defocus.errors import Number, probability
from defocus.ledger import Ledger, Remaining
from defocus.ledger.filter import Guard
from defocus.mechanisms import Grid, Mechanism
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.expressions import unparse
from defocus.privacy.filters import Cost, Used
from defocus.privacy.units import Unit
from defocus.release import guarantee
from defocus.release.charge import Replan, admitted, advice
from defocus.release.guarantee import Promise, promise
from defocus.release.release import CONFIDENCE, checked_mechanism, in_units, named

__all__ = ["Preview", "Prospect", "json_number", "preview"]


@final
@dataclass(frozen=True, slots=True)
class Preview:
    """What is known about a release before it is made. No data was touched, no random bit drawn, nothing charged.

    >>> from defocus.mechanisms import Laplace
    >>> found = preview(Laplace(scale=4))
    >>> round(found.error, 2), found.interval
    (3.96, 12.0)
    """

    mechanism: str
    event: Event
    error: float
    interval: float
    confidence: float
    promise: Promise | None
    fits: bool | None
    remaining: Remaining | None

    def __str__(self) -> str:
        lines = [
            f"mechanism:   {self.mechanism}",
            f"error:       {self.error:.4g} on average, at most {self.interval:.6g} at {100 * self.confidence:.4g} %",
            f"cost:        {unparse(self.event)}" + (f", {self.promise}" if self.promise else ""),
        ]
        if self.fits is not None:
            lines.append(f"budget:      {'covers it' if self.fits else 'does not cover it'}; {self.remaining} left now")
        return "\n".join(lines)


def preview(
    mechanism: Mechanism, *, ledger: Ledger | None = None, grid: Grid | None = None, confidence: Number = CONFIDENCE
) -> Preview:
    """Say what a release with ``mechanism`` would cost and how exact it would be.

    Guarantee:
        Depends on public parameters only, and charges nothing.

    >>> from defocus.mechanisms import Laplace
    >>> print(preview(Laplace(scale=2)))
    mechanism:   Laplace(scale=2, sensitivity=1)
    error:       1.919 on average, at most 6 at 95 %
    cost:        discrete_laplace(2)
    """
    event = checked_mechanism(mechanism, grid)
    level = float(probability("confidence", confidence, zero=False, one=False))
    return Preview(
        mechanism=named(mechanism),
        event=event,
        error=in_units(mechanism.error, grid),
        interval=in_units(mechanism.interval(level), grid),
        confidence=level,
        promise=None if ledger is None else promise(event, ledger.budget, ledger.unit.adjacency),
        fits=None if ledger is None else ledger.admits(event),
        remaining=None if ledger is None else ledger.remaining(),
    )


@final
@dataclass(frozen=True, slots=True)
class Prospect:
    """What a release would cost, and whether the ledger covers it now. Depends on public facts only.

    ``event`` is what would be charged; ``promise`` what the release alone would promise at the delta that was
    ``asked`` for, None if no accountant can say; ``after`` what would be left, None if it does not fit.
    """

    event: Event
    asked: Budget
    promise: Promise | None
    unit: Unit
    dataset: str
    fits: bool
    remaining: Remaining
    after: Remaining | None
    used: tuple[Used, Used]
    """The parts of the ledger's budget that are used now, and that would be used afterwards."""
    remedy: str
    """What to ask instead where it does not fit, if there is something."""

    @classmethod
    def of(cls, event: Event, *, asked: Budget, replan: Replan, ledger: Ledger) -> "Prospect":
        """The prospect of charging ``event``; ``replan`` says what it would be with another delta than was asked."""
        guard, spent = Guard.of(ledger.terms), ledger.spent()
        owed = admitted(event, asked, ledger)
        after = None if owed is None else guard.add(spent, guard.cost(owed))
        return cls(
            event=event if owed is None else owed,
            asked=asked,
            promise=guarantee.alone(event, ledger.terms, asked),
            unit=ledger.unit,
            dataset=ledger.dataset,
            fits=after is not None,
            remaining=guard.remaining(spent),
            after=None if after is None else guard.remaining(after),
            used=(guard.filter.used(Cost(spent)), guard.filter.used(Cost(spent if after is None else after))),
            remedy="" if owed is not None else advice(asked, ledger, replan),
        )

    def facts(
        self, *, rules: Sequence[str], noise: Sequence[str], instead: Sequence[str] = ()
    ) -> dict[str, Sequence[str]]:
        """The prospect in plain words by topic, between what a preview has to say about rules and noise itself."""
        return {
            "protected": [guarantee.protection(self.unit, self.dataset)],
            f"for one {guarantee.one(self.unit)}": guarantee.odds(self.promise, self.unit),
            "by rule": rules,
            "noise": noise,
            "instead of": instead,
            "cost": [guarantee.cost(self.promise, self.asked), guarantee.owed(self.event)],
            "budget": [self.budget()],
        }

    def notes(self) -> list[str]:
        """Cost and budget in a line each."""
        return [f"cost: {guarantee.cost(self.promise)}", f"budget: {self.budget()}"]

    def budget(self) -> str:
        """Whether the budget covers it, and what is left now and afterwards."""
        if self.after is None:
            instead = f"; {self.remedy.rstrip('.')}" if self.remedy else ""
            return f"does not cover it; left now: {guarantee.left(self.remaining)}{instead}"
        takes = f"used now: {self.used[0]}; used afterwards: {self.used[1]}"
        both = f"left now: {guarantee.left(self.remaining)}; left afterwards: {guarantee.left(self.after)}"
        return f"covers it; {both}; {takes}"

    def to_dict(self) -> dict[str, Any]:
        """The prospect with JSON types only."""
        promised, after = self.promise, self.after
        return {
            "event": unparse(self.event),
            "epsilon": None if promised is None else json_number(promised.epsilon),
            "delta": None if promised is None else promised.delta,
            "fits": self.fits,
            "epsilon_left_now": json_number(self.remaining.epsilon),
            "epsilon_left_after": None if after is None else json_number(after.epsilon),
            "delta_left_now": json_number(self.remaining.delta),
            "delta_left_after": None if after is None else json_number(after.delta),
            "used_now": self.used[0].to_dict(),
            "used_after": None if after is None else self.used[1].to_dict(),
            "instead": self.remedy or None,
        }


def json_number(number: float | None) -> float | None:
    """A number that JSON has, or nothing."""
    return number if number is not None and math.isfinite(number) else None
