"""The ledger that ``defocus train`` charges."""

from pathlib import Path
from typing import Any

from defocus.cli.training_files import Training
from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger

__all__ = ["opened"]


def opened(asked: Training) -> Ledger:
    """The ledger of the file, made if there is none; refused if it protects somebody else."""
    there = "://" in asked.ledger or Path(asked.ledger).exists()
    new: dict[str, Any] = {} if there else {"budget": asked.budget, "unit": asked.unit, "dataset": asked.name}
    ledger = Ledger.open(asked.ledger, **new)
    if ledger.unit != asked.unit:
        protected = ledger.unit
        ledger.close()
        raise InvalidParameterError(
            f"The file protects {asked.unit}, but the ledger protects {protected}; nothing was charged.",
            fix="write the same [unit] as in the ledger.",
        )
    return ledger
