"""Making a ledger, and reading what it was made for."""

import os
from pathlib import Path
from typing import Any

from defocus.errors import InvalidParameterError, LedgerDamagedError, LedgerUnavailableError
from defocus.ledger.anchors import AnchorFile, anchor_path
from defocus.ledger.entries import GENESIS, NO_HASH, Entry, now
from defocus.ledger.filter import Guard, Tally
from defocus.ledger.parts import Parts
from defocus.ledger.places import Place, patience, url_of
from defocus.ledger.postgresql import postgresql_schema
from defocus.ledger.sqlite import SqliteFile
from defocus.ledger.store import Session, Store, checked
from defocus.ledger.terms import Terms
from defocus.ledger.text import whoever
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import check_budget
from defocus.privacy.units import Unit

__all__ = ["anchor_file_of", "check_kinds", "is_there", "make", "place_of", "terms_of"]


def check_kinds(*, budget: object, unit: object, parts: object = None) -> None:
    """Refuse a budget, a unit or parts of the wrong type."""
    if parts is not None and not isinstance(parts, Parts):
        raise InvalidParameterError(
            f"parts must be Parts, but it is {type(parts).__name__}.",
            fix='write ledger.Parts("day", "date", "rows"), or open a table with parts="day".',
        )
    if budget is not None and not isinstance(budget, Budget):
        raise InvalidParameterError(
            f"budget must be a Budget, but it is {type(budget).__name__}.", fix="write Budget(1, 1e-6)."
        )
    if unit is not None and not isinstance(unit, Unit):
        raise InvalidParameterError(
            f"unit must be a Unit, but it is {type(unit).__name__}.", fix='write rows() or user("patient_id").'
        )


def make(
    store: Store,
    given: tuple[Any, Any, Any] | None,
    who: str | None,
    *,
    parts: Parts | None = None,
    filter: str | None = None,  # noqa: A002 - what it is called everywhere
) -> None:
    """Make a ledger for the data set, unit and budget that were ``given``; None if it may not be made."""
    if given is None or None in given:
        raise _nowhere(store.place.name, given)
    dataset, unit, budget = given
    check_budget(budget)
    rule = Guard.definition(budget, filter, divided=parts is not None)
    terms = Terms.new(dataset=dataset, unit=unit, budget=budget, filter_version=rule, parts=parts)
    guard = Guard.of(terms)
    first = Entry(
        sequence=0,
        kind=GENESIS,
        time=now(),
        who=whoever(who),
        purpose="open the ledger",
        previous=NO_HASH,
        spent=guard.start,
        content={"terms": terms.to_dict()},
        tally=None if parts is None else Tally.start(guard),
    )
    store.create(first)


def is_there(store: Store, file: AnchorFile | None) -> bool:
    """Whether there is a ledger; refuses a place whose ledger is gone."""
    known = None if file is None else file.read()  # read first: who makes a ledger writes the anchor last
    if not store.place.missing() and store.exists():
        return True
    if file is not None and known is not None:
        raise LedgerDamagedError(
            f"The anchor file {file.path} vouches for a ledger of {known.sequence + 1} entries, but there is none at"
            f" {store.place.name}: it was deleted or moved.",
            fix=f"put the ledger back. {file.anew}",
        )
    return False


def _nowhere(place: str, given: tuple[Any, Any, Any] | None) -> LedgerUnavailableError:
    """There is no ledger, and what was given does not suffice to make one."""
    if given is None:
        return LedgerUnavailableError(
            f"There is no ledger at {place}.", fix="check the path; a ledger is made where its data is first opened."
        )
    names = ("dataset", "unit", "budget")
    absent = [f"{name}=" for name, value in zip(names, given, strict=True) if value is None]
    listed = " and ".join([", ".join(absent[:-1]), absent[-1]] if len(absent) > 1 else absent)
    beside = "" if len(absent) == len(names) else " as well"
    return LedgerUnavailableError(
        f"There is no ledger at {place}.", fix=f"check the path; to make a new ledger, give {listed}{beside}."
    )


def terms_of(session: Session) -> Terms:
    """What the ledger was made for, as its first entry says."""
    row = session.row(0)
    entry = None if row is None else checked(row)
    if entry is None or entry.kind != GENESIS:
        raise LedgerDamagedError("The first entry is missing.", fix="restore the ledger from a trusted copy.")
    return Terms.read(entry.content["terms"])


def place_of(where: str | Path, *, timeout: object, read_only: bool) -> Place:
    """The SQLite file or PostgreSQL schema that ``where`` names."""
    seconds = patience(timeout)
    url = url_of(where)
    if url is not None:
        return postgresql_schema(url, timeout=seconds, read_only=read_only)
    return SqliteFile(_resolved("ledger", where), seconds, read_only)


def anchor_file_of(path: object, place: Place, where: str | Path) -> AnchorFile | None:
    """The anchor file at ``path``; unless told, one beside a ledger that is a file.

    That is beside ``where``, the name that was given, if there is one, so that a link in the place of a ledger does not
    leave its anchor behind; else beside the file that a link leads to.
    """
    usual = None
    if isinstance(place, SqliteFile):
        named = anchor_path(Path(where).expanduser())
        file = _resolved("anchor file", named if os.path.lexists(named) else anchor_path(place.path))
        usual = AnchorFile(file, first_use=True, like=place.path)
    if path is None or isinstance(path, AnchorFile):
        return path or usual
    if not isinstance(path, str | Path) or not str(path) or "\0" in str(path):
        raise InvalidParameterError(
            f"anchor_file must be the path of a file, but it is {type(path).__name__}.",
            fix="pass a path on another disk or machine than the ledger's.",
        )
    file = _resolved("anchor file", path)
    return usual if usual is not None and usual.path == file else AnchorFile(file)


def _resolved(what: str, path: str | Path) -> Path:
    try:
        full = Path(path).expanduser().resolve()
        inside, folder = full.parent.is_dir(), full.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise LedgerUnavailableError(
            f"The path of the {what} cannot be used: {getattr(error, 'strerror', None) or str(error)[:100]}.",
            fix="pass the path of a file.",
        ) from None
    if folder or not inside:
        raise LedgerUnavailableError(
            f"The {what} cannot be kept at {full}: {'it is a directory' if inside else 'its directory is missing'}.",
            fix="pass the path of a file in a directory that exists.",
        )
    return full
