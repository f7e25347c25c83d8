"""What engines are asked about edges: one tree for all of them, whose answers are counts."""

from collections.abc import Sequence
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from defocus.engines.postgresql_dialect import lowered as for_postgresql
from defocus.engines.spark_dialect import lowered as for_spark
from defocus.graphs.distributed import statements

ENDS = exp.select("a", "b").from_(exp.table_("lines", quoted=True))
ASKED = {
    "edges": (statements.edge_count(ENDS), {"n"}),
    "arcs": (statements.edge_count(ENDS, directed=True), {"n"}),
    "degrees": (statements.degrees(ENDS), {"node", "degree"}),
    "out": (statements.arc_degrees(ENDS, "out"), {"node", "degree"}),
    "in": (statements.arc_degrees(ENDS, "in"), {"node", "degree"}),
    "histogram": (statements.histogram(ENDS), {"degree", "times"}),
    "joined": (statements.joined_to_all(ENDS, 3), {"degree", "times"}),
    "among": (statements.among(ENDS, 2), {"n"}),
    "triangles": (statements.triangles(ENDS), {"n"}),
    "shared": (statements.shared(ENDS, 1), {"n"}),
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
