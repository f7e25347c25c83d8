"""The auditor attacks releases of other libraries and of Defocus, and writes what it found to ``docs/scoreboard.md``.

Usage (after ``bash benchmarks/setup.sh``, which makes an environment for each library)::

    .venv/bin/python benchmarks/scoreboard.py [--seconds 60] [--only NAME ...] [--rooms [ROOM ...]]

Each library runs in its own process and environment (``scoreboard_parts/peers.py``); the auditor asks it for outputs
on neighbouring data sets. Mechanisms and queries are searched as by ``audit.search`` at 99.9 % confidence. Synthesisers
are attacked by ``audit.membership``: everybody is put in by a coin, in several runs with coins of their own. What takes
longer than it may is given up, and said. ``--rooms`` adds the long attacks of the suite on what each room releases.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scoreboard_parts.peers import DELTA, EPSILON, RATIO, SIZES, receive, send, worlds

import defocus as dp
from defocus.audit import Pair, batched, lower_bound, membership, neighbours, search
from defocus.mechanisms import Laplace
from defocus.privacy import Gaussian, account

HERE = Path(__file__).parent
ROOT = HERE.parent
CONFIDENCE = 0.9995
"""Of the search and of a second look where it found a violation: 99.9 % for both together."""
GAUSSIAN = account(Gaussian(RATIO)).epsilon(DELTA)
PEOPLE, RUNS = 200, 6
KEPT_ROOMS = HERE / "results" / "scoreboard_rooms.json"


@dataclass(frozen=True)
class Case:
    """One release of a library: its claim, and the data sets it is attacked on."""

    name: str
    about: str
    pairs: Callable[[], Any]
    delta: float = 0.0
    claimed: float = EPSILON
    trials: int = 100_000
    synthetic: bool = False


def added() -> tuple[Pair, ...]:
    """One row more, where each of many groups holds the same rows; values are said to lie in [0, 1]."""
    one = [0.5]
    return (
        Pair("the largest value added", np.array(one), np.array([0.5, 1.0])),
        Pair("a value beyond the bounds added", np.array(one), np.array([0.5, 1e6])),
        Pair("a third added", np.array([1 / 3]), np.array([1 / 3, 1 / 3])),
    )


def replaced() -> tuple[Pair, ...]:
    return (
        Pair("a half replaced by the largest", np.array([0.5, 0.5]), np.array([0.5, 1.0])),
        Pair("the smallest replaced by the largest", np.array([0.0] * 9), np.array([0.0] * 8 + [1.0])),
        Pair("a value beyond the bounds", np.array([0.5, 0.5]), np.array([0.5, 1e6])),
    )


def missing() -> tuple[Pair, ...]:
    return (Pair("a number replaced by NaN", np.array([0.5, 0.5]), np.array([0.5, np.nan])),)


def gradients() -> tuple[Pair, ...]:
    """A single example, which is zero or not; the norm of a gradient is its absolute value, clipped to one."""
    return (
        Pair("a gradient at the clip", np.array([0.0]), np.array([1.0])),
        Pair("a gradient far beyond the clip", np.array([0.0]), np.array([1e6])),
    )


def values() -> tuple[Pair, ...]:
    return tuple(pair for pair in neighbours("value") if abs(pair.first) < 1e6)


def integers() -> tuple[Pair, ...]:
    return neighbours("count")[:3]


CASES = (
    Case("diffprivlib: laplace", "`mechanisms.Laplace`", values),
    Case("diffprivlib: gaussian", "`mechanisms.Gaussian`", values, DELTA),
    Case("diffprivlib: mean", "`tools.mean`, one row replaced", replaced, trials=20_000),
    Case("diffprivlib: nan", "`tools.mean`, one row replaced by NaN", missing, trials=20_000),
    Case("opendp: laplace, float", "`make_laplace` on floats", values, trials=20_000),
    Case("opendp: laplace, integer", "`make_laplace` on integers", integers, trials=20_000),
    Case("opendp: sum", "clamp, sum, Laplace", lambda: neighbours("integers")[:6], trials=20_000),
    Case("smartnoise: count", "`COUNT(v)` by group", added, DELTA, trials=20_000),
    Case("smartnoise: sum", "`SUM(v)` by group", added, DELTA, trials=20_000),
    Case("pipelinedp: count", "count by group, Laplace", added, trials=20_000),
    Case("pipelinedp: sum", "sum by group, Laplace", added, trials=20_000),
    Case("tumult: count", "count by group, pure DP", lambda: added()[:1], trials=20_000),
    Case("tumult: sum", "sum by group, pure DP", lambda: added()[:2], trials=20_000),
    Case("opacus: step", "one step of `DPOptimizer`", gradients, DELTA, GAUSSIAN, 20_000),
    Case("opacus: step, secure mode", "the same with `secure_mode=True`", gradients, DELTA, GAUSSIAN, 20_000),
    Case("jaxprivacy: step", "`clipped_grad` and `gaussian_privatizer`", gradients, DELTA, GAUSSIAN),
    Case("synth: mst", "`MSTSynthesizer`", lambda: None, DELTA, synthetic=True),
    Case("dpmm: mst", "`MSTPipeline`", lambda: None, DELTA, synthetic=True),
    Case("defocus: laplace", "`mechanisms.Laplace` on integers", integers),
    Case("defocus: sum", "count and sum of a table by group", added, trials=20_000),
    Case("defocus: synthesise", "`synthesise`", lambda: None, DELTA, synthetic=True),
)


@dataclass
class Row:
    """What was found for one case."""

    case: Case
    versions: str = ""
    verdict: str = ""
    bound: float | None = None
    shown: str = ""
    seconds: float = 0.0
    allowed: float = 0.0
    """How long a search might look."""
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())


@contextmanager
def peer(name: str, seconds: float) -> Iterator[tuple[list[str], Callable[[Any, int], Any]]]:
    """A library in its environment: its versions, and what makes outputs; ended when its time is over."""
    python = ROOT / ".bench" / name.partition(":")[0] / "bin" / "python"
    command = [str(python), str(HERE / "scoreboard_parts" / "peers.py"), name]
    with tempfile.TemporaryFile() as said:
        work = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said)  # noqa: S603
        timer = threading.Timer(seconds, work.kill)
        timer.start()

        def ask(data: Any, n: int) -> Any:
            try:
                send(work.stdin, data=np.asarray(data), n=n)
                found = receive(work.stdout)
            except OSError:
                found = None
            if found is None:
                raise KeyboardInterrupt  # the process is gone: nothing further can be asked of it
            if "raised" in found:
                raise RuntimeError(str(found["raised"]))
            return found["outputs"]

        try:
            first = receive(work.stdout)
            if first is None:
                said.seek(0)
                raise RuntimeError(said.read().decode(errors="replace").strip().split("\n")[-1][:120])
            yield list(map(str, first["versions"])), ask
        finally:
            timer.cancel()
            work.stdin.close()  # type: ignore[union-attr]
            work.kill()
            work.wait()


@contextmanager
def ours(name: str, _: float) -> Iterator[tuple[list[str], Callable[[Any, int], Any]]]:
    """The same for Defocus, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(10**9))

        def opened(table: pa.Table, **more: Any) -> Any:
            terms = {"unit": dp.rows(), "budget": dp.Budget(1000, 1e-3), "name": "t", **more}
            return dp.open(table, ledger=f"{folder}/{next(numbers)}", **terms)

        def total(rows: Any, n: int) -> Any:
            _, groups, values = worlds(rows, n)
            with opened(pa.table({"grp": groups, "v": values})) as table:
                asked = table.group_by("grp", keys=range(n)).agg(n=dp.count(), s=dp.sum("v", 0, 1))
                return np.stack([column.values for column in asked.release(epsilon=EPSILON).columns], axis=1)

        def synthesised(rows: Any, _: int) -> Any:
            frame = pa.table({f"c{i}": rows[:, i] for i in range(rows.shape[1])})
            with opened(frame) as table:
                columns = {f"c{i}": list(range(size)) for i, size in enumerate(SIZES)}
                made = dp.synthesise(table, epsilon=EPSILON, delta=DELTA, columns=columns)
            return np.stack([made.sample(len(rows))[f"c{i}"].to_numpy() for i in range(rows.shape[1])], axis=1)[None]

        laplace = Laplace(scale=1)
        makers = {
            "laplace": lambda value, n: laplace.sample(np.full(n, int(value))),
            "sum": total,
            "synthesise": synthesised,
        }
        yield [f"defocus {version('defocus')}", f"numpy {version('numpy')}"], makers[name.partition(": ")[2]]


def attacked(case: Case, seconds: float) -> Row:
    """Run a case and judge it."""
    row, began = Row(case, allowed=seconds), time.monotonic()
    limit = 20 * seconds if case.synthetic else 4 * seconds
    try:
        with (ours if case.name.startswith("defocus") else peer)(case.name, limit) as (versions, ask):
            row.versions = ", ".join(versions)
            (_fitted if case.synthetic else _searched)(case, row, ask, seconds)
    except KeyboardInterrupt:
        row.verdict = f"given up after {limit:.0f} s"
    except (OSError, RuntimeError, ImportError) as error:
        row.verdict = f"does not run here: {str(error)[:100]}"
    row.seconds = time.monotonic() - began
    return row


def _searched(case: Case, row: Row, ask: Callable[[Any, int], Any], seconds: float) -> None:
    pairs = list(case.pairs())
    found = search(
        batched(ask), pairs, case.trials, CONFIDENCE, delta=case.delta, claimed=case.claimed, seconds=seconds
    )
    row.verdict, row.bound = found.verdict, found.epsilon_lower
    if found.violation:  # which stopped the search: how much is lost is seen by new runs on the same data sets
        pair = next(pair for pair in pairs if found.pair.startswith(f"{pair.name}: "))
        found = lower_bound(batched(ask), pair, case.trials, CONFIDENCE, delta=case.delta, seconds=seconds)
        row.bound = max(row.bound, found.epsilon_lower)
    row.shown = f"{found.event}, in {found.p:.2%} and {found.q:.2%} of runs; {found.pair}"


def _fitted(case: Case, row: Row, ask: Callable[[Any, int], Any], seconds: float) -> None:
    del seconds
    draw = np.random.default_rng(1)
    common = draw.integers(0, 3, (PEOPLE, 1))
    rows = np.stack([(common[:, 0] + draw.integers(0, size, PEOPLE)) % size for size in SIZES], axis=1)
    found = membership(
        lambda own: ask(own, 1)[0], rows, runs=RUNS, claimed=case.claimed, delta=case.delta, confidence=CONFIDENCE
    )
    area, low, high = found.best.auc
    row.verdict, row.bound = found.verdict, found.bound.epsilon_lower
    told = f"{area:.3f} ({low:.3f} to {high:.3f}), at most {found.promise.most_area(PEOPLE // 2):.3f} by the claim"
    row.shown = (
        f"{found.attack}; {RUNS} runs on {PEOPLE} people of {len(SIZES)} columns; {found.best.name}: area {told}"
    )


def page(rows: list[Row], rooms: str) -> str:
    """The findings as a page."""
    table = ["| release | claims | ε at least | verdict | `--seconds` | took |", "|---|---|---|---|---|---|"]
    notes = []
    for row in rows:
        claim = f"{row.case.claimed:.3g}" + (f", δ = {row.case.delta:g}" if row.case.delta else "")
        bound = "–" if row.bound is None else f"{row.bound:.3g}"
        library = row.case.name.partition(":")[0]
        found = f"{bound} | {row.verdict} | {row.allowed:g} | {row.seconds:.0f} s"
        table.append(f"| {library}: {row.case.about} | {claim} | {found} |")
        if row.shown:
            notes.append(f"- **{row.case.name}**: {' '.join(row.shown.split())}.".replace("|", "\\|"))
    versions = sorted({f"{row.case.name.partition(':')[0]}: {row.versions}" for row in rows if row.versions})
    left = sorted({case.name for case in CASES} - {row.case.name for row in rows})
    text = (HERE / "scoreboard_parts" / "page.md").read_text("utf-8")
    filled = {
        "DATE": max((row.date for row in rows), default=""), "TABLE": "\n".join(table), "EVENTS": "\n".join(notes),
        "VERSIONS": "\n".join(f"- {each}" for each in versions), "ROOMS": rooms,
        "LEFT": f"Not run this time: {', '.join(left)}." if left else "",
        "PYTHON": platform.python_version(),
    }  # fmt: skip
    for name, value in filled.items():
        text = text.replace(f"@{name}@", value)
    return text


def attack_rooms(wanted: list[str], part: float) -> None:
    """The longer attacks of the suite on what each room of Defocus releases, with this part of their runs; kept."""
    sys.path.insert(0, str(ROOT))
    from tests.audit.test_rooms import ROOMS

    known = json.loads(KEPT_ROOMS.read_text()) if KEPT_ROOMS.exists() else {}
    for name, room in ROOMS.items():
        if wanted and not any(name.startswith(one) for one in wanted):
            continue
        began, runs = time.monotonic(), max(room.few or 200, round(part * room.many))
        with tempfile.TemporaryDirectory() as folder:
            found = room.make(Path(folder), runs).judged(runs)
        known[name] = found.to_json() | {"picture": None, "seconds": time.monotonic() - began}
        kept = {each: known[each] for each in ROOMS if each in known}
        KEPT_ROOMS.write_text(json.dumps(kept, indent=1) + "\n")
        print(f"{name:40} {found.verdict:32} {found.epsilon_lower:.3f} of {found.claimed:.3f}", flush=True)


def every_room() -> str:
    """What was found, as a part of the page."""
    if not KEPT_ROOMS.exists():
        return ""
    lines = [
        "## What each room of Defocus releases\n",
        "The longer attacks of the suite (`python benchmarks/scoreboard.py --only none --rooms`), at 99.9999999 %",
        "confidence: one row, person, edge or node more. *Would detect* is the loss that as many runs would have",
        "called in 9 of 10 cases, if an event as likely as the one found shows it; a dash: none that so few could.\n",
        "| release | at δ | charged ε | ε at least | would detect ε of | runs on each |",
        "|---|---|---|---|---|---|",
    ]
    for name, one in json.loads(KEPT_ROOMS.read_text()).items():
        reach = "–" if one["detectable"] is None else f"{one['detectable']:.3g}"
        verdict = " **violation**" if one["violation"] else ""
        lines.append(
            f"| {name}{verdict} | {one['delta']:g} | {one['claimed']:.3g} | {one['epsilon_lower']:.3g} | {reach}"
            f" | {one['trials']} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--only", nargs="*", default=[])
    arguments.add_argument("--rooms", nargs="*", metavar="ROOM")
    arguments.add_argument("--part", type=float, default=1.0, help="of the runs on rooms")
    given = arguments.parse_args()
    if given.rooms is not None:
        attack_rooms(given.rooms, given.part)
    kept = HERE / "results" / "scoreboard.json"
    wanted = [case for case in CASES if not given.only or any(case.name.startswith(name) for name in given.only)]
    rows = []
    for case in wanted:
        row = attacked(case, given.seconds)
        rows.append(row)
        print(f"{case.name:32} {row.verdict:40} {row.bound} {row.seconds:.0f} s", flush=True)
    told = [{"case": r.case.name, "versions": r.versions, "claimed": r.case.claimed, "delta": r.case.delta,
             "bound": r.bound, "verdict": r.verdict, "shown": r.shown, "seconds": r.seconds,
             "allowed": r.allowed, "date": r.date} for r in rows]  # fmt: skip
    known = {one["case"]: one for one in json.loads(kept.read_text())} if given.only and kept.exists() else {}
    known |= {one["case"]: one for one in told}
    kept.write_text(json.dumps([known[case.name] for case in CASES if case.name in known], indent=1) + "\n")
    every = [
        Row(
            case,
            one["versions"],
            one["verdict"],
            one["bound"],
            one["shown"],
            one["seconds"],
            one["allowed"],
            one["date"],
        )
        for case in CASES
        if (one := known.get(case.name)) is not None
    ]
    (ROOT / "docs" / "scoreboard.md").write_text(page(every, every_room()), "utf-8")


if __name__ == "__main__":
    main()
