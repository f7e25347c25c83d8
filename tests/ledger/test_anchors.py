import multiprocessing
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError, LedgerDamagedError, LedgerUnavailableError
from defocus.ledger.anchors import Anchor, AnchorFile, as_anchor

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
