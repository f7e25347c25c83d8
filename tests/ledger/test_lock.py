"""Who may read what a ledger leaves on disk."""

import multiprocessing
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import HANGS

from defocus.errors import BudgetExceededError, LedgerBusyError
from defocus.ledger import Ledger
from defocus.ledger.lock import LockableFile, file_lock, lock_path
from defocus.ledger.sqlite import SqliteFile
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Laplace, Pure
from defocus.privacy.units import rows, user


def test_one_holder_keeps_all_others_out_and_sharers_share(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    held = file_lock(path, timeout=1)
    assert held is not None
    assert file_lock(path, timeout=0) is None
    assert file_lock(path, exclusive=False, timeout=0) is None
    held.close()
    held.close()
    both = [file_lock(path, exclusive=False, timeout=0) for _ in range(2)]
    assert None not in both
    assert file_lock(path, timeout=0) is None
    both.clear()  # collected
    assert file_lock(path, timeout=0) is not None


def test_a_lock_file_that_was_replaced_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    held = file_lock(path, timeout=1)
    lock_path(path).unlink()
    assert file_lock(path, timeout=0) is not None
    assert lock_path(path).exists()
    assert held is not None


def test_a_closed_file_gives_out_no_number_that_may_be_of_another_file(tmp_path: Path) -> None:
    file = LockableFile(os.open(tmp_path / "a", os.O_CREAT | os.O_RDWR))
    assert file.lock(timeout=0)
    os.fsync(file.descriptor)
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.lock(timeout=0)


def test_a_forked_child_lets_go_of_its_copy_alone(tmp_path: Path) -> None:
    """The lock stays with the parent, and would end with it though the child lives on."""
    path = tmp_path / "a.ledger"
    held = file_lock(path, timeout=0)
    assert held is not None
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.write(ready[1], b"closed" if held.closed else b"open")
        os.read(go[0], 1)
        os._exit(0)
    try:
        assert os.read(ready[0], 6) == b"closed"
        assert file_lock(path, timeout=0) is None
        held.close()
        assert file_lock(path, timeout=0) is not None
    finally:
        os.write(go[1], b"x")
        os.waitpid(child, 0)
        for end in (*ready, *go):
            os.close(end)


def test_a_ledger_whose_turn_never_comes_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    with Ledger.open(path, budget=Budget(1), unit=rows(), dataset="visits", timeout=0.2) as book:
        held = file_lock(path, timeout=1)
        assert held is not None
        with pytest.raises(LedgerBusyError):
            book.charge(Pure(0.1), purpose="count")
        held.close()
        book.charge(Pure(0.1), purpose="count")


def _charge_all(path: str, given: "multiprocessing.Queue[list[int]]") -> None:
    receipts: list[int] = []
    with Ledger.open(path, timeout=HANGS) as book:
        try:
            while True:
                receipts.append(book.charge(Pure(0.01), purpose="count").sequence)
        except BudgetExceededError:
            given.put(receipts)


def test_reading_the_file_inside_a_charging_process_gives_no_receipt_twice(tmp_path: Path) -> None:
    """Closing any descriptor of the file drops SQLite's own locks in this process: a backup must not cost privacy."""
    path = tmp_path / "a.ledger"
    context = multiprocessing.get_context("spawn")
    given: multiprocessing.Queue[list[int]] = context.Queue()
    done = threading.Event()

    def back_up() -> None:
        while not done.is_set():
            path.read_bytes()
            done.wait(0.0005)

    with Ledger.open(path, budget=Budget(1), unit=rows(), dataset="visits", timeout=HANGS) as book:
        other = context.Process(target=_charge_all, args=(str(path), given))
        copier = threading.Thread(target=back_up)
        other.start()
        copier.start()
        ours: list[int] = []
        try:
            while True:
                ours.append(book.charge(Pure(0.01), purpose="count").sequence)
        except BudgetExceededError:
            pass
        finally:
            done.set()
            copier.join()
        theirs = given.get(timeout=HANGS)
        other.join()
        assert len(ours) + len(theirs) == 100
        assert not set(ours) & set(theirs)
        assert book.verify().ok


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_a_new_ledger_and_everything_beside_it_is_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    seen: dict[str, int] = {}

    def look() -> None:
        for file in tmp_path.iterdir():
            seen[file.name] = seen.get(file.name, 0) | stat.S_IMODE(file.stat().st_mode)

    real = SqliteFile.begin

    def begin(self: SqliteFile, connection: Any, *, write: bool) -> None:
        real(self, connection, write=write)
        look()

    monkeypatch.setattr(SqliteFile, "begin", begin)
    before = os.umask(mask)
    try:
        terms: dict[str, Any] = {"budget": Budget(1), "unit": user("patient"), "dataset": "visits"}
        with Ledger.open(tmp_path / "a.ledger", anchor_file=tmp_path / "a.anchor", **terms) as ledger:
            ledger.record(ledger.charge(Laplace(10), purpose="secret"), 7)
            look()
    finally:
        os.umask(before)
    assert {"a.ledger", "a.ledger-journal", "a.ledger.lock", "a.anchor", "a.anchor.lock"} <= seen.keys()
    assert set(seen.values()) == {0o600}


def test_an_anchor_file_that_was_opened_to_others_stays_so(tmp_path: Path) -> None:
    terms: dict[str, Any] = {"budget": Budget(1), "unit": user("patient"), "dataset": "visits"}
    with Ledger.open(tmp_path / "a.ledger", anchor_file=tmp_path / "a.anchor", **terms) as ledger:
        (tmp_path / "a.anchor").chmod(0o640)
        ledger.charge(Laplace(10), purpose="count")
    assert stat.S_IMODE((tmp_path / "a.anchor").stat().st_mode) == 0o640
