"""Whether a dataset file says what its ledger was made for, if there is one already."""

from defocus.errors import LedgerBusyError, LedgerError, LedgerUnavailableError
from defocus.ledger import Ledger
from defocus.tables.checking import open_dataset
from defocus.tables.datasets import Dataset
from defocus.tables.dividing import divided, in_ledger
from defocus.tables.parts_left import undivided
from defocus.tables.rows import Division

__all__ = ["compared", "ledger_of"]


def ledger_of(dataset: Dataset) -> Ledger | None:
    """The ledger of a dataset file for reading only; None if nobody has made it yet.

    One that was made for something else, or is gone, is refused.
    """
    book = Ledger.find(dataset.ledger_place, anchor_file=dataset.anchor_place)
    try:
        if book is not None:
            book.terms.hold(dataset=dataset.name, unit=dataset.unit, budget=dataset.budget)
    except LedgerError:
        if book is not None:
            book.close()
        raise
    return book


def compared(dataset: Dataset) -> tuple[list[str], list[str]]:
    """What contradicts the ledger, and what should be known beside it, of a file that fits its data.

    Nothing is written, neither is a ledger made. One that cannot be reached is told, not taken for a contradiction.
    """
    try:
        book = ledger_of(dataset)
        if book is None:
            return [], []
        with book:
            division = _division(dataset)
            book.terms.hold(dataset=None, unit=None, budget=None, parts=in_ledger(division))
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
