"""Making and finding a ledger: its default place, its anchor, its terms.

Making a ledger, and reading what it was made for.

Where a ledger is kept when nobody says: a function of where the data is, never of what it is called.

A name is easily changed, and a ledger called after it would be left behind with everything that was spent. So a ledger
lies beside its data and is called after its file, folder or table: all who open the data find the same one.
"""

import os
import tomllib
from collections.abc import Iterator
from contextlib import closing, suppress
from glob import glob
from pathlib import Path
from typing import Any

from defocus.errors import (
    DefocusError,
    InvalidParameterError,
    LedgerDamagedError,
    LedgerMismatchError,
    LedgerUnavailableError,
)
from defocus.ledger.anchors import AnchorFile, anchor_path
from defocus.ledger.declarations import Declaration
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

__all__ = ["DATA", "anchor_file_of", "beside", "check_kinds", "exists", "is_there", "make", "place_of", "terms_of"]


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
    **facts: Any,
) -> None:
    """Make a ledger for the data set, unit and budget that were ``given``; None if it may not be made.

    ``facts`` are the purposes and the identity of the data, see :class:`.Declaration`.
    """
    if given is None or None in given:
        raise _nowhere(store.place.name, given)
    dataset, unit, budget = given
    check_budget(budget)
    rule = Guard.definition(budget, filter, divided=parts is not None)
    terms = Terms.new(dataset=dataset, unit=unit, budget=budget, filter_version=rule, parts=parts)
    declared = Declaration.of(terms, {}, terms.dataset, None, **facts)
    said = {} if declared == Declaration(terms.dataset, terms.unit) else {"data": declared.to_dict()}
    guard = Guard.of(terms)
    first = Entry(
        sequence=0,
        kind=GENESIS,
        time=now(),
        who=whoever(who),
        purpose="open the ledger",
        previous=NO_HASH,
        spent=guard.start,
        content={"terms": terms.to_dict(), **said},
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


def exists(where: object) -> bool:
    """Whether a ledger need not be made: it is open, on a server, or a file that exists."""
    return not isinstance(where, str | Path) or "://" in str(where) or Path(where).exists()


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
    """The anchor file at ``path``; by default one beside a ledger that is a file.

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


_ENDING = ".ledger"
DATA = (".parquet", ".pq", ".csv", ".tsv", ".txt", ".gz", ".duckdb", ".ddb", ".db", ".npz", ".npy")
"""How files end that can be opened as data; a notebook or a program of that name has no ledger."""


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

    Where a new ledger would be made, for a ``unit`` and a ``budget``, although one for that unit lies in the folder of
    the data, in the one above or in the data itself that no other data there has, that is refused, whatever its budget
    is: the data was probably renamed, moved or described in another way. Data is other data if it has no file in common
    with this, by whatever name.

    Assumes:
        A copy is other data, and so is data that was moved further: nobody can tell without reading rows.

    >>> beside("visits.csv.gz").name, beside("clinic.duckdb", table="main.stays").name, beside("visits/*.parquet")
    ('visits.ledger', 'stays.ledger', None)
    """
    own = _own(data)
    at = own or (None if file is None else _real(file))
    if at is None:
        return None
    place = at.with_name(_called(at.name if table is None else _last(table)) + _ENDING)
    if unit and budget and not os.path.lexists(place) and not os.path.lexists(anchor_path(place)):
        home = None if file is None else _real(file)
        folders = {
            at.parent,
            at.parent.parent,
            *([at] if at.is_dir() else []),
            *([] if home is None else [home.parent]),
        }
        mine = _files(data) | _files(home)
        lost = sorted({one for folder in folders for one in _lost(folder, mine, table) if _may_be(one, unit)})
        if lost:
            seen = [os.path.relpath(one, None if home is None else home.parent) for one in (*lost, place)]
            written = [f'ledger="{one}"' if file is None else f'ledger = "{one}" in {file.name}' for one in seen]
            raise LedgerMismatchError(
                f"There is no ledger {place.name} yet, but one for the same unit that belongs to no other data there:"
                f" {', '.join(seen[:-1]):.300}. If the data was renamed, moved or described anew, it says what was"
                " spent.",
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


def _files(data: Any, home: Path = Path()) -> set[tuple[int, int]]:
    """Which files and folders there are of some data, with what lies in the folders; links lead to the same file."""
    found = set()
    for one in data if isinstance(data, list | tuple) else [data]:
        if isinstance(one, str | Path) and "://" not in str(one):
            path = os.path.join(home, os.path.expanduser(one))  # noqa: PTH111, PTH118  # never raise
            for each in [path] if os.path.exists(path) else glob(path, recursive=True):  # noqa: PTH110, PTH207
                for file in (Path(each), *_inside(Path(each))):
                    with suppress(OSError):
                        found.add((file.stat().st_dev, file.stat().st_ino))
    return found


def _inside(folder: Path) -> list[Path]:
    """What lies in a folder that can be read."""
    try:
        return list(folder.iterdir()) if folder.is_dir() else []
    except OSError:
        return []


def _lost(folder: Path, mine: set[tuple[int, int]], table: str | None) -> Iterator[Path]:
    """Ledgers, and anchors whose ledger is gone, that no other data and no dataset file about such data there has."""
    here = _inside(folder)
    ledgers = {path for path in here if path.name.endswith(_ENDING)}
    ledgers |= {path.with_name(path.name[:-7]) for path in here if path.name.endswith(f"{_ENDING}.anchor")}
    if ledgers:
        claimed = {place for path in here if _ENDING not in path.name for place in _claimed(path, mine, table)}
        yield from ledgers - claimed


def _claimed(path: Path, mine: set[tuple[int, int]], table: str | None) -> list[Path]:
    """The ledgers that a data file, a folder or a dataset file has; none if it is about my own data, or about none."""
    there = _files(path)
    if not there or there & mine:
        return []
    names = [_called(path.name) + _ENDING]
    if path.suffix.lower() == ".toml":
        try:
            said = tomllib.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            return []
        words = {key: word for key, word in said.items() if isinstance(word, str)}
        files = _files(said.get("data"), path.parent)
        if not files and "://" not in str(said.get("data")):
            return []
        if files & mine and _last(words.get("table")) == _last(table):
            return []
        names += [words["ledger"]] if "ledger" in words else []
        names += [_last(words[key]) + _ENDING for key in ("name", "table") if key in words]
    elif not path.is_dir() and not path.name.lower().endswith(DATA):
        return []
    return [_real(path.parent / name) for name in names]


def _last(table: str | None) -> str:
    return (table or "").rpartition(".")[2]


def _may_be(path: Path, unit: Unit) -> bool:
    """Whether a ledger was made for this unit, or may have been: its anchor is there and it cannot be read."""
    try:
        with closing(Store(place_of(path, timeout=10.0, read_only=True))) as store, store.session() as session:
            return terms_of(session).unit == unit
    except DefocusError:  # others call their files so too
        return anchor_path(path).exists()
