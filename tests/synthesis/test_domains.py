# ruff: noqa: S608  # what is asked is made here

import itertools
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from defocus.engines.engine import integers
from defocus.engines.mariadb import MariaDbEngine
from defocus.engines.mariadb import dialect as mariadb
from defocus.engines.postgresql import PostgreSqlEngine
from defocus.engines.postgresql import dialect as postgresql
from defocus.engines.schema import Column, Kind
from defocus.engines.spark import SparkEngine
from defocus.engines.spark import dialect as spark
from defocus.engines.syntax import column
from defocus.errors import InvalidParameterError
from defocus.synthesis.domains import Domain, domain_of

VALUES = tuple("abcd")


def looked_up(domain: Domain, bins: Any) -> exp.Expression:
    return domain.looked_up(column("v"), column("c"), bins)


def test_every_code_is_looked_up_in_its_bin_whatever_the_bins_are() -> None:
    """All ways to put four codes into three bins, beside other and missing."""
    domain = Domain("v", Kind.TEXT, VALUES, other=True)
    every = list(itertools.product(range(3), repeat=4))
    columns = [looked_up(domain, (*bins, 7, 8)).sql("duckdb") for bins in every]
    rows = ", ".join([*(f"('{value}', {code})" for code, value in enumerate(VALUES)), "('z', NULL)", "(NULL, NULL)"])
    with duckdb.connect() as engine:
        found = engine.execute(f"SELECT {', '.join(columns)} FROM (VALUES {rows}) t(v, c)").fetchall()
    assert np.array(found).T.tolist() == [[*bins, 7, 8] for bins in every]


def test_many_codes_in_bins_of_their_own_are_one_case() -> None:
    domain = Domain("v", Kind.INTEGER, tuple(range(100_000)))
    assert len(looked_up(domain, range(100_001)).sql()) < 200
    bins = [*range(50_000), *[0] * 49_999, 50_000, 50_001]
    with duckdb.connect() as engine:
        told = looked_up(domain, bins).sql("duckdb")
        found = engine.execute(f"SELECT {told} FROM (SELECT i AS v, i AS c FROM range(100000) t(i))").fetchnumpy()
    assert next(iter(found.values())).tolist() == bins[:-1]


@pytest.mark.parametrize(
    ("lowered", "dialect", "code", "moved"),
    [
        (postgresql.lowered, "postgres", 'CAST("c" AS BIGINT)', '(CAST("c" AS BIGINT) - 1)'),
        (lambda tree: mariadb.lowered(tree, {}), "mysql", "CAST(`c` AS SIGNED)", "(CAST(`c` AS SIGNED) - 1)"),
        (spark.lowered, "spark", "CAST(`c` AS BIGINT)", "CAST(`c` AS BIGINT) - 1"),
    ],
    ids=["postgresql", "mariadb", "spark"],
)
def test_each_database_is_told_the_same(lowered: Any, dialect: str, code: str, moved: str) -> None:
    domain = Domain("v", Kind.TEXT, tuple("abcdef"))
    text = lowered(looked_up(domain, [0, 1, 9, 9, 3, 4, 5])).sql(dialect)
    v, c = ("`v`", "`c`") if "`" in code else ('"v"', '"c"')
    runs = f"CASE WHEN {c} < 4 THEN CASE WHEN {c} < 2 THEN {code} ELSE 9 END ELSE {moved} END"
    assert text == f"CASE WHEN {v} IS NULL THEN 5 WHEN {c} IS NULL THEN 5 ELSE {runs} END"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "kind"), [("server", PostgreSqlEngine), ("mariadb", MariaDbEngine), ("spark", SparkEngine)]
)
def test_each_database_looks_up_the_same(place: str, kind: Any, request: pytest.FixtureRequest) -> None:
    domain, bins = Domain("v", Kind.TEXT, tuple("abcdef"), other=True), [2, 3, 9, 9, 3, 4, 7, 8]
    rows = pa.table({"v": [*"abcdef", "z", None], "c": pa.array([*range(6), None, None], pa.int64())})
    engine = kind(request.getfixturevalue(place))
    try:
        asked = exp.select(exp.alias_(looked_up(domain, bins), "b")).from_(engine.publish("codes", rows))
        assert sorted(integers(engine.run(asked)["b"]).tolist()) == sorted(bins)
    finally:
        engine.close()


def test_bounds_whose_distance_is_no_number_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="farther apart than any number"):
        domain_of(Column("x", Kind.NUMBER), (-1e308, 1e308), told=True)
