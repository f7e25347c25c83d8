"""One site keeps its rows in PostgreSQL, and the others do not: the integers are those of the union."""

from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest

import defocus as dp
from defocus.federated import federation
from defocus.mechanisms.noise_shares import NoiseShare

SQL = "SELECT ward, COUNT(*) AS visits, SUM(days) AS days, AVG(days) AS stay FROM visits GROUP BY ward"


@pytest.mark.slow
def test_a_site_on_postgresql_adds_up_with_the_others(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[int]] = []
    plain = NoiseShare.sample

    def watched(self: NoiseShare, value: Any, bits: Any = None) -> Any:
        seen.append(np.ravel(value).tolist())
        return plain(self, value, bits)

    monkeypatch.setattr(NoiseShare, "sample", watched)
    rows = [(i, "AB"[i % 2], i % 9) for i in range(300)]
    facts: dict[str, Any] = {"unit": dp.user("patient"), "budget": dp.Budget(100, 1e-5), "name": "visits"}
    facts["columns"] = {"ward": ["A", "B"], "days": (0, 7)}
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS federated CASCADE")
        connection.execute("CREATE SCHEMA federated")
        connection.execute("CREATE TABLE federated.stays (patient bigint, ward text, days bigint)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO federated.stays VALUES (%s, %s, %s)", rows[:100])
        try:
            sites = {"north": dp.open(server, table="federated.stays", ledger=tmp_path / "north", **facts)}
            for name, own in (("south", rows[100:200]), ("east", rows[200:])):
                there = pa.table(dict(zip(("patient", "ward", "days"), zip(*own, strict=True), strict=True)))
                sites[name] = dp.open(there, ledger=tmp_path / name, **facts)
            answer = federation({n: each.bound(rows=1) for n, each in sites.items()}).sql(SQL, epsilon=50)
            for site in sites.values():
                site.close()
        finally:
            connection.execute("DROP SCHEMA federated CASCADE")
    assert answer["visits"].values == pytest.approx([150, 150], abs=10)
    assert answer["days"].values == pytest.approx([sum(min(d, 7) for _, w, d in rows if w == k) for k in "AB"], abs=60)
    together = np.sum(seen, axis=0)
    with dp.open(
        pa.table(dict(zip(("patient", "ward", "days"), zip(*rows, strict=True), strict=True))),
        ledger=tmp_path / "union",
        **facts,
    ) as union:
        alone: list[list[int]] = []
        for kind in (dp.mechanisms.Laplace, dp.mechanisms.Gaussian):

            def noted(self: Any, value: Any, bits: Any = None, sample: Any = kind.sample) -> Any:
                alone.append(np.ravel(value).tolist())
                return sample(self, value, bits)

            monkeypatch.setattr(kind, "sample", noted)
        union.bound(rows=1).sql(SQL, epsilon=50)
    assert together.tolist() == alone[0]
