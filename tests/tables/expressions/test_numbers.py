import math
from typing import Any

import pytest
from tests.tables.expressions.asking import SCHEMA, answer

from defocus.errors import InvalidParameterError, WrongKindError
from defocus.tables.expressions import expression


@pytest.mark.parametrize(
    ("text", "row", "wanted"),
    [
        ("ABS(age)", {"age": -(2**63)}, None),
        ("ABS(small)", {"small": -128}, 128),
        ("ABS(pay)", {"pay": -math.inf}, math.inf),
        ("SQRT(pay)", {"pay": -5e-324}, None),
        ("SQRT(pay)", {"pay": -0.0}, 0.0),
        ("SQRT(pay)", {"pay": math.nan}, None),
        ("SQRT(-4)", {}, None),
        ("LN(pay)", {"pay": 0.0}, None),
        ("LN(pay)", {"pay": -1.0}, None),
        ("LN(pay)", {"pay": math.inf}, math.inf),
        ("LN(0)", {}, None),
        ("LOG10(age)", {"age": 1000}, 3.0),
        ("LOG(age)", {"age": 100}, 2.0),
        ("LOG10(age)", {"age": -1}, None),
        ("EXP(age)", {"age": 1000}, math.inf),
        ("EXP(age)", {"age": -1000}, 0.0),
        ("POWER(pay, -1)", {"pay": 0.0}, None),
        ("POWER(pay, -1)", {"pay": -0.0}, None),
        ("POWER(pay, age)", {"pay": 0.0, "age": -1}, None),
        ("POWER(pay, age)", {"pay": 0.0, "age": 2}, 0.0),
        ("POWER(pay, 0.5)", {"pay": -1.0}, None),
        ("POWER(pay, -0.5)", {"pay": 0.0}, None),
        ("POWER(pay, -0.5)", {"pay": 4.0}, 0.5),
        ("POWER(pay, 0.5)", {"pay": 0.0}, 0.0),
        ("POWER(pay, 0.5)", {"pay": math.inf}, math.inf),
        ("POWER(pay, -2)", {"pay": math.inf}, 0.0),
        ("POWER(pay, age)", {"pay": -math.inf, "age": 3}, -math.inf),
        ("POWER(-2, age)", {"age": 3}, -8.0),
        ("POWER(-2, pay)", {"pay": 0.5}, None),
        ("POWER(age, NULL)", {"age": 3}, None),
        ("POWER(0, age)", {"age": -1}, None),
        ("POWER(0, age)", {"age": 0}, 1.0),
        ("POWER(pay, 0)", {"pay": math.nan}, None),
        ("POWER(1, pay)", {"pay": math.nan}, None),
        ("age ^ 2", {"age": -3}, 9.0),
        ("age ** 2", {"age": -3}, 9.0),
        ("ROUND(pay)", {"pay": 2.5}, 3.0),
        ("ROUND(pay)", {"pay": -2.5}, -3.0),
        ("ROUND(pay, 1)", {"pay": 0.25}, 0.3),
        ("ROUND(pay, 2)", {"pay": 1e308}, 1e308),
        ("ROUND(age, -2)", {"age": 1250}, 1300),
        ("ROUND(age, 2)", {"age": 2**63 - 1}, 2**63 - 1),
        ("FLOOR(pay)", {"pay": -0.5}, -1.0),
        ("CEIL(pay)", {"pay": 1e300}, 1e300),
        ("FLOOR(pay)", {"pay": math.nan}, None),
        ("SIGN(age)", {"age": -(2**63)}, -1),
        ("SIGN(pay)", {"pay": math.nan}, None),
        ("BUCKET(age, 10)", {"age": -1}, -10),
        ("BUCKET(age, 10)", {"age": 19}, 10),
        ("BUCKET(pay, 0.5)", {"pay": 0.7}, 0.5),
        ("BUCKET(pay, 10)", {"pay": math.nan}, None),
        ("bucket(age, 0.5)", {"age": 3}, 3.0),
        ("MOD(age, 5)", {"age": -7}, -2),
    ],
)
def test_functions_of_numbers_have_an_outcome_on_every_row(text: str, row: dict[str, Any], wanted: Any) -> None:
    found = answer(text, **row)
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    "text",
    [
        "BUCKET(age)",
        "BUCKET(age, 0)",
        "BUCKET(age, -1)",
        "BUCKET(age, age)",
        "BUCKET(age, 'x')",
        "BUCKET(age, TRUE)",
        "ROUND(pay, 16)",
        "ROUND(pay, 1.5)",
        "ROUND(pay, NULL)",
        "ROUND(pay, -16)",
    ],
)
def test_a_parameter_must_be_a_fitting_constant(text: str) -> None:
    with pytest.raises(InvalidParameterError) as refused:
        expression(text, SCHEMA)
    assert refused.value.fix


@pytest.mark.parametrize("name", ["ABS", "SQRT", "LN", "EXP", "FLOOR", "CEIL", "ROUND", "SIGN", "LOG10"])
def test_functions_of_numbers_refuse_text(name: str) -> None:
    with pytest.raises(WrongKindError, match="needs numbers"):
        expression(f"{name}(ward)", SCHEMA)
    assert answer(f"{name}(NULL)") is None
