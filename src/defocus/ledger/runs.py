"""Runs that go on after their charge: the charge that paid for one, and where it notes what it releases.

A run releases many times for one charge, so it notes what it released, where whoever holds its state cannot change it:
in a folder beside the ledger, ``visits.ledger.runs/``, in a file that is named after the charge.
"""

import os
from pathlib import Path

from defocus.ledger.declarations import Declaration
from defocus.ledger.entries import CHARGE, DATA, RELEASE, Entry
from defocus.ledger.ledger import Ledger
from defocus.ledger.receipts import Receipt
from defocus.privacy.wire import from_wire

__all__ = ["charge_of", "make_run_folder", "run_file", "run_folder"]


def run_folder(ledger: Ledger) -> Path | None:
    """The folder of the runs of a ledger; None if the ledger is no file."""
    return None if "://" in ledger.where else Path(f"{ledger.where}.runs")


def run_file(ledger: Ledger, sequence: int, digest: str, suffix: str = "") -> Path | None:
    """The file of the run that the charge of this number and hash paid for; None if the ledger is no file."""
    folder = run_folder(ledger)
    return None if folder is None else folder / f"{sequence}-{digest[:16]}{suffix}"


def make_run_folder(folder: Path) -> None:
    """Make the folder for its owner alone, if it is not there; OSError where nothing can be noted in it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(0, "it is not writable")


def charge_of(ledger: Ledger, sequence: object, digest: object) -> tuple[Receipt, Entry | None] | None:
    """The receipt of a run, and the entry that notes its end, if there is one.

    None if it was not charged to this ledger, for this data set, and for persons who appear in it as they do now.
    """
    charge = release = None
    unit = ledger.person if ledger.terms.person is None else None
    for each in ledger.entries():
        if each.kind == DATA and charge is None and each.content["data"]["name"] == ledger.dataset:
            unit = Declaration.read(each.content["data"]).unit
        if each.sequence == sequence:
            charge = each
        elif each.kind == RELEASE and each.content["charge"] == sequence:
            release = each
    if charge is None or charge.kind != CHARGE or charge.hash != digest:
        return None
    about = charge.content.get("data", None if ledger.terms.person is not None else ledger.dataset)
    if about != ledger.dataset or unit != ledger.unit:  # planned for other data, or for persons who own less
        return None
    return Receipt.of(charge, from_wire(charge.content["event"]), ledger.terms), release
