"""Finding the place that a path or address names."""

import os
from pathlib import Path

from defocus.errors import InvalidParameterError, LedgerUnavailableError
from defocus.ledger.anchors import AnchorFile, anchor_path
from defocus.ledger.places import Place, patience, url_of
from defocus.ledger.postgresql import postgresql_schema
from defocus.ledger.sqlite import SqliteFile

__all__ = ["anchor_file_of", "place_of"]


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
