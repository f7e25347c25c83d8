"""Tables of people: a person of many extreme rows, added to every world."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from tests.audit.attacks.attack import AMPLE, Attack, Room, less_noise

import defocus as dp
from defocus.answers import AnswerColumn
from defocus.audit import batched
from defocus.engines.syntax import whole as literal
from defocus.mechanisms import PartitionSelection
from defocus.noise import Bits
from defocus.noise.testing import seeded
from defocus.tables import execution
from defocus.tables.cubes import _GRID
from defocus.tables.found_bound import EDGES, FoundBound, best_bound
from defocus.tables.lower_bound import combined
from defocus.tables.noise import PersonWeight
from defocus.tables.query import Query
from defocus.tables.table import Table
from defocus.tables.weights import Groups, RowSampler

_KEYS = 2
"""Groups of a world."""
_PEOPLE = 100
"""More than a world has; whoever is in world i has a number from i times this on."""

Row = tuple[int, int, float]
"""The number of a person, of a group, and a value."""
Ask = Callable[[Table, int], Query]


_FIVE = dp.tables.Bound(rows=5)
"""One that is found would be found from all worlds."""


def _opened(place: Path, rows: list[Row], worlds: int, bound: dp.tables.Bound | None = _FIVE) -> Table:
    person, group, value = (np.array(each) for each in zip(*rows, strict=True))
    world = np.repeat(np.arange(worlds), len(rows))
    data = {
        "person": np.tile(person, worlds) + _PEOPLE * world,
        "key": np.tile(group, worlds) + _KEYS * world,
        "x": np.tile(value.astype(np.float64), worlds),
        "level": np.tile(np.where(value > 5, 1, 0), worlds),
    }
    return dp.open(pa.table(data), unit=dp.user("person"), budget=AMPLE, ledger=place, name="visits", bound=bound)


BASE: list[Row] = [(person, person % _KEYS, 5.0) for person in range(4)]
IN_ONE_GROUP: list[Row] = [*BASE, *[(50, 0, 1e308)] * 12]
IN_BOTH: list[Row] = [*BASE, *[(50, 0, 1e308), (50, 1, -1e308)] * 6]


def _worlds(
    folder: Path, runs: int, ask: Ask, pair: tuple[list[Row], list[Row]], *, epsilon: int, delta: float | None = None
) -> Attack:
    """What is shown about a world: which of its groups are there, and their numbers."""
    bits = seeded(11)
    tables = [_opened(folder / f"{i}.ledger", rows, runs) for i, rows in enumerate(pair)]
    queries = [ask(each, runs) for each in tables]
    charges = set()

    def release(which: int, n: int) -> Any:
        answer = queries[which].release(epsilon=epsilon, delta=delta, bits=bits)
        charges.add(answer.receipt.event)
        place = answer.to_arrow()["key"].to_numpy()
        seen = np.full((_KEYS * runs, len(answer.columns)), -1e6)  # of a key that is not shown
        seen[place] = np.stack([column.values for column in answer.columns], axis=1)
        return seen.reshape(runs, -1)[:n]

    planned = queries[0].plan(epsilon=epsilon, delta=delta).event
    return Attack(release=batched(release), pair=(0, 1), event=planned, charges=charges, delta=1.1 * (delta or 0))


def _sums(table: Table, worlds: int) -> Query:
    grouped = table.group_by("key", keys=range(_KEYS * worlds))
    return grouped.agg(n=dp.count(), total=dp.sum("x", 0, 10), mean=dp.mean("x", 0, 10))


def _two(table: Table, worlds: int) -> Query:
    grouped = table.group_by("key", keys=range(_KEYS * worlds))
    return grouped.agg(total=dp.sum("x", 0, 10), bars=dp.histogram("x", [0, 7, 10]))


def _median(table: Table, worlds: int) -> Query:
    return table.group_by("key", keys=range(0, _KEYS * worlds, _KEYS)).agg(half=dp.median("x", 0, 10))


def _found(table: Table, _worlds: int) -> Query:
    return table.group_by("key", keys=None).agg(n=dp.count())


def in_one_group(folder: Path, runs: int) -> Attack:
    return _worlds(folder, runs, _sums, (BASE, IN_ONE_GROUP), epsilon=1)


def in_both(folder: Path, runs: int) -> Attack:
    return _worlds(folder, runs, _sums, (BASE, IN_BOTH), epsilon=2)


def two_measurements(folder: Path, runs: int) -> Attack:
    """Two measurements that share the budget, both of which the person moves."""
    return _worlds(folder, runs, _two, (BASE, IN_ONE_GROUP), epsilon=1)


def two_bounds(folder: Path, runs: int) -> Attack:
    """Means with a second, lower bound: the count, and both means before they are drawn together.

    Both bounds are given, since those that are found would be found from all worlds, with noise that is paid for apart.
    """
    bits, charges, seen = seeded(16), set(), list[Any]()
    others: list[Row] = [(person, 0, 5.0) for person in range(12)] * 8  # so that quotients are nearly sums
    rows = (others, [*others, *[(50, 0, 1e308)] * 12])
    tables = [_opened(folder / f"{i}.ledger", each, runs, None) for i, each in enumerate(rows)]
    queries = [
        each.group_by("key", keys=range(0, _KEYS * runs, _KEYS)).agg(n=dp.count(), mean=dp.mean("x", 0, 10))
        for each in tables
    ]

    def found(*_: Any, **how: Any) -> FoundBound:
        return replace(best_bound(np.zeros(len(EDGES), np.int64), **how), rows=8)

    def both(first: AnswerColumn, lower: AnswerColumn, limits: tuple[float, float]) -> AnswerColumn:
        seen[:] = [first.values, lower.values]
        return combined(first, lower, limits)

    def release(which: int, n: int) -> Any:
        with (
            mock.patch.object(execution, "best_bound", found),
            mock.patch.object(execution, "lower_bound", return_value=2),
            mock.patch.object(execution, "combined", both),
        ):
            answer = queries[which].release(epsilon=1, bits=bits)
        charges.add(answer.receipt.event)
        return np.stack([answer["n"].values, *seen], axis=1).reshape(runs, -1)[:n]

    event = queries[0].plan(epsilon=1).event
    return Attack(release=batched(release), pair=(0, 1), event=event, charges=charges)


def median(folder: Path, runs: int) -> Attack:
    """Many people in the middle; the person at the top decides on which side of them the median is."""
    middle: list[Row] = [(person, 0, 5.0) for person in range(24)]
    return _worlds(folder, runs, _median, (middle, [*middle, *[(50, 0, 1e308)] * 24]), epsilon=2)


def keys(folder: Path, runs: int) -> Attack:
    """Keys are found; one of two groups of each world is the added person's alone."""
    others: list[Row] = [(person, 0, 5.0) for person in range(4)]
    new = [*others, *[(50, 0, 5.0), (50, 1, 5.0)] * 6]
    return _worlds(folder, runs, _found, (others, new), epsilon=2, delta=5e-3)


def cube(folder: Path, runs: int) -> Attack:
    """A cube of one world: what the engine counts is counted once, and measured with noise again and again."""
    del runs
    tables = [
        _opened(folder / f"{i}.ledger", rows, 1).declare(key=[0, 1], level=[0, 1])
        for i, rows in enumerate([BASE, IN_ONE_GROUP])
    ]
    cubes = [each.cube("key", "level") for each in tables]
    planned = cubes[0].plan(epsilon=1)
    measurement, charges, bits = planned.measurement, set(), seeded(13)
    counted = [each._histogram(RowSampler.drawn(bits)) for each in cubes]

    def repeated(which: int, drawn: Bits) -> Any:
        RowSampler.drawn(drawn)
        noisy = measurement.sample(counted[which], drawn)
        return np.sort(measurement.strategy.answers(planned.workload, noisy) / _GRID)

    def whole(which: int, drawn: Bits) -> Any:
        answer = cubes[which].release(epsilon=1, bits=drawn)
        charges.add(answer.receipt.event)
        return np.sort(answer.columns[0].values)

    return Attack(
        release=lambda which: measurement.sample(counted[which], bits), pair=(0, 1), event=planned.event,
        charges=charges, repeated=repeated, whole=whole,
    )  # fmt: skip


def rolled_up(folder: Path, runs: int) -> Attack:
    """Two levels of which each is measured: a world's two groups, and their sum."""
    bits, charges = seeded(17), set()
    places = [(key // _KEYS, key) for key in range(_KEYS * runs)]
    queries = []
    for i, rows in enumerate([BASE, IN_ONE_GROUP]):
        worlds = _opened(folder / f"{i}.ledger", rows, runs).derive(world=f"key // {_KEYS}")
        grouped = worlds.group_by("world", "key", keys=places, sets=[["world"], ["world", "key"]])
        query = grouped.agg(n=dp.count())
        assert query.sets is not None
        queries.append(replace(query, sets=query.sets.divided({})))

    def release(which: int, n: int) -> Any:
        answer = queries[which].release(epsilon=1, bits=bits)
        charges.add(answer.receipt.event)
        return answer["n"].values.reshape(runs, -1)[:n]

    return Attack(release=batched(release), pair=(0, 1), event=queries[0].plan(epsilon=1).event, charges=charges)


def invariants(folder: Path, runs: int) -> Attack:
    """The total of each world is exact. One of its rows is in the other group of the neighbouring data."""
    bits, charges = seeded(19), set()
    places = pa.table({"world": np.repeat(np.arange(runs), _KEYS), "key": np.arange(_KEYS * runs)})
    queries = []
    for i, there in enumerate([(12, 12), (11, 13)]):
        rows = places.take(pa.array(np.repeat(np.arange(_KEYS * runs), np.tile(there, runs))))
        ledger = folder / f"{i}.ledger"
        held = dp.tables.Invariants(["world", "key"], places, ["world"])
        table = dp.open(rows, unit=dp.rows(), budget=AMPLE, ledger=ledger, name="visits", invariants=held)
        queries.append(table.hierarchy("world", "key", keys=places, invariants=["world"]))

    def release(which: int, n: int) -> Any:
        answer = queries[which].release(epsilon=2, bits=bits)
        charges.add(answer.receipt.event)
        return answer["count"].values[:-1].reshape(runs, -1)[:n]

    return Attack(release=batched(release), pair=(0, 1), event=queries[0].plan(epsilon=2).event, charges=charges)


def as_if_added(patch: pytest.MonkeyPatch) -> None:
    """A row that moves is taken for one that comes."""
    patch.setattr(PersonWeight, "moved", lambda _self, sensitivity: sensitivity)


def unbounded(patch: pytest.MonkeyPatch) -> None:
    """A person's rows all count in full."""
    patch.setattr("defocus.tables.weights._share", lambda total, _number, at_least: literal(total // at_least))


def unbounded_below(patch: pytest.MonkeyPatch) -> None:
    """Rows weigh with the lower bound whoever has how many."""
    honest = Groups._shares

    def shares(self: Groups, grid: int, number: Any, ladder: Any) -> dict[str, Any]:
        return {**honest(self, grid, number, ladder), "w1": literal(ladder.grids[1])}

    patch.setattr(Groups, "_shares", shares)


def every_key(patch: pytest.MonkeyPatch) -> None:
    """Keys are shown however few people have them."""
    patch.setattr(PartitionSelection, "keep", lambda _self, counts, _bits=None: np.asarray(counts) > 0)


HALF, SLIGHTLY = less_noise(Fraction(1, 2)), less_noise(Fraction(3, 4))
ROOMS = (
    Room(name="count, sum, mean", make=in_one_group, faults=(HALF, unbounded), slight=(SLIGHTLY,), near=0.8),
    Room(name="spread over groups", make=in_both, faults=(), slight=(unbounded, HALF), few=0, near=0.4),
    Room(name="sum and histogram", make=two_measurements, faults=(), slight=(unbounded, HALF), few=0, near=0.3),
    Room(
        name="means with two bounds",
        make=two_bounds,
        faults=(HALF, unbounded_below),
        slight=(unbounded,),
        few=10_000,
        near=0.3,
    ),
    Room(name="median", make=median, faults=(unbounded,), few=1200, many=4000, near=0.4),
    Room(name="found keys", make=keys, faults=(every_key,)),
    Room(name="rollup", make=rolled_up, faults=(), slight=(unbounded, HALF), few=0, near=0.4),
    Room(name="invariants", make=invariants, faults=(), slight=(as_if_added, HALF), near=0.5),
    Room(name="cube", make=cube, faults=(HALF,), few=1500, many=6000, near=0.5, again=True),
)
