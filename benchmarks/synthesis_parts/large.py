"""Synthetic data of many rows in DuckDB: processor time and memory as the number of rows grows.

``python -m benchmarks.synthesis_parts.large ROWS`` makes 100 000 synthetic records of a table with ROWS rows and five
columns in a DuckDB file. Counts come to Python, rows do not; DuckDB may keep 100 MB of what it read.
"""

import resource
import sys
import tempfile
import time
from multiprocessing import Process
from typing import Any

import duckdb

import defocus as dp

ROWS = """CREATE TABLE visits AS SELECT (i % 90)::BIGINT AS age, ['A', 'B', 'C', 'D'][1 + (i % 90) // 30 + i % 2]
 AS ward, (i % 7 < 2) AS smoker, ((i % 90) // 10 + i % 5)::BIGINT AS days, ((i % 4) * (i % 3))::BIGINT AS visits
 FROM range({rows}) t(i)"""
FACTS = {"age": (0, 99), "ward": ["A", "B", "C", "D"], "days": (0, 15), "visits": (0, 9)}


def written(where: str, rows: int) -> None:
    with duckdb.connect(where) as made:
        made.execute(ROWS.format(rows=rows))


def main() -> None:
    rows = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as home:
        writer = Process(target=written, args=(f"{home}/v.duckdb", rows))  # its memory is not counted
        writer.start()
        writer.join()
        given: dict[str, Any] = {
            "unit": dp.rows(),
            "budget": dp.Budget(2, 1e-6),
            "ledger": f"{home}/l",
            "name": "v",
            "columns": FACTS,
        }
        table = dp.open(f"{home}/v.duckdb", table="visits", threads=1, memory="100MB", **given)
        begun = time.process_time()
        records = dp.synthesise(table, epsilon=1, delta=1e-9, rows=100_000)
        seconds = time.process_time() - begun
        table.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        {"rows": rows, "seconds": round(seconds, 1), "megabytes": round(peak), "distance": round(records.distance, 5)}
    )


if __name__ == "__main__":
    main()
