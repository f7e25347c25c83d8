from typing import Any

import pytest
from tests.tables.expressions.asking import SCHEMA, answer, sql

from defocus.errors import InvalidParameterError, WrongKindError
from defocus.tables.expressions import expression


@pytest.mark.parametrize(
    ("text", "ward", "wanted"),
    [
        ("LENGTH(ward)", "👩‍👧é", 4),
        ("LEFT(ward, 1)", "漢字", "漢"),
        ("RIGHT(ward, 0)", "abc", ""),
        ("RIGHT(ward, 9)", "abc", "abc"),
        ("SUBSTRING(ward, 2, 1)", "abc", "b"),
        ("SUBSTRING(ward, 9)", "abc", ""),
        ("SUBSTR(ward, 1, 0)", "abc", ""),
        ("SUBSTRING(ward FROM 2 FOR 2)", "abcd", "bc"),
        ("TRIM(ward)", "  a\t ", "a\t"),
        ("TRIM('.' FROM ward)", "..a.", "a"),
        ("LTRIM(ward)", " a ", "a "),
        ("ward || NULL", "a", None),
        ("CONCAT(ward, NULL, 'b')", None, "b"),
        ("REPLACE(ward, '''', '\"')", "it's", 'it"s'),
        ("REPLACE(ward, 'ab', '')", "abab", ""),
        ("STARTS_WITH(ward, '')", "a", True),
        ("STARTS_WITH(ward, 'B')", "b", False),
        ("ward LIKE 'a%'", "a\nb", True),
        ("ward LIKE 'a_'", "a漢", True),
        ("ward LIKE ''", "", True),
        ("ward NOT LIKE '%'", "", False),
        ("ward LIKE 'A'", "a", False),
        ("ward LIKE '10!%' ESCAPE '!'", "10%", True),
        ("ward LIKE '10!%' ESCAPE '!'", "100", False),
        ("ward NOT LIKE '!!' ESCAPE '!'", "!", False),
        ("ward LIKE '\\\\' ESCAPE '\\'", "\\", True),
        ("ward = 'a'' OR 1=1 --'", "a' OR 1=1 --", True),
        ("ward = '\\'", "\\", True),
        ("LOWER(ward) = 'x' OR UPPER(ward) = 'A'", "a", True),
    ],
)
def test_functions_of_text_are_total(text: str, ward: Any, wanted: Any) -> None:
    found = answer(text, ward=ward)
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    "text",
    [
        "LEFT(ward, -1)",
        "LEFT(ward, age)",
        "SUBSTRING(ward, 0)",
        "SUBSTRING(ward, -1, 2)",
        "SUBSTRING(ward, 1, -1)",
        "SUBSTRING(ward, 1, age)",
        "RIGHT(ward, 2147483648)",
        "RIGHT(ward, 1.5)",
        "LEFT(ward, TRUE)",
        "TRIM('' FROM ward)",
        "TRIM(ward FROM ward)",
        "REPLACE(ward, '', 'x')",
        "REPLACE(ward, ward, 'x')",
        "REPLACE(ward, 'x', ward)",
        "ward LIKE '!' ESCAPE '!'",
        "ward LIKE '!a' ESCAPE '!'",
        "ward LIKE 'a' ESCAPE '%'",
        "ward LIKE 'a' ESCAPE 'ab'",
        "ward LIKE 'a' ESCAPE ''",
        "ward LIKE NULL",
        "ward = 'a' ESCAPE '!'",
    ],
)
def test_parameters_that_engines_treat_differently_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameterError) as refused:
        expression(text, SCHEMA)
    assert refused.value.fix


@pytest.mark.parametrize("text", ["LOWER(age)", "LENGTH(pay)", "ward || pay", "CONCAT(ward, 1.5)", "age LIKE '1'"])
def test_functions_of_text_refuse_numbers(text: str) -> None:
    with pytest.raises(WrongKindError, match="CAST"):
        expression(text, SCHEMA)


def test_concat_is_written_so_that_every_engine_passes_over_null() -> None:
    assert sql("CONCAT(ward, 'x')", "spark") == "COALESCE(`ward`, '') || 'x'"
