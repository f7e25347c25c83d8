"""Nobody moves what noise is added to further than the plan says: every neighbour from a universe of extreme people."""

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from tests.tables.attacks.exact import exact, moved, noises, table
from tests.tables.reference import Row

from defocus.tables import (
    correlation,
    count,
    count_distinct,
    count_units,
    covariance,
    histogram,
    mean,
    quantile,
    quantiles,
    ratio,
    variance,
)
from defocus.tables.aggregates import Aggregate
from defocus.tables.query import Query

KEYS = ["a", "b", "c", None]
ALL: dict[str, Aggregate] = {
    "n": count(),
    "xs": count("x"),
    "x": mean("x", -3.0, 10.0),
    "xx": variance("x", 0.1, 0.30000000000000004),
    "z": mean("z", 0, 1, missing=1),
    "xz": covariance("x", "z", x_bounds=(0, 1), y_bounds=(-1, 1)),
    "r": correlation("x", "z", x_bounds=(0, 7), y_bounds=(0, 1)),
    "q": ratio("x", "z", numerator_bounds=(0, 1), denominator_bounds=(1, 2)),
    "people": count_units(),
    "values": count_distinct("s", at_most=2),
    "median": quantile("x", 0.5, 0, 1, buckets=8),
    "deciles": quantiles("z", [i / 10 for i in range(1, 10)], 0, 1, buckets=16),
    "h": histogram("x", [0, 0.5, 1]),
    "found": mean("z", bounds="find"),
}


def person(rows: Sequence[dict[str, Any]], u: int = 99) -> list[Row]:
    return [{"u": u, "k": "a", "y": 0, "x": 0.3, "z": 0.7, "s": "v"} | row for row in rows]


EXTREME = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, None, 1 / 3, 2.0**53]
BASES = [
    [],
    [row for u in range(4) for row in person([{"k": k, "x": u / 3, "s": str(u)} for k in KEYS[: u + 1]], u)],
]
UNIVERSE: list[list[Row]] = [
    [],
    person([{"x": x, "z": z} for x, z in zip(EXTREME, reversed(EXTREME), strict=True)]),
    person([{"k": k, "x": 1 / 3, "s": f"{k}{i}"} for i in range(3) for k in KEYS]),
    person([{"k": "a", "x": 1e308, "z": -1e308, "s": str(i)} for i in range(1000)]),
    person([{"k": KEYS[i % 4], "x": -math.inf, "z": i / 7, "s": str(i)} for i in range(1001)]),
    person([{"k": "b", "x": 0.0, "s": str(i)} for i in range(5)]),
    person([{"k": k, "x": 10.0, "z": 1.0, "s": f"w{k}"} for k in KEYS]),
    person([{"k": k, "x": None, "z": math.nan, "s": None} for k in [*KEYS, "elsewhere"]]),
    person([{"k": "elsewhere"}] * 50),
    person([{"k": k, "s": None} for k in KEYS[:3]]),
    person([{"k": k, "s": None} for k in KEYS[:2]]),
    *(person([{"k": k, "x": math.inf, "z": math.inf} for k in ks]) for ks in ("aabbc", "aaabbb", "aabb")),
    person([{"k": k, "x": -math.inf, "z": 0.0, "s": f"low{k}"} for k in KEYS * 3]),
    person([{"k": k, "x": math.inf, "z": math.inf, "s": f"high{k}"} for k in KEYS * 3]),
    person([{"k": "c", "x": x, "z": x} for x in (0.2, 0.25, 1 / 3)]),
]
BOUNDS: list[dict[str, Any]] = [
    {"rows": 3},
    {"rows": 4, "per_group": 1},
    {"rows": 5, "per_group": 2},
    {"groups": 2, "per_group": 3},
    {"rows": 7, "groups": 2, "per_group": 2},
]


ROOM = {
    "people": "who replaces another can be in the same groups, of which there are few",
}
"""What cannot move as far as planned when people are replaced, and why."""


FEW = {name: ALL[name] for name in ("n", "x", "people", "values", "median", "h")}
"""One of each kind of measurement."""


def asked(
    rows: Sequence[Row], bound: dict[str, Any], *, replace: bool = False, what: dict[str, Aggregate] = ALL
) -> Query:
    return table(rows, replace=replace).bound(**bound).group_by("k", keys=KEYS).agg(**what)


def farthest(
    bound: dict[str, Any], bases: Sequence[list[Row]], what: dict[str, Aggregate] = ALL
) -> dict[tuple[bool, bool], dict[str, float]]:
    """How far each vector moves at most, as a share of what each plan says; fails where it moves further."""
    plans = {
        (replace, mixed): asked([], bound, replace=replace, what=what).plan(epsilon=1, delta=1e-6 if mixed else None)
        for replace in (False, True)
        for mixed in (False, True)
    }
    first = plans[False, False]
    assert {(plan.grid, plan.people_grid) for plan in plans.values()} == {(first.grid, first.people_grid)}
    most: dict[tuple[bool, bool], dict[str, float]] = {which: defaultdict(float) for which in plans}
    for base in bases:
        vectors = [exact(asked([*base, *one], bound, what=what), first) for one in UNIVERSE]
        for one, other in itertools.combinations(range(len(vectors)), 2):
            for (replace, mixed), plan in plans.items():
                if not replace and one > 0:
                    continue
                for name, noise in noises(plan).items():
                    far, limit = moved(noise, vectors[other][name] - vectors[one][name])
                    assert far <= limit, f"{name} moves {math.sqrt(far / limit):.6f} times as far as planned"
                    most[replace, mixed][name] = max(most[replace, mixed][name], math.sqrt(far / limit))
    return most


def close(most: dict[tuple[bool, bool], dict[str, float]]) -> None:
    """Somebody moves nearly everything nearly as far as planned, so that no noise is wasted."""
    for (replace, _), shares in most.items():
        small = {
            name: share
            for name, share in shares.items()
            if share < (0.8 if replace else 0.99) and not (replace and name in ROOM)
        }
        assert not small, (replace, small)


@pytest.mark.slow
def test_nobody_moves_anything_further_than_planned() -> None:
    close(farthest(BOUNDS[0], BASES[1:]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bound", "what"),
    [
        pytest.param(BOUNDS[1], FEW, id=str(BOUNDS[1])),
        *(pytest.param(bound, ALL, marks=pytest.mark.long, id=f"all under {bound}") for bound in BOUNDS[1:]),
    ],
)
def test_nobody_moves_anything_further_than_planned_under_any_bound(
    bound: dict[str, Any], what: dict[str, Aggregate]
) -> None:
    close(farthest(bound, BASES[1:], what))


@pytest.mark.slow
@pytest.mark.parametrize("bound", BOUNDS[2:4], ids=str)
def test_nobody_has_more_than_the_bound_by_sampling(bound: dict[str, Any]) -> None:
    """What is drawn for others depends on the order of rows, so only one person is there."""
    plan = asked([], bound | {"by": "sampling"}).plan(epsilon=1, delta=1e-6)
    for one in UNIVERSE[1:4]:
        vectors = exact(asked(one, bound | {"by": "sampling"}), plan)
        for name, noise in noises(plan).items():
            far, limit = moved(noise, vectors[name])
            assert far <= limit, name


@pytest.mark.slow
@pytest.mark.parametrize("replace", [False, True])
def test_no_row_moves_anything_further_than_planned_where_rows_are_protected(replace: bool) -> None:
    def ask(rows: Sequence[Row]) -> Query:
        return table(rows, by_rows=True, replace=replace).group_by("k", keys=KEYS).agg(**ALL)

    plan = ask([]).plan(epsilon=1)
    universe = [[], *([row] for row in [*UNIVERSE[1][:3], UNIVERSE[5][0], UNIVERSE[6][3]])]
    vectors = [exact(ask([*BASES[1], *one]), plan) for one in universe]
    for one, other in itertools.combinations(vectors, 2) if replace else ((vectors[0], each) for each in vectors[1:]):
        for name, noise in noises(plan).items():
            far, limit = moved(noise, other[name] - one[name])
            assert far <= limit, name
