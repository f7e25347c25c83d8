"""``defocus ledger``: what was charged, what is left, and whether the record can be trusted."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from defocus.cli.terminal import above, console, facts, plain, table, to_json
from defocus.errors import count
from defocus.ledger import Ledger
from defocus.ledger import verify as examine
from defocus.ledger.entries import CHARGE, GENESIS, Entry, amounts_out
from defocus.ledger.guards import Guard
from defocus.ledger.terms import Terms
from defocus.privacy.events import Event
from defocus.privacy.expressions import unparse
from defocus.privacy.filters import Cost, Filter
from defocus.privacy.guidance import spoken_delta
from defocus.privacy.wire import from_wire
from defocus.release import Promise, promise

__all__ = ["show", "verify"]

_MOST_EVENTS = 64
"""An accountant may take a second for an event, so the epsilon of more kinds of releases is not looked up."""


def show(where: str, *, last: int | None, as_json: bool) -> None:
    """Print the terms, what is left, and the entries of a ledger; it is opened for reading only."""
    newest = None if last is None else count("--last", last)
    with Ledger.open(where, read_only=True) as ledger:
        entries = list(deque(ledger.entries(), newest))  # all are read, and checked, before anything is shown
        spent, left, anchor = ledger.spent(), ledger.remaining(), ledger.anchor()
    prices = _Prices.of(ledger.terms, entries)
    if as_json:
        to_json(
            {
                "terms": ledger.terms.to_dict(),
                "spent": prices.labelled(spent),
                "used": prices.used(spent),
                "remaining": str(left),
                "anchor": str(anchor),
                "charges": [prices.to_dict(entry) for entry in entries if entry.kind == CHARGE],
                "entries": [entry.to_dict() for entry in entries],
            }
        )
        return
    terms = [("data", ledger.dataset), ("unit", ledger.unit), ("budget", ledger.budget), ("left", left)]
    screen = console()
    screen.print(facts([*terms, ("anchor", anchor), ("epsilon", prices.legend)]))
    heads = ("#", "when (UTC)", "who", "purpose", "what", "epsilon", "used")
    rows = [(*_row(entry), prices.epsilon(entry), prices.share(entry)) for entry in entries]
    screen.print(table(heads, rows, numbers=("#", "epsilon", "used")))


def verify(where: str, *, anchor: str | None, anchor_file: Path | None, as_json: bool) -> bool:
    """Examine a ledger without trusting it, print what was found, and say whether nothing is wrong."""
    found = examine(where, anchor, anchor_file=anchor_file)
    if as_json:
        to_json(found.to_dict())
        return found.ok
    screen = console()
    for line in str(found).split("\n"):
        style = "red" if line.strip().startswith("problem") else None
        screen.print(plain(line), style=style, soft_wrap=True)
    if found.ok and found.head is not None:  # nobody should keep an anchor of a chain that cannot be trusted
        screen.print(f"anchor: {found.head}", soft_wrap=True)
    return found.ok


@final
@dataclass(frozen=True, slots=True)
class _Prices:
    """What each charge costs by itself, and how much of the budget was used once it counts."""

    rule: Filter
    alone: Mapping[Event, Promise] | None
    """What each event promises; None if there are too many to ask for."""

    @classmethod
    def of(cls, terms: Terms, entries: Sequence[Entry]) -> "_Prices":
        events = {_event(entry) for entry in entries if entry.kind == CHARGE}
        few = len(events) <= _MOST_EVENTS
        asked = {event: promise(event, terms.budget, terms.unit.adjacency) for event in events} if few else None
        return cls(Guard.of(terms).filter, asked)

    @property
    def legend(self) -> str:
        """What the two last columns mean."""
        if self.alone is None:
            return f"shown for up to {_MOST_EVENTS} kinds of releases; add for example --last 20"
        delta = spoken_delta(self.rule.budget)
        return "of each release alone" + (f", at delta {delta:g} where it is not pure" if delta else "")

    def epsilon(self, entry: Entry) -> str:
        if self.alone is None or entry.kind != CHARGE:
            return ""
        return above(self.alone[_event(entry)].epsilon, 4)

    def used(self, spent: Sequence[float]) -> float | None:
        share = self.rule.used(Cost(spent))
        return share if math.isfinite(share) else None

    def share(self, entry: Entry) -> str:
        used = self.used(entry.spent) if entry.kind == CHARGE else None
        return "" if used is None else f"{100 * used:.1f} %"

    def labelled(self, spent: Sequence[float]) -> list[dict[str, Any]]:
        """The numbers that the filter adds up, each with its name and limit; null where it cannot express the run."""
        return [
            {"measure": measure, "spent": amount, "limit": limit}
            for (measure, limit), amount in zip(self.rule.measures, amounts_out(spent), strict=True)
        ]

    def to_dict(self, entry: Entry) -> dict[str, Any]:
        alone = None if self.alone is None else self.alone[_event(entry)]
        finite = alone is not None and math.isfinite(alone.epsilon)
        return {
            "sequence": entry.sequence,
            "what": unparse(_event(entry)),
            "epsilon": alone.epsilon if alone is not None and finite else None,
            "delta": alone.delta if alone is not None and finite else None,
            "used": self.used(entry.spent),
        }


def _event(entry: Entry) -> Event:
    return from_wire(entry.content["event"])


def _row(entry: Entry) -> tuple[Any, ...]:
    when = entry.time.removesuffix("+00:00").replace("T", " ")[:16]
    purpose = entry.purpose if entry.kind == CHARGE else ""  # that of a release is that of its charge
    return entry.sequence, when, entry.who, purpose, _what(entry)


def _what(entry: Entry) -> str:
    if entry.kind == CHARGE:
        return unparse(_event(entry))
    if entry.kind == GENESIS:
        return "opened"
    kept = entry.content["value"]
    return f"released for #{entry.content['charge']}" + (f": {kept[0]}" if kept else "")
