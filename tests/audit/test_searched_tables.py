"""Tables of ours, searched for the worst neighbours: whatever rows there are, a release loses no more than its charge.

Each pair of tables that the search makes is put side by side many times, each time as a group of its own, so that one
release is as many runs.
"""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.audit.attacks.attack import AMPLE, less_noise

import defocus as dp
from defocus.audit import Finding, batched, search
from defocus.noise.testing import seeded
from defocus.tables.query import Query
from defocus.tables.table import Table

COLUMNS = {"age": (0, 9), "kg": (0.0, 1.0), "ward": ["A", "B"]}


def sums(table: Table, worlds: int) -> Query:
    grouped = table.group_by("world", keys=range(worlds))
    return grouped.agg(n=dp.count(), age=dp.sum("age", 0, 9), kg=dp.sum("kg", 0, 1))


def means(table: Table, worlds: int) -> Query:
    grouped = table.where("ward = 'A' OR kg > 0.5").group_by("world", keys=range(worlds))
    return grouped.agg(mean=dp.mean("age", 0, 9), half=dp.median("kg", 0, 1))


def derived(table: Table, worlds: int) -> Query:
    longer = table.derive(decade="age // 3", text="UPPER(ward)")
    return (
        longer.where("text = 'A'").group_by("world", keys=range(worlds)).agg(n=dp.count(), total=dp.sum("decade", 0, 3))
    )


def searched(folder: Path, ask: Callable[[Table, int], Query]) -> Finding:
    bits, numbers = seeded(81), iter(range(10**6))

    @batched
    def release(rows: pa.Table, n: int) -> Any:
        world = pa.array(np.repeat(np.arange(n), rows.num_rows))
        many = rows.take(pa.array(np.tile(np.arange(rows.num_rows), n))).append_column("world", world)
        place = folder / f"{next(numbers)}.ledger"
        with dp.open(many, unit=dp.rows(), budget=AMPLE, ledger=place, name="people") as table:
            answer = ask(table, n).release(epsilon=1, bits=bits)
            return np.stack([column.values for column in answer.columns], axis=1)

    return search(release, COLUMNS, trials=2000, confidence=1 - 1e-6, claimed=1)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("ask", [sums, means, derived])
def test_no_neighbours_show_more_than_was_charged(ask: Callable[[Table, int], Query], tmp_path: Path) -> None:
    found = searched(tmp_path, ask)
    assert not found.violation, found
    assert not found.notes
    assert len(found.searched) > 80


@pytest.mark.slow
@pytest.mark.statistical
def test_less_noise_is_found_among_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    less_noise(Fraction(1, 3))(monkeypatch)
    assert searched(tmp_path, sums).violation
