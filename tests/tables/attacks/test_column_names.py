"""Names of columns that people choose must not meet names that the planner uses."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.mechanisms import Laplace
from defocus.tables import Table
from defocus.tables.aggregates import Aggregate
from defocus.tables.noise import CellNoise

HOSTILE = ["split 0", "split 1", "bounds of x", "column n", "keys", "contributions", "('split', 0)"]
ASKED: list[Aggregate] = [
    dp.count_distinct("w"),
    dp.count_units(),
    dp.histogram("x", [0, 5, 10]),
    dp.median("x", 0, 10),
    dp.mean("x", bounds="find"),
]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    n = 1000
    rows = pa.table({"u": np.arange(n) % 200, "w": np.arange(n) % 7, "x": np.linspace(0, 10, n)})
    return dp.open(rows, unit=dp.user("u"), budget=dp.Budget(1000), ledger=tmp_path / "t.ledger", name="t").bound(
        rows=5
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "asked"), list(itertools.product(HOSTILE, range(len(ASKED)))))
def test_every_measurement_has_the_noise_of_its_own_reach(table: Table, name: str, asked: int) -> None:
    planned = table.agg(n=dp.count(), m=dp.mean("x", 0, 10), **{name: ASKED[asked]}).plan(epsilon=1)
    person = planned.grid * 5
    for noise in planned.splits:
        assert isinstance(noise.mechanism, Laplace)
        assert noise.mechanism.sensitivity == person
    for other in planned.others.values():
        if isinstance(other, CellNoise) and isinstance(other.mechanism, Laplace):
            assert other.mechanism.sensitivity in {1, planned.people_grid, person}
    assert all(finding.sensitivity == person for finding in planned.findings.values())


@pytest.mark.statistical
def test_a_name_cannot_take_the_noise_off_a_count(table: Table) -> None:
    """``COUNT(*) AS n, COUNT(DISTINCT w) AS "split 0"`` once gave the count the noise of the distinct count."""
    text = 'SELECT COUNT(*) AS n, COUNT(DISTINCT w) AS "split 0" FROM t'
    released = [table.sql(text, epsilon=0.05)["n"].values[0] for _ in range(20)]
    assert np.std(released) > 20
