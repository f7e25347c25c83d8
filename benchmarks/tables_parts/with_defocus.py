"""The main query in Defocus. Opening the table and its ledger is timed apart; each release is charged durably."""

import tempfile
from pathlib import Path
from typing import Any

from protocol import EPSILON, GROUPS, HIGH, LOW, ROWS, measure

import defocus as dp

BUDGET = dp.Budget(1_000_000)


def begin(path: str) -> Any:
    """The opened table, with a ledger beside nothing else, and the folder that keeps it."""
    folder = tempfile.TemporaryDirectory(prefix="ledger-", dir=Path(path).parent)
    return dp.open(path, unit=dp.user("user"), budget=BUDGET, ledger=f"{folder.name}/ledger.sqlite"), folder


def ask(table: Any) -> Any:
    groups = table.bound(rows=ROWS).group_by("grp", keys=list(range(GROUPS)))
    return groups.agg(n=dp.count(), s=dp.sum("v", LOW, HIGH), m=dp.mean("v", LOW, HIGH))


def release(ready: Any) -> list[float]:
    answer = ask(ready[0]).release(epsilon=EPSILON).to_arrow()
    return [mean for _, mean in sorted(zip(answer["grp"].to_pylist(), answer["m"].to_pylist(), strict=True))]


if __name__ == "__main__":
    measure("defocus", begin, release)
