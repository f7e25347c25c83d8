"""Deciding a charge: where those stand whom it is about, whether it fits for each of them, and the sums after it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from defocus.errors import InvalidParameterError
from defocus.ledger.entries import Entry, amounts_out
from defocus.ledger.filter import Amounts, Guard, Tally
from defocus.ledger.parts import labels_of
from defocus.ledger.store import Session
from defocus.ledger.terms import Terms

__all__ = ["Account", "checked_labels"]


@final
@dataclass(frozen=True, slots=True)
class Account:
    """Where the people stand whom a charge is about. Made by :meth:`of` in the transaction that decides."""

    guard: Guard
    spent: Amounts
    tally: Tally | None
    own: Mapping[str, Amounts | None]
    """The sum of each part that the charge names."""

    @classmethod
    def of(cls, guard: Guard, session: Session, last: Entry, labels: tuple[str, ...]) -> "Account":
        """The account of the named parts, or of everybody, after the last entry."""
        return cls(guard, last.spent, last.tally, session.sums(labels) if labels else {})

    def sums(self) -> dict[str, Amounts]:
        """What they were charged so far, by part; under the empty label for everybody."""
        return {"": self.spent} if self.tally is None else self.tally.sums(self.guard, self.own)

    def most(self) -> Amounts:
        """What none of them was charged more than."""
        return tuple(map(max, zip(*self.sums().values(), strict=True)))

    def short(self, cost: Amounts) -> tuple[str, Amounts] | None:
        """The first part whose people cannot be charged so much, with what they were charged; None if all can."""
        return next(((label, sum_) for label, sum_ in self.sums().items() if not self.guard.covers(sum_, cost)), None)

    def charged(self, cost: Amounts) -> tuple[Amounts, Tally | None, dict[str, Any]]:
        """What was spent after the charge, the tally, and what the entry says about parts."""
        if self.tally is None:
            return self.guard.add(self.spent, cost), None, {}
        tally, grown = self.tally.charged(self.guard, self.own, cost)
        return tally.most(self.guard), tally, {"parts": {label: amounts_out(sum_) for label, sum_ in grown.items()}}


def checked_labels(parts: object, terms: Terms) -> tuple[str, ...]:
    """The labels, if the ledger was made for data with parts."""
    labels = labels_of(parts)
    if labels and terms.parts is None:
        raise InvalidParameterError(
            "This ledger was made for data without parts, so every charge counts for everybody.",
            fix="charge without parts=. Parts are declared when a ledger is made.",
        )
    return labels
