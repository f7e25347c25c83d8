"""The engine's integers are those of plain Python, whatever is in the table."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.tables import reference
from tests.tables.reference import Shape, World
from tests.tables.worlds import BOUNDS, measuring, one_row, shapes, split_of, worlds

from defocus.tables.lower_bound import Ladder
from defocus.tables.measurement import Measuring
from defocus.tables.splits import Argument

EXAMPLES = 7
HEAVY = [{"u": u, "k": k, "y": 0, "x": float(i), "z": 0.0, "s": "v"} for u in (1, 2) for k in "ab" for i in range(6)]


def agree_on_cells(world: World, wanted: list[Shape]) -> None:
    splits = [split_of(shape) for shape in wanted]
    values = sorted({value for split in splits for value in split.values}, key=repr)
    weighed = weighed_by_the_reference(world, "sums", lambda row: [held(value, row) for value in values])
    expected = [reference.cells(weighed, shape, world.number) for shape in wanted]
    assert [cells.tolist() for cells in measuring(world, "sums").cells(splits)] == expected


def weighed_by_the_reference(
    world: World, statement: str, held: Callable[[reference.Row], Sequence[Any]]
) -> reference.Weighed:
    """With the values by which a person's rows are put in order."""
    return reference.sampled(world, statement, held) if world.by_sampling and world.unit else reference.weights(world)


def held(value: Argument, row: reference.Row) -> float | None:
    """What a row holds of a value."""
    found = row[value.text]
    if reference.missing(found):
        return None if value.missing is None else float(value.missing)
    return 0.0 if value.low is None else float(found)


def agree_on_the_rest(world: World, at_most: int, edges: tuple[float, ...], buckets: int) -> None:
    small = measuring(world)
    assert small.exact(small.people_sql(), 1)[:, 0].tolist() == reference.people(world)
    for column in ("s", "y", "k"):
        expected = reference.distinct(world, column, at_most, world.number)
        assert small.exact(small.distinct_sql(column, at_most), 1)[:, 0].tolist() == expected

    def inside(row: reference.Row) -> list[int | None]:
        x = row["x"]
        return [None if reference.missing(x) else sum(float(x) >= edge for edge in edges[1:-1])]

    weighed = weighed_by_the_reference(world, "", inside)
    counts = small.exact(small.between_sql("x", edges), len(edges) - 1)
    assert counts.tolist() == reference.between(weighed, "x", edges, world.number)
    low, high = edges[0], edges[-1]

    def bucket(row: reference.Row) -> list[int | None]:
        z = reference.unit_interval(row["z"], low, high, None)
        return [None if z is None else min(math.floor(z * buckets), buckets - 1)]

    weighed = weighed_by_the_reference(world, "", bucket)
    argument = split_of(Shape((("z", low, high, None),), (0,))).values[0]
    counts = small.exact(small.buckets_sql(argument, buckets), buckets)
    assert counts.tolist() == reference.buckets(weighed, "z", (low, high), buckets, world.number)


@pytest.mark.usefixtures("any_engine")
@settings(max_examples=EXAMPLES)
@given(worlds(), st.lists(shapes(), min_size=1, max_size=3, unique=True))
@example(World([], "u", rows_most=2), [Shape(), Shape((("x", 0.0, 1.0, None),), (2,))])
def test_cells_by_weights_are_those_of_the_reference(world: World, wanted: list[Shape]) -> None:
    agree_on_cells(world, wanted)


@pytest.mark.usefixtures("any_engine")
@settings(max_examples=EXAMPLES)
@given(worlds(sampling=True, units=("u",)), st.lists(shapes(), min_size=1, max_size=2, unique=True))
@example(
    World(HEAVY, "u", ("k",), (("a",), ("b",)), None, 2, 1, by_sampling=True), [Shape((("x", 0.0, 9.0, None),), (1,))]
)
@example(
    World(HEAVY, "u", ("k",), (("a",), ("b",)), 3, 1, 2, by_sampling=True), [Shape((("x", 0.0, 9.0, None),), (1,))]
)
def test_cells_by_sampling_are_those_of_the_reference(world: World, wanted: list[Shape]) -> None:
    agree_on_cells(world, wanted)


@pytest.mark.usefixtures("any_engine")
@settings(max_examples=4)
@given(
    worlds(sampling=None), st.integers(1, 3), st.sampled_from([(-1.0, 0.0, 0.1, 7.0), (0.0, 5e-324)]), st.integers(1, 9)
)
def test_people_values_and_histograms_are_those_of_the_reference(
    world: World, at_most: int, edges: tuple[float, ...], buckets: int
) -> None:
    agree_on_the_rest(world, at_most, edges, buckets)


TWO = [
    Shape(),
    Shape((("y", 0, 1, None),), (1,)),
    Shape((("y", -1, 0, -1),), (2,)),
    Shape((("y", 0, 1, None), ("y", 1, 2, 2)), (2, 1)),
]


@pytest.mark.usefixtures("any_engine")
@settings(max_examples=EXAMPLES)
@given(worlds(units=("u",)))
@example(World([row | {"y": i % 3} for i, row in enumerate(HEAVY)] + [{**HEAVY[0], "u": 3, "y": None}], "u"))
def test_cells_of_two_values_are_tallied_and_are_those_of_the_reference(world: World) -> None:
    alone = replace(world, by=(), keys=(), rows_most=2, groups_most=None, per_group=None)
    assert measuring(alone).is_tallied([split_of(shape) for shape in TWO])
    agree_on_cells(alone, TWO)


@settings(max_examples=20)
@given(worlds(units=("u",)), st.sampled_from([(4, 1), (6, 2)]), st.integers(8, 1 << 20))
def test_tallies_tell_what_adding_up_row_by_row_tells(world: World, bounds: tuple[int, int], person: int) -> None:
    splits = [split_of(shape) for shape in TWO]
    measured = measuring(replace(world, by=(), keys=(), rows_most=bounds[0], groups_most=None, per_group=None))
    ladder = Ladder.of(person, bounds)
    tallies = measured.tallied(splits)
    known = replace(measured, tallies=tallies, progress=lambda _: pytest.fail("the rows were read again"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Measuring, "is_tallied", lambda *_: False)
        by_row = measured.laddered(splits, splits[1:], ladder)
    told = known.laddered(splits, splits[1:], ladder)
    assert [[cells.tolist() for cells in each] for each in told] == [
        [cells.tolist() for cells in each] for each in by_row
    ]
    edges = (1, 2, 3)
    assert tallies.people(edges).tolist() == measured.contributions(edges).tolist()


@pytest.mark.parametrize(
    ("low", "high", "missing", "name"),
    [(0, 1, 0.5, "y"), (0.0, 1.0, None, "x"), (0, 2, None, "y"), (2**53, 2**53 + 1, None, "y"), (0, 1, None, "x")],
)
def test_other_values_are_added_up_row_by_row(low: float, high: float, missing: float | None, name: str) -> None:
    splits = [split_of(Shape(((name, low, high, missing),), (1,)))]
    measured = measuring(World(HEAVY, "u", rows_most=2))
    assert not measured.is_tallied(splits)


@pytest.mark.long
@settings(max_examples=60)
@given(worlds(sampling=None), st.lists(shapes(), min_size=1, max_size=4, unique=True))
def test_many_more_cells_are_those_of_the_reference(world: World, wanted: list[Shape]) -> None:
    agree_on_cells(world, wanted)


@pytest.mark.long
@settings(max_examples=20)
@given(worlds(sampling=None), st.integers(1, 3), st.sampled_from(BOUNDS), st.integers(1, 9))
def test_many_more_histograms_are_those_of_the_reference(
    world: World, at_most: int, edges: tuple[float, float], buckets: int
) -> None:
    agree_on_the_rest(world, at_most, edges, buckets)


@pytest.mark.usefixtures("any_engine")
@settings(max_examples=6)
@given(st.lists(one_row(st.just(1)), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(rows: list[reference.Row], random: Random) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    shape = split_of(Shape((("x", 0.0, 1.0, None),), (2,)))
    one, other = (measuring(World(each, "u", rows_most=3)).cells([shape])[0] for each in (rows, shuffled))
    assert one.tolist() == other.tolist()
