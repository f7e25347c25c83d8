"""Small tables on one engine, and random ones that are as unpleasant as tables get."""

import atexit
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from tests.tables.reference import Row, Shape, World

from defocus.engines.duckdb import DuckDbEngine
from defocus.engines.engine import Engine
from defocus.tables.contribution import Bound
from defocus.tables.keys import EVERYTHING, Keys, public_keys
from defocus.tables.measurement import Measuring
from defocus.tables.rows import Rows
from defocus.tables.splits import Argument, Split
from defocus.tables.weights import RowSampler, numbered

TYPES = {"u": pa.int64(), "k": pa.string(), "y": pa.int64(), "x": pa.float64(), "z": pa.float64(), "s": pa.string()}
HOSTILE = ["a", "A", "", "é", "e\u0301", "a'; DROP TABLE t; --", '"', "NULL", "\n", "患者", "v1:1"]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    0.5,
    0.1,
    1 / 3,
    2.0**53,
    2.0**53 + 2,
    1e308,
    -1e308,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
    10.0,
]
PUBLIC = (("a",), ("A",), (None,), ("a'; DROP TABLE t; --",))


_CHOSEN: ContextVar[Engine | None] = ContextVar("chosen", default=None)


def engine() -> Engine:
    """The engine that a test has chosen, or DuckDB."""
    return _CHOSEN.get() or _embedded()


@contextmanager
def computed_by(chosen: Engine) -> Iterator[None]:
    """Everything here is computed by this engine, for as long as it takes."""
    token = _CHOSEN.set(chosen)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


@cache
def _embedded() -> DuckDbEngine:
    atexit.register(_close)
    return DuckDbEngine(threads=1)


def _close() -> None:
    _embedded().close()
    _embedded.cache_clear()


def frame(rows: Sequence[Row], types: Mapping[str, pa.DataType] = TYPES) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})


def rows_of(rows: Sequence[Row], unit: str | None, types: Mapping[str, pa.DataType] = TYPES) -> Rows:
    known = engine().publish("rows", frame(rows, types))
    relation = engine().canonical(known, {})
    return Rows(engine(), relation, engine().schema(relation), unit)


def keys_of(world: World, rows: Rows) -> Keys:
    return public_keys([rows.schema[name] for name in world.by], list(world.keys)) if world.by else EVERYTHING


def bound_of(world: World) -> Bound | None:
    if world.unit is None:
        return None
    by = "sampling" if world.by_sampling else "weights"
    return Bound(rows=world.rows_most, groups=world.groups_most, per_group=world.per_group, by=by)


def measuring(world: World, statement: str = "") -> Measuring:
    """What the engine would measure in a world."""
    rows = rows_of(world.rows, world.unit)
    groups = numbered(rows, world.by, keys_of(world, rows), bound_of(world))
    return Measuring(groups, world.grid, RowSampler(world.key, statement))


def split_of(shape: Shape) -> Split:
    return Split(
        tuple(Argument(name, low, high, missing=instead) for name, low, high, instead in shape.values), shape.degrees
    )


def one_row(unit: SearchStrategy[Any]) -> SearchStrategy[Row]:
    value = st.sampled_from([None, *FLOATS]) | st.floats(-20, 20)
    return st.fixed_dictionaries(
        {
            "u": unit,
            "k": st.sampled_from([None, "a", "a", "A", "b", HOSTILE[5], HOSTILE[2]]),
            "y": st.sampled_from([None, 0, 1, -(2**63), 2**63 - 1, 2**53 + 1]),
            "x": value,
            "z": value,
            "s": st.sampled_from([None, *HOSTILE]),
        }
    )


@st.composite
def worlds(draw: DrawFn, *, sampling: bool | None = False, units: tuple[str | None, ...] = ("u", "u", None)) -> World:
    """Random rows, most of them of few people, with random bounds and groups."""
    people = st.sampled_from([None, 1, 2, 2, 3, 3, 3, 3, -(2**63), 2**63 - 1])
    rows = draw(st.lists(one_row(people), max_size=14))
    rows = rows + rows[: draw(st.integers(0, 3))]
    by: tuple[str, ...] = draw(st.sampled_from([(), ("k",), ("k", "y")]))
    keys: tuple[tuple[Any, ...], ...] = ()
    if len(by) == 1:
        keys = tuple(draw(st.lists(st.sampled_from(PUBLIC), min_size=1, max_size=4, unique=True)))
    elif by:
        keys = tuple((*key, number) for key in PUBLIC[:2] for number in (0, 2**63 - 1))
    limit = st.integers(1, 4)
    rows_most, groups_most, per_group = draw(
        st.tuples(limit, st.none() | limit, st.none() | limit) | st.tuples(st.none(), limit, limit)
    )
    return World(
        rows,
        draw(st.sampled_from(units)),
        by,
        keys,
        rows_most,
        groups_most,
        per_group,
        by_sampling=draw(st.booleans()) if sampling is None else sampling,
        grid=draw(st.sampled_from([1, 7, 1 << 12, 1 << 24])),
    )


BOUNDS = [
    (0.0, 1.0),
    (-3.0, 10.0),
    (0.1, 0.30000000000000004),
    (-1e299, 1e299),
    (1.0, 1.0000000000000002),
    (0.0, 5e-324),
]
ENDS = st.sampled_from(BOUNDS)


@st.composite
def shapes(draw: DrawFn) -> Shape:
    """Splits of every degree that a question can ask for."""
    values: list[tuple[str, float | None, float | None, float | None]] = []
    degrees: list[int] = []
    names = draw(st.sampled_from([(), ("x",), ("z",), ("x", "z"), ("x", "x"), ("y",)]))
    for name in names:
        low, high = draw(ENDS)
        instead = draw(st.sampled_from([None, None, low, high]))
        degrees.append(draw(st.integers(0 if len(names) == 1 else 1, 2)))
        values.append((name, low, high, instead))
    if len(values) == 1 and draw(st.booleans()):
        values, degrees = [(values[0][0], None, None, None)], [0]
    return Shape(tuple(values), tuple(degrees))


def without(world: World, *units: Any) -> World:
    """The world without some people."""
    return replace(world, rows=[row for row in world.rows if row["u"] not in units])
