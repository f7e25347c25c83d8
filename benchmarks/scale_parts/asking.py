"""The question of the benchmarks, about a table wherever it is."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import defocus as dp


@contextmanager
def opened(data: Any, **where: Any) -> Iterator[Any]:
    """The table, with a ledger that is there as long as it is."""
    with tempfile.TemporaryDirectory(prefix="ledger-") as folder:
        table = dp.open(
            data, unit=dp.user("user"), budget=dp.Budget(1_000_000), ledger=f"{folder}/ledger", name="visits", **where
        )
        try:
            yield table
        finally:
            table.close()


def release(table: Any) -> list[float]:
    """The means by group of one release."""
    groups = table.bound(rows=5).group_by("grp", keys=list(range(100)))
    asked = groups.agg(n=dp.count(), s=dp.sum("v", 0, 100), m=dp.mean("v", 0, 100))
    answer = asked.release(epsilon=1).to_arrow()
    return [mean for _, mean in sorted(zip(answer["grp"].to_pylist(), answer["m"].to_pylist(), strict=True))]
