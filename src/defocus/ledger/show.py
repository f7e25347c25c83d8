"""A ledger for the eye: a table in a terminal, a table on a page. Nothing stored is taken for markup."""

import json
from collections.abc import Iterable, Mapping
from html import escape

from rich.table import Table
from rich.text import Text

from defocus.ledger.entries import CHARGE, RELEASE, Entry
from defocus.ledger.guards import Remaining
from defocus.ledger.terms import Terms
from defocus.privacy.expressions import unparse
from defocus.privacy.wire import from_wire

__all__ = ["page", "summary", "table"]

_COLUMNS = ("#", "time (UTC)", "kind", "who", "purpose", "what")
_WIDEST = 160


def summary(terms: Terms, remaining: Remaining, where: str, entries: int) -> Mapping[str, str]:
    """The facts above the table."""
    return {
        "data set": terms.dataset,
        "protects": str(terms.unit),
        "budget": str(terms.budget),
        "remaining": str(remaining),
        "entries": str(entries),
        "kept at": where,
    }


def table(facts: Mapping[str, str], entries: Iterable[Entry]) -> Table:
    """The newest entries for a terminal."""
    made = Table(
        title=Text(f"Ledger of {facts['data set']}: {facts['protects']}"),
        caption=Text(f"{facts['budget']}; remaining: {facts['remaining']}; {facts['entries']} entries"),
    )
    for name in _COLUMNS:
        made.add_column(name, justify="right" if name == "#" else "left", overflow="fold")
    for entry in entries:
        made.add_row(*(Text(cell) for cell in _cells(entry)))
    return made


def page(facts: Mapping[str, str], entries: Iterable[Entry]) -> str:
    """The newest entries for a notebook."""
    top = "".join(f"<tr><th align='left'>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in facts.items())
    head = "".join(f"<th>{escape(name)}</th>" for name in _COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(entry)) + "</tr>" for entry in entries
    )
    return f"<div><table>{top}</table><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def _cells(entry: Entry) -> tuple[str, ...]:
    if entry.kind == CHARGE:
        what = unparse(from_wire(entry.content["event"]))
    elif entry.kind == RELEASE:
        kept = entry.content["value"]
        what = f"for charge {entry.content['charge']}: " + (
            json.dumps(kept[0]) if kept else f"digest {entry.content['digest'][:12]}…"
        )
    else:
        what = "opened"
    short = what if len(what) <= _WIDEST else f"{what[: _WIDEST - 1]}…"
    return (str(entry.sequence), entry.time[:19].replace("T", " "), entry.kind, entry.who, entry.purpose, short)
