# ruff: noqa: DTZ001 tables hold moments without a zone

from datetime import date, datetime
from typing import Any

import pytest
from tests.tables.expressions.asking import SCHEMA, answer

from defocus.errors import InvalidParameterError, WrongKindError
from defocus.tables.expressions import expression


@pytest.mark.parametrize(
    ("text", "row", "wanted"),
    [
        ("EXTRACT(dow FROM born)", {"born": "2024-02-25"}, 0),
        ("DAYOFWEEK(born)", {"born": "2024-02-24"}, 6),
        ("EXTRACT(isodow FROM born)", {"born": "2024-02-25"}, 7),
        ("EXTRACT(isodow FROM born)", {"born": "0001-01-01"}, 1),
        ("WEEK(born)", {"born": "2021-01-01"}, 53),
        ("EXTRACT(doy FROM born)", {"born": "2024-12-31"}, 366),
        ("QUARTER(seen)", {"seen": "2024-12-31 23:59:59"}, 4),
        ("DATE_PART('hour', seen)", {"seen": "2024-12-31 23:59:59"}, 23),
        ("SECOND(seen)", {"seen": "2024-12-31 23:59:59.999"}, 59),
        ("YEAR(born)", {"born": "infinity"}, None),
        ("YEAR(born)", {"born": "10000-01-01"}, None),
        ("YEAR(seen)", {"seen": "-infinity"}, None),
        ("born IS NULL", {"born": "infinity"}, True),
        ("born > DATE '2020-01-01'", {"born": "infinity"}, None),
        ("DATE_TRUNC('week', born)", {"born": "2024-02-25"}, date(2024, 2, 19)),
        ("DATE_TRUNC('month', born)", {"born": "infinity"}, None),
        ("DATE_TRUNC('hour', seen)", {"seen": "2024-02-25 10:59:59.5"}, datetime(2024, 2, 25, 10)),
        ("DATE_DIFF('day', born, seen)", {"born": "0001-01-01", "seen": "9999-12-31 23:59:59"}, 3652058),
        ("DATE_DIFF('week', born, DATE '2020-01-06')", {"born": "2020-01-01"}, 0),
        ("DATE_DIFF('week', born, DATE '2020-01-08')", {"born": "2020-01-01"}, 1),
        ("DATE_DIFF('week', born, DATE '2019-12-26')", {"born": "2020-01-01"}, 0),
        ("DATE_DIFF('year', born, '2024-01-01')", {"born": "2023-12-31"}, 1),
        ("DATE_DIFF('month', born, DATE '2020-01-01')", {"born": "2020-02-29"}, -1),
        ("DATE_DIFF('hour', seen, TIMESTAMP '2020-01-01 01:00:00')", {"seen": "2020-01-01 00:59:59"}, 1),
        ("DATE_DIFF('second', seen, TIMESTAMP '9999-12-31')", {"seen": "0001-01-01"}, 315537811200),
        ("DATE_DIFF('day', born, born)", {"born": "infinity"}, None),
    ],
)
def test_functions_of_dates_have_an_outcome_on_every_row(text: str, row: dict[str, Any], wanted: Any) -> None:
    found = answer(text, **row)
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    "text",
    [
        "HOUR(born)",
        "YEAR(age)",
        "YEAR(NULL)",
        "EXTRACT(hour FROM born)",
        "DATE_TRUNC('hour', born)",
        "DATE_DIFF('hour', born, born)",
        "DATE_DIFF('day', born, age)",
        "DATE_PART('year')",
        "EXTRACT(century FROM born)",
        "DATE_DIFF('millennium', born, seen)",
        "DATE_TRUNC(ward, born)",
        "YEAR('soon')",
    ],
)
def test_what_is_not_a_date_or_a_unit_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameterError) as refused:
        expression(text, SCHEMA)
    assert refused.value.fix


def test_literal_text_is_read_as_a_date_where_one_belongs() -> None:
    assert answer("YEAR('2024-02-29')") == 2024
    with pytest.raises(WrongKindError):
        expression("YEAR(ward)", SCHEMA)
