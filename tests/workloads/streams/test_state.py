"""The newest state of a stream: one follows another, and nobody else does."""

import gc
import json
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from defocus import Budget, rows
from defocus.errors import ReleaseFailedError, StreamStateError
from defocus.ledger import Ledger
from defocus.noise.testing import seeded
from defocus.workloads import streams
from defocus.workloads.streams import RunningSum
from defocus.workloads.streams.run import memory_of
from defocus.workloads.streams.state import FileCodes, LedgerCodes, StateFile, codes_of, design_of, load, opened, sealed

PLAN = RunningSum(30, epsilon=0.5, delta=1e-7)
PLANS = [
    PLAN,
    RunningSum(30, epsilon=0.5, delta=1e-7, method="binned", spread=2, entries=2),
    RunningSum(30, epsilon=0.5, delta=1e-7, method="banded", bandwidth=4),
    RunningSum(30, epsilon=0.5, noise="laplace"),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda p: p.method)
def test_a_stream_handed_over_goes_on_with_the_same_sums(plan: RunningSum, ledger: Ledger) -> None:
    x: Any = 10**6 if plan.entries is None else [10**6] * plan.entries
    stream = plan.start(ledger=ledger, purpose="visits")
    for _ in range(13):
        stream.add(x)
    state = json.loads(json.dumps(stream.save()))
    again = RunningSum.resume(state, ledger=ledger)
    assert again.step == 13
    assert again.last is not None
    assert again.last.step == 13
    for number in range(14, 31):
        step = again.add(x)
        entry = step.value if plan.entries is None else step.value[0]  # type: ignore[index]
        assert abs(entry - number * 10**6) < 20 * plan.standard_error(number)  # Laplace: a chance below exp(-28)
        assert step.standard_error == plan.standard_error(number)


def test_a_resumed_stream_costs_nothing_more(ledger: Ledger) -> None:
    stream = PLAN.start(ledger=ledger, purpose="visits")
    spent = ledger.spent()
    for _ in range(5):
        stream.add(1)
        stream = RunningSum.resume(stream.save(), ledger=ledger)
    assert ledger.spent() == spent
    assert ledger.verify().ok


@pytest.mark.slow
def test_a_stream_that_is_forgotten_gives_its_file_up(ledger: Ledger, tmp_path: Path) -> None:
    stream = PLAN.start(ledger=ledger, purpose="visits", state_file=tmp_path / "visits.state")
    shown = stream.add(5)
    with pytest.raises(StreamStateError, match="is running the stream"):
        RunningSum.resume(tmp_path / "visits.state", ledger=ledger)
    del stream  # without close()
    gc.collect()
    again = RunningSum.resume(tmp_path / "visits.state", ledger=ledger)
    assert again.last is not None
    assert again.last.value == shown.value


def test_a_state_is_left_once(ledger: Ledger) -> None:
    stream = PLAN.start(ledger=ledger, purpose="visits")
    stream.add(1)
    state = stream.save()
    with pytest.raises(StreamStateError, match="handed over"):
        stream.add(1)
    RunningSum.resume(state, ledger=ledger)
    with pytest.raises(StreamStateError, match="resumed before") as refusal:
        RunningSum.resume(state, ledger=ledger)
    assert "start a new stream" in refusal.value.fix


def test_a_step_is_on_disk_before_it_is_shown(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash right after the write: the sum was paid for, and the file still has it."""
    path = tmp_path / "visits.state"
    stream = PLAN.start(ledger=ledger, purpose="visits", state_file=path)
    shown = stream.add(10)
    write = StateFile.write

    def dies(self: StateFile, state: Any, note: Any) -> None:
        write(self, state, note)
        message = "power cut"
        raise OSError(message)

    monkeypatch.setattr(StateFile, "write", dies)
    with pytest.raises(ReleaseFailedError):
        stream.add(10**9)  # no noise makes up for it
    monkeypatch.undo()
    again = RunningSum.resume(path, ledger=ledger)
    assert again.step == 2
    assert again.last is not None
    assert again.last.value != shown.value
    assert again.add(1).step == 3


def test_a_step_that_was_not_kept_was_not_shown(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "visits.state"
    stream = PLAN.start(ledger=ledger, purpose="visits", state_file=path)
    shown = stream.add(10)

    def dies(self: StateFile, state: Any, note: Any) -> None:
        del self, state, note
        message = "disk full"
        raise OSError(message)

    monkeypatch.setattr(StateFile, "write", dies)
    with pytest.raises(ReleaseFailedError):
        stream.add(20)
    monkeypatch.undo()
    again = RunningSum.resume(path, ledger=ledger)
    assert again.step == 1
    assert again.last is not None
    assert again.last.value == shown.value


def test_a_step_that_was_not_kept_is_not_the_last_one_either(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its sum could be read from the failed stream and, with fresh noise, from the resumed one: two for one."""
    path = tmp_path / "visits.state"
    stream = PLAN.start(ledger=ledger, purpose="visits", state_file=path)
    shown = stream.add(10)
    seen = []

    def dies(self: StateFile, state: Any, note: Any) -> None:
        del self, state, note
        seen.append(stream.last)  # as another thread may, while the disk is slow
        message = "disk full"
        raise OSError(message)

    monkeypatch.setattr(StateFile, "write", dies)
    with pytest.raises(ReleaseFailedError):
        stream.add(20)
    monkeypatch.undo()
    assert seen == [shown]
    assert stream.last == shown


@pytest.mark.parametrize("way", ["copy", "link", "content"])
def test_copies_of_a_state_file_are_refused_while_the_stream_runs(ledger: Ledger, tmp_path: Path, way: str) -> None:
    path, copied = tmp_path / "visits.state", tmp_path / "copy.state"
    stream = PLAN.start(ledger=ledger, purpose="visits", state_file=path)
    stream.add(10)
    if way == "link":
        copied.symlink_to(path)
    else:
        shutil.copy(path, copied)
    state = json.loads(path.read_text()) if way == "content" else copied
    with pytest.raises(StreamStateError, match="Another process"):
        RunningSum.resume(state, ledger=ledger)
    assert stream.add(20).step == 2
    stream.close()
    assert RunningSum.resume(path, ledger=ledger).step == 2


def test_a_state_file_may_be_moved_between_two_runs(ledger: Ledger, tmp_path: Path) -> None:
    path, moved = tmp_path / "visits.state", tmp_path / "attic" / "visits.state"
    with PLAN.start(ledger=ledger, purpose="visits", state_file=path) as stream:
        stream.add(10)
    moved.parent.mkdir()
    path.rename(moved)
    with (
        PLAN.start(ledger=ledger, purpose="another stream in its place", state_file=path),
        RunningSum.resume(moved, ledger=ledger) as stream,
    ):
        assert stream.add(20).step == 2
    shutil.move(moved.parent, tmp_path / "cellar")
    assert RunningSum.resume(tmp_path / "cellar" / "visits.state", ledger=ledger).step == 2


def test_copies_of_a_state_file_are_refused_once_one_was_resumed(ledger: Ledger, tmp_path: Path) -> None:
    path, copied = tmp_path / "visits.state", tmp_path / "copy.state"
    with PLAN.start(ledger=ledger, purpose="visits", state_file=path) as stream:
        stream.add(10)
    shutil.copy(path, copied)
    RunningSum.resume(path, ledger=ledger).close()
    with pytest.raises(StreamStateError, match="resumed before"):
        RunningSum.resume(copied, ledger=ledger)
    assert RunningSum.resume(path, ledger=ledger).step == 1


def test_one_process_at_a_time(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "visits.state"
    stream = PLAN.start(ledger=ledger, purpose="visits", state_file=path)
    with pytest.raises(StreamStateError, match="Another process"):
        RunningSum.resume(path, ledger=ledger)
    stream.close()
    RunningSum.resume(path, ledger=ledger).close()


def test_of_many_who_resume_at_once_one_goes_on(ledger: Ledger) -> None:
    stream = PLAN.start(ledger=ledger, purpose="visits")
    stream.add(1)
    state = stream.save()

    def went_on(_: int) -> bool:
        try:
            RunningSum.resume(state, ledger=ledger)
        except StreamStateError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(went_on, range(6))) == 1


KILLED = """
import sys
from defocus import Budget
from defocus.ledger import Ledger
from defocus.workloads import RunningSum
with Ledger.open(sys.argv[1]) as ledger:
    stream = RunningSum(1000, epsilon=0.5, delta=1e-7).start(ledger=ledger, purpose="visits", state_file=sys.argv[2])
    while True:
        print(repr(stream.add(3).value), flush=True)
"""


@pytest.mark.slow
def test_a_killed_process_loses_no_step_that_was_shown(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "visits.state"
    arguments = [sys.executable, "-c", KILLED, str(tmp_path / "visits.ledger"), str(path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 # our own text
        assert process.stdout is not None
        shown = [float(process.stdout.readline()) for _ in range(5)]
        process.kill()
        shown += [float(line) for line in process.stdout if line.endswith("\n")]
    again = RunningSum.resume(path, ledger=ledger)
    assert again.step in {len(shown), len(shown) + 1}
    if again.step == len(shown):
        assert again.last is not None
        assert again.last.value == shown[-1]
    assert again.add(3).step == again.step


def test_a_file_in_the_way_is_refused_and_nothing_is_charged(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "visits.state"
    path.write_text("precious")
    for where, why in ((path, "already exists"), (tmp_path / "no folder" / "x", "cannot be used")):
        with pytest.raises(StreamStateError, match=why):
            PLAN.start(ledger=ledger, purpose="visits", state_file=where)
    assert len(ledger) == 1
    assert path.read_text() == "precious"


def test_the_file_is_for_its_owner_only(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "visits.state"
    with PLAN.start(ledger=ledger, purpose="visits", state_file=path) as stream:
        stream.add(1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not (tmp_path / "visits.state.new").exists()


def test_another_ledger_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    state = PLAN.start(ledger=ledger, purpose="visits").save()
    with (
        Ledger.open(tmp_path / "b.ledger", budget=Budget(3, 1e-5), unit=rows(), dataset="ward visits") as other,
        pytest.raises(StreamStateError, match="not charged to this ledger"),
    ):
        RunningSum.resume(state, ledger=other)
    RunningSum.resume(state, ledger=ledger)


def test_noise_other_than_what_was_charged_is_refused(ledger: Ledger) -> None:
    state = PLAN.start(ledger=ledger, purpose="visits").save()
    less = state["design"]["event"] | {"sigma": float(state["design"]["event"]["sigma"]) / 2}
    assert design_of(state, PLAN.event).noise == PLAN._design.noise
    with pytest.raises(StreamStateError, match="cannot be read"):
        design_of(state | {"design": state["design"] | {"event": less}}, PLAN.event)


@pytest.mark.parametrize("state", [None, {}, 7, {"format": "defocus running sum 3"}, []])
def test_what_is_no_state_is_refused(ledger: Ledger, state: Any) -> None:
    with pytest.raises(StreamStateError, match="not the state"):
        RunningSum.resume(state, ledger=ledger)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "defocus running sum 2"}', "\x00"])
def test_what_is_no_state_file_is_refused(ledger: Ledger, tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.state").write_text(text)
    with pytest.raises(StreamStateError):
        RunningSum.resume(tmp_path / "bad.state", ledger=ledger)
    with pytest.raises(StreamStateError, match="cannot be used"):
        RunningSum.resume(tmp_path / "absent.state", ledger=ledger)


@pytest.mark.parametrize("change", [{"design": {}}, {"design": None}, {"memory": {"step": 1}}, {"memory": []}])
def test_what_no_version_wrote_cannot_be_read(ledger: Ledger, change: dict[str, Any]) -> None:
    garbled = PLAN.start(ledger=ledger, purpose="visits").save() | change
    with pytest.raises(StreamStateError, match="cannot be read"):
        load(memory_of(design_of(garbled, PLAN.event)), garbled)


@pytest.fixture(params=[FileCodes, LedgerCodes], ids=["beside a file", "in PostgreSQL"])
def noted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """States are noted in a file, or, where the ledger is none, in the ledger."""
    if request.param is LedgerCodes:
        monkeypatch.setattr(streams, "codes_of", lambda ledger, *, sequence, digest: LedgerCodes(ledger, digest))  # noqa: ARG005


FORGERIES: dict[str, dict[str, Any]] = {
    "another number, to go on twice": {"number": 7},
    "a step back, to noise it again": {"memory": {"step": 1}},
    "other sums under the same noise": {"memory": {"exact": [[5], [5]]}},
    "another estimate": {"memory": {"total": [0.0]}},
    "another last sum": {"last": [0.0]},
    "another participation": {"design": {"participation": [2, 1, "1", False]}},
    "larger entries": {"design": {"largest": 2**30}},
    "other random bytes": {"salt": "00" * 32},
    "no file to wait for": {"file": None, "number": 0, "more": 1},
}


def forged(state: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    return state | {name: state[name] | new if isinstance(new, dict) else new for name, new in change.items()}


@pytest.mark.usefixtures("noted")
@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES)
@pytest.mark.parametrize("kept", ["file", "saved"])
def test_an_edited_state_is_refused_though_its_checksum_fits(
    ledger: Ledger, tmp_path: Path, change: dict[str, Any], kept: str
) -> None:
    path = tmp_path / "visits.state" if kept == "file" else None
    stream = PLAN.start(ledger=ledger, purpose="visits", state_file=path)
    stream.add(1)
    stream.add(2)
    state: Any = stream.save()
    with pytest.raises(StreamStateError, match="damaged"):
        opened(forged(state, change))
    edited: Any = sealed(forged(state, change))
    assert opened(edited) == edited
    if path is not None:
        path.write_text(json.dumps(edited))
    with pytest.raises(StreamStateError, match="altered copy"):
        RunningSum.resume(edited if path is None else path, ledger=ledger)
    if path is not None:
        path.write_text(json.dumps(state))
    assert RunningSum.resume(state if path is None else path, ledger=ledger).add(3).step == 3


@pytest.mark.parametrize("where", ["../../visits", "/etc/passwd", 7, None, ["a"]])
def test_no_state_says_where_states_are_noted(ledger: Ledger, where: Any) -> None:
    state = PLAN.start(ledger=ledger, purpose="visits").save()
    for change in ({"hash": where}, {"charge": where}):
        with pytest.raises(StreamStateError, match="not charged to this ledger"):
            RunningSum.resume(sealed(state | change), ledger=ledger)


@pytest.mark.usefixtures("noted")
def test_an_older_copy_is_refused_though_no_newer_one_was_resumed(ledger: Ledger, tmp_path: Path) -> None:
    """Else each step since could be shown again, with other noise or of other data."""
    path = tmp_path / "visits.state"
    copies = []
    with PLAN.start(ledger=ledger, purpose="visits", state_file=path) as stream:
        for _ in range(3):
            stream.add(10)
            copies.append(path.read_text())
    for older in copies[:2]:
        path.write_text(older)
        for state in (path, json.loads(older)):
            with pytest.raises(StreamStateError, match="older"):
                RunningSum.resume(state, ledger=ledger)
    path.write_text(copies[2])
    assert RunningSum.resume(path, ledger=ledger).add(10).step == 4


@pytest.mark.usefixtures("noted")
def test_a_stream_that_was_taken_over_elsewhere_shows_no_other_sum_of_a_step(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another machine, nobody sees the lock."""
    path, copied = tmp_path / "visits.state", tmp_path / "copy.state"
    stream = PLAN.start(ledger=ledger, purpose="visits", state_file=path)
    shown = stream.add(10)
    shutil.copy(path, copied)
    monkeypatch.setattr(StateFile, "may_run", lambda *_: False)
    other = RunningSum.resume(copied, ledger=ledger)
    with pytest.raises(ReleaseFailedError):
        stream.add(20)
    assert stream.last == shown
    assert other.add(20).step == 2
    with pytest.raises(StreamStateError, match="older"):
        RunningSum.resume(path, ledger=ledger)


@pytest.mark.usefixtures("noted")
def test_a_state_that_was_noted_but_not_renamed_is_found(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "visits.state"
    stream = PLAN.start(ledger=ledger, purpose="visits", state_file=path)
    stream.add(10)

    def dies(self: Path, target: Path) -> None:
        del self, target
        message = "power cut"
        raise OSError(message)

    monkeypatch.setattr(Path, "replace", dies)
    with pytest.raises(ReleaseFailedError):
        stream.add(20)
    monkeypatch.undo()
    if not (tmp_path / "visits.ledger.runs").exists():
        monkeypatch.setattr(streams, "codes_of", lambda ledger, *, sequence, digest: LedgerCodes(ledger, digest))  # noqa: ARG005
    again = RunningSum.resume(path, ledger=ledger)
    assert again.step == 2
    assert again.add(1).step == 3
    again.close()
    assert RunningSum.resume(path, ledger=ledger).step == 3


def test_a_state_that_was_not_noted_was_not_shown(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "visits.state"
    stream = PLAN.start(ledger=ledger, purpose="visits", state_file=path)
    shown = stream.add(10)

    def dies(self: FileCodes, before: str | None, after: str) -> None:
        del self, before, after
        message = "power cut"
        raise OSError(message)

    monkeypatch.setattr(FileCodes, "follow", dies)
    with pytest.raises(ReleaseFailedError):
        stream.add(20)
    monkeypatch.undo()
    again = RunningSum.resume(path, ledger=ledger)
    assert again.last is not None
    assert again.last.value == shown.value


def test_a_stream_whose_notes_are_missing_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    state = PLAN.start(ledger=ledger, purpose="visits").save()
    (notes,) = (tmp_path / "visits.ledger.runs").iterdir()
    assert stat.S_IMODE(notes.stat().st_mode) == 0o600
    code = notes.read_bytes()
    for text in (None, b"", code[:-1], code + b"0", b"\xff" * 64):
        notes.unlink() if text is None else notes.write_bytes(text)
        with pytest.raises(StreamStateError, match="resumed before"):
            RunningSum.resume(state, ledger=ledger)
    notes.write_bytes(code)
    assert RunningSum.resume(state, ledger=ledger).step == 0


def test_nothing_is_charged_where_states_cannot_be_noted(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "visits.ledger.runs").write_text("in the way")
    with pytest.raises(StreamStateError, match="cannot be noted"):
        PLAN.start(ledger=ledger, purpose="visits", state_file=tmp_path / "visits.state")
    assert len(ledger) == 1


def test_notes_tell_nothing_about_the_sums(ledger: Ledger) -> None:
    """Else sums could be guessed, and each guess checked: all but the random bytes may be known to others."""
    states = [PLAN.start(ledger=ledger, purpose="x", bits=seeded(1)).save() for _ in range(2)]
    assert len({state["salt"] for state in states}) == 2
    assert all(len(bytes.fromhex(state["salt"])) == 32 for state in states)


def _of_postgresql(ledger: Ledger, *, sequence: int, digest: str) -> LedgerCodes:
    """Where a ledger without a folder takes its notes."""
    return LedgerCodes(ledger, f"{sequence}{digest}")


@pytest.mark.parametrize("noted", ["beside", "inside"])
@pytest.mark.parametrize("kept", [False, True])
def test_who_holds_a_state_cannot_make_the_next_one(
    kept: bool, noted: str, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it could be resumed again and again, and each time its steps be noised."""
    if noted == "inside":
        monkeypatch.setattr(streams, "codes_of", _of_postgresql)
    path = tmp_path / "visits.state"
    state = PLAN.start(ledger=ledger, purpose="visits", state_file=path if kept else None).save()
    going = RunningSum.resume(path if kept else state, ledger=ledger)
    going.add(1)
    for file in (None, state["file"]):
        made = sealed(state | {"number": state["number"] + 1, "file": file})
        with pytest.raises(StreamStateError):
            RunningSum.resume(made, ledger=ledger)
    going.add(1)
    salts = {state["salt"], (last := going.save())["salt"]}
    assert len(salts) == 2
    assert RunningSum.resume(path if kept else last, ledger=ledger).step == 2


@pytest.mark.parametrize(
    "made", [lambda ledger, _: LedgerCodes(ledger, "d" * 64), lambda _, path: FileCodes(path / "x")]
)
def test_of_many_who_follow_one_state_one_is_next(ledger: Ledger, tmp_path: Path, made: Any) -> None:
    first = made(ledger, tmp_path)
    assert first.newest() is None
    first.follow(None, "a" * 64)

    def went_on(letter: str) -> bool:
        try:
            made(ledger, tmp_path).follow("a" * 64, letter * 64)
        except StreamStateError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(went_on, "bcde")) == 1
    with pytest.raises(StreamStateError):
        first.follow(None, "f" * 64)
    assert first.newest() in {letter * 64 for letter in "bcde"}
    with pytest.raises(StreamStateError):
        first.follow("a" * 64, "f" * 64)


class Remote:
    """A ledger elsewhere."""

    where = "postgresql://ada@host/visits"


def test_where_states_are_noted_follows_from_the_ledger_and_the_charge(ledger: Ledger, tmp_path: Path) -> None:
    found = codes_of(ledger, sequence=3, digest="ab" * 32)
    assert isinstance(found, FileCodes)
    assert found.path == tmp_path.resolve() / "visits.ledger.runs" / "3-abababababababab.sum"
    assert isinstance(codes_of(Remote(), sequence=3, digest="ab" * 32), LedgerCodes)  # type: ignore[arg-type]
