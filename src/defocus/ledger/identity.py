"""Which data a data set is, in one text that tells it from other data and is kept as a salted digest only.

Files are told apart by their sizes and by samples of their bytes, wherever they lie and whatever they are called;
tables of a database by its address and their name, since a database file changes with every write. Data in memory has
no identity.
"""

import hashlib
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

__all__ = ["identity"]

_BLOCKS, _BLOCK = 64, 1 << 16
"""So many blocks of so many bytes are read of a file, the first and the last among them."""
_DATABASES = (".duckdb", ".ddb", ".db")


def identity(data: Any, table: str | None = None) -> str | None:
    """What identifies the data at a path, a glob, a list of those or an address; None for anything else.

    Assumes:
        It tells files apart that were mistaken for each other. It is no proof: bytes between the samples of a file
        above 4 MiB may differ, and of a DuckDB file only its name and the table are looked at.

    >>> identity("postgresql://ann:secret@db.example/clinic?sslmode=require", "stays")
    'postgresql db.example:5432/clinic stays'
    >>> identity("mysql://ann@db.example/clinic", "stays")
    'mysql db.example:3306/clinic stays'
    >>> identity([3, 1, 2]) is None
    True
    """
    listed = data if isinstance(data, list | tuple) else [data]
    if not listed or not all(isinstance(one, str | Path) for one in listed):
        return None
    if any("://" in str(one) for one in listed):
        return _address(str(listed[0]), table) if len(listed) == 1 else None
    files = sorted(set(_files(listed)))
    if not files:
        return None
    if files[0].suffix.lower() in _DATABASES:
        return f"database {files[0].name} {table or ''}"
    try:
        digests = sorted(_digest(file) for file in files)
    except OSError:
        return None
    return f"files {hashlib.sha256(' '.join(digests).encode()).hexdigest()} {table or ''}"


def _address(address: str, table: str | None) -> str | None:
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        return None
    if url.get_backend_name() in {"mysql", "mariadb"}:
        where = url.query.get("unix_socket") or f"{(url.host or 'localhost').lower()}:{url.port or 3306}"
        return f"mysql {where}/{url.database or ''} {(table or '').removeprefix(f'{url.database}.')}"
    if not url.get_backend_name().startswith("postgres"):
        return None
    query = {key: value if isinstance(value, str) else ",".join(value) for key, value in url.query.items()}
    host, port = (url.host or query.get("host") or "localhost").lower(), url.port or query.get("port") or 5432
    database = url.database or query.get("dbname") or url.username or ""
    where = f"{host}:{port}/{database}{query.get('options', '')}"
    return f"postgresql {where} {(table or '').removeprefix('public.')}"


def _files(listed: list[Any] | tuple[Any, ...]) -> Iterator[Path]:
    for one in listed:
        path = Path(one).expanduser()
        for found in [path] if path.exists() else map(Path, glob(str(path), recursive=True)):  # noqa: PTH207
            inside = sorted(found.rglob("*")) if found.is_dir() else [found]
            yield from (file.resolve() for file in inside if file.is_file() and _holds_rows(file))


def _holds_rows(file: Path) -> bool:
    """Not a ledger, nor what Spark and others write beside their data."""
    return ".ledger" not in str(file) and not file.name.startswith(("_", "."))


def _digest(file: Path) -> str:
    size = file.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with file.open("rb") as stream:
        if size <= _BLOCKS * _BLOCK:
            digest.update(stream.read())
        else:
            for number in range(_BLOCKS):
                stream.seek((size - _BLOCK) * number // (_BLOCKS - 1))
                digest.update(stream.read(_BLOCK))
    return digest.hexdigest()
