"""Whether a dataset file says what its ledger was made for, if there is one already."""

from pathlib import Path

from defocus.errors import LedgerBusyError, LedgerError, LedgerUnavailableError
from defocus.ledger import Ledger
from defocus.tables.checking import open_dataset
from defocus.tables.datasets import Dataset
from defocus.tables.dividing import divided, in_ledger
from defocus.tables.parts_left import undivided
from defocus.tables.rows import Division

__all__ = ["compared"]


def compared(dataset: Dataset) -> tuple[list[str], list[str]]:
    """What contradicts the ledger, and what should be known beside it, of a file that fits its data.

    Nothing is written, neither is a ledger made. One that cannot be reached is told, not taken for a contradiction.
    """
    place = dataset.ledger_place
    if "://" not in place and not Path(place).exists():
        return [], []
    division = _division(dataset)
    try:
        with Ledger.open(place, read_only=True) as book:
            book.terms.hold(dataset=dataset.name, unit=dataset.unit, budget=dataset.budget, parts=in_ledger(division))
            return [], undivided(division, book)
    except (LedgerUnavailableError, LedgerBusyError) as error:
        return [], [f"the ledger was not compared: {error.what}"]
    except LedgerError as error:
        return [f"{error.what} {error.fix}"], []


def _division(dataset: Dataset) -> Division | None:
    if dataset.parts is None:
        return None
    opened = open_dataset(dataset)
    try:
        return divided(dataset.parts, opened.schema, dataset.unit, own=opened.own)
    finally:
        opened.engine.close()
