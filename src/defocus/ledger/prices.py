"""What each charge of a ledger costs by itself, and how much of the budget is used once it counts."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from defocus.errors import UnsupportedEventError
from defocus.ledger.entries import CHARGE, Entry, amounts_out
from defocus.ledger.guards import Guard
from defocus.ledger.terms import Terms
from defocus.privacy.digits import at_least
from defocus.privacy.events import Event
from defocus.privacy.expressions import unparse
from defocus.privacy.filters import Cost, Filter
from defocus.privacy.sequences import FixedSequence, single_release_bound
from defocus.privacy.wire import from_wire

__all__ = ["MOST_EVENTS", "Prices", "charged"]

MOST_EVENTS = 64
"""An accountant may take a second for an event, so the epsilon of more kinds of releases is not looked up."""


@final
@dataclass(frozen=True, slots=True)
class Prices:
    """Prices under one filter. Made by :meth:`of`."""

    rule: Filter
    alone: Mapping[Event, FixedSequence | None] | None
    """What each event costs alone, None where no accountant can tell; None altogether if there are too many."""

    @classmethod
    def of(cls, terms: Terms, entries: Iterable[Entry]) -> "Prices":
        """The prices of the charges among ``entries``."""
        rule = Guard.of(terms).filter
        events = {charged(entry) for entry in entries if entry.kind == CHARGE}
        asked = {event: _alone(event, rule) for event in events} if len(events) <= MOST_EVENTS else None
        return cls(rule, asked)

    def epsilon(self, entry: Entry) -> str:
        """The epsilon of a charge by itself, in four digits rounded up; nothing where there is none to tell."""
        found = self._bound(entry) if entry.kind == CHARGE else None
        return "" if found is None else at_least(found.epsilon, 4, forgiving=2**-46)

    def used(self, spent: Sequence[float]) -> float | None:
        """The part of the budget that is used; None where no measure of the filter can express the run."""
        share = self.rule.used(Cost(spent))
        return share if math.isfinite(share) else None

    def share(self, entry: Entry) -> str:
        """The part of the budget that is used after a charge, in per cent."""
        used = self.used(entry.spent) if entry.kind == CHARGE else None
        return "" if used is None else f"{100 * used:.1f} %"

    def labelled(self, spent: Sequence[float]) -> list[dict[str, Any]]:
        """The numbers that the filter adds up, each with its name and limit; null where it cannot express the run."""
        return [
            {"measure": measure, "spent": amount, "limit": limit}
            for (measure, limit), amount in zip(self.rule.measures(Cost(spent)), amounts_out(spent), strict=True)
        ]

    def to_dict(self, entry: Entry) -> dict[str, Any]:
        """A charge and its price with JSON types only."""
        bound = self._bound(entry)
        known = bound is not None and math.isfinite(bound.epsilon)
        return {
            "sequence": entry.sequence,
            "what": unparse(charged(entry)),
            "epsilon": bound.epsilon if bound is not None and known else None,
            "delta": bound.delta if bound is not None and known else None,
            "used": self.used(entry.spent),
            **({} if entry.tally is None else {"parts": list(entry.parts)}),
        }

    def _bound(self, entry: Entry) -> FixedSequence | None:
        return None if self.alone is None else self.alone[charged(entry)]


def charged(entry: Entry) -> Event:
    """The event of a charge."""
    return from_wire(entry.content["event"])


def _alone(event: Event, rule: Filter) -> FixedSequence | None:
    try:
        return single_release_bound(event, rule.budget, rule.adjacency)
    except UnsupportedEventError:
        return None
