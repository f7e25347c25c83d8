"""The filter that guards a budget, as a ledger uses it: costs in, one sum, yes or no, and words for a no."""

import math
from dataclasses import dataclass
from typing import TypeAlias, final

from defocus.errors import BudgetExceededError, InvalidParameterError, LedgerUnavailableError, UnsupportedEventError
from defocus.ledger.terms import Terms
from defocus.privacy.accounting import tightest_at
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Composed, Event, Shuffled
from defocus.privacy.filters import Cost, Filter, Remaining, rules
from defocus.privacy.filters import filter as make_filter
from defocus.privacy.guidance import spoken_delta
from defocus.privacy.units import Adjacency

__all__ = ["Amounts", "Guard", "Remaining"]

Amounts: TypeAlias = tuple[float, ...]
"""A cost or a sum of costs, in the units the filter counts in; infinite where one of its parts cannot express it."""


@final
@dataclass(frozen=True, slots=True)
class Guard:
    """The filter of one ledger. Decisions rest on the sum so far, so they take the same time after any history.

    Guarantee:
        That of :mod:`defocus.privacy.filters`: the budget is kept for releases chosen adaptively.
    """

    filter: Filter

    @classmethod
    def of(cls, terms: Terms) -> "Guard":
        """The guard that a ledger was made with, if this version still has exactly that rule."""
        by = terms.filter.partition("/")[0]
        known = by in rules(terms.budget) and (terms.parts is None or by != "first")
        made = make_filter(terms.budget, terms.unit.adjacency, by=by if known else "union")
        if made.definition != terms.filter:
            raise LedgerUnavailableError(
                f"This ledger is guarded by the filter {terms.filter}, and this version has {made.definition}.",
                fix="use the version of Defocus that the ledger was made with.",
            )
        return cls(made)

    @staticmethod
    def definition(budget: Budget, by: str | None = None, *, divided: bool = False) -> str:
        """The name and version of the filter that a new ledger gets: the one named, else the one that suits most.

        With a delta, the first release decides whether deltas are added up; without one there is nothing to decide.
        Nor can it decide for several parts at once, each of which has a first release of its own: where the data is
        ``divided``, a filter must admit every run that costs no more than one it admits, and this one does not.
        """
        if divided and by == "first":
            raise InvalidParameterError(
                "The first release cannot decide how deltas are counted where the data has parts.",
                fix='leave by= out, or choose "basic" or "union".',
            )
        usual = "first" if "first" in rules(budget) and not divided else "union"
        return make_filter(budget, by=by or usual).definition

    @property
    def start(self) -> Amounts:
        """Nothing spent."""
        return tuple(self.filter.start)

    def cost(self, event: Event) -> Amounts:
        """What ``event`` adds to the sum."""
        return tuple(self.filter.cost(event))

    def add(self, spent: Amounts, cost: Amounts) -> Amounts:
        """The sum with a cost added, rounded up."""
        return tuple(Cost(spent) + Cost(cost))

    def admits(self, spent: Amounts, event: Event) -> bool:
        """Whether ``event`` still fits."""
        return self.filter.admits(Cost(spent), event)

    def covers(self, spent: Amounts, cost: Amounts) -> bool:
        """Whether a release of this cost still fits: :meth:`admits`, for many sums and one price."""
        return self.filter.fits(Cost(spent) + Cost(cost), before=Cost(spent))

    def used(self, spent: Amounts) -> float | None:
        """The part of the budget that is used; None where no measure of the filter can express the run."""
        share = self.filter.used(Cost(spent))
        return share if math.isfinite(share) else None

    def remaining(self, spent: Amounts) -> Remaining:
        """What still fits."""
        return self.filter.remaining(Cost(spent))

    def refusal(self, spent: Amounts, event: Event, part: str = "") -> BudgetExceededError:
        """Why ``event`` does not fit, for the people of a part if one is named, in the filter's units and epsilon."""
        found = self.filter.compare(Cost(spent), event)
        left = self.remaining(spent)
        alone = _alone(event, self.filter.budget, self.filter.adjacency)
        return BudgetExceededError(
            requested=found.requested,
            remaining=found.remaining,
            difference=found.difference,
            measure=found.measure,
            budget=str(self.filter.budget),
            left=str(left) if left.usable else "",
            requested_epsilon=alone,
            requested_delta=0.0 if math.isinf(alone) else spoken_delta(self.filter.budget),
            remaining_epsilon=left.epsilon,
            part=part,
            remedy=_remedy(event),
        )


def _remedy(event: Event) -> str:
    """How a release is made to cost less: by noise, or, if it is hidden in a crowd, by a larger one."""
    parts = [part for part, _ in event.parts] if isinstance(event, Composed) else [event]
    if any(isinstance(part, Shuffled) for part in parts):
        return "gather reports of more users, or let each report have a smaller local epsilon, until it fits"
    return "add noise until it fits"


def _alone(event: Event, budget: Budget, adjacency: Adjacency) -> float:
    """The epsilon of ``event`` by itself; infinite where no accountant has one at this delta."""
    try:
        delta = spoken_delta(budget)
        return tightest_at(event, delta, adjacency).epsilon(delta)
    except UnsupportedEventError:
        return math.inf
