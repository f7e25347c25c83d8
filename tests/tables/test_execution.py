"""A release does what was planned, no more."""

import math
from pathlib import Path

import pyarrow as pa

from defocus.ledger import Ledger
from defocus.noise.testing import seeded
from defocus.privacy.budgets import Budget
from defocus.privacy.units import user
from defocus.tables import count, count_units
from defocus.tables.open import open as opened


def test_a_bound_that_was_found_does_not_let_people_count_in_more_groups_than_planned(tmp_path: Path) -> None:
    wards = list(range(64))
    table = pa.table({"u": [i for i in range(3000) for _ in wards], "k": wards * 3000})
    ledger = Ledger.open(tmp_path / "a.ledger", budget=Budget(100), unit=user("u"), dataset="a")
    with opened(table, ledger=ledger) as visits:
        asked = visits.bound(rows="find").group_by("k", keys=wards).agg(n=count(), people=count_units())
        answer = asked.release(epsilon=50, bits=seeded(1))
    assert any("at most 64 rows, a bound that was found" in rule for rule in answer.rules)
    people = answer.columns[1].values
    # Everybody is in 64 groups and planned to count in 5 of them.
    assert math.isclose(people.mean(), 3000 * 5 / 64, rel_tol=0.05)
