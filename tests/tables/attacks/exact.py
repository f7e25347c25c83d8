"""What a planned release would add noise to, and how far one person may move it according to the plan."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.tables.reference import Row
from tests.tables.worlds import rows_of

from defocus.ledger import Ledger
from defocus.mechanisms import Gaussian
from defocus.privacy.budgets import Budget
from defocus.privacy.units import rows, user
from defocus.tables.aggregates import Planned
from defocus.tables.distinct_values import FoundValues
from defocus.tables.measurement import Measuring
from defocus.tables.noise import CellNoise
from defocus.tables.planner import Plan
from defocus.tables.query import Query
from defocus.tables.table import Table
from defocus.tables.weights import RowSampler, numbered

Vector = npt.NDArray[np.int64]


@cache
def ledger(*, by_rows: bool, replace: bool) -> Ledger:
    """A ledger that nothing is charged to."""
    unit = rows(replace=replace) if by_rows else user("u", replace=replace)
    where = Path(mkdtemp()) / "never.ledger"
    return Ledger.open(where, budget=Budget(1000), unit=unit, dataset="never charged")


def table(made: Sequence[Row], *, by_rows: bool = False, replace: bool = False) -> Table:
    return Table(rows_of(made, None if by_rows else "u"), ledger(by_rows=by_rows, replace=replace), "small")


def exact(query: Query, plan: Plan, key: str = "k") -> dict[str, Vector]:
    """Every vector that noise is added to, or that a choice is made from, by the name of its noise."""
    assert query.keys is not None
    groups = numbered(query.rows, query.by, query.keys, query.bound)
    engine = Measuring(groups, plan.grid, RowSampler(key))
    cells = engine.cells(plan.arrangement.splits) if plan.arrangement.splits else []
    found = {f"split {i}": each for i, each in enumerate(cells)}
    for name, aggregate in plan.arrangement.apart:
        apart = Measuring(groups, plan.grid_of(aggregate), RowSampler(key))
        found[name] = apart.exact(aggregate.statement(apart), aggregate.cells)
    found |= {f"bounds of {text}": engine.everybody().spread(text, finding) for text, finding in plan.findings.items()}
    return {name: vector.ravel() for name, vector in found.items()}


def noises(plan: Plan) -> dict[str, Planned]:
    """The noise or choice of each of these vectors."""
    bounds = {f"bounds of {text}": finding for text, finding in plan.findings.items()}
    return {f"split {i}": each for i, each in enumerate(plan.splits)} | dict(plan.others) | bounds


def moved(noise: Planned, change: Vector) -> tuple[Fraction, Fraction]:
    """How far a vector moved, and how far it may move: squared, in the norm that is charged for."""
    steps = [int(step) for step in change]
    noise = noise.noise if isinstance(noise, FoundValues) else noise
    mechanism: Any = noise.mechanism if isinstance(noise, CellNoise) else noise
    if isinstance(mechanism, Gaussian):
        return Fraction(sum(step * step for step in steps)), Fraction(mechanism.sensitivity) ** 2
    twice = 2 if getattr(mechanism, "replace", False) else 1
    return Fraction(sum(map(abs, steps)) ** 2), Fraction(mechanism.sensitivity * twice) ** 2
