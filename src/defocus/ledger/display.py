"""A ledger as people read it: prices of charges, tables and pages.

What each charge of a ledger costs by itself, and how much of the budget is used once it counts.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from rich.table import Table
from rich.text import Text

from defocus.errors import UnsupportedEventError
from defocus.ledger.declarations import Declaration
from defocus.ledger.entries import CHARGE, DATA, GENESIS, RELEASE, TUNING, Entry, amounts_out
from defocus.ledger.filter import Guard, Remaining
from defocus.ledger.terms import Terms
from defocus.privacy.composition import FixedSequence, single_release_bound
from defocus.privacy.events import Event
from defocus.privacy.expressions import sketch, unparse
from defocus.privacy.filters import Cost, Filter, Used
from defocus.privacy.html import html_facts, html_table
from defocus.privacy.numbers import at_least
from defocus.privacy.wire import from_wire

__all__ = ["COLUMNS", "MOST_EVENTS", "NUMBERS", "Prices", "cells", "charged", "page", "summary", "table"]


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

    def used(self, spent: Sequence[float]) -> Used:
        """The parts of the budget that are used."""
        return self.rule.used(Cost(spent))

    def shares(self, entry: Entry) -> tuple[str, str]:
        """The parts of epsilon (or rho, or mu) and of delta that are used after a charge, in per cent."""
        if entry.kind != CHARGE:
            return "", ""
        used = self.used(entry.spent)
        return _percent(used.share), _percent(used.delta)

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
            "used": self.used(entry.spent).to_dict(),
            **({} if entry.tally is None else {"parts": list(entry.parts)}),
        }

    def _bound(self, entry: Entry) -> FixedSequence | None:
        return None if self.alone is None else self.alone[charged(entry)]


def _percent(share: float | None) -> str:
    return "" if share is None or math.isinf(share) else f"{100 * share:.1f} %"


def charged(entry: Entry) -> Event:
    """The event of a charge."""
    return from_wire(entry.content["event"])


def _alone(event: Event, rule: Filter) -> FixedSequence | None:
    try:
        return single_release_bound(event, rule.budget, rule.adjacency)
    except UnsupportedEventError:
        return None


COLUMNS = ("#", "when (UTC)", "who", "purpose", "what", "epsilon", "used", "of delta")
NUMBERS = ("#", "epsilon", "used", "of delta")
"""The columns that are set to the right."""
_WIDEST = 160
_NAMED = 3
_SHORT = 40
"""A kept value is shown up to this length; a longer one, such as a table, is only mentioned."""


def summary(terms: Terms, remaining: Remaining, where: str, entries: int, divided: str = "") -> Mapping[str, str]:
    """The facts above the table; ``divided`` is what is said about the parts, if there are any."""
    parts = {} if terms.parts is None else {"parts": f"{terms.parts}; {divided}"}
    return {
        "data set": terms.dataset,
        "protects": str(terms.unit),
        "budget": str(terms.budget),
        "remaining": str(remaining),
        **parts,
        "entries": str(entries),
        "kept at": where,
    }


def table(facts: Mapping[str, str], entries: Iterable[Entry], prices: Prices) -> Table:
    """The newest entries for a terminal."""
    divided, entry_count = [facts[name] for name in ("parts",) if name in facts], f"{facts['entries']} entries"
    made = Table(
        title=Text(f"Ledger of {facts['data set']}: {facts['protects']}"),
        caption=Text("; ".join([facts["budget"], f"remaining: {facts['remaining']}", *divided, entry_count])),
    )
    for name in COLUMNS:
        right = name in NUMBERS
        made.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=right)
    for entry in entries:
        made.add_row(*(Text(cell) for cell in cells(entry, prices, widest=_WIDEST)))
    return made


def page(facts: Mapping[str, str], entries: Iterable[Entry], prices: Prices) -> str:
    """The newest entries for a notebook."""
    rows = (cells(entry, prices, widest=_WIDEST) for entry in entries)
    right = [name in NUMBERS or name.startswith("when") for name in COLUMNS]
    about = f"newest entries of the ledger of {facts['data set']}"
    return f"<div>{html_facts(facts)}{html_table(COLUMNS, rows, right=right, caption=about)}</div>"


def cells(entry: Entry, prices: Prices, *, widest: int | None = None) -> tuple[str, ...]:
    """One row of :data:`COLUMNS`; what happened is cut to ``widest`` characters."""
    what = _what(entry)
    short = what if widest is None or len(what) <= widest else f"{what[: widest - 1]}…"
    when = entry.time[:16].replace("T", " ")
    purpose = "" if entry.kind == RELEASE else entry.purpose  # that of a release is that of its charge
    return str(entry.sequence), when, entry.who, purpose, short, prices.epsilon(entry), *prices.shares(entry)


def _parts(entry: Entry) -> str:
    """The parts that a charge is about, a few by name; nothing for everybody."""
    labels = list(entry.parts)
    more = f" and {len(labels) - _NAMED} more parts" if len(labels) > _NAMED else ""
    return f"{', '.join(labels[:_NAMED])}{more}: " if labels else ""


def _what(entry: Entry) -> str:
    if entry.kind == CHARGE:
        data, question = (entry.content.get(name, "") for name in ("data", "question"))
        about = f"{data}: " if data else ""
        asked = "" if question in {"", entry.purpose} else f"{question}; "
        approved = f"; approved by {entry.content['approved_by']}" if "approved_by" in entry.content else ""
        return f"{about}{_parts(entry)}{asked}{sketch(charged(entry))}{approved}"
    if entry.kind == TUNING:
        return f"not protected, chosen by looking at {entry.content['data']}: {entry.content['tuning']}"
    if entry.kind == DATA:
        return f"declared {Declaration.read(entry.content['data'])}"
    if entry.kind == GENESIS:
        return "opened"
    kept = entry.content["value"]
    text = json.dumps(kept[0]) if kept else ""
    shown = f": {text}" if text and len(text) <= _SHORT else ", kept" if text else ""
    return f"released for #{entry.content['charge']}{shown}"
