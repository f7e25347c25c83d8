"""A small hospital to ask in SQL: private visits and patients, public wards."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from defocus import Budget, user
from defocus.privacy.units import Unit
from defocus.tables import Table
from defocus.tables import open as open_table

DAYS = [date(2023, 1, 1) + timedelta(days=11 * i) for i in range(60)]
VISITS = pa.table(
    {
        "patient": [i % 20 for i in range(60)],
        "ward": [("A", "B", "C")[i % 3] for i in range(60)],
        "age": [20 + i % 20 for i in range(60)],
        "days": [float(i % 10) for i in range(60)],
        "day": pa.array(DAYS),
        "smoker": [i % 4 == 0 for i in range(60)],
        "length of stay": [i % 7 for i in range(60)],
        "order": list(range(60)),
    }
)
PATIENTS = pa.table({"patient": list(range(20)), "sex": [("f", "m")[i % 2] for i in range(20)]})
WARDS = pa.table({"ward": ["A", "B", "C"], "building": ["north", "north", "south"], "beds": [10, 20, 30]})
DECLARED = {"days": (0, 30), "length of stay": (0, 10)}


@contextmanager
def hospital(visits: pa.Table = VISITS, *, unit: Unit | None = None, **more: Any) -> Iterator[Table]:
    """The visits, opened with a ledger of their own."""
    whom = user("patient") if unit is None else unit
    private = {"patients": PATIENTS} if whom.kind == "user" else None
    with TemporaryDirectory() as home:
        opened = open_table(
            visits,
            unit=whom,
            budget=Budget(10**12, 1e-2),
            ledger=Path(home) / "visits.ledger",
            name="visits",
            columns=DECLARED,
            private=private,
            public={"wards": WARDS},
            **more,
        )
        with opened as table:
            yield table


def exact(table: Table, text: str, **more: Any) -> dict[str, list[Any]]:
    """The answer without visible noise: an epsilon that is far too large, and one patient may bring everything."""
    answer = table.bound(rows=16).sql(text, epsilon=10**7, **more)
    columns: dict[str, list[Any]] = {name: key.to_pylist() for name, key in answer.keys.items()}
    return columns | {column.name: [round(value, 1) + 0.0 for value in column.values] for column in answer.columns}


def charges(table: Table) -> int:
    """How often the ledger was charged."""
    return sum(entry.kind == "charge" for entry in table.ledger.entries())
