"""The log of a run: one sum for each step, one process at a time, and no log that cannot be trusted."""

import contextlib
import copy
import errno
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus import Budget, Ledger, rows
from defocus.errors import BranchedRunError, CheckpointError, DefocusError, InvalidParameterError
from defocus.learning.run_log import Log, Mark, check_folder, end_of
from defocus.ledger import Receipt
from defocus.privacy import Laplace

KEY = bytes(range(32))
DIGESTS = [bytes([i]) * 24 for i in range(9)]


def receipt_of(folder: Path) -> tuple[Ledger, Receipt]:
    ledger = Ledger.open(folder / "run.ledger", budget=Budget(9), unit=rows(), dataset="d")
    return ledger, ledger.charge(Laplace(1), purpose="train")


@pytest.fixture(scope="module")
def receipt(tmp_path_factory: pytest.TempPathFactory) -> Receipt:
    return receipt_of(tmp_path_factory.mktemp("ledger"))[1]


def noted(path: Path, receipt: Receipt, steps: int = 4, at: int = 2) -> Mark:
    """A log of some steps that its run let go of, and where the checkpoint was written."""
    log = Log.begin(path, receipt, KEY, most=8)
    mark = log.mark
    for step in range(steps):
        log.note(step, DIGESTS[step])
        mark = log.mark if log.mark.steps == at else mark
    log.close()
    return mark


def test_a_step_is_repeated_with_the_same_sums_or_not_at_all(tmp_path: Path, receipt: Receipt) -> None:
    mark = noted(tmp_path / "log", receipt)
    log = Log.resume(tmp_path / "log", receipt, KEY, mark, most=8)
    assert log.newest == 4
    log.note(2, DIGESTS[2])
    log.note(2, DIGESTS[2])  # after a failure between the note and the step
    for step, digest in [(2, 3), (3, 2), (4, 4), (1, 1)]:
        with pytest.raises(BranchedRunError) as caught:
            log.note(step, DIGESTS[digest])
        assert "a checkpoint of 4 steps; or start another run" in caught.value.fix
    log.note(3, DIGESTS[3])
    log.note(6, DIGESTS[6])  # two were passed over
    assert log.newest == 7
    log.sync()
    later = log.mark
    log.close()
    log = Log.resume(tmp_path / "log", receipt, KEY, later, most=8)
    log.note(7, DIGESTS[7])
    log.close()
    assert (tmp_path / "log").stat().st_size == 64 * 7
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


NOTES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), max_size=6)


@settings(max_examples=60)
@given(runs=st.lists(st.tuples(st.integers(0, 9), NOTES), min_size=2, max_size=4))
def test_whatever_is_tried_no_step_is_noted_with_two_digests(receipt: Receipt, runs: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Log.begin(Path(folder) / "log", receipt, KEY, most=8)
        marks, released = [log.mark], dict[int, bytes]()
        for mark, notes in runs:
            log.close()
            log = Log.resume(Path(folder) / "log", receipt, KEY, marks[mark % len(marks)], most=8)
            for step, kind in notes:
                with contextlib.suppress(BranchedRunError):
                    log.note(step, DIGESTS[kind])
                    assert released.setdefault(step, DIGESTS[kind]) == DIGESTS[kind]
                    marks.append(log.mark)
        log.close()


@pytest.mark.slow
def test_nobody_else_goes_on_while_a_run_is_at_work(tmp_path: Path, receipt: Receipt) -> None:
    log: Any = Log.begin(tmp_path / "log", receipt, KEY, most=8)
    mark = log.mark
    with pytest.raises(CheckpointError, match="is at work on this run"):
        Log.resume(tmp_path / "log", receipt, KEY, mark, most=8)
    loop = [log]
    loop.append(loop)  # dropped, and kept alive by a cycle until it is collected
    gc.disable()
    try:
        del log, loop
        again = Log.resume(tmp_path / "log", receipt, KEY, mark, most=8)
    finally:
        gc.enable()
    with pytest.raises(InvalidParameterError, match="cannot be copied"):
        copy.deepcopy(again)
    again.close()


@pytest.mark.slow
def test_a_run_that_let_go_takes_hold_again_and_minds_what_others_noted(tmp_path: Path, receipt: Receipt) -> None:
    log = Log.begin(tmp_path / "log", receipt, KEY, most=8)
    log.note(0, DIGESTS[0])
    log.close()
    log.note(1, DIGESTS[1])  # nobody was there meanwhile
    mark = log.mark
    log.close()
    other = Log.resume(tmp_path / "log", receipt, KEY, mark, most=8)
    other.note(2, DIGESTS[2])
    with pytest.raises(CheckpointError, match="is at work"):
        log.note(2, DIGESTS[2])
    other.close()
    with pytest.raises(BranchedRunError):
        log.note(2, DIGESTS[3])
    log.note(2, DIGESTS[2])
    log.close()


WORKER = """
import sys
from pathlib import Path
from defocus import Ledger
from defocus.errors import CheckpointError
from defocus.learning.run_log import Log, Mark
from defocus.ledger import Receipt
from defocus.privacy.wire import from_wire
folder = Path(sys.argv[1])
ledger = Ledger.open(folder / "run.ledger")
entry = list(ledger.entries())[1]
receipt = Receipt.of(entry, from_wire(entry.content["event"]), ledger.terms)
print("ready", flush=True)
sys.stdin.readline()
try:
    log = Log.resume(folder / "log", receipt, bytes(range(32)), Mark(0, bytes.fromhex(sys.argv[2])), most=8)
    log.note(0, bytes(24))
    print("held", flush=True)
except CheckpointError as problem:
    print(problem.what, flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
def test_of_two_processes_one_goes_on_and_what_it_noted_survives_its_death(tmp_path: Path) -> None:
    ledger, receipt = receipt_of(tmp_path)
    log = Log.begin(tmp_path / "log", receipt, KEY, most=8)
    mark = log.mark
    log.close()
    ledger.close()
    command = [sys.executable, "-c", WORKER, str(tmp_path), mark.code.hex()]
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 -- our own
        for _ in range(2)
    ]
    told = []
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        assert process.stdout is not None
        told.append(process.stdout.readline().strip())
    assert max(told) == "held"
    assert "is at work on this run" in min(told)
    for process in both:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    log = Log.resume(tmp_path / "log", receipt, KEY, mark, most=8)
    with pytest.raises(BranchedRunError):
        log.note(0, DIGESTS[1])
    log.note(0, bytes(24))
    log.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["log", None])
def test_a_forked_child_neither_notes_nor_keeps_the_lock(tmp_path: Path, receipt: Receipt, name: str | None) -> None:
    log = Log.begin(tmp_path / name if name else None, receipt, KEY, most=8)
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        try:
            log.note(0, DIGESTS[0])
            os.write(ready[1], b"noted")
        except CheckpointError:
            os.write(ready[1], b"refused")
        os.read(go[0], 1)
        os._exit(0)
    told = os.read(ready[0], 7)
    try:
        log.note(0, DIGESTS[0])
        log.close()
        if name:
            Log.resume(tmp_path / name, receipt, KEY, log.mark, most=8).close()  # though the child is there
    finally:
        os.write(go[1], b"x")
        os.waitpid(child, 0)
    assert told == b"refused"
    for end in (*ready, *go):
        os.close(end)


def cut(text: bytes) -> bytes:
    return text[:-1]


def flipped(place: int) -> Callable[[bytes], bytes]:
    return lambda text: text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (cut, "damaged"),
        (lambda text: text[:-30], "damaged"),
        (lambda text: text[:-50], "damaged"),
        (lambda text: text[:30], "of another run"),
        (lambda text: text[:64], "lacks steps"),
        (lambda text: text[:-192], "lacks steps"),
        (lambda _: b"", "damaged"),
        (lambda text: text + text[-64:], "damaged"),
        (lambda text: text[:64] + text[128:192] + text[64:128] + text[192:], "damaged"),
        (lambda text: text + bytes(64), "damaged"),
        (lambda text: text + bytes(64 * 99), "damaged"),
        (lambda text: b"#!/bin/sh".ljust(64) + text[64:], "damaged"),
        *((flipped(place), "damaged|of another run") for place in (0, 20, 40, 64, 80, 100, 300)),
    ],
)
def test_a_log_that_was_touched_is_refused(tmp_path: Path, receipt: Receipt, change: Any, words: str) -> None:
    mark = noted(tmp_path / "log", receipt)
    text = (tmp_path / "log").read_bytes()
    (tmp_path / "log").write_bytes(change(text))
    with pytest.raises(CheckpointError, match=words) as caught:
        Log.resume(tmp_path / "log", receipt, KEY, mark, most=8)
    assert "another run, which is charged on its own" in caught.value.fix
    (tmp_path / "log").write_bytes(text)
    Log.resume(tmp_path / "log", receipt, KEY, mark, most=8).close()  # the refusal let go of it


def test_the_log_of_a_run_that_has_ended_is_whole_and_stays_as_it_is(tmp_path: Path, receipt: Receipt) -> None:
    there = tmp_path / "log"
    mark, end = noted(there, receipt), end_of(there)
    assert end is not None
    assert end.steps == 4
    log = Log.resume(there, receipt, KEY, mark, most=8, end=end)
    log.note(2, DIGESTS[2])
    log.note(3, DIGESTS[3])
    assert log.mark == end
    with pytest.raises(BranchedRunError, match="Step 5 was passed over"):
        log.note(4, DIGESTS[4])
    log.close()
    for other in (Mark(5, end.code), Mark(3, end.code), Mark(-1, end.code), Mark(4, b"")):
        with pytest.raises(CheckpointError, match="lacks steps that were taken before the end"):
            Log.resume(there, receipt, KEY, mark, most=8, end=other)
    os.truncate(there, 64 * 4)
    with pytest.raises(CheckpointError, match="lacks steps that were taken before the end"):
        Log.resume(there, receipt, KEY, mark, most=8, end=end)
    os.truncate(there, 0)
    assert end_of(there) is None
    assert end_of(tmp_path / "none") is None


def test_a_log_that_is_missing_or_no_file_or_of_another_run_is_refused(tmp_path: Path, receipt: Receipt) -> None:
    mark = noted(tmp_path / "log", receipt)
    there = tmp_path / "log"

    def refused(words: str, key: bytes = KEY, of: Receipt = receipt, path: Path = there) -> None:
        with pytest.raises(CheckpointError, match=words):
            Log.resume(path, of, key, mark, most=8)

    refused("is missing", path=tmp_path / "none")
    refused("of another run", key=bytes(32))
    (tmp_path / "other").mkdir()
    refused("of another run", of=receipt_of(tmp_path / "other")[1])
    (tmp_path / "link").symlink_to(there)
    refused("cannot be used", path=tmp_path / "link")
    refused("cannot be used", path=tmp_path)
    os.mkfifo(tmp_path / "pipe")
    refused("damaged", path=tmp_path / "pipe")


def test_a_step_that_cannot_be_noted_is_refused_and_leaves_no_part_of_a_note(
    tmp_path: Path, receipt: Receipt, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log.begin(tmp_path / "log", receipt, KEY, most=8)
    log.note(0, DIGESTS[0])
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, text, place: write(file, text[:10], place))
    with pytest.raises(CheckpointError, match="No space left"):
        log.note(1, DIGESTS[1])
    assert (tmp_path / "log").stat().st_size == 2 * 64

    def full(*_: Any) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(CheckpointError, match="Input/output"):
        log.note(1, DIGESTS[1])
    monkeypatch.undo()
    log.note(1, DIGESTS[2])  # nothing was released: it may have changed
    mark = log.mark
    log.close()
    Log.resume(tmp_path / "log", receipt, KEY, mark, most=8).close()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="Input/output"):
        Log.begin(tmp_path / "new", receipt, KEY, most=8)
    monkeypatch.undo()
    Log.begin(tmp_path / "new", receipt, KEY, most=8).close()  # nothing was left in the way


def test_threads_note_one_after_the_other(tmp_path: Path, receipt: Receipt) -> None:
    log = Log.begin(tmp_path / "log", receipt, KEY, most=8)
    done: list[int] = []
    together = threading.Barrier(8)

    def tried(number: int) -> None:
        together.wait()
        with contextlib.suppress(BranchedRunError):
            log.note(0, DIGESTS[number])
            done.append(number)

    threads = [threading.Thread(target=tried, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1
    log.close()


def test_a_log_tells_nothing_about_sums(tmp_path: Path, receipt: Receipt) -> None:
    """Digests are made under the secret of the run (see stepping); codes under it, too."""
    noted(tmp_path / "log", receipt)
    log = Log.begin(tmp_path / "other", receipt, bytes(32), most=8)
    for step in range(4):
        log.note(step, DIGESTS[step])
    log.close()
    here, there = ((tmp_path / name).read_bytes() for name in ("log", "other"))
    assert all(here[i + 32 : i + 64] != there[i + 32 : i + 64] for i in range(0, len(here), 64))


def test_a_log_in_memory_goes_to_a_file_when_it_is_to_be_kept(tmp_path: Path, receipt: Receipt) -> None:
    log = Log.begin(None, receipt, KEY, most=8)
    log.note(0, DIGESTS[0])
    with pytest.raises(BranchedRunError):
        log.note(0, DIGESTS[1])
    log.keep(tmp_path / "log")
    log.note(1, DIGESTS[1])
    log.close()
    log = Log.resume(tmp_path / "log", receipt, KEY, log.mark, most=8)
    log.close()
    with pytest.raises(DefocusError, match="cannot be noted"):
        Log.begin(tmp_path / "log", receipt, KEY, most=8)


def test_a_ledger_beside_which_nothing_can_be_noted_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = receipt_of(tmp_path)[0]
    check_folder(ledger)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(CheckpointError, match="it is not writable"):
        check_folder(ledger)
    (tmp_path / "run.ledger.runs").rmdir()
    (tmp_path / "run.ledger.runs").write_text("in the way")
    with pytest.raises(CheckpointError, match="cannot be noted"):
        check_folder(ledger)
    ledger.close()
