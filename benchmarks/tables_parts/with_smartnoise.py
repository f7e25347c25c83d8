"""The main query in SmartNoise SQL on SQLite.

Its epsilon is for each noisy column: COUNT(v), SUM(v) and AVG(v) need two of them, so half the budget each, which the
script checks. COUNT(*) would be a third. Loading the rows into SQLite (without journal or flushes) is timed apart.
Keys are not found privately, to be comparable.
"""

import math
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import snsql
from protocol import EPSILON, GROUPS, HIGH, LOW, ROWS, measure

QUERY = "SELECT grp, COUNT(v) AS n, SUM(v) AS s, AVG(v) AS m FROM visits GROUP BY grp"
TABLE = {
    "row_privacy": False,
    "max_ids": ROWS,
    "sample_max_ids": True,
    "censor_dims": False,
    "clamp_counts": False,
    "clamp_columns": True,
    "use_dpsu": False,
    "uid": {"type": "int", "private_id": True},
    "grp": {"type": "int", "lower": 0, "upper": GROUPS - 1},
    "v": {"type": "float", "lower": LOW, "upper": HIGH, "nullable": False},
}


def begin(path: str) -> Any:
    folder = tempfile.TemporaryDirectory(prefix="smartnoise-", dir=Path(path).parent)
    connection = sqlite3.connect(f"{folder.name}/rows.sqlite")
    connection.execute("PRAGMA journal_mode=OFF")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("CREATE TABLE visits (uid INTEGER, grp INTEGER, v REAL)")
    for batch in pq.ParquetFile(path).iter_batches(200_000, columns=["user", "grp", "v"]):
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
    connection.commit()
    return folder, connection


def release(ready: Any) -> list[float]:
    reader = snsql.from_connection(
        ready[1],
        privacy=snsql.Privacy(epsilon=EPSILON / 2, delta=1e-9),
        metadata={"": {"": {"visits": TABLE}}},
        engine="sqlite",
    )
    assert math.isclose(reader.get_privacy_cost(QUERY)[0], EPSILON)
    found = {row[0]: row[3] for row in reader.execute(QUERY)[1:]}
    return [found[key] for key in range(GROUPS)]


if __name__ == "__main__":
    measure("smartnoise-sql", begin, release)
