"""What is left of a budget, for everybody and for parts, as a table shows it."""

import json

from defocus.ledger import Ledger, Parts
from defocus.ledger.guards import Guard
from defocus.tables.dividing import IN_ONE_PART, described, in_ledger
from defocus.tables.rows import Division

__all__ = ["undivided", "whats_left"]


def whats_left(division: Division | None, ledger: Ledger) -> list[str]:
    """Whom the ledger protects and what is left; where there are parts, for whom.

    Of a table that is restricted to some parts, what is left for the heaviest of them.
    """
    protects, tally = f"protects {ledger.unit}", ledger.tally()
    if division is None or division.apart is None or tally is None:
        divided = [] if division is None else [f"in {described(division)}"]
        return [f"{protects}; {ledger.remaining()}", *divided, *undivided(division, ledger)]
    if division.chosen:
        return [f"{protects}; left for these parts: {ledger.remaining(*division.chosen)}", f"in {described(division)}"]
    fresh = Guard.of(ledger.terms).remaining(tally.common)
    return [
        f"{protects}; left for everybody: {ledger.remaining()}",
        f"in {described(division)}; left for a part that was not charged yet: {fresh}",
    ]


def undivided(division: Division | None, ledger: Ledger) -> list[str]:
    """That a ledger counts parts apart, and the table is opened without them. This is sound, and wastes budget."""
    parts = ledger.terms.parts
    if parts is None or in_ledger(division) is not None:
        return []
    return [f"the ledger has {parts}; rows opened without these parts are charged to everybody: declare {_said(parts)}"]


def _said(parts: Parts) -> str:
    """How these parts are declared."""
    column = json.dumps(parts.column, ensure_ascii=False)
    return f"parts={column}" if parts.apart == "rows" else f'parts=dp.parts({column}, people="{IN_ONE_PART}")'
