import multiprocessing
import shutil
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import HANGS

from defocus.errors import InvalidParameterError, LedgerDamagedError, LedgerUnavailableError
from defocus.ledger import Ledger, verify
from defocus.ledger.anchors import Anchor, AnchorFile, as_anchor
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Laplace, Pure
from defocus.privacy.units import rows

anchors = st.builds(Anchor, st.integers(0, 10**17), st.text("0123456789abcdef", min_size=64, max_size=64))


@given(anchors)
def test_text_and_anchor_are_inverse(anchor: Anchor) -> None:
    assert Anchor.parse(str(anchor)) == anchor
    assert as_anchor((anchor.sequence, anchor.hash)) == as_anchor(anchor) == as_anchor(f" {anchor}\n") == anchor


@pytest.mark.parametrize(
    "bad", ["", "3", "3:zz", "-1:" + "a" * 64, "3:" + "A" * 64, 3, (1, 2), (True, "a" * 64), b"", {}]
)
def test_what_is_no_anchor_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match="To fix"):
        as_anchor(bad)


def test_a_file_moves_forward_only(tmp_path: Path) -> None:
    file = AnchorFile(tmp_path / "anchor")
    assert file.read() is None
    for number in (3, 5, 4, 1):
        file.advance(Anchor(number, "a" * 64))
    assert file.read() == Anchor(5, "a" * 64)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["anchor", "anchor.lock"]


def _advance(path: Path, start: int) -> None:
    for number in range(start, 200, 4):
        AnchorFile(path).advance(Anchor(number, "a" * 64))


@pytest.mark.slow
def test_processes_that_write_at_once_never_move_it_back(tmp_path: Path) -> None:
    file = tmp_path / "anchor"
    started = [multiprocessing.get_context("spawn").Process(target=_advance, args=(file, n)) for n in range(4)]
    for process in started:
        process.start()
    for process in started:
        process.join()
        assert process.exitcode == 0
    assert AnchorFile(file).read() == Anchor(199, "a" * 64)


@pytest.mark.parametrize(
    "content", [b"", b"x", b"\xff\xfe", b"defocus ledger anchor 1\n3:abc\n", b"defocus ledger anchor 2\n"]
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "anchor").write_bytes(content)
    with pytest.raises((LedgerDamagedError, LedgerUnavailableError), match="To fix"):
        AnchorFile(tmp_path / "anchor").read()


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "anchor.lock").mkdir()
    with pytest.raises(LedgerUnavailableError, match="writable"):
        Anchor(1, "a" * 64).save(tmp_path / "anchor")


def test_a_saved_anchor_can_be_read_by_the_group(tmp_path: Path) -> None:
    Anchor(1, "a" * 64).save(tmp_path / "anchor")
    assert (tmp_path / "anchor").stat().st_mode & stat.S_IRUSR


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
    opened(anchor_file=file).charge(Laplace(4), purpose="count")
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


SQLITE = pytest.mark.parametrize("where", ["sqlite"], indirect=True)


def lost(where: str) -> None:
    """Remove a ledger that is a file, as an accident would: its anchor stays."""
    Path(where).unlink()


@SQLITE
def test_a_ledger_in_a_file_has_an_anchor_beside_it_unless_told(opened: Opener, where: str) -> None:
    receipt = opened().charge(Laplace(4), purpose="count")
    assert str(receipt.anchor) in Path(f"{where}.anchor").read_text()
    assert opened().verify().anchored
    assert verify(where).anchored


@SQLITE
def test_a_ledger_that_was_deleted_is_not_made_anew(opened: Opener, where: str) -> None:
    opened().charge(Laplace(4), purpose="count")
    lost(where)
    acts: list[Callable[[], object]] = [opened, lambda: opened(read_only=True), lambda: Ledger.find(where)]
    for act in acts:
        with pytest.raises(LedgerDamagedError, match="a ledger of 2 entries, but there is none") as refused:
            act()
        assert "put the ledger back" in refused.value.fix
        assert f"remove {where}.anchor" in refused.value.fix
        assert "stays released" in refused.value.fix
    assert not Path(where).exists()


@SQLITE
def test_an_older_copy_is_refused_without_asking_for_an_anchor_file(opened: Opener, where: str, tmp_path: Path) -> None:
    with opened() as ledger:
        ledger.charge(Laplace(4), purpose="count")
    shutil.copy(where, tmp_path / "backup")
    with opened() as ledger:
        ledger.charge(Laplace(4), purpose="count")
    shutil.copy(tmp_path / "backup", where)
    for options in ({}, {"read_only": True}):
        with pytest.raises(LedgerDamagedError, match="ends at entry 1 and no longer holds entry 2") as refused:
            opened(**options)
        assert "newest copy" in refused.value.fix


@SQLITE
def test_a_ledger_put_in_the_place_of_another_is_refused(opened: Opener, where: str, tmp_path: Path) -> None:
    with opened() as ledger:
        ledger.charge(Laplace(4), purpose="count")
    with opened(where=str(tmp_path / "fresh.ledger")):
        pass
    shutil.copy(tmp_path / "fresh.ledger", where)
    with pytest.raises(LedgerDamagedError, match="rewritten"):
        opened()
    shutil.copy(tmp_path / "fresh.ledger.anchor", f"{where}.anchor")
    opened().close()  # who replaces both is not noticed: keep an anchor elsewhere


@SQLITE
def test_an_anchor_beside_a_ledger_is_started_where_it_is_missing_and_not_by_readers(
    opened: Opener, where: str, tmp_path: Path
) -> None:
    opened().charge(Laplace(4), purpose="count")
    file = Path(f"{where}.anchor")
    file.unlink()
    opened(read_only=True)
    assert not file.exists()
    anchor = opened().anchor()
    assert str(anchor) in file.read_text()
    shutil.copy(where, tmp_path / "copy.ledger")
    assert Ledger.open(tmp_path / "copy.ledger").anchor() == anchor


@SQLITE
def test_a_named_anchor_file_at_the_usual_place_is_the_usual_one(opened: Opener, where: str) -> None:
    opened().charge(Laplace(4), purpose="count")
    Path(f"{where}.anchor").unlink()
    opened(anchor_file=f"{where}.anchor").charge(Laplace(4), purpose="count")
    assert "\n2:" in Path(f"{where}.anchor").read_text()


@SQLITE
def test_an_anchor_that_was_garbled_stops_everybody(opened: Opener, where: str) -> None:
    opened().charge(Laplace(4), purpose="count")
    Path(f"{where}.anchor").write_text("defocus ledger anchor 1\nnothing\n")
    for options in ({}, {"read_only": True}):
        with pytest.raises(LedgerDamagedError, match="does not hold an anchor"):
            opened(**options)


@SQLITE
def test_links_and_relative_paths_lead_to_one_anchor(
    opened: Opener, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened().charge(Laplace(4), purpose="count")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link.ledger").symlink_to(where)
    monkeypatch.chdir(tmp_path / "elsewhere")
    opened(where="link.ledger").charge(Laplace(4), purpose="count")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["link.ledger"]
    assert "\n2:" in Path(f"{where}.anchor").read_text()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_link_in_the_place_of_a_ledger_does_not_leave_its_anchor_behind(tmp_path: Path, *, read_only: bool) -> None:
    path = tmp_path / "visits.ledger"
    terms: dict[str, Any] = {"budget": Budget(1), "unit": rows(), "dataset": "visits"}
    Ledger.open(path, **terms).close()
    path.rename(tmp_path / "gone")
    path.symlink_to("nowhere")
    with pytest.raises(LedgerDamagedError, match="vouches for a ledger of 1 entries, but there is none"):
        Ledger.open(path, read_only=read_only, **terms)
    assert not (tmp_path / "nowhere").exists()


@SQLITE
def test_an_anchor_that_is_a_link_to_another_disk_stays_one(opened: Opener, where: str, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    Path(f"{where}.anchor").symlink_to(tmp_path / "disk" / "anchor")
    opened().charge(Laplace(4), purpose="count")
    assert Path(f"{where}.anchor").is_symlink()
    assert "\n1:" in (tmp_path / "disk" / "anchor").read_text()


@SQLITE
def test_both_deleted_begins_anew_which_only_an_anchor_elsewhere_notices(
    opened: Opener, where: str, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    opened(anchor_file=elsewhere).charge(Laplace(4), purpose="count")
    opened().close()
    lost(where)
    Path(f"{where}.anchor").unlink()
    with pytest.raises(LedgerDamagedError, match="vouches for a ledger of 2 entries"):
        opened(anchor_file=elsewhere)
    assert len(opened()) == 1


@SQLITE
def test_an_anchor_is_for_those_who_may_use_its_ledger(opened: Opener, where: str) -> None:
    ledger = opened()
    Path(where).chmod(0o660)
    ledger.charge(Laplace(4), purpose="count")
    assert stat.S_IMODE(Path(f"{where}.anchor").stat().st_mode) == 0o660
    for lock in (Path(f"{where}.lock"), Path(f"{where}.anchor.lock")):
        lock.unlink()
    ledger.charge(Laplace(4), purpose="count")
    assert stat.S_IMODE(Path(f"{where}.anchor.lock").stat().st_mode) == 0o660
    assert stat.S_IMODE(Path(f"{where}.lock").stat().st_mode) == 0o660


@pytest.mark.parametrize("where", ["postgresql"], indirect=True)
def test_a_ledger_on_a_server_has_no_anchor_file_unless_told(opened: Opener, where: str, tmp_path: Path) -> None:
    opened().charge(Laplace(4), purpose="count")
    assert not verify(where).anchored
    assert list(tmp_path.iterdir()) == []
