"""One release from a table in MariaDB beside the bare query that it answers: ``python benchmarks/mariadb.py [ROWS]``.

The server is started for it in a folder that is thrown away. Rows belong to a fifth as many people, who have five each
on average, in 100 groups.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import pymysql
from tests.mariadb import running

import defocus as dp

RUNS = 3
BARE = "SELECT grp, COUNT(*), AVG(v) FROM visits GROUP BY grp"
BOUNDED = (
    "SELECT grp, SUM(w), SUM(w * v) FROM (SELECT grp, v, 5 / GREATEST(COUNT(*) OVER (PARTITION BY user), 5) AS w"
    " FROM visits) AS t GROUP BY grp"
)


def main(rows: int) -> None:
    with running() as address, tempfile.TemporaryDirectory() as folder:
        socket = address.partition("unix_socket=")[2]
        with (
            pymysql.connect(unix_socket=socket, user="root", database="hospital", autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SET GLOBAL innodb_buffer_pool_size = 1073741824")
            cursor.execute("CREATE TABLE visits (user BIGINT, grp BIGINT, v DOUBLE)")
            some = f"SELECT FLOOR(RAND(1) * {rows // 5}), seq % 100, RAND(2) * 100 FROM seq_1_to_{rows}"  # noqa: S608
            cursor.execute(f"INSERT INTO visits {some}")
            cursor.execute("SELECT VERSION()")
            version = cursor.fetchone()[0]
            bare = timed(lambda: cursor.execute(BARE) and cursor.fetchall())
            bounded = timed(lambda: cursor.execute(BOUNDED) and cursor.fetchall())
        with dp.open(
            address,
            table="visits",
            unit=dp.user("user"),
            budget=dp.Budget(100),
            ledger=Path(folder) / "visits.ledger",
            name="visits",
        ) as table:
            asked = table.bound(rows=5).group_by("grp", keys=list(range(100)))
            asked = asked.agg(n=dp.count(), m=dp.mean("v", 0, 100))
            release = timed(lambda: asked.release(epsilon=1))
    found = {"rows": rows, "mariadb": version, "bare": bare, "bounded": bounded, "release": release}
    print(f"{rows:,} rows, MariaDB {version}: bare {bare:.2f} s, bounded {bounded:.2f} s, release {release:.2f} s")
    (Path(__file__).parent / "results" / "mariadb.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def timed(work: Callable[[], object]) -> float:
    """The median of some runs after one that warms up, in seconds."""
    seconds = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
