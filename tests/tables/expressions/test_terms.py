import math
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.expressions.asking import SCHEMA, answer, engine

from defocus.errors import DefocusError, InvalidParameterError, UnsupportedSqlError
from defocus.tables import Kind
from defocus.tables.expressions import constant, expression
from defocus.tables.expressions.terms import Term, made, null, of


def test_a_term_made_of_parts_reads_their_columns_and_costs_their_work() -> None:
    a = Term(Kind.TEXT, of("x", Kind.TEXT).sql, columns=frozenset({"a"}), work=3, texts=1, extra=2)
    b = Term(Kind.TEXT, of("y", Kind.TEXT).sql, columns=frozenset({"b"}), work=5, texts=2)
    term = made(Kind.TEXT, a.sql, a, b, twice=a)
    assert (term.columns, term.work, term.texts, term.extra) == (frozenset({"a", "b"}), 12, 2, 2)
    assert made(Kind.BOOLEAN, a.sql, a, b).texts == 0


def test_too_much_work_is_refused() -> None:
    a = Term(Kind.INTEGER, of(1, Kind.INTEGER).sql, work=1_500)
    with pytest.raises(UnsupportedSqlError, match="so many steps"):
        made(Kind.INTEGER, a.sql, a, twice=a)


def test_constants_know_their_value() -> None:
    assert (of(3, Kind.NUMBER).value, of("é", Kind.TEXT).extra, null().kind) == (3.0, 2, None)


# ruff: noqa: DTZ001 tables hold moments without a zone


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1", 1),
        ("-1", -1),
        ("1.0", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-2.5e-3", -0.0025),
        ("1_000", 1000),
        ("0.30000000000000004", 0.30000000000000004),
        ("5e-324", 5e-324),
        ("TRUE", True),
        ("false", False),
        ("'a'", "a"),
        ("DATE '2024-02-29'", date(2024, 2, 29)),
        ("TIMESTAMP '2024-02-29 10:00:00.5'", datetime(2024, 2, 29, 10, 0, 0, 500000)),
        ("TIMESTAMP '2024-02-29T10:00'", datetime(2024, 2, 29, 10)),
        ("'0001-01-01'::DATE", date(1, 1, 1)),
    ],
)
def test_a_literal_is_what_it_says(text: str, wanted: object) -> None:
    found = answer(text)
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    "text",
    [
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999999",
        "1e999",
        "DATE '2023-02-29'",
        "DATE '10000-01-01'",
        "DATE 'tomorrow'",
        "DATE ''",
        "DATE '2024-1-1'",
        "TIMESTAMP '2024-01-01 25:00:00'",
        "TIMESTAMP '2024-01-01 00:00:00Z'",
        "TIMESTAMP '2024-01-01 00:00:00+01'",
        "born > 'x'",
        "DATE '2024-02-29 10:00:00'",
        "DATE '२०२४-०१-०१'",
        "DATE 'infinity'",
    ],
)
def test_a_literal_beyond_its_kind_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(InvalidParameterError) as refused:
        expression(text, SCHEMA)
    assert refused.value.fix


def test_numbers_without_a_point_are_integers() -> None:
    assert expression("3", SCHEMA).kind is Kind.INTEGER
    assert expression("3.0", SCHEMA).kind is Kind.NUMBER


# ruff: noqa: DTZ001 tables hold moments without a zone


VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.INTEGER: st.integers(-(2**63), 2**63 - 1),
    Kind.NUMBER: st.floats(allow_nan=False, allow_infinity=False),
    Kind.TEXT: st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    Kind.DATE: st.dates(),
    Kind.TIMESTAMP: st.datetimes(),
}


def value_of(sql: str) -> Any:
    return engine().execute(f"SELECT {sql}").fetchall()[0][0]


@given(st.sampled_from(list(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), VALUES[kind] | st.none())))
def test_a_constant_comes_back_as_it_went(given: tuple[Kind, Any]) -> None:
    kind, value = given
    found = value_of(constant(value, kind).sql("duckdb"))
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "'",
        "''",
        "'; DROP TABLE t; --",
        "\\'",
        "\\",
        "/* */",
        "--",
        "$$",
        "E'\\n'",
        "\n",
        "?",
        ":x",
        "{}",
        "%s",
        '"',
        "’",
    ],
)
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
def test_hostile_text_stays_a_literal(text: str, dialect: str) -> None:
    written = constant(text, Kind.TEXT).sql(dialect)
    assert written.startswith("'")
    assert written.endswith("'")
    if dialect == "duckdb":
        assert value_of(written) == text
    inside = written[1:-1].replace("\\\\", "").replace("\\'", "") if dialect == "spark" else written[1:-1]
    assert "'" not in inside.replace("''", "")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (math.nan, Kind.NUMBER),
        (math.inf, Kind.NUMBER),
        (-math.inf, Kind.NUMBER),
        (Fraction(1, 3), Kind.NUMBER),
        (2**53 + 1, Kind.NUMBER),
        (10**400, Kind.NUMBER),
        (True, Kind.NUMBER),
        ("1", Kind.NUMBER),
        (2**63, Kind.INTEGER),
        (-(2**63) - 1, Kind.INTEGER),
        (True, Kind.INTEGER),
        (np.bool_(True), Kind.INTEGER),
        (1.0, Kind.INTEGER),
        ("1", Kind.INTEGER),
        (1, Kind.BOOLEAN),
        ("true", Kind.BOOLEAN),
        (1, Kind.TEXT),
        (b"a", Kind.TEXT),
        ("a\0", Kind.TEXT),
        ("\udfff", Kind.TEXT),
        ("2020-01-01", Kind.DATE),
        (datetime(2020, 1, 1), Kind.DATE),
        (date(2020, 1, 1), Kind.TIMESTAMP),
        (datetime(2020, 1, 1, tzinfo=UTC), Kind.TIMESTAMP),
        ([1], Kind.OTHER),
        (None, Kind.OTHER),
    ],
)
def test_what_is_not_of_the_kind_is_refused_with_a_remedy(value: Any, kind: Kind) -> None:
    with pytest.raises(DefocusError) as refused:
        constant(value, kind)
    assert refused.value.fix


def test_numbers_of_other_libraries_are_read_as_what_they_are() -> None:
    seven: Any = np.int32(7)
    true: Any = np.bool_(True)
    assert constant(seven, Kind.INTEGER).sql() == "7"
    assert constant(np.float64(0.5), Kind.NUMBER).sql("duckdb") == "CAST('0.5' AS DOUBLE)"
    assert constant(true, Kind.BOOLEAN).sql() == "TRUE"
    assert constant(-0.0, Kind.NUMBER).sql("duckdb") == "CAST('0.0' AS DOUBLE)"


def test_every_constant_has_the_type_of_its_kind() -> None:
    assert value_of(f"typeof({constant(-(2**63), Kind.INTEGER).sql('duckdb')})") == "BIGINT"
    assert value_of(f"typeof({constant(1, Kind.NUMBER).sql('duckdb')})") == "DOUBLE"
    assert value_of(f"typeof({constant(None, Kind.DATE).sql('duckdb')})") == "DATE"
