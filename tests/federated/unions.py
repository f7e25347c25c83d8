"""Sites of which one has its rows in another engine, and the union of their rows."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.federated import federation
from defocus.mechanisms.noise_shares import NoiseShare
from defocus.tables import Table

SQL = "SELECT ward, COUNT(*) AS visits, SUM(days) AS days, AVG(days) AS stay FROM visits GROUP BY ward"
ROWS = [(i, "AB"[i % 2], i % 9) for i in range(300)]
FACTS: dict[str, Any] = {
    "unit": dp.user("patient"),
    "budget": dp.Budget(100, 1e-5),
    "name": "visits",
    "columns": {"ward": ["A", "B"], "days": (0, 7)},
}


def as_table(rows: Sequence[tuple[int, str, int]]) -> pa.Table:
    return pa.table(dict(zip(("patient", "ward", "days"), zip(*rows, strict=True), strict=True)))


def adds_up(open_first: Callable[[], Table], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that sites, of which the first has the first hundred rows, answer with the integers of the union."""
    seen: list[list[int]] = []
    plain = NoiseShare.sample

    def watched(self: NoiseShare, value: Any, bits: Any = None) -> Any:
        seen.append(np.ravel(value).tolist())
        return plain(self, value, bits)

    monkeypatch.setattr(NoiseShare, "sample", watched)
    sites = {"north": open_first()}
    for name, own in (("south", ROWS[100:200]), ("east", ROWS[200:])):
        sites[name] = dp.open(as_table(own), ledger=home / name, **FACTS)
    try:
        answer = federation({n: each.bound(rows=1) for n, each in sites.items()}).sql(SQL, epsilon=50)
    finally:
        for site in sites.values():
            site.close()
    assert answer["visits"].values == pytest.approx([150, 150], abs=10)
    assert answer["days"].values == pytest.approx([sum(min(d, 7) for _, w, d in ROWS if w == k) for k in "AB"], abs=60)
    together = np.sum(seen, axis=0)
    alone: list[list[int]] = []
    for kind in (dp.mechanisms.Laplace, dp.mechanisms.Gaussian):

        def noted(self: Any, value: Any, bits: Any = None, sample: Any = kind.sample) -> Any:
            alone.append(np.ravel(value).tolist())
            return sample(self, value, bits)

        monkeypatch.setattr(kind, "sample", noted)
    with dp.open(as_table(ROWS), ledger=home / "union", **FACTS) as union:
        union.bound(rows=1).sql(SQL, epsilon=50)
    assert together.tolist() == alone[0]
