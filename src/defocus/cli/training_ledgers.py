"""The ledger that ``defocus train`` charges."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from defocus.cli.training_files import Training
from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger
from defocus.privacy.events import Event
from defocus.release.charging import admitted

__all__ = ["opened", "price", "tried"]


@contextmanager
def tried(asked: Training) -> Iterator[Ledger]:
    """A ledger like that of the file, to try with made-up data what would be refused; gone afterwards."""
    with TemporaryDirectory() as folder:
        terms: dict[str, Any] = {"budget": asked.budget, "unit": asked.unit, "dataset": asked.name}
        with Ledger.open(Path(folder) / "tried.ledger", **terms) as ledger:
            yield ledger


def price(asked: Training, event: Event, before: str) -> str:
    """What a training would cost, whom it would charge, and whether that is enough. Nothing is charged or made."""
    words = f"{asked.budget}, charged to {Path(asked.ledger).name} before {before}"
    found = Ledger.find(asked.ledger, anchor_file=asked.anchor_file)
    if found is None:
        return words
    with _checked(found, asked) as ledger:
        if admitted(event, asked.budget, ledger) is not None:
            return f"{words}, which covers it"
        return f"{words}: it will be refused, since there is less left: {ledger.remaining()}"


def opened(asked: Training) -> Ledger:
    """The ledger of the file, made if there is none; refused if it protects somebody else."""
    terms: dict[str, Any] = {"budget": asked.budget, "unit": asked.unit, "dataset": asked.name}
    there = "://" in asked.ledger or Path(asked.ledger).exists()
    return _checked(Ledger.open(asked.ledger, anchor_file=asked.anchor_file, **({} if there else terms)), asked)


def _checked(ledger: Ledger, asked: Training) -> Ledger:
    if ledger.unit != asked.unit:
        protected = ledger.unit
        ledger.close()
        raise InvalidParameterError(
            f"The file protects {asked.unit}, but the ledger protects {protected}; nothing was charged.",
            fix="write the same [unit] as in the ledger.",
        )
    return ledger
