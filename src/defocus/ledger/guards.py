"""The filter that guards a budget, as a ledger uses it: costs in, one sum, yes or no, and words for a no."""

import math
from dataclasses import dataclass
from typing import TypeAlias, final

from defocus.errors import BudgetExceededError, LedgerUnavailableError, UnsupportedEventError
from defocus.ledger.terms import Terms
from defocus.privacy.accounting import tightest
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.filters import Cost, Filter, Remaining
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
        made = make_filter(terms.budget, terms.unit.adjacency)
        if made.definition != terms.filter:
            raise LedgerUnavailableError(
                f"This ledger is guarded by the filter {terms.filter}, and this version has {made.definition}.",
                fix="use the version of Defocus that the ledger was made with.",
            )
        return cls(made)

    @staticmethod
    def definition(budget: Budget) -> str:
        """The name and version of the filter that a new ledger gets."""
        return make_filter(budget).definition

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

    def remaining(self, spent: Amounts) -> Remaining:
        """What still fits."""
        return self.filter.remaining(Cost(spent))

    def refusal(self, spent: Amounts, event: Event) -> BudgetExceededError:
        """Why ``event`` does not fit: in the units the filter counts in, and in epsilon."""
        found = self.filter.compare(Cost(spent), event)
        left = self.remaining(spent)
        alone = _alone(event, self.filter.budget, self.filter.adjacency)
        return BudgetExceededError(
            requested=found.requested,
            remaining=found.remaining,
            difference=found.difference,
            measure=found.measure,
            budget=str(self.filter.budget),
            left=str(left),
            requested_epsilon=alone,
            requested_delta=0.0 if math.isinf(alone) else spoken_delta(self.filter.budget),
            remaining_epsilon=left.epsilon,
        )


def _alone(event: Event, budget: Budget, adjacency: Adjacency) -> float:
    """The epsilon of ``event`` by itself; infinite where no accountant has one at this delta."""
    try:
        return tightest(event, adjacency).epsilon(spoken_delta(budget))
    except UnsupportedEventError:
        return math.inf
