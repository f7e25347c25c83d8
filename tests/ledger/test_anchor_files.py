"""A file that follows the newest entry, so that an older copy of a ledger is noticed."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from tests.waiting import HANGS

from defocus.errors import (
    LedgerDamagedError,
    LedgerUnavailableError,
)
from defocus.ledger import Anchor, Ledger
from defocus.privacy.events import Laplace, Pure

Opener = Callable[..., Ledger]


def test_an_anchor_file_follows_every_entry(opened: Opener, tmp_path: Path) -> None:
    file = tmp_path / "anchor"
    ledger = opened(anchor_file=file)
    receipt = ledger.charge(Laplace(4), purpose="count")
    assert str(receipt.anchor) in file.read_text()
    entry = ledger.record(receipt, 3)
    assert str(Anchor(entry.sequence, entry.hash)) in file.read_text()
    assert opened(anchor_file=file).verify().anchored


def test_a_missing_anchor_file_is_refused_once_the_ledger_exists(opened: Opener, tmp_path: Path) -> None:
    file = tmp_path / "anchor"
    opened(anchor_file=file)
    file.unlink()
    with pytest.raises(LedgerDamagedError, match="missing"):
        opened(anchor_file=file)
    opened().anchor().save(file)
    opened(anchor_file=file)


def test_an_anchor_file_without_its_ledger_stops_a_new_one_from_taking_its_place(
    opened: Opener, tmp_path: Path
) -> None:
    file = tmp_path / "anchor"
    Anchor(5, "ab" * 32).save(file)
    with pytest.raises(LedgerDamagedError, match="vouches for a ledger"):
        opened(anchor_file=file)


def test_the_anchor_of_another_ledger_is_noticed_at_opening_and_at_charging(opened: Opener, tmp_path: Path) -> None:
    file = tmp_path / "anchor"
    ledger = opened(anchor_file=file)
    Anchor(5, "ab" * 32).save(file)
    for act in (lambda: ledger.charge(Laplace(4), purpose="count"), lambda: opened(anchor_file=file), ledger.spent):
        with pytest.raises(LedgerDamagedError, match="older copy"):
            act()
    assert len(opened()) == 1


def test_a_charge_whose_anchor_cannot_be_written_stays_but_gives_no_receipt(opened: Opener, tmp_path: Path) -> None:
    ledger = opened(anchor_file=tmp_path / "anchor")
    (tmp_path / "anchor.new").mkdir()
    with pytest.raises(LedgerUnavailableError, match="already committed stays"):
        ledger.charge(Laplace(4), purpose="count")
    assert len(ledger) == 2


def test_readers_never_mistake_a_charge_made_meanwhile_for_an_older_copy(opened: Opener, tmp_path: Path) -> None:
    ledger = opened(anchor_file=tmp_path / "anchor", timeout=HANGS)
    done = threading.Event()

    def read() -> int:
        seen = 0
        while not done.is_set():
            with opened(anchor_file=tmp_path / "anchor", timeout=HANGS) as other:
                seen = max(seen, ledger.anchor().sequence, other.anchor().sequence)
        return seen

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for _ in range(15):
            ledger.charge(Pure(Fraction(1, 1000)), purpose="meanwhile")
        done.set()
        assert all(reader.result() <= 15 for reader in readers)
