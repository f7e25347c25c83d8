# ruff: noqa: DTZ001 tables hold moments without a zone

import math
from datetime import date, datetime
from typing import Any

import pytest
from tests.tables.expressions.asking import SCHEMA, answer

from defocus.errors import WrongKindError
from defocus.tables.expressions import expression


@pytest.mark.parametrize(
    ("text", "row", "wanted"),
    [
        ("CAST(ward AS BIGINT)", {"ward": "abc"}, None),
        ("CAST(ward AS BIGINT)", {"ward": ""}, None),
        ("CAST(ward AS INT)", {"ward": "12"}, 12),
        ("ward::BIGINT", {"ward": "9223372036854775808"}, None),
        ("TRY_CAST(ward AS DOUBLE)", {"ward": "1.5"}, 1.5),
        ("CAST(ward AS DOUBLE)", {"ward": "nan"}, None),
        ("CAST(ward AS DOUBLE)", {"ward": "1e999"}, math.inf),
        ("CAST(ward AS DATE)", {"ward": "2023-02-29"}, None),
        ("CAST(ward AS DATE)", {"ward": "2024-02-29"}, date(2024, 2, 29)),
        ("CAST(ward AS DATE)", {"ward": "10000-01-01"}, None),
        ("CAST(ward AS DATE)", {"ward": "infinity"}, None),
        ("CAST(ward AS TIMESTAMP)", {"ward": "2024-02-29 10:00:00"}, datetime(2024, 2, 29, 10)),
        ("CAST(ward AS TIMESTAMP)", {"ward": "no"}, None),
        ("CAST(pay AS BIGINT)", {"pay": 2.5}, 2),
        ("CAST(pay AS BIGINT)", {"pay": 2.0**63}, None),
        ("CAST(pay AS BIGINT)", {"pay": math.nan}, None),
        ("CAST(pay AS BIGINT)", {"pay": math.inf}, None),
        ("CAST(age AS DOUBLE)", {"age": 3}, 3.0),
        ("CAST(age AS BOOLEAN)", {"age": 3}, True),
        ("CAST(well AS INT)", {"well": True}, 1),
        ("CAST(well AS TEXT)", {"well": True}, "true"),
        ("CAST(age AS VARCHAR)", {"age": -3}, "-3"),
        ("CAST(born AS TEXT)", {"born": "0044-03-15"}, "0044-03-15"),
        ("CAST(born AS TEXT)", {"born": "infinity"}, None),
        ("CAST(seen AS DATE)", {"seen": "9999-12-31 23:59:59.999999"}, date(9999, 12, 31)),
        ("CAST(born AS TIMESTAMP)", {"born": "9999-12-31"}, datetime(9999, 12, 31)),
        ("CAST(NULL AS DATE)", {}, None),
    ],
)
def test_a_cast_that_fails_is_null(text: str, row: dict[str, Any], wanted: Any) -> None:
    found = answer(text, **row)
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    "text",
    ["CAST(pay AS TEXT)", "CAST(ward AS BOOLEAN)", "CAST(pay AS BOOLEAN)", "CAST(born AS BIGINT)", "CAST(age AS DATE)"],
)
def test_casts_that_engines_write_differently_are_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(WrongKindError, match="differs between engines") as refused:
        expression(text, SCHEMA)
    assert refused.value.fix
