"""Intervals of what is derived from one real release hold the truth as often as they say, with noise of either kind."""

import tempfile

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.answers import Released
from defocus.noise.testing import seeded

BLOCKS = 400
FORMULAS = {
    "SUM(n) OVER (PARTITION BY block)": (0.93, 0.98),
    "s - 12 * n": (0.93, 0.98),
    "SUM(s) OVER (PARTITION BY block ORDER BY part)": (0.93, 0.98),
    "n - LAG(n) OVER (PARTITION BY block ORDER BY part)": (0.93, 0.98),
    "n / SUM(n) OVER (PARTITION BY block)": (0.93, 0.98),
    "s / p": (0.93, 0.98),
    "m - LAG(m) OVER (PARTITION BY block ORDER BY part)": (0.93, 0.98),
    "AVG(m) OVER (PARTITION BY block)": (0.93, 0.98),
    "ROUND(SQRT(n * s), 1)": (0.93, 1.0),
    "MAX(n) OVER (PARTITION BY block)": (0.93, 1.0),
    "RANK() OVER (PARTITION BY block ORDER BY n DESC)": (0.93, 1.0),
    "RANK() OVER (PARTITION BY block ORDER BY m)": (0.93, 1.0),
}


def released(delta: float | None) -> tuple[Released, duckdb.DuckDBPyConnection]:
    """One release of 1 200 groups, and a database with the true numbers of each."""
    chance = np.random.default_rng(5)
    sizes = chance.integers(60, 120, BLOCKS * 3)
    group = np.repeat(np.arange(BLOCKS * 3), sizes)
    rows = pa.table(
        {
            "person": np.arange(len(group)),
            "block": group // 3,
            "part": group % 3,
            "x": np.round(chance.uniform(0, 30, len(group)), 2),
        }
    )
    keys = [(block, part) for block in range(BLOCKS) for part in range(3)]
    with tempfile.TemporaryDirectory() as home:
        table = dp.open(
            rows,
            unit=dp.user("person"),
            budget=dp.Budget(9, 1e-3),
            ledger=f"{home}/a",
            name="v",
            columns={"x": (0, 30)},
        )
        bounded = table.bound(rows=1) if delta is None else table.bound(rows=16, per_group=1)
        asked = bounded.group_by("block", "part", keys=keys)
        query = asked.agg(n=dp.count(), s=dp.sum("x"), m=dp.mean("x"), p=dp.count_units())
        answer = query.release(epsilon=1 if delta is None else 8, delta=delta, bits=seeded(12))
        table.close()
    database = duckdb.connect(":memory:")
    database.register("rows", rows)
    database.execute(
        "CREATE TABLE t AS SELECT block, part, COUNT(*)::DOUBLE AS n, SUM(x) AS s, AVG(x) AS m, COUNT(*)::DOUBLE AS p"
        " FROM rows GROUP BY block, part"
    )
    return answer, database


@pytest.mark.slow
@pytest.mark.parametrize("delta", [None, 1e-5])
def test_intervals_of_what_is_derived_from_a_release_hold(delta: float | None) -> None:
    answer, database = released(delta)
    assert ("Laplace" if delta is None else "Gaussian") in answer["n"].how
    made = answer.derive(**{f"y{i}": formula for i, formula in enumerate(FORMULAS)})
    for i, (formula, (least, most)) in enumerate(FORMULAS.items()):
        found = database.sql(f"SELECT ({formula})::DOUBLE AS y FROM t ORDER BY block, part").fetchnumpy()["y"]  # noqa: S608
        true, column = np.ma.filled(found.astype(float), np.nan), made[f"y{i}"]
        known, slack = np.isfinite(true), 1e-9 * (1 + np.abs(true))
        held = ((column.low - slack <= true) & (true <= column.high + slack))[known].mean()
        assert np.isfinite(column.low[known]).mean() > 0.9, formula
        assert least <= held <= most, (formula, held)
