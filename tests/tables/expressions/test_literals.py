# ruff: noqa: DTZ001 tables hold moments without a zone

from datetime import date, datetime

import pytest
from tests.tables.expressions.asking import SCHEMA, answer

from defocus.errors import InvalidParameterError
from defocus.tables import Kind
from defocus.tables.expressions import expression


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
