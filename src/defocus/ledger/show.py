"""A ledger for the eye: a table in a terminal, a table on a page. Nothing stored is taken for markup."""

import json
from collections.abc import Iterable, Mapping

from rich.table import Table
from rich.text import Text

from defocus.ledger.entries import CHARGE, GENESIS, Entry
from defocus.ledger.guards import Remaining
from defocus.ledger.prices import Prices, charged
from defocus.ledger.terms import Terms
from defocus.privacy.expressions import sketch
from defocus.privacy.pages import html_facts, html_table

__all__ = ["COLUMNS", "NUMBERS", "cells", "page", "summary", "table"]

COLUMNS = ("#", "when (UTC)", "who", "purpose", "what", "epsilon", "used")
NUMBERS = ("#", "epsilon", "used")
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
    return f"<div>{html_facts(facts)}{html_table(COLUMNS, rows)}</div>"


def cells(entry: Entry, prices: Prices, *, widest: int | None = None) -> tuple[str, ...]:
    """One row of :data:`COLUMNS`; what happened is cut to ``widest`` characters."""
    what = _what(entry)
    short = what if widest is None or len(what) <= widest else f"{what[: widest - 1]}…"
    when = entry.time[:16].replace("T", " ")
    purpose = entry.purpose if entry.kind == CHARGE else ""  # that of a release is that of its charge
    return str(entry.sequence), when, entry.who, purpose, short, prices.epsilon(entry), prices.share(entry)


def _parts(entry: Entry) -> str:
    """The parts that a charge is about, a few by name; nothing for everybody."""
    labels = list(entry.parts)
    more = f" and {len(labels) - _NAMED} more parts" if len(labels) > _NAMED else ""
    return f"{', '.join(labels[:_NAMED])}{more}: " if labels else ""


def _what(entry: Entry) -> str:
    if entry.kind == CHARGE:
        return f"{_parts(entry)}{sketch(charged(entry))}"
    if entry.kind == GENESIS:
        return "opened"
    kept = entry.content["value"]
    text = json.dumps(kept[0]) if kept else ""
    shown = f": {text}" if text and len(text) <= _SHORT else ", kept" if text else ""
    return f"released for #{entry.content['charge']}{shown}"
