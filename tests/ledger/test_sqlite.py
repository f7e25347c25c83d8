import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from defocus.errors import DefocusError, LedgerBusyError, LedgerDamagedError, LedgerUnavailableError
from defocus.ledger import Entry, Ledger, verify
from defocus.ledger.chain import Chain
from defocus.ledger.sqlite import _COMPILED, SqliteFile
from defocus.ledger.store import Session
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Laplace, Pure
from defocus.privacy.units import rows

pytestmark = pytest.mark.parametrize("where", ["sqlite"], indirect=True)
Opener = Callable[..., Ledger]


def filled(ledger: Ledger, charges: int = 30) -> Ledger:
    for number in range(charges):
        ledger.record(ledger.charge(Pure(Fraction(1, 1000)), purpose=f"step {number}"), number, keep=True)
    return ledger


@pytest.mark.parametrize("statement", [
    "UPDATE ledger_entries SET body = 'x' WHERE sequence = 1",
    "DELETE FROM ledger_entries WHERE sequence = 1",
    "INSERT OR REPLACE INTO ledger_entries (sequence, hash, kind, body) VALUES (1, 'x', 'charge', 'x')",
    "INSERT INTO ledger_entries (sequence, hash, kind, body) VALUES (9, 'x', 'charge', 'x')",
    "UPDATE ledger_head SET sequence = 0",
    "DELETE FROM ledger_head",
])  # fmt: skip
def test_triggers_keep_accidents_away(opened: Opener, where: str, statement: str) -> None:
    opened().charge(Laplace(10), purpose="count")
    connection = sqlite3.connect(where)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()
    assert verify(where).ok


def test_the_whole_ledger_is_one_file_at_rest(opened: Opener, where: str) -> None:
    filled(opened(), 3).close()
    name, locks = Path(where).name, (Path(f"{where}.lock"), Path(f"{where}.anchor.lock"))
    anchored = {f"{name}.anchor", *(lock.name for lock in locks)}
    assert {path.name for path in Path(where).parent.iterdir()} == {name, *anchored}
    assert not any(lock.stat().st_size for lock in locks)


def test_commits_are_flushed_to_the_directory_too(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = sqlite3.connect

    def watching(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = real(*arguments, **options)
        connection.set_trace_callback(seen.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", watching)
    opened().charge(Laplace(10), purpose="count")
    for pragma in ("PRAGMA synchronous=EXTRA", "PRAGMA journal_mode=PERSIST", "PRAGMA fullfsync=ON", "BEGIN IMMEDIATE"):
        assert pragma in seen


def test_the_file_alone_is_the_whole_ledger_after_every_commit(opened: Opener, where: str, tmp_path: Path) -> None:
    ledger = filled(opened(), 3)
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(where, tmp_path / "elsewhere" / "copy.ledger")
    assert verify(tmp_path / "elsewhere" / "copy.ledger", ledger.anchor()).ok
    assert not any(Path(f"{where}-journal").read_bytes()[:28])


def test_a_ledger_put_into_write_ahead_mode_is_taken_out_of_it(opened: Opener, where: str) -> None:
    opened().charge(Laplace(10), purpose="count")
    connection = sqlite3.connect(where)
    assert connection.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
    connection.close()
    ledger = opened()
    ledger.charge(Laplace(10), purpose="count")
    assert not Path(f"{where}-wal").exists()
    assert ledger.verify().ok


def test_another_writer_is_waited_for_and_then_named(opened: Opener, where: str) -> None:
    ledger = opened(timeout=0.2)
    other = sqlite3.connect(where, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerBusyError, match=r"0\.2 seconds.*nothing was charged") as busy:
        ledger.charge(Laplace(10), purpose="count")
    assert "forked while a thread was using" in busy.value.fix
    other.execute("ROLLBACK")
    other.close()
    ledger.charge(Laplace(10), purpose="count")
    assert len(ledger) == 2


def test_a_reader_that_never_ends_cannot_make_a_charge_half_happen(opened: Opener, where: str) -> None:
    ledger = opened(timeout=0.2)
    reader = sqlite3.connect(where, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM ledger_entries").fetchall()
    with pytest.raises(LedgerBusyError):
        ledger.charge(Laplace(10), purpose="count")
    reader.execute("ROLLBACK")
    reader.close()
    assert len(ledger) == 1
    assert ledger.verify().ok


def test_an_older_copy_put_back_is_noticed_by_the_process_that_goes_on(opened: Opener, where: str) -> None:
    ledger = filled(opened(), 2)
    shutil.copy(where, f"{where}.backup")
    ledger.charge(Laplace(10), purpose="after the backup")
    Path(f"{where}.backup").replace(where)
    with pytest.raises(LedgerDamagedError, match="older copy"):
        ledger.charge(Laplace(10), purpose="again")


def test_an_older_copy_put_back_is_noticed_by_the_anchor_file(opened: Opener, where: str, tmp_path: Path) -> None:
    anchor = tmp_path / "elsewhere"
    ledger = filled(opened(anchor_file=anchor), 2)
    shutil.copy(where, f"{where}.backup")
    kept = ledger.charge(Laplace(10), purpose="after the backup").anchor
    ledger.close()
    shutil.copy(f"{where}.backup", where)
    with pytest.raises(LedgerDamagedError, match="older copy"):
        opened(anchor_file=anchor)
    assert verify(where).ok
    assert not verify(where, kept)
    assert not verify(where, anchor_file=anchor)
    opened()


def test_an_older_copy_that_grew_as_long_again_is_noticed(opened: Opener, where: str, tmp_path: Path) -> None:
    anchor = tmp_path / "elsewhere"
    ledger = opened(anchor_file=anchor)
    shutil.copy(where, f"{where}.backup")
    for _ in range(2):
        ledger.charge(Laplace(10), purpose="real")
    shutil.copy(f"{where}.backup", where)
    with opened() as forged:
        for _ in range(3):
            forged.charge(Laplace(100), purpose="forged")
    with pytest.raises(LedgerDamagedError, match="older copy"):
        opened(anchor_file=anchor)


def test_a_file_removed_while_in_use_is_not_made_again(opened: Opener, where: str) -> None:
    ledger = opened()
    Path(where).unlink()
    with pytest.raises(LedgerUnavailableError, match="no ledger at"):
        ledger.charge(Laplace(10), purpose="count")
    assert not Path(where).exists()


def test_a_file_swapped_during_a_charge_gives_no_receipt(
    opened: Opener, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened()
    shutil.copy(where, f"{where}.backup")
    real = Chain.last

    def swapping(self: Chain, session: Any, anchors: Any, *, lock: bool) -> Any:
        last = real(self, session, anchors, lock=lock)
        Path(f"{where}.backup").replace(where)
        return last

    monkeypatch.setattr(Chain, "last", swapping)
    with pytest.raises(DefocusError):
        ledger.charge(Laplace(10), purpose="count")


def test_a_file_swapped_just_after_the_commit_gives_no_receipt(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened()
    real, append = SqliteFile.mark, Session.append

    def swapping(self: Session, entry: Entry) -> None:
        append(self, entry)
        monkeypatch.setattr(SqliteFile, "mark", lambda place: (real(place), "another"))

    monkeypatch.setattr(Session, "append", swapping)
    with pytest.raises(LedgerDamagedError, match="replaced by another file"):
        ledger.charge(Laplace(10), purpose="count")


def test_a_file_with_two_names_is_refused(opened: Opener, where: str) -> None:
    opened()
    os.link(where, f"{where}.link")
    with pytest.raises(LedgerUnavailableError, match="hard links"):
        opened()


def test_an_empty_file_becomes_a_ledger_only_when_asked(opened: Opener, where: str) -> None:
    Path(where).touch()
    with pytest.raises(LedgerUnavailableError, match="There is no ledger"):
        opened(budget=None)
    assert not verify(where)
    opened().charge(Laplace(10), purpose="count")


@pytest.mark.parametrize(
    "content", [b"hello, this is not a database at all", b"\0" * 5000, b"SQLite format 3\0garbage" * 300]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(opened: Opener, where: str, content: bytes) -> None:
    Path(where).write_bytes(content)
    with pytest.raises(DefocusError, match="To fix"):
        opened()
    assert not verify(where)
    assert Path(where).read_bytes() == content


def test_a_database_that_is_no_ledger_is_refused_and_left_alone(opened: Opener, where: str) -> None:
    connection = sqlite3.connect(where)
    connection.execute("CREATE TABLE patients (name TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerUnavailableError, match="not a ledger"):
        opened()


def test_a_ledger_of_a_newer_format_is_refused(opened: Opener, where: str) -> None:
    opened()
    connection = sqlite3.connect(where)
    connection.execute("PRAGMA user_version=3")
    connection.close()
    with pytest.raises(LedgerUnavailableError, match="format 3"):
        opened()


def test_an_interrupted_write_is_rolled_back_and_readers_are_told(opened: Opener, where: str, tmp_path: Path) -> None:
    filled(opened(), 3)
    writer = sqlite3.connect(where, isolation_level=None)
    writer.execute("PRAGMA cache_size=1")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("CREATE TABLE filler (x BLOB)")
    for _ in range(30):
        writer.execute("INSERT INTO filler VALUES (randomblob(4000))")
    copy = str(tmp_path / "crashed.ledger")
    shutil.copy(f"{where}-journal", f"{copy}-journal")
    shutil.copy(where, copy)
    writer.execute("ROLLBACK")
    writer.close()
    found = verify(copy)
    assert not found
    assert "opening it once for writing" in found.problems[0]
    with Ledger.open(copy) as ledger:
        assert len(ledger) == 7
    assert verify(copy).ok


def _flip(path: str, position: int, mask: int) -> None:
    with Path(path).open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ mask]))


def _flipped(where: str, tmp_path: Path, flips: int, seed: int) -> None:
    """Flip one byte in copies of a ledger, in every region: it is noticed, or nothing that counts has changed."""
    with Ledger.open(where) as ledger:
        entries, spent, anchor = ledger.history(), ledger.spent(), ledger.anchor()
    size, copy, luck = Path(where).stat().st_size, str(tmp_path / "copy.ledger"), random.Random(seed)
    noticed = 0
    for number in range(flips):
        shutil.copy(where, copy)
        _flip(copy, min(size - 1, number * size // flips + luck.randrange(size // flips)), 1 << luck.randrange(8))
        found = verify(copy, anchor)
        noticed += not found
        try:
            with Ledger.open(copy) as ledger:
                assert ledger.spent() >= spent
                if found:
                    assert ledger.history() == entries
                ledger.charge(Pure(Fraction(1, 1000)), purpose="after the flip")
                assert ledger.spent() > spent
        except DefocusError as error:
            assert "To fix" in str(error)  # noqa: PT017  # either outcome is right
        Path(f"{copy}-journal").unlink(missing_ok=True)
    assert noticed > flips // 8


def test_a_flipped_bit_is_noticed_or_harmless(opened: Opener, where: str, tmp_path: Path) -> None:
    filled(opened(), 8).close()
    _flipped(where, tmp_path, 40, 1)


@pytest.mark.slow
def test_hundreds_of_flipped_bits_are_noticed_or_harmless(opened: Opener, where: str, tmp_path: Path) -> None:
    filled(opened(), 20).close()
    _flipped(where, tmp_path, 300, 2)


@pytest.mark.parametrize("keep", [0, 1, 100, 4096, 8192, 0.5, 0.9])
def test_a_truncated_file_is_noticed(opened: Opener, where: str, keep: float) -> None:
    ledger = filled(opened(), 8)
    anchor = ledger.anchor()
    ledger.close()
    size = Path(where).stat().st_size
    os.truncate(where, int(keep * size) if 0 < keep < 1 else int(keep))
    assert not verify(where, anchor)
    with pytest.raises(DefocusError):
        opened(budget=None).charge(Laplace(10), purpose="count")
    if keep != 0:  # an empty file is what a crash while making a ledger leaves; an anchor file tells the difference
        with pytest.raises(DefocusError):
            opened().charge(Laplace(10), purpose="count")


def test_awkward_paths_work(opened: Opener, tmp_path: Path) -> None:
    for name in (
        "space here.ledger",
        "percent%20.ledger",
        "question?mode=ro.ledger",
        "hash#tag.ledger",
        "患者.ledger",
        "a'b\".ledger",
    ):
        ledger = opened(where=tmp_path / name)
        ledger.charge(Laplace(10), purpose="count")
        assert (tmp_path / name).exists()
        assert verify(tmp_path / name).ok


def test_a_relative_path_survives_a_change_of_directory(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = opened(where="near.ledger")
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    ledger.charge(Laplace(10), purpose="count")
    assert len(ledger) == 2


@pytest.mark.parametrize("place", ["missing/dir/a.ledger", "."])
def test_a_place_that_cannot_hold_a_file_is_refused(opened: Opener, tmp_path: Path, place: str) -> None:
    with pytest.raises(LedgerUnavailableError, match="To fix"):
        opened(where=tmp_path / place)


def test_a_ledger_of_rows_is_opened_by_path_object(where: str) -> None:
    with Ledger.open(Path(where), budget=Budget(1), unit=rows(), dataset="visits") as ledger:
        assert ledger.where == where


def test_statements_are_compiled_once_for_all_files(opened: Opener, tmp_path: Path) -> None:
    filled(opened(), 2).close()
    compiled = len(_COMPILED)
    with opened(where=tmp_path / "other.ledger", dataset="other") as other:
        filled(other, 2)
        assert other.dataset == "other"
    assert len(_COMPILED) == compiled > 5
