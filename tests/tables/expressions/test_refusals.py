import pytest
from tests.tables.expressions.asking import SCHEMA

from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.expressions import expression

REFUSED = {
    "(SELECT 1)": ("sub-query", "constants"),
    "age IN (SELECT age FROM t)": ("QUERY|sub-query", ""),
    "EXISTS (SELECT 1)": ("sub-query", "join"),
    "SELECT age": ("sub-query", "join"),
    "SELECT age FROM t UNION SELECT 1": ("sub-query", "join"),
    "SUM(pay)": ("aggregate SUM", "agg"),
    "COUNT(*)": ("aggregate COUNT", "agg"),
    "AVG(pay) > 3": ("aggregate AVG", "agg"),
    "list(age)": ("aggregate", "agg"),
    "COUNT(*) FILTER (WHERE well)": ("aggregate", "where"),
    "ROW_NUMBER() OVER ()": ("window", "group_by"),
    "LAG(age) OVER (ORDER BY age)": ("window", "group_by"),
    "RANDOM() < 0.5": ("RAND", "constant"),
    "seen < NOW()": ("NOW", "constant"),
    "born < CURRENT_DATE": ("CURRENT_DATE", "DATE '2024-01-31'"),
    "seen < CURRENT_TIMESTAMP": ("CURRENT_TIMESTAMP", "constant"),
    "born < TODAY()": ("TODAY", "constant"),
    "UUID() = ward": ("UUID", "constant"),
    "GETENV('HOME')": ("GETENV", "functions are"),
    "CURRENT_SETTING('x')": ("CURRENT_SETTING", "constant"),
    "read_text('/etc/passwd')": ("READ_TEXT", "functions are"),
    "lenght(ward)": ("LENGHT", "did you mean LENGTH"),
    "ERROR('x')": ("ERROR", "functions are"),
    "HASH(ward)": ("HASH", "functions are"),
    "REGEXP_MATCHES(ward, 'a')": ("", ""),
    "ward ~ 'a'": ("regular expression", "LIKE"),
    "ward ILIKE ward": ("ILIKE", "text"),
    "TO_CHAR(born, 'Month')": ("TO_CHAR", "STRFTIME"),
    "STRFTIME(born, '%q')": ("STRFTIME", "%Y"),
    "STRFTIME(born, ward)": ("STRFTIME", "DATE_TRUNC"),
    "born + age": ("constant", "DATE_DIFF"),
    "born + INTERVAL 5000 YEAR": ("interval", "4 000"),
    "born + INTERVAL '1 month 2 days'": ("interval", "INTERVAL 3 MONTH"),
    "ward SIMILAR TO 'a'": ("regular expression", "LIKE"),
    "ward GLOB 'a*'": ("GLOB", "LIKE"),
    "?": ("parameter", "value"),
    "age > $1": ("parameter", "value"),
    "age > :limit": ("parameter", "value"),
    "#1": ("parameter", "column"),
    "*": ("star", "columns"),
    "t.*": ("star|dot", ""),
    "COLUMNS(*) > 1": ("star", "columns"),
    "tags[1]": ("list", "before the table"),
    "[1, 2]": ("list", "before the table"),
    "{'a': 1}": ("list", "before the table"),
    "ward -> 'a'": ("JSON", "before the table"),
    "(age, pay) = (1, 2)": ("several values", ""),
    "x -> x + 1": ("JSON", ""),
    "ward COLLATE NOCASE = 'a'": ("collation", "LOWER"),
    "INTERVAL 1 DAY": ("interval", "d + INTERVAL"),
    "seen AT TIME ZONE 'UTC'": ("time zone", "before the table"),
    "E'a'": ("special literal", "single quotes"),
    "$$a$$": ("special literal", "single quotes"),
    "age AS x": ("alias", "derive"),
    "0x1F": ("alias", "derive"),
    "DROP TABLE t": ("statement", "age >= 18"),
    "UPDATE t SET age = 1": ("", ""),
    "INSERT INTO t VALUES (1)": ("", ""),
    "ATTACH 'x'": ("", ""),
    "COPY t TO 'x'": ("", ""),
    "PRAGMA threads": ("", ""),
    "UNNEST(tags)": ("UNNEST", ""),
    "age & 1": ("BITWISEAND", "functions are"),
    "age BETWEEN SYMMETRIC 1 AND 2": ("SYMMETRIC", "leave out"),
    "age IN (age, 1)": ("anything but constants", "constants"),
    "age IN (1 + 1)": ("anything but constants", "constants"),
    "ward LIKE ward": ("not a constant", "STARTS_WITH"),
    "ward LIKE 'a\\%'": ("backslash", "ESCAPE"),
    "ward LIKE '%a%a%a%a%a%a%a%a%'": ("wildcards", "at most 8"),
    "CAST(ward AS DECIMAL(10, 2))": ("DECIMAL", "DOUBLE"),
    "CAST(age AS DECIMAL(50, 2))": ("DECIMAL", "DOUBLE"),
    "CAST(ward AS JSON)": ("JSON", "cast to"),
    "CAST(ward AS TIMESTAMPTZ)": ("", "TIMESTAMP"),
    "CAST(ward AS INT[])": ("list", "before the table"),
    "CAST(ward AS BLOB)": ("", "cast to"),
    "LOG(2, pay)": ("another base", "LN"),
    "EXTRACT(epoch FROM seen)": ("unit", "year"),
    "DATE_TRUNC('century', seen)": ("unit", "year"),
    "age XOR 1": ("", ""),
    "well IS 'a'": ("", ""),
    "TRY(age)": ("", ""),
    "ABS(DISTINCT age)": ("", ""),
    "ROUND(pay, age)": ("constant number of digits", "whole number"),
    "MAP {'a': 1}": ("", ""),
    "CASE WHEN well THEN (SELECT 1) END": ("sub-query", ""),
    "LAMBDA x: x + 1": ("", ""),
    "age := 1": ("", ""),
    "CHR(0)": ("", "functions are"),
    "REPEAT(ward, 1000000000)": ("REPEAT", "functions are"),
    "LPAD(ward, 1000000000, 'x')": ("", ""),
}


@pytest.mark.parametrize("text", REFUSED)
def test_it_is_refused_by_name_and_with_a_remedy(text: str) -> None:
    construct, remedy = REFUSED[text]
    with pytest.raises(InvalidParameterError, match=f"(?i){construct}") as refused:
        expression(text, SCHEMA)
    assert remedy.lower() in refused.value.fix.lower()
    assert refused.value.fix.endswith((".", "?"))


def test_nesting_that_would_double_at_each_level_is_refused() -> None:
    text = "pay"
    for n in range(30):
        text = f"NULLIF({text} + 1, {n})"
    with pytest.raises(UnsupportedSqlError, match="so many steps"):
        expression(text, SCHEMA)


def test_a_text_that_could_fill_the_memory_is_refused() -> None:
    growing = "ward"
    for _ in range(3):
        growing = f"REPLACE({growing}, 'a', 'aaaaaaaaaa')"
    with pytest.raises(UnsupportedSqlError, match="grow so long"):
        expression(growing, SCHEMA)
    constant = f"REPLACE(REPLACE('{'a' * 3_000}', 'a', '{'a' * 60}'), 'a', '{'a' * 60}')"
    with pytest.raises(UnsupportedSqlError, match="grow so long"):
        expression(constant, SCHEMA)
    assert expression("REPLACE(ward, 'aa', 'b')", SCHEMA).columns == {"ward"}
