"""Runs ledgers in real processes that race, fork and are killed; prints what happened as JSON."""

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from tests.forking import ended, forked, note
from tests.waiting import HANGS

from defocus.errors import BudgetExceededError, DefocusError
from defocus.ledger import Ledger, verify
from defocus.mechanisms import Laplace
from defocus.noise.testing import seeded
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Pure
from defocus.privacy.units import rows


def opened(where: str, *, budget: Budget, **options: Any) -> Ledger:
    return Ledger.open(where, budget=budget, unit=rows(), dataset="visits", **options)


def race(where: str, home: Path) -> dict[str, Any]:
    """Eight processes open the ledger at once, and race for the last slices of its budget."""
    shown = home / "won"
    shown.touch()
    anchor = home / "anchor" if "://" in where else None  # beside a file, where nobody names one
    start_read, start_write = os.pipe()

    def grab() -> None:
        os.close(start_write)
        os.read(start_read, 1)
        with opened(where, budget=Budget(1), anchor_file=anchor, timeout=HANGS) as ledger:
            for _ in range(4):
                try:
                    receipt = ledger.charge(Pure(Fraction(1, 16)), purpose="slice")
                except BudgetExceededError:
                    note(shown, "refused")
                else:
                    note(shown, f"won {receipt.sequence} {receipt.hash}")

    children = [forked(grab) for _ in range(8)]
    os.close(start_read)
    os.close(start_write)
    codes = [ended(child) for child in children]
    lines = shown.read_text().splitlines()
    with Ledger.open(where, anchor_file=anchor) as ledger:
        entries = {entry.sequence: entry.hash for entry in ledger.entries()}
        found = ledger.verify()
        left = ledger.admits(Pure(Fraction(1, 16)))
    won = [line.split()[1:] for line in lines if line.startswith("won")]
    return {
        "codes": codes,
        "won": len(won),
        "refused": lines.count("refused"),
        "all there": all(entries.get(int(number)) == hashed for number, hashed in won),
        "problems": found.problems,
        "charges": found.charges,
        "room left": left,
    }


def make_one(where: str) -> None:
    """Make a ledger and close it."""
    opened(where, budget=Budget(1)).close()


def show_one(where: str, home: Path) -> None:
    """Charge, sample, record, show: what a release does."""
    mechanism = Laplace(scale=1000)
    with opened(where, budget=Budget(1000), anchor_file=home / "anchor") as ledger:
        show(ledger, mechanism, home)


def show(ledger: Ledger, mechanism: Laplace, home: Path) -> None:
    receipt = ledger.charge(mechanism.event, purpose="count")
    value = mechanism.sample(1000, seeded(1))
    ledger.record(receipt, value)
    note(home / "shown", f"{receipt.sequence} {receipt.hash} {value}")


def unpaid(where: str, home: Path) -> list[str]:
    """Everything that is wrong after a crash: problems of the ledger, and values shown without a charge."""
    shown = (home / "shown").read_text().splitlines() if (home / "shown").exists() else []
    with Ledger.open(where, anchor_file=home / "anchor") as ledger:
        wrong = list(ledger.verify().problems)
        charges = {(entry.sequence, entry.hash) for entry in ledger.entries() if entry.kind == "charge"}
    paid = [line.split() for line in shown]
    wrong += [f"unpaid {line}" for line in paid if (int(line[0]), line[1]) not in charges]
    if len({line[0] for line in paid}) != len(paid):
        wrong.append("one charge paid for two values")
    return wrong


def killed_at(step: int, act: Callable[[], None]) -> Callable[[], None]:
    """``act``, killed from inside with signal 9 at its ``step``-th call, or return, of any function."""

    def doomed() -> None:
        left = step

        def count(_frame: FrameType, _what: str, _argument: object) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count)
        act()
        sys.setprofile(None)

    return doomed


def steps_of(act: Callable[[], None]) -> list[tuple[int, bool]]:
    """Every call and return that ``act`` makes, and whether it touches a file, a database or a random bit."""
    seen: list[bool] = []
    touching = {
        "execute",
        "fsync",
        "open",
        "replace",
        "write",
        "close",
        "connect",
        "flock",
        "urandom",
        "commit",
        "flush",
    }

    def watch(frame: FrameType, what: str, argument: Any) -> None:
        name = getattr(argument, "__name__", "") if what.startswith("c_") else frame.f_code.co_name
        seen.append(name in touching)

    sys.setprofile(watch)
    act()
    sys.setprofile(None)
    return list(enumerate(seen))


def kill_steps(where: str, home: Path, times: int) -> dict[str, Any]:
    """Kill a release at many of its steps: all that touch the world, then others spread evenly, up to ``times``."""
    show_one(where, home)
    steps = steps_of(partial(show_one, where, home))
    touching = [step for step, touches in steps if touches]
    chosen = sorted({*_spread(touching, times * 2 // 3), *_spread([step for step, _ in steps], times // 3)})
    wrong: list[str] = []
    killed = 0
    for round_number, step in enumerate(chosen):
        if round_number % 40 == 39:
            where, home = _fresh(where, home, round_number)
            show_one(where, home)
        killed += ended(forked(killed_at(step, partial(show_one, where, home)))) == -signal.SIGKILL
        wrong += [f"step {step} of {len(steps)}: {text}" for text in unpaid(where, home)]
    return {"killed": killed, "tried": len(chosen), "steps": len(steps), "wrong": wrong[:10]}


def kill_making(where: str, home: Path, times: int) -> dict[str, Any]:
    """Kill a process that makes a new ledger, at many of its steps; whatever is left can be opened and charged."""
    make_one(where)
    where, home = _fresh(where, home, 1000)
    steps = steps_of(partial(make_one, where))
    touching = [step for step, touches in steps if touches]
    chosen = sorted({*_spread(touching, times * 2 // 3), *_spread([step for step, _ in steps], times // 3)})
    wrong: list[str] = []
    killed = 0
    for number, step in enumerate(chosen):
        where, home = _fresh(where, home, number)
        killed += ended(forked(killed_at(step, partial(make_one, where)))) == -signal.SIGKILL
        with opened(where, budget=Budget(1)) as ledger:
            ledger.charge(Pure(Fraction(1, 64)), purpose="after the crash")
            wrong += [f"step {step}: {text}" for text in ledger.verify().problems]
    return {"killed": killed, "tried": len(chosen), "steps": len(steps), "wrong": wrong[:10]}


def kill_randomly(where: str, home: Path, times: int) -> dict[str, Any]:
    """Kill a process that releases one value after another, from outside, at random moments."""
    luck = random.Random(7)
    wrong: list[str] = []
    killed = shown = 0
    show_one(where, home)
    start = time.perf_counter()
    show_one(where, home)
    pace = time.perf_counter() - start

    def keep_showing() -> None:
        mechanism = Laplace(scale=1000)
        with Ledger.open(where, anchor_file=home / "anchor") as ledger:
            while True:
                show(ledger, mechanism, home)

    for number in range(times):
        if number % 25 == 24:
            shown += len((home / "shown").read_text().splitlines())
            where, home = _fresh(where, home, number)
            show_one(where, home)
        child = forked(keep_showing)
        time.sleep(luck.uniform(0, 4 * pace))
        os.kill(child, signal.SIGKILL)
        killed += ended(child) == -signal.SIGKILL
        wrong += [f"round {number}: {text}" for text in unpaid(where, home)]
    shown += len((home / "shown").read_text().splitlines())
    return {"killed": killed, "shown": shown, "wrong": wrong[:10]}


def _spread(steps: list[int], most: int) -> list[int]:
    return steps if len(steps) <= most else [steps[i * len(steps) // most] for i in range(most)]


def _fresh(where: str, home: Path, number: int) -> tuple[str, Path]:
    """Another ledger of the same kind, so that verifying all of it stays quick."""
    folder = home.parent / f"{home.name.split('-')[0]}-{number}"
    folder.mkdir()
    base = where.rsplit("_round", 1)[0]
    return (f"{base}_round{number}" if "://" in where else str(folder / "visits.ledger")), folder


def full_disk(where: str, _home: Path) -> dict[str, Any]:
    """Charge while files may not grow beyond a limit, for many limits: the disk fills up at every place."""
    wrong: list[str] = []
    refusals: dict[str, int] = {}
    receipts = charges = 0
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with opened(where, budget=Budget(1000)) as ledger:
        ledger.charge(Pure(Fraction(1, 100)), purpose="first")
        receipts += 1
        for extra in range(-3000, 12000, 512):
            limit = max(Path(where).stat().st_size + extra, 0)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            got = 0
            try:
                for _ in range(3):
                    ledger.charge(Pure(Fraction(1, 100)), purpose="x" * 1500)
                    got += 1
            except DefocusError as error:
                refusals[type(error).__name__] = refusals.get(type(error).__name__, 0) + 1
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            receipts += got
            found = ledger.verify()
            charges = found.charges
            wrong += found.problems
            if charges < receipts:
                wrong.append(f"{receipts} receipts, but {charges} charges")
    return {"wrong": wrong[:10], "refusals": refusals, "receipts": receipts, "charges": charges}


def fork_in_use(where: str, home: Path) -> dict[str, Any]:
    """A child goes on using the ledger that its parent opened, while the parent uses it too."""
    ledger = opened(where, budget=Budget(1))
    ledger.charge(Pure(Fraction(1, 64)), purpose="before the fork")

    def go_on() -> None:
        for _ in range(20):
            ledger.charge(Pure(Fraction(1, 64)), purpose="child")

    children = [forked(go_on) for _ in range(2)]
    for _ in range(20):
        ledger.charge(Pure(Fraction(1, 64)), purpose="parent")
    codes = [ended(child) for child in children]
    found = ledger.verify()
    ledger.close()
    return {"codes": codes, "charges": found.charges, "problems": found.problems, "home": str(home)}


def as_nobody(where: str, home: Path) -> dict[str, Any]:
    """Use a ledger in a directory that may not be written to, without the rights of root."""
    with opened(where, budget=Budget(1)) as ledger:
        ledger.charge(Pure(Fraction(1, 64)), purpose="while it could")
    for path in (home, *home.parents):
        path.chmod(path.stat().st_mode | 0o555)
    home.chmod(0o555)
    Path(where).chmod(0o666)
    Path(f"{where}.anchor").chmod(0o666)
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    outcome: dict[str, Any] = {}
    try:
        Ledger.open(where).charge(Pure(Fraction(1, 64)), purpose="no journal")
    except DefocusError as error:
        outcome["charge"] = f"{type(error).__name__}: {error}"
    try:
        opened(str(home / "new.ledger"), budget=Budget(1))
    except DefocusError as error:
        outcome["create"] = f"{type(error).__name__}: {error}"
    outcome["verify"] = str(verify(where))
    with Ledger.open(where, read_only=True) as reader:
        outcome["entries"] = len(reader)
    return outcome


def main() -> None:
    """Run the named experiment."""
    name, where, home, *numbers = sys.argv[1:]
    experiments: dict[str, Callable[..., dict[str, Any]]] = {
        "race": race,
        "kill_steps": kill_steps,
        "kill_making": kill_making,
        "kill_randomly": kill_randomly,
        "full_disk": full_disk,
        "fork_in_use": fork_in_use,
        "as_nobody": as_nobody,
    }
    outcome = experiments[name](where, Path(home), *(int(number) for number in numbers))
    sys.stdout.write(json.dumps(outcome))


if __name__ == "__main__":
    main()
