"""A whole release beside plain Spark SQL, in one session and taking turns.

    python beside_spark.py FILE [ROUNDS]

`raw` is the question itself; `bounded` is the bounded aggregation that Defocus adds noise to, written by hand: each row
of a user with n rows weighs grid·R // max(n, R), and a value splits the weight of its row in two parts. It is written
in both ways that Spark users write it, with a join and with a window; the faster one counts.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from asking import opened, release
from places import session

GRID, ROWS = 2**20, 5
RAW = "SELECT grp, count(v), sum(v), avg(v) FROM visits GROUP BY grp"
_MINE = "FROM visits WHERE grp BETWEEN 0 AND 99 AND user IS NOT NULL"
_SUMS = """
    SELECT grp, sum(w), sum(CAST(floor(w * x) AS BIGINT)), sum(CASE WHEN x IS NULL THEN w ELSE 0 END)
    FROM (SELECT grp, w, least(greatest(nullif(v, double('NaN')), 0.0D), 100.0D) / 100.0D AS x FROM {}) GROUP BY grp
"""
JOIN = _SUMS.format(
    f"(SELECT grp, v, user {_MINE}) JOIN"
    f" (SELECT user, {GRID * ROWS}L div greatest(count(*), {ROWS}L) AS w {_MINE} GROUP BY user) USING (user)"
)
WINDOW = _SUMS.format(
    f"(SELECT grp, v, {GRID * ROWS}L div greatest(count(*) OVER (PARTITION BY user), {ROWS}L) AS w {_MINE})"
)


def main(path: str, rounds: int) -> None:
    with session() as spark, opened(path, engine=spark) as table:
        spark.read.parquet(path).createOrReplaceTempView("visits")
        acts: dict[str, Any] = {
            "raw": lambda: spark.sql(RAW).toArrow(),
            "join": lambda: spark.sql(JOIN).toArrow(),
            "window": lambda: spark.sql(WINDOW).toArrow(),
            "release": lambda: release(table),
        }
        found: dict[str, Any] = {name: {"seconds": []} for name in acts}
        for _ in range(rounds):
            for name, act in acts.items():
                start = time.perf_counter()
                act()
                found[name]["seconds"].append(time.perf_counter() - start)
                print(name, f"{found[name]['seconds'][-1]:.2f} s", file=sys.stderr, flush=True)
    found["bounded"] = min((found[name] for name in ("join", "window")), key=lambda each: min(each["seconds"]))
    print(json.dumps(found))


if __name__ == "__main__":
    main(str(Path(sys.argv[1])), int(sys.argv[2]) if len(sys.argv) > 2 else 5)
