"""Drivers in real processes that ask real tables against one shared ledger, race, and are killed.

Prints what happened as JSON.
"""

import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from tests.forking import ended, forked, note
from tests.waiting import HANGS

import defocus as dp
from defocus.errors import BudgetExceededError, DefocusError, LedgerError, NotRecordedError
from defocus.ledger import Ledger
from defocus.tables import Table
from defocus.tables.execution import Run

SLICE = Fraction(1, 8)
DRIVERS = 4
PARTS = ("2026-11-14", "2026-11-15")


def opened(where: str, home: Path) -> Table:
    """The table as every driver opens it, with an anchor file that all of them move forward."""
    return dp.open(
        home / "visits",
        unit=dp.rows(),
        budget=dp.Budget(1),
        ledger=where,
        name="visits",
        parts="day",
        anchor_file=home / "anchor",
    )


def show(home: Path, *words: object) -> None:
    """Show what became of a question."""
    note(home / "shown", json.dumps(words))


def shown(home: Path) -> list[Any]:
    """Everything that was shown."""
    path = home / "shown"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def ask(table: Table, part: str, home: Path) -> str:
    """Release a slice about one part or everybody, and show what came of it."""
    rows = table.part(part) if part else table
    try:
        receipt = rows.agg(n=dp.count()).release(epsilon=SLICE).receipt
    except NotRecordedError as unrecorded:
        receipt = unrecorded.release.receipt  # paid for, and shown
    except LedgerError as problem:
        word = "refused" if isinstance(problem, BudgetExceededError) else "unavailable"
        show(home, word, part)
        return word
    show(home, "answered", part, receipt.sequence, receipt.hash)
    return "answered"


def tries(seed: int) -> list[str]:
    """What one driver asks: far more than fits, in an order of its own."""
    wanted = [*["2026-11-14"] * 5, *["2026-11-15"] * 5, *[""] * 1]
    random.Random(seed).shuffle(wanted)
    return wanted


def outcome(where: str, home: Path) -> dict[str, Any]:
    """What the ledger holds in the end beside what was shown."""
    lines = shown(home)
    with Ledger.open(where, anchor_file=home / "anchor", timeout=HANGS) as ledger:
        entries = {entry.sequence: entry for entry in ledger.entries()}
        found = ledger.verify()
        left = {part: ledger.admits(dp.privacy.Pure(SLICE), parts=[part]) for part in PARTS}
        spent = {part: ledger.spent(part)[-1] for part in PARTS}
    answered = [line[1:] for line in lines if line[0] == "answered"]
    charges = [tuple(entry.parts) for entry in entries.values() if entry.kind == "charge"]
    return {
        "answered": len(answered),
        "paid": all(entries[number].hash == hashed for _, number, hashed in answered),
        "twice": len(answered) - len({number for _, number, _ in answered}),
        "refused": sum(line[0] == "refused" for line in lines),
        "unavailable": sum(line[0] == "unavailable" for line in lines),
        "charges": {part or "everybody": charges.count((part,) if part else ()) for part in (*PARTS, "")},
        "spent": spent,
        "left": left,
        "problems": found.problems,
    }


def race(where: str, home: Path) -> dict[str, Any]:
    """Drivers open the table at once and race for the last of the budget of two days."""

    def drive(seed: int) -> None:
        with opened(where, home) as table:
            for part in tries(seed):
                ask(table, part, home)

    codes = [ended(child) for child in [forked(lambda seed=seed: drive(seed)) for seed in range(DRIVERS)]]  # type: ignore[misc]  # its default
    return {"codes": codes, **outcome(where, home)}


def killed(where: str, home: Path) -> dict[str, Any]:
    """Drivers are killed between the charge and the record, one after the other; the last one goes on."""

    def doomed() -> None:
        def answer(*_: Any) -> Any:
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(Run, "answer", answer)  # noqa: B010  # in this process, which ends here
        with opened(where, home) as table:
            ask(table, "2026-11-14", home)

    def survivor() -> None:
        with opened(where, home) as table:
            for part in tries(0):
                ask(table, part, home)

    opened(where, home).close()
    codes = [ended(forked(doomed)) for _ in range(3)]
    return {"codes": [*codes, ended(forked(survivor))], **outcome(where, home)}


def terminated(where: str, home: Path) -> dict[str, Any]:
    """Somebody keeps terminating the connections of drivers to their ledger, at moments nobody chooses.

    Drivers ask until they have found the ledger unavailable often enough; then nothing is terminated any more.
    """
    opened(where, home).close()
    with psycopg.connect(where.partition("&schema")[0], autocommit=True) as connection:
        began = connection.execute("SELECT clock_timestamp()").fetchone()

    def enough() -> bool:
        return sum(1 for line in shown(home) if line[0] == "unavailable") >= DRIVERS

    def drive(seed: int) -> None:
        while True:
            with contextlib.suppress(LedgerError), opened(where, home) as table:
                for part in tries(seed) * 2:
                    ask(table, part, home)
                if enough():
                    return

    children = [forked(lambda seed=seed: drive(seed)) for seed in range(DRIVERS)]  # type: ignore[misc]  # its default
    stop, luck = threading.Event(), random.Random(3)

    def terminate() -> None:
        with psycopg.connect(where.partition("&schema")[0], autocommit=True) as connection:
            while not (stop.wait(luck.uniform(0, 0.02)) or enough()):
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                    " AND backend_type = 'client backend' AND query LIKE '%%ledger%%' AND backend_start > %s"
                    " ORDER BY random() LIMIT 1",
                    began,
                )

    thread = threading.Thread(target=terminate)
    thread.start()
    codes = []
    for child in children:
        try:
            codes.append(ended(child))
        except DefocusError:
            codes.append(1)
    stop.set()
    thread.join()
    return {"codes": codes, **outcome(where, home)}


def restarted(where: str, home: Path) -> dict[str, Any]:
    """The server is stopped at once and started again, by whoever runs this, while drivers ask."""

    def drive(seed: int) -> None:
        wanted = set(PARTS)
        while True:
            with contextlib.suppress(LedgerError), opened(where, home) as table:
                for part in tries(seed):
                    if ask(table, part, home) == "refused":
                        wanted.discard(part)
            if not wanted and (home / "restarted").exists():
                return
            time.sleep(0.1)

    opened(where, home).close()
    codes = [ended(child) for child in [forked(lambda seed=seed: drive(seed)) for seed in range(DRIVERS)]]  # type: ignore[misc]  # its default
    (home / "driven").touch()  # no more restarts
    while True:
        try:
            return {"codes": codes, **outcome(where, home)}
        except LedgerError:
            time.sleep(0.1)


def main() -> None:
    """Run the named experiment."""
    name, where, folder = sys.argv[1:]
    home = Path(folder)
    for day in PARTS:
        (home / "visits" / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"x": [1.0, 2.0]}), home / "visits" / f"day={day}" / "0.parquet")
    began = time.monotonic()
    experiments = {"race": race, "killed": killed, "terminated": terminated, "restarted": restarted}
    found = experiments[name](where, home)
    sys.stdout.write(json.dumps({**found, "seconds": time.monotonic() - began}))


if __name__ == "__main__":
    main()
