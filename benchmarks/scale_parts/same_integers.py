"""The integers before noise, of one set of questions, as one engine computes them.

    python same_integers.py duckdb|postgresql|spark FILE [SERVER_HOME]

Prints for each question how many integers it has, their SHA-256, and the seconds it took. Every question is bounded to
5 rows of a user, by weights unless it says otherwise; sampled rows are drawn with a fixed key.
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from places import loaded, server, session

from defocus.engines.sources import source
from defocus.tables.contribution import Bound
from defocus.tables.keys import Keys
from defocus.tables.measurement import Measuring
from defocus.tables.rows import Rows
from defocus.tables.splits import PRESENCE, Argument, Split
from defocus.tables.weights import RowSampler, published

GRID = 2**20
KEYS = Keys(pa.table({"grp": np.arange(100)}))
BOUNDS = {
    "weights": Bound(rows=5),
    "weights by group": Bound(groups=3, per_group=2),
    "sampling": Bound(rows=5, by="sampling"),
}
VALUE = Argument("v", 0, 100)


def questions(measuring: Measuring) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is computed under every bound, and what is computed under the first one only."""
    yield "count, mean, variance", lambda: measuring.cells([PRESENCE, Split((VALUE,), (1,)), Split((VALUE,), (2,))])
    yield "people", lambda: [measuring.exact(measuring.people_sql(), 1)]
    if measuring.groups.bound is BOUNDS["weights"]:
        yield "quantiles", lambda: [measuring.exact(measuring.buckets_sql(VALUE, 256), 256)]
        yield "distinct", lambda: [measuring.exact(measuring.distinct_sql("CAST(v AS BIGINT)", 5), 1)]


def asked(rows: Rows) -> dict[str, Any]:
    found = {}
    for bounded, bound in BOUNDS.items():
        with published(rows, ("grp",), KEYS, bound) as groups:
            for name, compute in questions(Measuring(groups, GRID, RowSampler("a fixed key", "sums"))):
                start = time.perf_counter()
                numbers = np.concatenate([np.asarray(each).ravel() for each in compute()])
                digest = hashlib.sha256(numbers.astype("<i8").tobytes()).hexdigest()
                seconds = time.perf_counter() - start
                found[f"{name}; {bounded}"] = {"integers": len(numbers), "sha256": digest, "seconds": seconds}
                print(bounded, name, f"{seconds:.2f} s", file=sys.stderr, flush=True)
    return found


def main(engine: str, file: Path, home: Path | None) -> None:
    with ExitStack() as stack:
        if engine == "duckdb":
            opened = source(file)
        elif engine == "spark":
            opened = source(stack.enter_context(session()).read.parquet(str(file)))
        else:
            address = stack.enter_context(server(home or file.parent / "postgresql"))
            opened = source(address, table=loaded(address, file))
        stack.callback(opened.engine.close)
        print(json.dumps(asked(Rows(opened.engine, opened.relation, opened.schema, "user"))))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)
