"""What the engine must return, computed again row by row in plain Python: nothing here is shared with the engine.

Rows are dicts. Floats follow IEEE 754 in Python as in every engine, so that integers can be compared exactly.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

_T = TypeVar("_T")
Row = Mapping[str, Any]
Weighed = list[tuple[Row, int, int]]
"""Rows with the number of their group and their weight."""


@dataclass(frozen=True)
class World:
    """Rows, who they belong to, the public groups, and what one person may weigh."""

    rows: Sequence[Row]
    unit: str | None
    by: tuple[str, ...] = ()
    keys: tuple[tuple[Any, ...], ...] = ()
    rows_most: int | None = None
    groups_most: int | None = None
    per_group: int | None = None
    by_sampling: bool = False
    grid: int = 1 << 24
    key: str = "k"

    @property
    def number(self) -> int:
        return len(self.keys) if self.by else 1

    @property
    def total(self) -> int:
        limits = [] if self.rows_most is None else [self.rows_most]
        if self.groups_most is not None and self.per_group is not None:
            limits.append(self.groups_most * self.per_group)
        return min(limits)

    @property
    def people_in(self) -> int:
        return self.total if self.groups_most is None else self.groups_most

    def placed(self) -> list[tuple[Row, int]]:
        """Rows that belong to somebody and to a public group, with its number."""
        kept = [row for row in self.rows if self.unit is None or row[self.unit] is not None]
        if not self.by:
            return [(row, 0) for row in kept]
        numbers = {key: g for g, key in enumerate(self.keys)}
        found = [(row, numbers.get(tuple(row[name] for name in self.by))) for row in kept]
        return [(row, g) for row, g in found if g is not None]


def missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def weights(world: World) -> Weighed:
    """Every row that counts, with its weight by the rule of weights."""
    placed = world.placed()
    if world.unit is None:
        return [(row, g, world.grid) for row, g in placed]
    total = world.total
    if world.per_group is None:
        rows_of = Counter(row[world.unit] for row, _ in placed)
        return [(row, g, world.grid * total // max(rows_of[row[world.unit]], total)) for row, g in placed]
    most = world.per_group
    in_group = Counter((row[world.unit], g) for row, g in placed)
    capped: Counter[Hashable] = Counter()
    for (unit, _), n in in_group.items():
        capped[unit] += min(n, most)
    return [
        (
            row,
            g,
            world.grid * most // max(in_group[row[world.unit], g], most) * total // max(capped[row[world.unit]], total),
        )
        for row, g in placed
    ]


def share(x: Sequence[float | None], degrees: Sequence[int], way: Sequence[int], w: int) -> int:
    """One cell's part of a row's weight, in floats as every engine computes them."""
    product = float(w)
    for value, degree, j in zip(x, degrees, way, strict=True):
        assert value is not None
        if math.comb(degree, j) != 1:
            product *= float(math.comb(degree, j))
        for _ in range(j):
            product *= value
        for _ in range(degree - j):
            product *= 1.0 - value
    return math.floor(product)


def exact_share(x: Sequence[float | None], degrees: Sequence[int], way: Sequence[int], w: int) -> Fraction:
    """The same part without any rounding."""
    product = Fraction(w)
    for value, degree, j in zip(x, degrees, way, strict=True):
        assert value is not None
        exact = Fraction(value)
        product *= math.comb(degree, j) * exact**j * (1 - exact) ** (degree - j)
    return product


def unit_interval(value: Any, low: float | None, high: float | None, instead: float | None) -> float | None:
    """A value clipped and brought to [0, 1]; None where it is missing."""
    if missing(value):
        if instead is None:
            return None
        value = instead
    if low is None or high is None:
        return 0.0
    clipped = min(max(float(value), low), high)
    return (clipped - low) / (high - low)


@dataclass(frozen=True)
class Shape:
    """A split in plain numbers: for each value its column, bounds and what stands for a missing one."""

    values: tuple[tuple[str, float | None, float | None, float | None], ...] = ()
    degrees: tuple[int, ...] = ()

    @property
    def ways(self) -> list[tuple[int, ...]]:
        made: list[tuple[int, ...]] = [()]
        for degree in self.degrees:
            made = [(*way, j) for way in made for j in range(degree + 1)]
        return made

    @property
    def optional(self) -> bool:
        return any(instead is None for *_, instead in self.values)


def cells(weighed: Weighed, shape: Shape, number: int) -> list[list[int]]:
    """The cells of every group."""
    ways = shape.ways
    made = [[0] * (len(ways) + shape.optional) for _ in range(number)]
    for row, g, w in weighed:
        x = [unit_interval(row[name], low, high, instead) for name, low, high, instead in shape.values]
        if any(value is None for value in x):
            made[g][-1] += w
            continue
        parts = [share(x, shape.degrees, way, w) for way in ways[1:]]
        for way, part in zip(ways[1:], parts, strict=True):
            assert abs(part - exact_share(x, shape.degrees, way, w)) <= 1
        rest = w - sum(parts)
        assert 0 <= rest <= w
        for j, part in enumerate([rest, *parts]):
            made[g][j] += part
    return made


def people(world: World) -> list[int]:
    """The weight of the people of every group, by the rule of weights."""
    made = [0] * world.number
    if world.unit is None:
        for _, g in world.placed():
            made[g] += world.grid
        return made
    groups_of: dict[Hashable, set[int]] = defaultdict(set)
    for row, g in world.placed():
        groups_of[row[world.unit]].add(g)
    most = world.people_in
    for unit, groups in groups_of.items():
        chosen, w = groups, world.grid
        if most < world.number and world.by_sampling:
            chosen = set(_drawn(sorted(groups), most, world.key + _called("", "groups"), unit))
        elif most < world.number:
            w = world.grid * most // max(len(groups), most)
        for g in chosen:
            made[g] += w
    return made


def distinct(world: World, column: str, at_most: int, number: int) -> list[int]:
    """How many different values every group has, where each person brings only ``at_most``."""
    values: list[set[Any]] = [set() for _ in range(number)]
    brought: dict[Hashable, set[tuple[int, Any]]] = defaultdict(set)
    for i, (row, g) in enumerate(world.placed()):
        if not missing(row[column]):
            brought[i if world.unit is None else row[world.unit]].add((g, row[column]))
    for unit, pairs in brought.items():
        most = len(pairs) if world.unit is None else at_most
        for g, value in _drawn(sorted(pairs), most, world.key + _called("", "values"), unit):
            values[g].add(value)
    return [len(found) for found in values]


def buckets(weighed: Weighed, column: str, ends: tuple[float, float], n: int, number: int) -> list[list[int]]:
    """The weight of every group in ``n`` equal buckets between two ends."""
    made = [[0] * n for _ in range(number)]
    for row, g, w in weighed:
        x = unit_interval(row[column], *ends, None)
        if x is not None:
            made[g][min(math.floor(x * n), n - 1)] += w
    return made


def between(weighed: Weighed, column: str, edges: Sequence[float], number: int) -> list[list[int]]:
    """The weight of every group between neighbouring edges; what lies outside counts in the outermost."""
    made = [[0] * (len(edges) - 1) for _ in range(number)]
    for row, g, w in weighed:
        if not missing(row[column]):
            inside = sum(float(row[column]) >= edge for edge in edges[1:-1])
            made[g][inside] += w
    return made


def written(value: Any) -> str:
    """A value as text, with its length, so that no two lists of values are written alike."""
    if value is None:
        return "n0:"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"v{len(text)}:{text}"


def rank(prefix: str, *identity: Any) -> str:
    """A ticket in a person's lottery."""
    return hashlib.sha256((prefix + "".join(map(written, identity))).encode()).hexdigest()


def sampled(world: World, statement: str, held: Callable[[Row], Sequence[Any]]) -> Weighed:
    """Every row that is chosen, with a full weight. Rows are numbered in the order of what they hold."""
    assert world.unit is not None
    unit = world.unit
    rows = world.placed()
    if world.per_group is not None:
        prefix = world.key + _called(statement, "rows of a group")
        rows = _chosen(rows, world.per_group, lambda row, g: (row[unit], g), lambda row, _: held(row), prefix)
    if world.groups_most is not None:
        own: dict[Hashable, set[int]] = defaultdict(set)
        for row, g in rows:
            own[row[unit]].add(g)
        prefix = world.key + _called("", "groups")
        kept = {person: _drawn(sorted(gs), world.groups_most, prefix, person) for person, gs in own.items()}
        rows = [(row, g) for row, g in rows if g in kept[row[unit]]]
    prefix = world.key + _called(statement, "rows")
    rows = _chosen(rows, world.total, lambda row, _: (row[unit],), lambda row, g: [g, *held(row)], prefix)
    return [(row, g, world.grid) for row, g in rows]


def _chosen(
    rows: list[tuple[Row, int]],
    most: int,
    person: Callable[[Row, int], tuple[Hashable, ...]],
    held: Callable[[Row, int], Sequence[Any]],
    prefix: str,
) -> list[tuple[Row, int]]:
    """At most ``most`` rows of each person, those with the lowest tickets."""
    own: dict[tuple[Hashable, ...], list[tuple[Row, int]]] = defaultdict(list)
    for row, g in rows:
        own[person(row, g)].append((row, g))
    chosen = []
    for who, theirs in own.items():
        ordered = sorted(theirs, key=lambda each: [(part is not None, part) for part in held(*each)])
        chosen += _drawn(ordered, most, prefix, *who)
    return chosen


def _drawn(ordered: Sequence[_T], most: int, prefix: str, *who: Any) -> list[_T]:
    """Some of a person's things, which are known by their numbers."""
    tickets = [rank(prefix, *who, number) for number in range(1, len(ordered) + 1)]
    return [ordered[i] for i in sorted(range(len(ordered)), key=tickets.__getitem__)[:most]]


def _called(statement: str, choice: str) -> str:
    return f"#{len(statement)}:{statement}#{len(choice)}:{choice}"
