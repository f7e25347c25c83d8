"""Columns and what may be declared about them."""

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest
from tests.tables.expressions.asking import answer

from defocus.engines.schema import Column, Kind, Schema, cased, check_names, lasting, unique
from defocus.errors import InvalidParameterError, SourceError, UnknownColumnError, WrongKindError

NOON = datetime(2020, 1, 1, 12)  # noqa: DTZ001  # moments have no zone


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Kind.TEXT, ["A", "", "患者"]),
        (Kind.INTEGER, [-(2**63), 0, 2**63 - 1]),
        (Kind.INTEGER, [np.int64(3), np.int32(4)]),
        (Kind.BOOLEAN, [True, False]),
        (Kind.DATE, [date(2020, 1, 1)]),
        (Kind.TIMESTAMP, [NOON]),
    ],
)
def test_a_domain_holds_values_of_its_kind(kind: Kind, values: list[Any]) -> None:
    declared = Column("x", kind).declared(values).values
    assert declared == tuple(values)
    assert not any(isinstance(value, np.generic) for value in declared or ())


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Kind.TEXT, [1, 2]),
        (Kind.TEXT, ["A", 1]),
        (Kind.TEXT, [b"A"]),
        (Kind.TEXT, ["\0"]),
        (Kind.TEXT, ["\ud800"]),
        (Kind.TEXT, [["A"]]),
        (Kind.INTEGER, ["1"]),
        (Kind.INTEGER, [1.0]),
        (Kind.INTEGER, [True]),
        (Kind.INTEGER, [2**63]),
        (Kind.BOOLEAN, [0, 1]),
        (Kind.DATE, [NOON]),
        (Kind.DATE, ["2020-01-01"]),
        (Kind.TIMESTAMP, [date(2020, 1, 1)]),
        (Kind.TIMESTAMP, [datetime(2020, 1, 1, tzinfo=UTC)]),
    ],
)
def test_values_of_another_kind_are_refused_when_they_are_declared(kind: Kind, values: list[Any]) -> None:
    with pytest.raises(WrongKindError, match=f"of kind {kind}"):
        Schema([Column("x", kind)]).declare({"x": values})


def test_nothing_is_no_value_of_a_domain() -> None:
    with pytest.raises(InvalidParameterError, match=r"keys=\[.A., None\] to group_by"):
        Column("ward", Kind.TEXT).declared(["A", None])


@pytest.mark.parametrize(
    ("kind", "fact"),
    [
        (Kind.TEXT, (0, 1)),
        (Kind.NUMBER, [1.5]),
        (Kind.NUMBER, (5, 0)),
        (Kind.NUMBER, (0, float("nan"))),
        (Kind.NUMBER, (0, float("inf"))),
        (Kind.NUMBER, (False, True)),
        (Kind.NUMBER, (0, 1, 2)),
        (Kind.DATE, (date(2021, 1, 1), date(2020, 1, 1))),
        (Kind.DATE, (0, 1)),
        (Kind.DATE, (None, date(2020, 1, 1))),
        (Kind.DATE, (date(2020, 1, 1), NOON)),
        (Kind.TIMESTAMP, (date(2020, 1, 1), date(2021, 1, 1))),
        (Kind.INTEGER, 5),
        (Kind.TEXT, []),
        (Kind.TEXT, "AB"),
        (Kind.TEXT, ["A", "A"]),
        (Kind.INTEGER, [1, np.int64(1)]),
    ],
)
def test_what_is_neither_bounds_nor_a_domain_is_refused(kind: Kind, fact: Any) -> None:
    with pytest.raises(InvalidParameterError, match="To fix"):
        Column("x", kind).declared(fact)


def test_dates_and_moments_have_bounds() -> None:
    day, moment = Column("day", Kind.DATE), Column("at", Kind.TIMESTAMP)
    assert day.declared((date(2020, 1, 1), date(2021, 1, 1))).high == date(2021, 1, 1)
    assert moment.declared((NOON, NOON.replace(year=NOON.year + 1))).low == NOON


def test_a_schema_knows_its_columns_by_exact_names() -> None:
    schema = Schema([Column("age", Kind.INTEGER), Column("blob", Kind.OTHER)])
    assert schema.names == ["age", "blob"]
    assert "Age" not in schema
    with pytest.raises(UnknownColumnError, match="upper and lower case count"):
        schema["Age"]
    with pytest.raises(WrongKindError, match="no question"):
        schema.declare({"blob": [1]})
    with pytest.raises(SourceError, match="cannot tell apart"):
        Schema([Column("age", Kind.INTEGER), Column("AGE", Kind.INTEGER)])


def test_a_column_keeps_to_itself_how_long_its_texts_can_be() -> None:
    column = Column("a", Kind.TEXT, growth=(3, 5))
    assert "growth" not in repr(column)
    assert column != Column("a", Kind.TEXT)
    assert column.declared(["x"]).growth == (3, 5)


@pytest.mark.parametrize(
    "pair",
    [
        ("a", "a"),
        ("a", "A"),
        ("ß", "SS"),
        ("é", "e\u0301"),
        ("ﬁ", "fi"),
        ("Ａ", "a"),
        ("İ", "i\u0307"),
        ("K", "\u212a"),
    ],
)
def test_names_that_look_or_fold_alike_are_refused(pair: tuple[str, str]) -> None:
    for names in (pair, pair[::-1]):
        with pytest.raises(SourceError, match="look the same") as caught:
            check_names(names, "t")
        assert "rename one" in caught.value.fix


@pytest.mark.parametrize(
    "name", ["", " ", "\t", "a\0b", "a\nb", "\ud800", "x" * 1001, "a\x85b", 5, None, b"a", ("a", "b")]
)
def test_names_that_cannot_be_written_are_refused(name: object) -> None:
    with pytest.raises(SourceError, match="To fix: "):
        check_names(["good", name], "t")


@pytest.mark.parametrize(
    "name", ['"', "'; DROP TABLE t; --", "a b", "ward.x", "{x}", "%s", "Größe", "日本", "-1", "SELECT", "*"]
)
def test_strange_names_are_names(name: str) -> None:
    assert check_names(["a", name], "t") == ["a", name]


def test_a_table_without_columns_is_refused() -> None:
    with pytest.raises(SourceError, match="no column"):
        check_names([], "t")


def test_a_unique_name_is_unlike_any_other_and_lasts_as_what_was_given() -> None:
    assert unique("visits") != unique("visits")
    digest = 64 * "a"
    assert lasting(f'{unique("0")} of "{unique(f"files {digest}")}"') == f'0 of "files {digest}"'


def test_characters_change_case_as_in_duckdb() -> None:

    for function in ("LOWER", "UPPER"):
        before, after = cased(function)
        assert answer(f"{function}(ward)", ward=before) == after


def test_a_column_of_text_that_is_taken_for_numbers_says_how_to_declare_its_type() -> None:
    with pytest.raises(WrongKindError, match=r'types=\{"age": "integer"\}'):
        Column("age", Kind.TEXT).declared((0, 85))
    with pytest.raises(WrongKindError, match=r'types=\{"sex": "integer"\}'):
        Column("sex", Kind.TEXT).declared([0, 1])
    with pytest.raises(WrongKindError) as told:
        Column("seen", Kind.DATE).declared((0, 85))
    assert "types=" not in str(told.value)
