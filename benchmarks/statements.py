"""How much of the SQL that analysts write is answered, and whether the answers are those of plain DuckDB.

Run: python benchmarks/statements.py [--show]

Each statement of ``statements_parts/`` runs twice as it is written: in plain DuckDB, and as a private question with so
large an epsilon that the noise cannot be seen. It is *right* if every group has the value that DuckDB says (up to a
thousandth, since variances divide by the number of rows), *refused* if the error says how to mend it, and *wrong*
otherwise. Keys and bounds are what the owner declared; keys that nobody declared are found.
"""

import json
import math
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
from statements_parts.airline import AIRLINE, STATEMENTS
from statements_parts.shop import CENSUS, MORE, SHOP
from statements_parts.world import World

import defocus as dp

RESULTS = Path(__file__).parent / "results" / "statements.json"
EPSILON, DELTA, ROWS = 10**6, 1e-5, 64
NEAR = 2e-3
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
    return table.bound(rows=ROWS)


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
    return {tuple(row[i] for i in places): tuple(row[i] for i in others) for row in found.fetchall()}


def privately(table: dp.tables.Table, text: str) -> tuple[list[str], Table]:
    """The same of an answer."""
    answer = table.sql(text, epsilon=EPSILON, delta=DELTA, at_most=ROWS)
    keys = [values.to_pylist() for values in answer.keys.values()]
    groups = list(zip(*keys, strict=True)) if keys else [()]
    return list(answer.keys), {
        group: tuple(float(column.values[i]) for column in answer.columns) for i, group in enumerate(groups)
    }


def near(mine: float, theirs: Any) -> bool:
    """Whether a value is that of DuckDB, but for invisible noise."""
    if theirs is None or (isinstance(theirs, float) and math.isnan(theirs)):
        return True  # a mean of nothing has no value to compare
    return abs(mine - float(theirs)) <= NEAR * max(1.0, abs(float(theirs)))


def difference(mine: Table, theirs: Table, *, limited: bool) -> str:
    """Where two answers differ, or nothing."""
    for group, values in theirs.items():
        if group not in mine:
            if not limited and None not in group:
                return f"the group {group} is missing"
            continue
        for a, b in zip(mine[group], values, strict=True):
            if not near(a, b):
                return f"{a} for {b} in {group}"
    extra = [group for group in mine if group not in theirs and abs(mine[group][0]) > 1 / 2]
    return f"the group {extra[0]} does not exist" if extra and not limited else ""


def verdict(table: dp.tables.Table, connection: duckdb.DuckDBPyConnection, text: str, same: str) -> tuple[str, str]:
    """What became of a statement, and why."""
    try:
        keys, mine = privately(table, text)
    except dp.errors.DefocusError as refusal:
        return "refused", str(refusal)
    except Exception as problem:  # noqa: BLE001  # a raw error is what is looked for
        return "raw error", f"{type(problem).__name__}: {problem}"
    theirs = plainly(connection, same, keys)
    wrong = difference(mine, theirs, limited=" LIMIT " in text.upper())
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


def main() -> None:
    show = "--show" in sys.argv
    lists = {
        "airline": ({"flights": AIRLINE}, [("flights", text, same) for text, same in STATEMENTS]),
        "shop and census": ({"orders": SHOP, "census": CENSUS}, MORE),
    }
    results = {}
    for name, (worlds, statements) in lists.items():
        results[name] = counted(worlds, statements, show=show)
        print(f"{name}: {len(statements)} statements, {results[name]}")
    RESULTS.write_text(json.dumps({"python": platform.python_version(), "duckdb": duckdb.__version__, **results}))


if __name__ == "__main__":
    main()
