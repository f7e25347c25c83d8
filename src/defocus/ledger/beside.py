"""Where a ledger is kept when nobody says: a function of where the data is, never of what it is called.

A name is easily changed, and a ledger called after it would be left behind with everything that was spent. So a ledger
lies beside its data and is called after its file, folder or table: all who open the data find the same one.
"""

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from defocus.errors import DefocusError, LedgerMismatchError
from defocus.ledger.anchors import anchor_path
from defocus.ledger.making import terms_of
from defocus.ledger.opening import place_of
from defocus.ledger.store import Store
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Unit

__all__ = ["beside"]

_ENDING = ".ledger"


def beside(
    data: Any,
    *,
    table: str | None = None,
    unit: Unit | None = None,
    budget: Budget | None = None,
    file: Path | None = None,
) -> Path | None:
    """The place of the ledger of ``data`` if nobody says; None if the data has no place of its own.

    Data without one (several files, a server) has its ledger beside the dataset ``file``, if one describes it, called
    after the table or that file. Links are followed, so that one file has one ledger.

    Where a new ledger would be made for this ``unit`` and ``budget`` although there is one for the same two in the
    folder that nothing there claims, that is refused: the data was probably renamed.

    >>> beside("visits.csv.gz").name, beside("clinic.duckdb", table="main.stays").name, beside("visits/*.parquet")
    ('visits.ledger', 'stays.ledger', None)
    """
    own = _own(data)
    at = own or (None if file is None else _real(file))
    if at is None:
        return None
    place = at.with_name(_called(at.name if table is None else table.rpartition(".")[2]) + _ENDING)
    if unit and budget and not os.path.lexists(place) and not os.path.lexists(anchor_path(place)):
        home = None if file is None else _real(file)
        lost = sorted(set(_lost({at.parent, *([] if home is None else [home.parent])}, {own, home}, (unit, budget))))
        if lost:
            seen = [os.path.relpath(one, place.parent if home is None else home.parent) for one in (*lost, place)]
            written = [f'ledger="{one}"' if file is None else f'ledger = "{one}" in {file.name}' for one in seen]
            raise LedgerMismatchError(
                f"There is no ledger {place.name} yet, but one for the same unit and budget that belongs to no other"
                f" data there: {', '.join(seen[:-1]):.300}. If the data was renamed or moved, it says what was spent.",
                fix=f"write {written[0]} if that one belongs to the data; if the data is new, {written[-1]}.",
            )
    return place


def _own(data: Any) -> Path | None:
    """The file or folder that is the data."""
    if not isinstance(data, str | Path) or "://" in str(data):
        return None
    path = _real(Path(data).expanduser())
    return path if path.exists() or not any(sign in str(data) for sign in "*?[") else None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _called(name: str) -> str:
    return name.partition(".")[0] or name


def _lost(folders: set[Path], mine: set[Path | None], terms: tuple[Unit, Budget]) -> Iterator[Path]:
    """Ledgers with these terms, and anchors whose ledger is gone, that no data and no dataset file there claims."""
    for folder in folders:
        here = [path for path in folder.iterdir() if path not in mine] if folder.is_dir() else []
        ledgers = {path for path in here if path.name.endswith(_ENDING)}
        ledgers |= {path.with_name(path.name[:-7]) for path in here if path.name.endswith(f"{_ENDING}.anchor")}
        claimed = {place for path in here if _ENDING not in path.name for place in _claimed(path, mine)}
        yield from (path for path in ledgers - claimed if _may_be(path, terms))


def _claimed(path: Path, mine: set[Path | None]) -> list[Path]:
    """The ledgers that a data file, a folder or a dataset file has; none if it is about my own data."""
    names = [_called(path.name) + _ENDING]
    if path.suffix.lower() == ".toml":
        try:
            said = tomllib.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            said = {}
        words = {key: word for key, word in said.items() if isinstance(word, str)}
        if _real(path.parent / words.get("data", "")) in mine:
            return []
        names += [words["ledger"]] if "ledger" in words else []
        names += [words[key].rpartition(".")[2] + _ENDING for key in ("name", "table") if key in words]
    return [_real(path.parent / name) for name in names]


def _may_be(path: Path, terms: tuple[Unit, Budget]) -> bool:
    """Whether a ledger was made for this unit and budget, or may have been: only its anchor is left."""
    if not path.exists():
        return True
    try:
        store = Store(place_of(path, timeout=10.0, read_only=True))
        try:
            with store.session() as session:
                found = terms_of(session)
                return (found.unit, found.budget) == terms
        finally:
            store.close()
    except DefocusError:  # it is no ledger, or one that cannot be used either
        return False
