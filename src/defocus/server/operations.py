"""How a server is set up, backed up and restored: its folder, its databases and what it may reach."""

import contextlib
import io
import json
import os
import re
import shutil
import sqlite3
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from defocus.errors import InvalidParameterError, LedgerMismatchError
from defocus.ledger import Ledger, verify
from defocus.ledger.lock import file_lock

__all__ = ["Settings", "backup", "restore"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that is said when a server is started.

    >>> Settings(home=Path("hospital")).records_place
    'hospital/server.db'
    """

    home: Path
    """The folder of the server: its database, its key, data sets with their uploads and ledgers."""
    records: str | None = None
    """The address of a PostgreSQL database for its records; a file in its folder by default."""
    ledgers: str | None = None
    """The address of a PostgreSQL database for ledgers; files in its folder by default."""
    sources: tuple[str, ...] = ()
    """Folders and databases beside its own folder that a declared data set may name."""
    address: str = "http://127.0.0.1:8042"
    """How people reach it, for links."""
    workers: int = 2
    """How many releases are computed at once."""
    largest: int = 256 << 20
    """How many bytes an upload may have."""
    oidc: dict[str, str] = field(default_factory=dict)
    """How people sign in elsewhere: issuer, client_id and client_secret."""

    @property
    def records_place(self) -> str:
        """Where the records are."""
        return self.records or str(self.home / "server.db")

    @property
    def key_file(self) -> Path:
        """The key that signs bundles."""
        return self.home / "signing.key"

    @property
    def secure(self) -> bool:
        """Whether people reach it by HTTPS, so that cookies are sent there only."""
        return self.address.startswith("https://")

    def folder(self, dataset: str) -> Path:
        """The folder of a data set."""
        return self.home / "datasets" / dataset

    def ledger_place(self, dataset: str) -> str:
        """The ledger of a data set."""
        if self.ledgers is None:
            return str(self.folder(dataset) / "data.ledger")
        schema = f"ledger_{dataset.lower().replace('-', '_')}"
        return f"{self.ledgers}{'&' if '?' in self.ledgers else '?'}schema={schema}"

    def reaches(self, place: str, dataset: str) -> bool:
        """Whether a declared data set may name this file or address as its data.

        Of an address that names no database, each database may be named, and nothing that leads to another host.
        """
        if "://" in place:
            server, _, database = place.rpartition("/")
            allowed = {place, server} if re.fullmatch(r"\w[\w-]*", database, re.ASCII) else {place}
            return any("://" in one and one in allowed for one in self.sources)
        real = Path(os.path.realpath(place))
        roots = [self.folder(dataset), *(Path(one) for one in self.sources if "://" not in one)]
        return any(real.is_relative_to(os.path.realpath(root)) for root in roots)


_FORMAT = "defocus server backup 1"
_ANCHORS = "anchors.json"


def backup(settings: Settings, out: Path) -> list[str]:
    """Copy records, key, data sets and ledgers to one file while the server runs; the names of its files are returned.

    Each ledger is copied in a transaction of its own, with the anchor of its last entry, and after the records, so that
    the copy holds the charge of every answer in them. Records and ledgers in PostgreSQL are its own administrators' to
    back up, and are refused here.
    """
    if settings.records is not None or settings.ledgers is not None:
        raise InvalidParameterError(
            "Records or ledgers are in PostgreSQL.", fix="back up that database with pg_dump, and the folder with tar."
        )
    if not (settings.home / "server.db").is_file():
        raise InvalidParameterError(f"There is no server in {settings.home}.", fix="name its folder: --home.")
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(out, "x") as archive:
        os.chmod(out, 0o600)  # noqa: PTH101  # it holds the key
        anchors = {}
        files = (path for path in settings.home.rglob("*") if path.is_file() and not _passing(path))
        for file in sorted(files, key=lambda path: (path.suffix == ".ledger", path)):
            name = str(file.relative_to(settings.home))
            if file.suffix == ".anchor":
                continue  # made of the copy, so that both agree
            copy = file
            if file.suffix in {".ledger", ".db"}:
                copy = Path(scratch) / "copy"
                _copied(file, copy)
            if file.suffix == ".ledger":
                with Ledger.open(copy, read_only=True, anchor_file=None) as book:
                    anchors[name] = str(book.anchor())
            archive.add(copy, name)
        about = json.dumps({"format": _FORMAT, "anchors": anchors}).encode()
        entry = tarfile.TarInfo(_ANCHORS)
        entry.size = len(about)
        archive.addfile(entry, io.BytesIO(about))
        return archive.getnames()


def restore(settings: Settings, file: Path, *, accept_loss: bool = False) -> list[str]:
    """Put a backup back, into a folder where no server runs. What happened is told line by line.

    A ledger that is there and has entries that the backup lacks would forget charges, and with them protection that
    was promised: that is refused, unless the loss is accepted, and then said.
    """
    told: list[str] = []
    if _running(settings.home):
        raise InvalidParameterError(f"A server runs in {settings.home}.", fix="stop it, then restore.")
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch)
        try:
            with tarfile.open(file) as archive:
                archive.extractall(made, filter="data")
            about = json.loads((made / _ANCHORS).read_text())
        except (tarfile.TarError, OSError, ValueError):
            raise InvalidParameterError(f"{file} is not a backup of a server.", fix="name what backup wrote.") from None
        if about.get("format") != _FORMAT:
            raise InvalidParameterError(f"{file} is not a {_FORMAT}.", fix="name what backup wrote.")
        for name, anchor in about["anchors"].items():
            told.append(_compared(settings.home / name, made / name, name, anchor, accept_loss=accept_loss))
        (made / _ANCHORS).unlink()
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        for each in sorted(path for path in made.rglob("*") if path.is_file()):
            place = settings.home / each.relative_to(made)
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            for beside in ("-wal", "-shm", "-journal", ".anchor"):
                place.with_name(place.name + beside).unlink(missing_ok=True)
            shutil.copyfile(each, place)
            place.chmod(0o600)
    return [*told, f"restored to {settings.home}"]


def _running(home: Path) -> bool:
    """Whether a server works in this folder: it holds a lock for as long; see :meth:`.Records.be_alive`."""
    for lock in (home / "running").glob("*.lock"):
        held = file_lock(lock.with_suffix(""), timeout=0)
        if held is None:
            return True
        held.close()
    return False


def _compared(here: Path, copy: Path, name: str, anchor: str, *, accept_loss: bool) -> str:
    """Whether a ledger of a backup is whole, and no older than the one that is there."""
    verify(copy, anchor).require()
    kept = len(Ledger.open(copy, read_only=True, anchor_file=None))
    if not here.exists():
        return f"{name}: {kept} entries; nothing was there"
    with Ledger.open(here, read_only=True, anchor_file=None) as book:
        now, same = len(book), book.verify(anchor).ok
    if same and now == kept:
        return f"{name}: {kept} entries, as they were"
    lost = f"the ledger that is there has {now} entries" if same else "the ledger that is there is another one"
    if not accept_loss:
        raise LedgerMismatchError(
            f"{name} of the backup has {kept} entries, and {lost}: charges would be forgotten. Nothing was restored.",
            fix="keep what is there; where that is lost anyway, pass --accept-loss and publish what was lost.",
        )
    return f"{name}: {kept} entries; {lost}, and is replaced: charges after entry {kept - 1} are forgotten"


def _copied(file: Path, copy: Path) -> None:
    """A consistent copy of an SQLite file that others may be writing to."""
    copy.unlink(missing_ok=True)
    address = f"{file.resolve().as_uri()}?mode=ro"
    with (
        contextlib.closing(sqlite3.connect(address, uri=True, timeout=30)) as source,
        contextlib.closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)


def _passing(path: Path) -> bool:
    """Locks, journals and uploads that are not finished."""
    return path.name.endswith((".lock", "-wal", "-shm", "-journal", ".part")) or path.parent.name == "running"
