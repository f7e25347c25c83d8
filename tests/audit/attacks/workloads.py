"""Workloads and streams: a record that is added, and a unit that takes part in the step that tells most."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from tests.audit.attacks.attack import AMPLE, Attack, Room, less_noise

import defocus as dp
from defocus import workloads as w
from defocus.audit import batched
from defocus.noise import Bits
from defocus.noise.testing import seeded

_STEPS, _LONG = 4, 24


def stream(folder: Path, runs: int) -> Attack:
    """Each entry of the stream is a world; the unit is in its first step, and all running sums are seen."""
    bits, charges = seeded(31), set()
    plan = w.RunningSum(_STEPS, epsilon=4, delta=1e-6, entries=runs)

    def release(first: int, n: int) -> Any:
        with dp.Ledger.open(folder / f"{first}.ledger", budget=AMPLE, unit=dp.rows(), dataset="visits") as ledger:
            running = plan.start(ledger=ledger, purpose="visits so far", bits=bits)
            charges.add(ledger.events())
            seen = [running.add(np.full(runs, first if i == 0 else 0)).value for i in range(_STEPS)]
        return np.stack(seen, axis=1)[:n]

    return Attack(release=batched(release), pair=(0, 1), event=plan.event, charges=charges, delta=0.05)


def several_times(folder: Path, runs: int) -> Attack:
    """A unit in three steps of a shaped band, seen along the direction in which all of its running sums move most."""
    bits, charges, places = seeded(34), set(), (0, 8, 16)
    plan = w.RunningSum(_LONG, epsilon=4, delta=1e-6, entries=runs, participations=len(places), separation=8)
    moved = np.searchsorted(places, np.arange(_LONG), side="right")

    def sums(value: int, name: object, drawn: Bits) -> Any:
        with dp.Ledger.open(folder / f"{name}.ledger", budget=AMPLE, unit=dp.rows(), dataset="visits") as ledger:
            running = plan.start(ledger=ledger, purpose="visits so far", bits=drawn)
            charges.add(ledger.events())
            steps = [running.add(np.full(runs, value * (i in places))).value for i in range(_LONG)]
        return np.stack(steps, axis=1)

    along = np.linalg.solve(np.cov(sums(0, "noise", seeded(35)).T), moved)

    def release(value: int, n: int) -> Any:
        return (sums(value, value, bits) @ along)[:n]

    return Attack(release=batched(release), pair=(0, 1), event=plan.event, charges=charges, delta=0.05)


def cells(folder: Path, runs: int) -> Attack:
    """Every cell by itself: each is a world."""
    bits, charges = seeded(32), set()
    plan = w.plan(w.identity(runs), epsilon=1)
    ledger = dp.Ledger.open(folder / "cells.ledger", budget=AMPLE, unit=dp.rows(), dataset="people")

    def release(count: int, n: int) -> Any:
        answers = plan.release(np.full(runs, count), ledger=ledger, purpose="how many in each cell", bits=bits)
        charges.add(answers.release.event)
        return np.asarray(answers.values)[:n]

    return Attack(release=batched(release), pair=(7, 8), event=plan.event, charges=charges)


def _planned(folder: Path, plan: w.Plan, empty: Any, full: Any, *, delta: float = 0.0) -> Attack:
    bits, charges = seeded(33), set()
    ledger = dp.Ledger.open(folder / "plan.ledger", budget=AMPLE, unit=dp.rows(), dataset="people")

    def whole(data: Any, drawn: Bits) -> Any:
        answers = plan.release(data, ledger=ledger, purpose="all of them", bits=drawn)
        charges.add(answers.release.event)
        return np.asarray(answers.values)

    def repeated(data: Any, drawn: Bits) -> Any:
        return np.asarray(plan.measurement.strategy.answers(plan.workload, plan.measurement.sample(data, drawn)))

    return Attack(
        release=lambda data: plan.measurement.sample(data, bits), pair=(empty, full), event=plan.event,
        charges=charges, delta=delta, repeated=repeated, whole=whole,
    )  # fmt: skip


def ranges(folder: Path, _runs: int) -> Attack:
    data = np.array([3, 0, 1, 0])
    return _planned(folder, w.plan(w.ranges(4), epsilon=1), data, data + np.array([0, 1, 0, 0]))


def marginals(folder: Path, _runs: int) -> Attack:
    """Tables of two attributes each, of records; the default noise is the one that errs less."""
    some = np.array([[0, 1, 0], [1, 1, 0]])
    plan = w.plan(w.marginals([2, 2, 2], ways=2), epsilon=1, delta=1e-6)
    return _planned(folder, plan, w.records(some), w.records(np.vstack([some, [1, 0, 1]])), delta=0.01)


def consistent(folder: Path, _runs: int) -> Attack:
    """Tables of one histogram that is fitted to what was released: nothing but noisy numbers may decide about it."""
    some = np.array([[0, 1], [1, 1]])
    plan = w.plan(w.marginals([2, 2], ways=2), epsilon=2, delta=1e-6)
    ledger = dp.Ledger.open(folder / "fitted.ledger", budget=AMPLE, unit=dp.rows(), dataset="people")
    bits, charges = seeded(36), set()

    def release(rows: Any) -> Any:
        answers = plan.release(w.records(rows), ledger=ledger, purpose="a table that fits", bits=bits)
        charges.add(answers.release.event)
        return np.asarray(answers.nonnegative(consistent=True).values)

    pair = (some, np.vstack([some, [0, 0]]))
    return Attack(release=release, pair=pair, event=plan.event, charges=charges, delta=0.01)


HALF, SLIGHTLY, QUARTER = (less_noise(Fraction(part)) for part in ("1/2", "3/4", "1/4"))
ROOMS = (
    Room(name="running sum", make=stream, faults=(HALF,), slight=(SLIGHTLY,), few=10_000, near=0.6),
    Room(name="running sum, several times", make=several_times, faults=(HALF,), few=6000, near=0.5),
    Room(name="every cell", make=cells, faults=(HALF,), slight=(SLIGHTLY,), few=20_000, near=0.8),
    Room(name="ranges", make=ranges, faults=(HALF,), few=1500, many=8000, near=0.5, again=True),
    Room(name="marginals", make=marginals, faults=(), slight=(HALF,), few=0, many=2500, near=0.3, again=True),
    Room(name="marginals of one histogram", make=consistent, faults=(), slight=(QUARTER,), few=0, many=800),
)
