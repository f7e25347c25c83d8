"""Queries in plain DuckDB that say what an answer costs without privacy, and how near to the truth it can be.

`raw` is the question itself. `bounded` is the bounded aggregation that Defocus adds noise to, written by hand: each
row of a user with n rows weighs grid·R // max(n, R), and a value splits the weight of its row in two parts, whole
numbers all of them. `sampled` keeps five random rows of each user instead, as the peers do.
"""

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np

GRID = 2**20


def connect() -> Any:
    """A connection that draws no progress bar."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return connection


def raw(path: str, group: str, values: Sequence[str]) -> str:
    wanted = ", ".join(f"count({v}), sum({v}), avg({v})" for v in values)
    return f"SELECT {group} AS g, {wanted} FROM '{path}' GROUP BY g"  # noqa: S608 -- names from this folder only


def bounded(path: str, group: str, values: Sequence[str], groups: int, *, rows: int = 5) -> str:
    mine = f"FROM '{path}' WHERE {group} BETWEEN 0 AND {groups - 1}"
    weights = f'SELECT "user", {GRID * rows} // greatest(count(*), {rows}) AS w {mine} GROUP BY "user"'
    parts = ", ".join(f"least(greatest(nullif({v}, 'NaN'::DOUBLE), 0.0), 100.0) / 100.0 AS {v}" for v in values)
    sums = ", ".join(
        f"sum(CAST(floor(w * {v}) AS BIGINT)), sum(CASE WHEN {v} IS NULL THEN w ELSE 0 END)" for v in values
    )
    rows_of = f'(SELECT {group} AS g, "user", {parts} {mine})'
    return f'SELECT g, sum(w), {sums} FROM {rows_of} JOIN ({weights}) USING ("user") GROUP BY g'  # noqa: S608


def sampled(path: str, rows: int = 5) -> str:
    drawn = f"SELECT *, random() AS x FROM '{path}'"  # noqa: S608
    ranked = f'SELECT grp, v, row_number() OVER (PARTITION BY "user" ORDER BY x) AS r FROM ({drawn})'  # noqa: S608
    return f"SELECT grp, avg(v) FROM ({ranked}) WHERE r <= {rows} GROUP BY grp ORDER BY grp"  # noqa: S608


def limits(connection: Any, path: str) -> dict[str, float]:
    """The errors of the group means that bounding alone causes, without any noise."""
    truth = exact(connection, path)
    both = {}
    cells = connection.sql(f"SELECT * FROM ({bounded(path, 'grp', ['v'], 100)}) ORDER BY g").fetchnumpy()  # noqa: S608
    weight, high, missing = (np.asarray(cells[name], float) for name in list(cells)[1:])
    both["weights"] = error(100 * high / (weight - missing), truth)
    both["sampling"] = error(np.array([row[1] for row in connection.sql(sampled(path)).fetchall()]), truth)
    return both


def exact(connection: Any, path: str) -> np.ndarray:
    """The means by group, of all rows."""
    rows = connection.sql(f"SELECT avg(v) FROM '{path}' GROUP BY grp ORDER BY grp").fetchall()  # noqa: S608
    return np.array([row[0] for row in rows])


def error(means: Any, truth: np.ndarray) -> float:
    """The root of the mean squared error."""
    return float(np.sqrt(((np.asarray(means) - truth) ** 2).mean()))
