"""What names become in an engine: one value for each key that a column of its kind can hold, or a refusal."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp
from tests.graphs.distributed.worlds import table

from defocus.engines.duckdb import DuckDbEngine
from defocus.engines.kinds import Kind
from defocus.errors import InvalidParameterError
from defocus.graphs.distributed.ends import Side, numbered, values
from defocus.graphs.naming import Names

TYPES = {Kind.INTEGER: pa.int64(), Kind.NUMBER: pa.float64(), Kind.TEXT: pa.string(), Kind.DATE: pa.date32()}


def read(pairs: list[tuple[Any, Any]], kind: Kind, names: Names) -> list[tuple[int | None, int | None]]:
    """The numbers of the two ends of every line that an engine finds."""
    engine = DuckDbEngine(threads=1)
    rows = exp.select("*").from_(engine.publish("rows", table(pairs, TYPES[kind])))
    sides = [Side(name, kind, written=names.written and kind is Kind.TEXT) for name in "uv"]
    found = engine.run(numbered(engine, rows, sides, names)).to_pylist()
    engine.close()
    return [(row["a"], row["b"]) for row in found if row["a"] is not None and row["b"] is not None]


@pytest.mark.parametrize(
    ("kind", "names", "pairs", "found"),
    [
        (Kind.INTEGER, Names(3), [(0, 2), (3, 0), (-1, 1), (None, 1)], [(0, 2)]),
        (Kind.INTEGER, Names([7, "7", -(2**63)]), [(7, -(2**63)), (0, 7)], [(0, 2)]),
        (Kind.NUMBER, Names(3), [(0.0, 2.0), (0.5, 1.0), (-0.0, 1.0), (float("nan"), 1.0)], [(0, 1), (0, 2)]),
        (Kind.TEXT, Names(3), [("0", "1")], []),
        (Kind.TEXT, Names(3, written=True), [("0", "1"), ("00", "1"), (" 1", "2"), ("2", "-0")], [(0, 1)]),
        (Kind.TEXT, Names(["a", 1, "b"]), [("a", "b"), ("1", "b"), ("A", "b")], [(0, 2)]),
        (Kind.TEXT, Names(["a", 1, "01"], written=True), [("a", "1"), ("01", "1"), ("1.0", "a")], [(0, 1), (2, 1)]),
        (
            Kind.DATE,
            Names([dt.date(2024, 1, 1), dt.date(1, 1, 1), 5]),
            [(dt.date(1, 1, 1), dt.date(2024, 1, 1))],
            [(1, 0)],
        ),
        (Kind.DATE, Names(3), [(dt.date(2024, 1, 1), dt.date(2024, 1, 1))], []),
        (Kind.INTEGER, Names([]), [(0, 1)], []),
    ],
)
def test_ends_become_the_numbers_of_their_nodes(kind: Kind, names: Names, pairs: Any, found: Any) -> None:
    assert sorted(read(pairs, kind, names)) == found


@pytest.mark.parametrize(
    ("kind", "names", "what"),
    [
        (Kind.INTEGER, Names([2**63]), "a whole number beyond 64 bits"),
        (Kind.NUMBER, Names([0.5]), "a number with a fraction"),
        (Kind.TEXT, Names(["a\0b"]), "text with a zero byte"),
    ],
)
def test_names_that_engines_compare_otherwise_are_refused(kind: Kind, names: Names, what: str) -> None:
    with pytest.raises(InvalidParameterError, match=what) as caught:
        read([], kind, names)
    assert "leave engine= out" in caught.value.fix


def test_names_that_no_column_of_this_kind_holds_are_nodes_without_edges() -> None:
    odd = Names(["a", 2**70, 0.5, "\ud800", b"x", dt.date(2024, 1, 1)])
    assert read([("a", "a")], Kind.TEXT, odd) == [(0, 0)]
    assert read([(dt.date(2024, 1, 1), dt.date(2024, 1, 1))], Kind.DATE, odd) == [(5, 5)]


def test_every_value_is_listed_once_and_missing_ones_are_not() -> None:
    engine = DuckDbEngine(threads=1)
    rows = exp.select("*").from_(engine.publish("rows", table([(1, 2), (1, None), (None, 2)], pa.int64())))
    assert sorted(engine.run(values(rows, Side("u", Kind.INTEGER))).column("value").to_pylist()) == [1]
    engine.close()
