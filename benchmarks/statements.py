"""How much of the SQL that analysts write is answered, and whether the answers are those of plain DuckDB.

Run: python benchmarks/statements.py [--show]

Each statement of ``statements_parts/`` runs twice as it is written: in plain DuckDB, and as a private question with so
large an epsilon that the noise cannot be seen. It is *right* if every group has the value that DuckDB says, up to
0.2 % (variances divide by the number of rows) or within the interval of the answer, *refused* if the error says how to
mend it, and *wrong* otherwise. Keys and bounds are what the owner declared; keys that nobody declared are found.
"""

import json
import math
import platform
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, time
from pathlib import Path
from typing import Any

import duckdb
from statements_parts.airline import AIRLINE, STATEMENTS
from statements_parts.clinic import CLINIC
from statements_parts.clinic import STATEMENTS as OFFICE
from statements_parts.shop import CENSUS, MORE, SHOP
from statements_parts.world import World

import defocus as dp

RESULTS = Path(__file__).parent / "results" / "statements.json"
EPSILONS, DELTA = (10**6, 250, 10, 1), 1e-5
AT_MOST = 5
NEAR, GRID = 2e-3, 5e-4
Table = dict[tuple[Any, ...], tuple[Any, ...]]


def opened(world: World, home: Path) -> dp.tables.Table:
    """The private tables of a world, with a budget for everything."""
    table = dp.open(
        world.tables[world.name],
        name=world.name,
        unit=dp.user(world.person),
        budget=dp.Budget(10**9, 0.01),
        ledger=home / f"{world.name}.ledger",
        columns=world.declared,
        private={name: world.tables[name] for name in world.private},
        public={name: world.tables[name] for name in world.public},
    )
    return table.bound(rows=world.rows)


def bare(world: World) -> duckdb.DuckDBPyConnection:
    """The same tables in plain DuckDB, which lacks CLAMP."""
    connection = duckdb.connect(config={"threads": 1})
    for name, table in world.tables.items():
        connection.register(name, table)
    connection.execute(
        "CREATE MACRO clamp(x, low, high) AS CASE WHEN x IS NOT NULL THEN least(greatest(x, low), high) END"
    )
    return connection


def plainly(connection: duckdb.DuckDBPyConnection, text: str, keys: Sequence[str]) -> Table:
    """Groups and values as DuckDB has them."""
    found = connection.execute(text)
    names = [column[0].lower() for column in found.description]
    places = [names.index(key.lower()) for key in keys if key.lower() in names]
    others = [i for i in range(len(names)) if i not in places]
    return {tuple(_day(row[i]) for i in places): tuple(row[i] for i in others) for row in found.fetchall()}


def _day(key: Any) -> Any:
    """A moment at midnight is its day: DATE_TRUNC of a date is a date here, and a moment there."""
    return key.date() if isinstance(key, datetime) and key.time() == time() else key


def _released(question: Any) -> Any:
    """The answer with the largest epsilon that its mechanisms take: found keys and COUNT(DISTINCT x) have limits."""
    for epsilon in EPSILONS[:-1]:
        try:
            return question.release(epsilon=epsilon, delta=DELTA)
        except (dp.errors.InvalidParameterError, dp.errors.UnsupportedEventError):
            continue
    return question.release(epsilon=EPSILONS[-1], delta=DELTA)


def privately(table: dp.tables.Table, text: str) -> tuple[list[str], Table, bool]:
    """The same of an answer."""
    question = table.sql_query(text, at_most=AT_MOST)
    answer = _released(question)
    keys = [values.to_pylist() for values in answer.keys.values()]
    groups = [tuple(map(_day, group)) for group in zip(*keys, strict=True)] if keys else [()]
    values = {
        group: tuple((column.values[i], column.low[i], column.high[i]) for column in answer.columns)
        for i, group in enumerate(groups)
    }
    return list(answer.keys), values, question.query.keys is None


def near(mine: tuple[float, float, float], theirs: Any, coarse: float) -> bool:
    """Whether a value is that of DuckDB, but for invisible noise or what its interval, three times as wide, holds."""
    if theirs is None or (isinstance(theirs, float) and math.isnan(theirs)):
        return True  # a mean of nothing has no value to compare
    value, low, high = mine
    off, within = float(theirs) - value, max(NEAR * max(1.0, abs(float(theirs))), coarse)
    return abs(off) <= within or 3 * (low - value) <= off <= 3 * (high - value)


def difference(mine: Table, theirs: Table, *, partial: bool, coarse: float) -> str:
    """Where two answers differ, or nothing. LIMIT shows a part, and found groups of few people are left out."""
    shown = [group for group in theirs if group in mine]
    missing = [group for group in theirs if group not in mine and None not in group]
    if (missing and not partial) or 2 * len(shown) < len(theirs):
        return f"{len(theirs) - len(shown)} of {len(theirs)} groups are missing: {missing[:1]}"
    for group in shown:
        for a, b in zip(mine[group], theirs[group], strict=True):
            if not near(a, b, coarse):
                return f"{a[0]} for {b} in {group}"
    extra = [group for group in mine if group not in theirs and abs(mine[group][0][0]) > 1]
    return f"the group {extra[0]} does not exist" if extra and not partial else ""


def coarseness(table: dp.tables.Table, text: str) -> float:
    """How far apart the values are that a quantile can have: a grid between the declared bounds."""
    if not re.search(r"MEDIAN|QUANTILE|PERCENTILE|MIN\(|MAX\(", text, re.IGNORECASE):
        return 0.0
    columns = (own for own in table.schema if own.low is not None and re.search(rf"\b{own.name}\b", text))
    return GRID * max((float(own.high or 0) - float(own.low or 0) for own in columns), default=0.0)


def verdict(table: dp.tables.Table, connection: duckdb.DuckDBPyConnection, text: str, same: str) -> tuple[str, str]:
    """What became of a statement, and why."""
    try:
        keys, mine, found = privately(table, text)
    except dp.errors.DefocusError as refusal:
        return "refused", str(refusal)
    except Exception as problem:  # noqa: BLE001  # a raw error is what is looked for
        return "raw error", f"{type(problem).__name__}: {problem}"
    theirs = plainly(connection, same, keys)
    if re.search(r"ROLLUP|CUBE|GROUPING SETS", text, re.IGNORECASE):  # totals are NULL there, and called "all" here
        theirs = {
            tuple("all" if key is None else str(key).lower() for key in group): row for group, row in theirs.items()
        }
        mine = {tuple(str(key).lower() for key in group): row for group, row in mine.items()}
    wrong = difference(mine, theirs, partial=found or " LIMIT " in text.upper(), coarse=coarseness(table, text))
    return ("wrong", wrong) if wrong else ("right", "")


def counted(worlds: Mapping[str, World], statements: Sequence[tuple[str, str, str]], *, show: bool) -> dict[str, int]:
    """How many statements are right, refused and wrong."""
    counts = dict.fromkeys(("right", "refused", "wrong", "raw error"), 0)
    with tempfile.TemporaryDirectory() as home:
        tables = {name: opened(world, Path(home)) for name, world in worlds.items()}
        connections = {name: bare(world) for name, world in worlds.items()}
        for world, text, same in statements:
            found, why = verdict(tables[world], connections[world], text, same or text)
            counts[found] += 1
            if show and found != "right":
                print(f"{found}: {text}\n    {why}")
        for table in tables.values():
            table.close()
    return counts


LISTS: dict[str, tuple[Mapping[str, World], Sequence[tuple[str, str, str]]]] = {
    "airline": ({"flights": AIRLINE}, [("flights", text, same) for text, same in STATEMENTS]),
    "clinic": ({"visits": CLINIC}, [("visits", text, "") for text in OFFICE]),
    "shop and census": ({"orders": SHOP, "census": CENSUS}, MORE),
}


def main() -> None:
    results = {}
    for name, (worlds, statements) in LISTS.items():
        results[name] = counted(worlds, statements, show="--show" in sys.argv)
        print(f"{name}: {len(statements)} statements, {results[name]}")
    versions = {"python": platform.python_version(), "duckdb": duckdb.__version__}
    RESULTS.write_text(json.dumps({**versions, **results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
