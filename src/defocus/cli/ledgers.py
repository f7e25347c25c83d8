"""``defocus ledger``: what was charged, what is left, and whether the record can be trusted."""

from collections import deque
from typing import Any

from defocus.cli.terminal import console, facts, plain, table, to_json
from defocus.errors import count
from defocus.ledger import Ledger
from defocus.ledger import verify as examine
from defocus.ledger.entries import CHARGE, GENESIS, Entry
from defocus.privacy.expressions import unparse
from defocus.privacy.wire import from_wire

__all__ = ["show", "verify"]


def show(where: str, *, last: int | None, as_json: bool) -> None:
    """Print the terms, what is left, and the entries of a ledger; it is opened for reading only."""
    newest = None if last is None else count("--last", last)
    with Ledger.open(where, read_only=True) as ledger:
        if as_json:
            to_json(
                {
                    "terms": ledger.terms.to_dict(),
                    "spent": list(ledger.spent()),
                    "remaining": str(ledger.remaining()),
                    "anchor": str(ledger.anchor()),
                    "entries": [entry.to_dict() for entry in deque(ledger.entries(), newest)],
                }
            )
            return
        screen = console()
        terms = [
            ("data", ledger.dataset),
            ("unit", ledger.unit),
            ("budget", ledger.budget),
            ("left", ledger.remaining()),
            ("anchor", ledger.anchor()),
        ]
        screen.print(facts(terms))
        rows = [_row(entry) for entry in deque(ledger.entries(), newest)]
        screen.print(table(("#", "when (UTC)", "who", "purpose", "what"), rows, numbers=("#",)))


def verify(where: str, *, anchor: str | None, as_json: bool) -> bool:
    """Examine a ledger without trusting it, print what was found, and say whether nothing is wrong."""
    found = examine(where, anchor)
    if as_json:
        to_json(found.to_dict())
        return found.ok
    screen = console()
    for line in str(found).split("\n"):
        style = "red" if line.strip().startswith("problem") else None
        screen.print(plain(line), style=style, soft_wrap=True)
    if found.head is not None:
        screen.print(f"anchor: {found.head}", soft_wrap=True)
    return found.ok


def _row(entry: Entry) -> tuple[Any, ...]:
    when = entry.time.removesuffix("+00:00").replace("T", " ")[:16]
    purpose = entry.purpose if entry.kind == CHARGE else ""  # that of a release is that of its charge
    return entry.sequence, when, entry.who, purpose, _what(entry)


def _what(entry: Entry) -> str:
    if entry.kind == CHARGE:
        return unparse(from_wire(entry.content["event"]))
    if entry.kind == GENESIS:
        return "opened"
    kept = entry.content["value"]
    return f"released for #{entry.content['charge']}" + (f": {kept[0]}" if kept else "")
