"""Tables of any size, made by DuckDB itself from a counter: the same rows for the same size on every machine.

    python grown.py FILE ROWS

One user for every ten rows. Row i belongs to user P·u² with u uniform, so the busiest users have hundreds of rows and
many have one or none; its group is one of 100 and its value 100·u with another u. All u come from a hash of i.
"""

import sys
from pathlib import Path

import duckdb

GROUPS = 100
_SHARE = "CAST(hash(i * 3 + {}) >> 11 AS DOUBLE) / 9007199254740992.0"


def ensure(path: Path, number: int) -> Path:
    """The file, made if it is not there yet."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    user, group, value = (_SHARE.format(k) for k in range(3))
    people = max(1, number // 10)
    rows = f"""
        SELECT CAST(floor({people} * ({user}) * ({user})) AS BIGINT) AS "user",
               CAST(floor({GROUPS} * ({group})) AS BIGINT) AS grp,
               100.0 * ({value}) AS v
        FROM range({number}) AS counter(i)
    """  # noqa: S608 -- numbers only
    with duckdb.connect(config={"preserve_insertion_order": "false", "memory_limit": "2GB"}) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"COPY ({rows}) TO '{partial}' (FORMAT parquet)")
    partial.rename(path)
    return path


if __name__ == "__main__":
    ensure(Path(sys.argv[1]), int(sys.argv[2]))
