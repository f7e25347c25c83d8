"""``defocus ledger``: what was charged, what is left, and whether the record can be trusted."""

from collections import deque
from pathlib import Path

from defocus.cli.terminal import console, facts, plain, table, to_json
from defocus.errors import LedgerUnavailableError, count
from defocus.ledger import Ledger
from defocus.ledger import verify as examine
from defocus.ledger.display import COLUMNS, MOST_EVENTS, NUMBERS, Prices, cells
from defocus.ledger.entries import CHARGE
from defocus.ledger.filter import Guard
from defocus.privacy.calibration import spoken_delta
from defocus.tables.dataset_check import ledger_of
from defocus.tables.dataset_file import read

__all__ = ["ledger_at", "show", "verify"]


def ledger_at(where: str) -> Ledger | None:
    """A ledger for reading only: that of a dataset file, None if nobody has made it yet, or the ledger itself."""
    if "://" not in where and Path(where).suffix.lower() == ".toml":
        return ledger_of(read(where))
    return Ledger.open(where, read_only=True)


def show(where: str, *, last: int | None, as_json: bool) -> None:
    """Print the terms, what is left, and the entries of a ledger, or of that of a dataset file; nothing is written."""
    newest = None if last is None else count("--last", last)
    found = ledger_at(where)
    if found is None:
        raise LedgerUnavailableError(
            "Nothing was released yet, so there is no ledger.", fix="ask a question first: defocus query …."
        )
    with found as ledger:
        entries = list(deque(ledger.entries(), newest))  # all are read, and checked, before anything is shown
        spent, left, anchor, tally = ledger.spent(), ledger.remaining(), ledger.anchor(), ledger.tally()
    prices = Prices.of(ledger.terms, entries)
    if as_json:
        to_json(
            {
                "terms": ledger.terms.to_dict(),
                "spent": prices.labelled(spent),
                "used": prices.used(spent).to_dict(),
                "remaining": str(left),
                "anchor": str(anchor),
                "charges": [prices.to_dict(entry) for entry in entries if entry.kind == CHARGE],
                "entries": [entry.to_dict() for entry in entries],
            }
        )
        return
    terms: list[tuple[str, object]] = [
        ("data", ledger.dataset),
        ("unit", ledger.unit),
        ("budget", ledger.budget),
        ("left", left),
    ]
    if tally is not None:
        terms += [("parts", ledger.terms.parts), ("", tally.words(Guard.of(ledger.terms)))]
    screen = console()
    screen.print(facts([*terms, ("anchor", anchor), ("epsilon", _legend(prices))]))
    screen.print(table(COLUMNS, [cells(entry, prices) for entry in entries], numbers=NUMBERS))


def verify(where: str, *, anchor: str | None, anchor_file: Path | None, as_json: bool) -> bool:
    """Examine a ledger without trusting it, print what was found, and say whether nothing is wrong."""
    found = examine(where, anchor, anchor_file=anchor_file)
    if as_json:
        to_json(found.to_dict())
        return found.ok
    screen = console()
    for place, line in enumerate(str(found).split("\n")):
        style = "red" if 0 < place <= len(found.problems) else None
        screen.print(plain(line), style=style, soft_wrap=True)
    if found.ok and found.head is not None:  # nobody should keep an anchor of a chain that cannot be trusted
        screen.print(f"anchor: {found.head}", soft_wrap=True)
    return found.ok


def _legend(prices: Prices) -> str:
    """What the two last columns mean."""
    if prices.alone is None:
        return f"shown for up to {MOST_EVENTS} kinds of releases; add for example --last 20"
    delta = spoken_delta(prices.rule.budget)
    return "of each release alone" + (f", at delta {delta:g} where it is not pure" if delta else "")
