"""How long a private answer about features of a person takes, beside the bare query in the same database.

Run: python benchmarks/readmission.py [directory] [visits]   (the directory chooses the disk; ten million by default)

Questions of a statistics office about generated visits of a hospital in a DuckDB file: the share of visits within
thirty days of another, by a window over the visits of each patient, the share of patients who came back, and means of
what each patient has in all, by GROUP BY. Both sides take turns; the quickest of several rounds is reported.
"""

import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import defocus as dp

ROUNDS, THREADS = 5, 2
RESULTS = Path(__file__).parent / "results" / "readmission.json"
VISITS = """
CREATE TABLE visits AS
SELECT CAST(hash(i) % {patients} AS BIGINT) AS patient,
       DATE '2020-01-01' + CAST(hash(i + 1) % 1800 AS INTEGER) AS admitted,
       admitted + CAST(hash(i + 2) % 12 AS INTEGER) AS discharged, CAST(hash(i + 3) % 5000 AS DOUBLE) / 10 AS cost
FROM range({visits}) AS r(i)
"""
QUESTIONS = {
    "readmission within 30 days, by LAG": "SELECT AVG(CASE WHEN gap <= 30 THEN 1 ELSE 0 END) AS share FROM (SELECT"
    " patient, DATE_DIFF('day', LAG(discharged) OVER (PARTITION BY patient ORDER BY admitted), admitted) AS gap FROM"
    " visits) g",
    "patients who came back, by LAG and GROUP BY": "SELECT AVG(CASE WHEN back THEN 1 ELSE 0 END) AS share FROM (SELECT"
    " patient, BOOL_OR(gap <= 30) AS back FROM (SELECT patient, DATE_DIFF('day', LAG(discharged) OVER (PARTITION BY"
    " patient ORDER BY admitted), admitted) AS gap FROM visits) g GROUP BY patient) p",
    "visits per patient, by GROUP BY": "SELECT AVG(LEAST(GREATEST(n, 0), 50)) AS visits FROM (SELECT patient, COUNT(*)"
    " AS n FROM visits GROUP BY patient) v",
    "mean of each patient's cost, by GROUP BY": "SELECT AVG(LEAST(GREATEST(total, 0), 10000)) AS cost FROM (SELECT"
    " patient, SUM(cost) AS total FROM visits GROUP BY patient) v",
}


def seconds(act: Callable[[], Any]) -> tuple[float, float]:
    """How long something takes, and how long processors worked on it, which others on the machine change less."""
    start, work = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - start, time.process_time() - work


def main() -> None:
    where = sys.argv[1] if len(sys.argv) > 1 else None
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
    with tempfile.TemporaryDirectory(dir=where) as home:
        database = Path(home) / "hospital.duckdb"
        with duckdb.connect(str(database)) as made:
            made.execute(VISITS.format(visits=number, patients=number // 5))
        bare = duckdb.connect(str(database), read_only=True, config={"threads": THREADS})
        table = dp.open(
            database,
            table="visits",
            unit=dp.user("patient"),
            budget=dp.Budget(10**6),
            ledger=Path(home) / "visits.ledger",
            threads=THREADS,
        )
        measured = {}
        with table, bare:
            for name, text in QUESTIONS.items():
                rounds = [
                    (
                        *seconds(lambda: bare.execute(text).fetchall()),  # noqa: B023  # called at once
                        *seconds(lambda: table.sql(text, epsilon=1)),  # noqa: B023
                    )
                    for _ in range(ROUNDS)
                ]
                plain, plain_work, private, work = (min(times) for times in zip(*rounds, strict=True))
                measured[name] = {
                    "bare s": plain,
                    "private s": private,
                    "ratio": private / plain,
                    "ratio of processor time": work / plain_work,
                }
                print(
                    f"{name:42} bare {plain:.2f} s, private {private:.2f} s, ratio {private / plain:.2f},"
                    f" of processor time {work / plain_work:.2f}",
                    flush=True,
                )
    facts = {"python": platform.python_version(), "duckdb": duckdb.__version__, "visits": number}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"versions": facts, "table": measured}, indent=2) + "\n")


if __name__ == "__main__":
    main()
