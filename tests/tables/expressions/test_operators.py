import math
from typing import Any

import pytest
from tests.tables.expressions.asking import SCHEMA, answer, sql

from defocus.errors import WrongKindError
from defocus.tables.expressions import expression

LARGEST, SMALLEST = 2**63 - 1, -(2**63)


@pytest.mark.parametrize(
    ("text", "row", "wanted"),
    [
        ("age + 1", {"age": LARGEST}, None),
        ("age - 1", {"age": SMALLEST}, SMALLEST),
        ("age - 4096", {"age": SMALLEST}, None),
        ("age * age", {"age": 2**40}, None),
        ("age * age", {"age": 2**31}, 2**62),
        ("-age", {"age": SMALLEST}, None),
        ("-small", {"small": -128}, 128),
        ("small + small", {"small": 127}, 254),
        ("small * 1000", {"small": 127}, 127_000),
        ("small < 1000", {"small": 127}, True),
        ("small IN (1000, -1)", {"small": -1}, True),
        ("small BETWEEN -1000 AND 1000", {"small": -1}, True),
        ("age // 0", {"age": 7}, None),
        ("age // -1", {"age": SMALLEST}, None),
        ("age % -1", {"age": SMALLEST}, 0),
        ("age % 0", {"age": 7}, None),
        ("age % 10", {"age": LARGEST}, 7),
        ("age % -10", {"age": -17}, -7),
        ("age // 10", {"age": LARGEST}, LARGEST // 10),
        ("age // -2", {"age": 7}, -3),
        ("age // small", {"age": -7, "small": 2}, -3),
        ("age / 0", {"age": 7}, None),
        ("age / small", {"age": 7, "small": 2}, 3.5),
        ("7 / 2", {}, 3.5),
        ("price * 2", {"price": 1.25}, 2.5),
        ("price = 1.25", {"price": 1.25}, True),
        ("pay % 0.0", {"pay": 7.5}, None),
        ("pay % 2", {"pay": -7.5}, -1.5),
        ("pay - pay", {"pay": math.inf}, None),
        ("(pay - pay) + 1", {"pay": math.inf}, None),
        ("pay + pay", {"pay": math.inf}, math.inf),
        ("pay * 0", {"pay": math.inf}, None),
        ("pay * 0", {"pay": math.nan}, None),
        ("pay / pay", {"pay": math.inf}, None),
        ("pay % 2", {"pay": math.inf}, None),
        ("1 / pay", {"pay": -0.0}, None),
        ("1 / pay", {"pay": math.inf}, 0.0),
        ("FLOOR(pay) - FLOOR(pay)", {"pay": math.inf}, None),
        ("EXP(age) * 0", {"age": 1000}, None),
        ("EXP(age) / EXP(age)", {"age": 1000}, None),
        ("EXP(age) % 2", {"age": 1000}, None),
        ("pay * 1e300", {"pay": 1e300}, math.inf),
        ("pay * 1e300 * 0", {"pay": 1e300}, None),
        ("9223372036854775807", {}, LARGEST),
        ("-9223372036854775808", {}, SMALLEST),
    ],
)
def test_arithmetic_has_an_outcome_on_every_row(text: str, row: dict[str, Any], wanted: Any) -> None:
    found = answer(text, **row)
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    "text", ["pay = pay", "pay > 1", "pay >= 1", "pay < 1", "pay <> 1", "pay IN (1)", "NOT pay > 1"]
)
def test_a_comparison_with_nan_is_null(text: str) -> None:
    assert answer(text, pay=math.nan) is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("pay IS NULL", True),
        ("pay IS NOT NULL", False),
        ("pay + 1 IS NULL", True),
        ("COALESCE(pay, 5)", 5.0),
        ("LEAST(pay, 5)", 5.0),
        ("GREATEST(pay, 5)", 5.0),
        ("CASE WHEN pay > 1 THEN 'high' WHEN pay <= 1 THEN 'low' ELSE 'none' END", "none"),
        ("pay IS DISTINCT FROM pay", False),
        ("CASE WHEN well THEN 1 ELSE pay END", None),
        ("NULLIF(pay, 3)", None),
        ("pay BETWEEN 1 AND 2 OR pay > 1", None),
        ("IF(pay > 0, 1, 2)", 2),
    ],
)
def test_nan_is_missing(text: str, wanted: Any) -> None:
    assert answer(text, pay=math.nan) == wanted
    assert answer(text, pay=None) == wanted


def test_minus_zero_is_zero() -> None:
    assert answer("pay = 0 AND pay >= 0 AND pay IN (0) AND NOT pay < 0", pay=-0.0) is True
    assert answer("SIGN(pay)", pay=-0.0) == 0


def test_text_is_compared_by_its_bytes() -> None:
    assert answer("'Z' < 'a' AND 'z' < 'é' AND 'a' <> 'A' AND 'a' <> 'a '") is True


def test_kinds_widen_where_nothing_is_lost() -> None:
    assert answer("age > 17.5", age=18) is True
    assert answer("born < '2020-01-02'", born="2020-01-01") is True
    assert answer("born = '2020-01-01 00:00:00'", born="2020-01-01") is True
    assert answer("born < seen", born="2020-01-01", seen="2020-01-01 00:00:01") is True
    assert answer("seen >= DATE '2020-01-01'", seen="2020-01-01") is True
    assert answer("COALESCE(NULL, age)", age=3) == 3


@pytest.mark.parametrize(
    "text",
    [
        "age = 'x'",
        "ward > 1",
        "well > 1",
        "born = 1",
        "age + ward",
        "ward + ward",
        "NOT age",
        "age AND well",
        "-ward",
        "well + 1",
        "seen - born",
        "born - INTERVAL 1 DAY - 1",
        "seen - 1",
        "CASE WHEN age THEN 1 END",
        "COALESCE(age, ward)",
        "LEAST(born, age)",
        "ward IN ('a', 1)",
        "pay // 2",
        "IF(ward, 1, 2)",
        "ABS(ward)",
        "age IS TRUE",
        "pay || ward",
        "born > ward",
    ],
)
def test_kinds_that_do_not_go_together_are_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(WrongKindError) as refused:
        expression(text, SCHEMA)
    assert refused.value.fix


def test_parentheses_keep_the_meaning() -> None:
    assert answer("(1 - 2) * 3 - (4 - (5 - 6))") == -8
    assert answer("NOT (well AND age > 1) OR well", well=False, age=2) is True
    assert answer("(ward || 'b') || ('c' || ward)", ward="a") == "abca"
    assert answer("(age > 1) = (pay > 1)", age=2, pay=2) is True
    assert answer("(age BETWEEN 1 AND 2) IS NOT NULL", age=None) is False
    assert answer("- (- age)", age=3) == 3
    assert answer("(age IN (1, 2)) = TRUE", age=3) is False
    assert "(" in sql("(age + 1) * 2")
