"""A whole release beside plain DuckDB, in one process and taking turns.

    python beside_duckdb.py FILE [ROUNDS]            the main query
    python beside_duckdb.py WIDE_FILE ROUNDS grow    from 1 to 1000 groups and from 1 to 20 columns

The least time of each counts, and the least processor time, which other work on the machine disturbs less.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bare
from with_defocus import BUDGET, ask, begin

import defocus as dp

CASES = [(groups, 1) for groups in (1, 10, 100, 1000)] + [(100, columns) for columns in (5, 10, 20)]


def take_turns(acts: dict[str, Callable[[], Any]], rounds: int) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {name: {"seconds": [], "processor_seconds": []} for name in acts}
    for _ in range(rounds):
        for name, act in acts.items():
            start, busy = time.perf_counter(), time.process_time()
            act()
            found[name]["processor_seconds"].append(time.process_time() - busy)
            found[name]["seconds"].append(time.perf_counter() - start)
    return found


def main_query(path: str, rounds: int) -> dict[str, Any]:
    (table, _folder), connection = begin(path), bare.connect()
    raw, bounded = bare.raw(path, "grp", ["v"]), bare.bounded(path, "grp", ["v"], 100)
    acts = {
        "raw": lambda: connection.sql(raw).fetchall(),
        "bounded": lambda: connection.sql(bounded).fetchall(),
        "release": lambda: ask(table).release(epsilon=1).to_arrow(),
    }
    return take_turns(acts, rounds) | {"limits": bare.limits(connection, path)}


def growth(path: str, rounds: int) -> list[dict[str, Any]]:
    connection, cases = bare.connect(), []
    with tempfile.TemporaryDirectory(prefix="ledger-", dir=Path(path).parent) as folder:
        table = dp.open(path, unit=dp.user("user"), budget=BUDGET, ledger=f"{folder}/ledger.sqlite")
        for groups, columns in CASES:
            values = [f"v{i}" for i in range(columns)]
            raw, bounded = bare.raw(path, f"g{groups}", values), bare.bounded(path, f"g{groups}", values, groups)
            asked = (
                table.bound(rows=5)
                .group_by(f"g{groups}", keys=list(range(groups)))
                .agg(**{f"m{i}": dp.mean(name, 0, 100) for i, name in enumerate(values)})
            )
            acts = {
                "raw": lambda sql=raw: connection.sql(sql).fetchall(),
                "bounded": lambda sql=bounded: connection.sql(sql).fetchall(),
                "release": lambda asked=asked: asked.release(epsilon=1).to_arrow(),
            }
            cases.append({"groups": groups, "columns": columns, **take_turns(acts, rounds)})
    return cases


if __name__ == "__main__":
    file, number = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    print(json.dumps(growth(file, number) if "grow" in sys.argv else main_query(file, number)))
