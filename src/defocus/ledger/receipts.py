"""Accounts and receipts: the proof that a charge is on disk."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from defocus.errors import InvalidParameterError
from defocus.ledger.anchors import Anchor
from defocus.ledger.entries import Entry, amounts_in, amounts_out
from defocus.ledger.filter import Amounts, Guard, Tally
from defocus.ledger.parts import labels_of
from defocus.ledger.store import Session
from defocus.ledger.terms import Terms
from defocus.privacy.composition import Cost
from defocus.privacy.events import Event
from defocus.privacy.wire import from_wire, to_wire

__all__ = ["Account", "Receipt", "Recorded", "checked_labels"]


@final
@dataclass(frozen=True, slots=True)
class Receipt:
    """A charge that is committed and flushed: whoever holds this may sample, once.

    ``spent`` is everything charged so far, this charge included, in the units of the filter. ``parts`` are those the
    release is about, none for everybody, and ``spent`` the most that anybody in them was charged.

    >>> from defocus import examples
    >>> from defocus.privacy import Laplace as Noise
    >>> book = examples.ledger()
    >>> receipt = book.charge(Noise(4), purpose="a count")
    >>> receipt.sequence, receipt.purpose, receipt.event
    (1, 'a count', Laplace(ratio=4))
    >>> book.close()
    """

    terms: Terms
    sequence: int
    hash: str
    time: str
    who: str
    purpose: str
    event: Event
    cost: tuple[float, ...]
    spent: tuple[float, ...]
    parts: tuple[str, ...] = ()

    @classmethod
    def of(cls, entry: Entry, event: Event, terms: Terms) -> "Receipt":
        """The receipt for a charge that has been committed."""
        return cls(
            terms=terms,
            sequence=entry.sequence,
            hash=entry.hash,
            time=entry.time,
            who=entry.who,
            purpose=entry.purpose,
            event=event,
            cost=amounts_in(entry.content["cost"]),
            spent=_spent(entry),
            parts=tuple(entry.parts),
        )

    @property
    def anchor(self) -> Anchor:
        """Keep it elsewhere: it vouches for every entry up to this one."""
        return Anchor(self.sequence, self.hash)

    def to_dict(self) -> dict[str, Any]:
        """The receipt with JSON types only."""
        divided = {} if self.terms.parts is None else {"parts": list(self.parts)}
        return {
            "ledger": self.terms.to_dict(),
            "sequence": self.sequence,
            "hash": self.hash,
            "time": self.time,
            "who": self.who,
            "purpose": self.purpose,
            "event": to_wire(self.event),
            "cost": amounts_out(self.cost),
            "spent": amounts_out(self.spent),
            **divided,
        }

    @classmethod
    def read(cls, said: Any) -> "Receipt":
        """The receipt that :meth:`to_dict` wrote."""
        return cls(
            terms=Terms.read(said["ledger"]),
            event=from_wire(said["event"]),
            cost=amounts_in(said["cost"]),
            spent=amounts_in(said["spent"]),
            parts=tuple(said.get("parts", ())),
            **{name: said[name] for name in ("sequence", "hash", "time", "who", "purpose")},
        )

    def __str__(self) -> str:
        return f"receipt {self.sequence} of {self.terms.dataset}: {self.purpose} ({self.who}, {self.time})"


def _spent(entry: Entry) -> tuple[float, ...]:
    """What the people whom a charge is about were charged, at most."""
    if entry.tally is None or not entry.parts:
        return entry.spent
    sums = [tuple(Cost(entry.tally.common) + Cost(sum_)) for sum_ in entry.parts.values()]
    return tuple(map(max, zip(*sums, strict=True)))


@final
@dataclass(frozen=True, slots=True)
class Recorded:
    """A kept answer and the charge that paid for it.

    >>> from defocus import examples, mechanisms, release
    >>> with examples.ledger() as book:
    ...     noise = mechanisms.Laplace(scale=4)
    ...     first = release.release(noise, 1402, ledger=book, purpose="patients", request="May")
    ...     book.recall("May").value == first.value
    True
    """

    value: Any
    receipt: Receipt
    description: str | None = None
    facts: str | None = None
    """A digest of everything public that the answer depends on; None where it was not noted."""


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

    def admits(self, event: Event) -> bool:
        """Whether ``event`` would be admitted."""
        return self.short(self.guard.cost(event)) is None

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
