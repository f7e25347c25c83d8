# ruff: noqa: S608 the SQL is what is tested

import pytest
import sqlglot
from sqlglot import exp
from tests.tables.expressions.asking import SCHEMA, engine, sql

from defocus.errors import InvalidParameterError, UnknownColumnError, UnsupportedSqlError, WrongKindError
from defocus.tables import Column, Kind, Schema
from defocus.tables.expressions import expression, typed


def test_what_cannot_fail_has_no_guard() -> None:
    assert sql("age >= 18") == '"age" >= 18'
    assert sql("age BETWEEN 18 AND 65 AND ward = 'A'") == '("age" BETWEEN 18 AND 65) AND ("ward" = \'A\')'
    assert sql("ward IN ('A', 'B')") == "\"ward\" IN ('A', 'B')"
    assert sql("age % 7") == '"age" % 7'
    assert sql("LOWER(ward)") == 'LOWER("ward")'
    assert sql("well") == '"well"'


def test_an_expression_knows_its_kind_its_columns_and_its_text() -> None:
    read = expression("  age + pay > 3 ", SCHEMA)
    assert (read.kind, read.columns, read.text) == (Kind.BOOLEAN, frozenset({"age", "pay"}), "age + pay > 3")
    assert expression("1 + 1", SCHEMA).columns == frozenset()


def test_a_parsed_node_is_read_like_its_text() -> None:
    where = sqlglot.parse_one("SELECT * FROM v AS t WHERE t.age >= 18 AND pay < 3", read="duckdb").args["where"].this
    read = typed(where, SCHEMA, aliases=["t"])
    assert read.sql.sql("duckdb") == sql("age >= 18 AND pay < 3")
    assert read.columns == {"age", "pay"}
    with pytest.raises(InvalidParameterError, match="parsed expression"):
        typed("age", SCHEMA)  # type: ignore[arg-type]  # the refusal is what is tested


def test_reading_a_node_leaves_it_as_it_was() -> None:
    node = sqlglot.parse_one("CASE WHEN pay > 1 THEN SQRT(pay) ELSE -age END", read="duckdb")
    before = node.sql()
    typed(node, SCHEMA)
    assert node.sql() == before
    assert isinstance(node, exp.Case)


def test_a_deep_node_is_refused() -> None:
    node: exp.Expression = exp.column("age")
    for _ in range(5_000):
        node = exp.Neg(this=node)
    with pytest.raises(UnsupportedSqlError, match="nested more than"):
        typed(node, SCHEMA)


def test_names_are_matched_exactly() -> None:
    with pytest.raises(UnknownColumnError, match=r"did you mean 'age' \(upper and lower case count"):
        expression("AGE >= 18", SCHEMA)
    with pytest.raises(UnknownColumnError, match="did you mean 'ward'"):
        expression("wrad = 'A'", SCHEMA)
    with pytest.raises(UnknownColumnError):
        expression("аge >= 18", SCHEMA)  # the first letter is Cyrillic


def test_names_that_look_alike_are_two_names() -> None:
    schema = Schema([Column("age", Kind.INTEGER), Column("аge", Kind.TEXT)])
    assert expression("age", schema).kind is Kind.INTEGER
    assert expression("аge", schema).kind is Kind.TEXT


@pytest.mark.parametrize(
    "name",
    [
        'a"b',
        "a; DROP TABLE t",
        "a -- b",
        "a/*b*/",
        "it's",
        "select",
        " ",
        "a.b",
        "*",
        "日本",
        "a\\b",
        "a\nb",
        "?",
        "NaN",
    ],
)
def test_a_hostile_column_name_is_only_a_name(name: str) -> None:
    schema = Schema([Column(name, Kind.INTEGER)])
    quoted = '"' + name.replace('"', '""') + '"'
    read = expression(f"{quoted} + 1", schema)
    assert read.columns == {name}
    assert engine().execute(f"SELECT {read.sql.sql('duckdb')} FROM (SELECT 41 AS {quoted}) AS t").fetchall() == [(42,)]


def test_a_name_before_a_dot_must_be_the_tables() -> None:
    assert expression("v.age > 1", SCHEMA, aliases=["v"]).sql.sql("duckdb") == '"age" > 1'
    for text in ["v.age", "age.year", "a.b.age", "a.b.c.age", "V.age"]:
        with pytest.raises(UnsupportedSqlError) as refused:
            expression(text, SCHEMA, aliases=["w"])
        assert refused.value.fix


def test_a_column_of_another_kind_is_refused() -> None:
    with pytest.raises(WrongKindError, match="no question can be about"):
        expression("tags IS NULL", SCHEMA)


def test_null_alone_has_no_kind() -> None:
    for text in ["NULL", "COALESCE(NULL, NULL)", "CASE WHEN well THEN NULL END", "NULLIF(NULL, 1 = 1)"]:
        if "1 = 1" in text:
            assert expression(text, SCHEMA).kind is Kind.BOOLEAN
            continue
        with pytest.raises(InvalidParameterError, match="has no kind"):
            expression(text, SCHEMA)
