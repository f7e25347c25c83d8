# ruff: noqa: DTZ001 tables hold moments without a zone

import math
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.expressions.asking import engine

from defocus.errors import DefocusError
from defocus.tables import Kind
from defocus.tables.expressions import constant

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
