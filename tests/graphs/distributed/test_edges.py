"""What names become in an engine: one value for each key that a column of its kind can hold, or a refusal."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp
from tests.graphs.distributed.worlds import table

from defocus.engines.duckdb import DuckDbEngine
from defocus.engines.postgresql.dialect import lowered as for_postgresql
from defocus.engines.schema import Kind
from defocus.engines.spark.dialect import lowered as for_spark
from defocus.errors import InvalidParameterError
from defocus.graphs.distributed import edges
from defocus.graphs.distributed.edges import Side, numbered, values
from defocus.graphs.node_names import Names

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


ENDS = exp.select("a", "b").from_(exp.table_("lines", quoted=True))
ASKED = {
    "edges": (edges.edge_count(ENDS), {"n"}),
    "arcs": (edges.edge_count(ENDS, directed=True), {"n"}),
    "degrees": (edges.degrees(ENDS), {"node", "degree"}),
    "out": (edges.arc_degrees(ENDS, "out"), {"node", "degree"}),
    "in": (edges.arc_degrees(ENDS, "in"), {"node", "degree"}),
    "histogram": (edges.histogram(ENDS), {"degree", "times"}),
    "joined": (edges.joined_to_all(ENDS, 3), {"degree", "times"}),
    "among": (edges.among(ENDS, 2), {"n"}),
    "triangles": (edges.triangles(ENDS), {"n"}),
    "shared": (edges.shared(ENDS, 1), {"n"}),
}
"""Every statement, and the columns that come back: counts, degrees, and public nodes."""


def computed(asked: exp.Expression, rows: Sequence[tuple[int | None, int | None]]) -> tuple[list[str], list[Any]]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE lines (a BIGINT, b BIGINT)")
        if rows:
            connection.executemany("INSERT INTO lines VALUES (?, ?)", rows)
        found = connection.sql(asked.sql("duckdb", identify=True))
        return list(found.columns), sorted(found.fetchall())


@pytest.mark.parametrize("name", ASKED)
def test_only_counts_come_back(name: str) -> None:
    asked, columns = ASKED[name]
    assert set(computed(asked, [(0, 1)])[0]) == columns


@pytest.mark.parametrize("name", ASKED)
def test_one_tree_is_text_of_every_engine(name: str) -> None:
    asked, _ = ASKED[name]
    for lowered, dialect in ((for_postgresql, "postgres"), (for_spark, "spark")):
        text = lowered(asked).sql(dialect, identify=True)
        assert sqlglot.parse_one(text, dialect=dialect) is not None
        assert ":" not in text.replace("::", ""), "every number is filled in"


@pytest.mark.parametrize("name", ["edges", "arcs", "among", "triangles", "shared"])
def test_no_edge_at_all_is_zero_and_not_missing(name: str) -> None:
    for rows in ([], [(None, 1), (1, None), (None, None), (2, 2)]):
        assert computed(ASKED[name][0], rows)[1] == [(0,)]


def test_a_triangle_with_a_tail() -> None:
    rows = [(0, 1), (1, 0), (1, 2), (2, 0), (2, 3), (2, 3), (3, 3)]
    assert computed(ASKED["edges"][0], rows)[1] == [(4,)]
    assert computed(ASKED["arcs"][0], rows)[1] == [(5,)]
    assert computed(ASKED["degrees"][0], rows)[1] == [(0, 2), (1, 2), (2, 3), (3, 1)]
    assert computed(ASKED["out"][0], rows)[1] == [(0, 1), (1, 2), (2, 2)]
    assert computed(ASKED["in"][0], rows)[1] == [(0, 2), (1, 1), (2, 1), (3, 1)]
    assert computed(ASKED["histogram"][0], rows)[1] == [(1, 1), (2, 2), (3, 1)]
    assert computed(ASKED["joined"][0], rows)[1] == [(1, 1), (2, 1)], "node 2 is joined to all others"
    assert computed(ASKED["among"][0], rows)[1] == [(1,)]
    assert computed(ASKED["triangles"][0], rows)[1] == [(1,)]
    assert computed(ASKED["shared"][0], rows)[1] == [(1,)]
