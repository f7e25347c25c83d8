r"""The filter that guards a budget, as a ledger uses it: costs in, one sum, yes or no, and words for a no.

What anybody in the data can have lost, where the data has parts.

A release from some parts costs the people in them and nobody else, so a ledger keeps one sum for what everybody was
charged, and one for each part. What a person in part p was charged is their sum :math:`c + s_p`.

Guarantee:
    The budget holds for everybody, against an analyst who chooses every release, part and parameter after seeing all
    answers before. Proof. Take neighbouring data D and D′ = D with the rows of one unit more, all of them in part p
    (one row is in one part; for people this is declared). Which part that is, is a fact about the data, and no answer
    changes it. Consider the releases in the order of the ledger. One that names parts without p reads only rows that D
    and D′ have in common, so given the same past its answer has the same law under both: the analyst could have
    drawn it alone, from a copy of the other parts. What is left is an adaptive run of the releases that name p or
    nobody, whose costs add up to :math:`c + s_p`, and the analyst's own randomness. Such a release was admitted only
    if the filter of the budget admitted it after a run of that sum: a release that names p was compared with
    :math:`c + s_p` itself, and one for everybody with :math:`c + \max_q s_q`, which is at least as much in every
    component, and a filter that admits a run admits every run that costs no more in any component. So the run of p
    is one that the filter guards, whose guarantee (:mod:`defocus.privacy.filters`) holds against every such
    analyst. A unit whose rows are in no part pays c alone.
Assumes:
    Neighbours differ by one unit added or removed. A replaced unit could leave p for q, and pay :math:`s_p + s_q`;
    ledgers for those have no parts (:meth:`defocus.ledger.parts.Parts.check`).

Error:
    A part's own release is decided exactly. A release for everybody is compared with the largest of each component
    over all parts, which need not come from one part: never too little, and the same where parts are asked alike.
Reference:
    McSherry (2009), Theorem 4 (parallel composition); Rogers, Roth, Ullman, Vadhan (2016) for filters; Feldman and
    Zrnic (2021) for filters on each individual's own sum.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

from defocus.errors import BudgetExceededError, InvalidParameterError, LedgerUnavailableError, UnsupportedEventError
from defocus.ledger.terms import Terms
from defocus.privacy.accounting import tightest_at
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import spoken_delta
from defocus.privacy.events import Composed, Event, Shuffled
from defocus.privacy.filters import Cost, Filter, Remaining, Used, rule, rules
from defocus.privacy.filters import filter as make_filter
from defocus.privacy.units import Adjacency

__all__ = ["Amounts", "Guard", "Remaining", "Tally"]


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
        name = terms.filter.partition("/")[0]
        known = name in rules(terms.budget) and (terms.parts is None or name != "first")
        made = make_filter(terms.budget, terms.unit.adjacency, method=name if known else "union")
        if made.definition != terms.filter:
            raise LedgerUnavailableError(
                f"This ledger is guarded by the filter {terms.filter}, and this version has {made.definition}.",
                fix="use the version of Defocus that the ledger was made with.",
            )
        return cls(made)

    @staticmethod
    def definition(budget: Budget, name: str | None = None, *, divided: bool = False) -> str:
        """The name and version of the filter that a new ledger gets: the one named, else the one that suits most.

        With a delta, the first release decides whether deltas are added up; without one there is nothing to decide.
        Nor can it decide for several parts at once, each of which has a first release of its own: where the data is
        ``divided``, a filter must admit every run that costs no more than one it admits, and this one does not.
        """
        chosen = None if name is None else rule(budget, name)
        if divided and chosen == "first":
            raise InvalidParameterError(
                "The first release cannot decide how deltas are counted where the data has parts.",
                fix='leave filter= out, or choose "basic" or "union".',
            )
        usual = "first" if "first" in rules(budget) and not divided else "union"
        return make_filter(budget, method=chosen or usual).definition

    @property
    def start(self) -> Amounts:
        """Nothing spent."""
        return tuple(self.filter.start)

    def cost(self, event: Event) -> Amounts:
        """What ``event`` adds to the sum."""
        return tuple(self.filter.cost(event))

    def add(self, spent: Amounts, cost: Amounts) -> Amounts:
        """The sum with a cost added, rounded up."""
        return tuple(self.filter.add(Cost(spent), Cost(cost)))

    def admits(self, spent: Amounts, event: Event) -> bool:
        """Whether ``event`` still fits."""
        return self.filter.admits(Cost(spent), event)

    def covers(self, spent: Amounts, cost: Amounts) -> bool:
        """Whether a release of this cost still fits: :meth:`admits`, for many sums and one price."""
        return self.filter.fits(Cost(spent) + Cost(cost), before=Cost(spent))

    def used(self, spent: Amounts) -> Used:
        """The parts of the budget that are used."""
        return self.filter.used(Cost(spent))

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


@final
@dataclass(frozen=True, slots=True)
class Tally:
    """The sums after an entry: what everybody was charged, the most that a part was, and how many parts were charged.

    >>> Tally((0.0, 0.5), (0.0, 0.25), 3).parts
    3
    """

    common: Amounts
    heaviest: Amounts
    """The largest of each component over all parts."""
    parts: int

    @classmethod
    def start(cls, guard: Guard) -> "Tally":
        """Nothing was charged."""
        return cls(guard.start, guard.start, 0)

    def most(self, guard: Guard) -> Amounts:
        """What nobody in the data has been charged more than."""
        return guard.add(self.common, self.heaviest)

    def sums(self, guard: Guard, own: Mapping[str, Amounts | None]) -> dict[str, Amounts]:
        """What the people were charged whom a release from these parts is about, by part.

        ``own`` has the sum of each part that is named, None where it was never charged; if none is named, everybody
        is meant, under the empty label.
        """
        if not own:
            return {"": self.most(guard)}
        return {label: guard.add(self.common, sum_ or guard.start) for label, sum_ in own.items()}

    def charged(
        self, guard: Guard, own: Mapping[str, Amounts | None], cost: Amounts
    ) -> tuple["Tally", dict[str, Amounts]]:
        """The tally after a charge, and the new sum of each part that it names."""
        if not own:
            return Tally(guard.add(self.common, cost), self.heaviest, self.parts), {}
        grown = {label: guard.add(sum_ or guard.start, cost) for label, sum_ in own.items()}
        heaviest = tuple(map(max, zip(self.heaviest, *grown.values(), strict=True)))
        new = sum(sum_ is None for sum_ in own.values())
        return Tally(self.common, heaviest, self.parts + new), grown

    def words(self, guard: Guard) -> str:
        """The tally as people read it."""
        if not self.parts:
            return f"no part was charged yet; everybody was charged {guard.used(self.common)}"
        number = "1 part was" if self.parts == 1 else f"{self.parts} parts were"
        return (
            f"{number} charged, the heaviest {guard.used(self.heaviest)}, beside {guard.used(self.common)} that"
            " everybody was charged"
        )
