"""How long a charge to one part takes where ten thousand parts were charged, beside a ledger with a single one.

Run: python benchmarks/parts.py [directory]   (the directory chooses the disk)

Both ledgers take turns; the quietest block of turns is reported, with the ratio of the two.
"""

import json
import platform
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from defocus import Budget, rows
from defocus.ledger import Ledger, Parts
from defocus.privacy.events import DiscreteGaussian, Event

PARTS, AT_ONCE, BLOCKS, TURNS = 10_000, 100, 6, 10
RESULTS = Path(__file__).parent / "results" / "parts.json"
EVENT: Event = DiscreteGaussian(Fraction(1000))


def milliseconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return 1000 * (time.perf_counter() - start)


def opened(path: Path) -> Ledger:
    days = Parts("day", "text", "rows")
    return Ledger.open(path, budget=Budget(100, 1e-6), unit=rows(), dataset="visits", parts=days)


def compared(few: Ledger, many: Ledger, parts: Callable[[int], list[str]]) -> dict[str, float]:
    """Median milliseconds of the same charge on both, taking turns, in the quietest block."""
    blocks = []
    for block in range(BLOCKS):
        both: tuple[list[float], list[float]] = ([], [])
        for turn in range(TURNS):
            for times, ledger in zip(both, (few, many), strict=True):
                labels = parts(block * TURNS + turn)
                times.append(milliseconds(lambda: ledger.charge(EVENT, purpose="benchmark", who="bench", parts=labels)))  # noqa: B023  # called at once
        blocks.append(tuple(statistics.median(times) for times in both))
    one, ten_thousand = min(blocks, key=sum)
    return {"one part ms": one, "ten thousand parts ms": ten_thousand, "ratio": ten_thousand / one}


def main() -> None:
    home = Path(tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None))
    with opened(home / "few.ledger") as few, opened(home / "many.ledger") as many:
        few.charge(EVENT, purpose="filling", parts=["day 0"])
        for start in range(0, PARTS, AT_ONCE):
            many.charge(EVENT, purpose="filling", parts=[f"day {start + i}" for i in range(AT_ONCE)])
        table = {
            "a new part": compared(few, many, lambda turn: [f"new {turn}"]),
            "a part charged before": compared(few, many, lambda _: ["day 0"]),
            "everybody": compared(few, many, lambda _: []),
        }
        verify_ms = milliseconds(lambda: many.verify().require())
    shutil.rmtree(home)
    for name, row in table.items():
        print(
            f"{name:24} one part {row['one part ms']:.2f} ms, ten thousand {row['ten thousand parts ms']:.2f} ms,"
            f" ratio {row['ratio']:.2f}"
        )
    facts = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"versions": facts, "table": table, "verify ms": verify_ms}, indent=2) + "\n")


if __name__ == "__main__":
    main()
