import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sqlglot
from sqlglot import exp
from tests.tables.expressions.asking import SCHEMA, answer

from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.expressions import expression
from defocus.tables.expressions.parser import EXPRESSIONS, QUERIES, Limits, parsed


@pytest.mark.parametrize("text", [None, 1, b"age", ["age"], True])
def test_only_text_is_read(text: Any) -> None:
    with pytest.raises(InvalidParameterError, match="must be text"):
        parsed(text)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_empty_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameterError, match="is empty"):
        parsed(text)


@pytest.mark.parametrize(
    "text", ["age >= 18 -- or so", "age /* >= 18 */ >= 65", "-- all", "/* x */", "age >= /**/ 18", "age # x"]
)
def test_comments_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameterError):
        expression(text, SCHEMA)


@pytest.mark.parametrize("text", ["age >= 18; DROP TABLE visits", "age;", "; age", ";", "1; 2", "age ;; age"])
def test_a_second_statement_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="semicolon"):
        expression(text, SCHEMA)


@pytest.mark.parametrize("text", ["age >=", "(age", "age)", "'open", '"open', "age >= 18 AND", "age age age", "a, b"])
def test_broken_text_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(InvalidParameterError) as refused:
        expression(text, SCHEMA)
    assert refused.value.fix


@pytest.mark.parametrize("text", ["ward = 'a\0b'", '"a\0" = 1', "\0", "ward = '\ud800'"])
def test_characters_that_no_engine_stores_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameterError, match="NUL"):
        expression(text, SCHEMA)


HOSTILE: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "(" * n + "age" + ")" * n,
    "open parentheses": lambda n: "(" * n,
    "nots": lambda n: "NOT " * n + "well",
    "minuses": lambda n: "- " * n + "age",
    "cases": lambda n: "CASE WHEN well THEN " * n + "1" + " END" * n,
    "brackets": lambda n: "[" * n,
    "calls": lambda n: "ABS(" * n + "age" + ")" * n,
    "sums": lambda n: "age" + " + age" * n,
    "pipes": lambda n: "ward" + " || ward" * n,
    "casts": lambda n: "age" + "::BIGINT" * n,
    "commas": lambda n: "COALESCE(" + "age," * n + "age)",
    "quotes": lambda n: "'" * n,
    "words": lambda n: "age " * n,
    "negations": lambda n: "well IS " + "NOT " * n + "NULL",
    "intervals": lambda n: "INTERVAL " * n,
    "dots": lambda n: "a." * n + "b",
    "wheres": lambda n: "CASE " * n,
    "subscripts": lambda n: "age" + "[1]" * n,
    "lambdas": lambda n: "x -> " * n + "x",
    "comparisons": lambda n: "age" + " = age" * n,
    "betweens": lambda n: "age BETWEEN " * n + "1",
    "structs": lambda n: "{'a': " * n,
    "ats": lambda n: "@" * n + "age",
    "bangs": lambda n: "!" * n + "age",
    "selects": lambda n: "SELECT " * n,
    "froms": lambda n: "FROM " * n,
    "arrays": lambda n: "ARRAY " * n + "1",
    "collations": lambda n: "ward" + " COLLATE x" * n,
    "exponents": lambda n: "age" + " ^ age" * n,
    "exists": lambda n: "EXISTS " * n + "1",
    "dates": lambda n: "DATE " * n + "'2020-01-01'",
    "casting words": lambda n: "CAST(" * n,
}


@pytest.mark.timeout(300)  # milliseconds, or forever
@pytest.mark.parametrize("size", [90, 1_000])
@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_ends_soon_and_only_ever_in_a_refusal(make: Callable[[int], str], size: int) -> None:
    text = make(size)
    with contextlib.suppress(InvalidParameterError):
        expression(text, SCHEMA).sql.sql("duckdb")


def test_long_text_and_deep_text_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedSqlError, match="1000000 characters"):
        expression("a" * 1_000_000, SCHEMA)
    with pytest.raises(UnsupportedSqlError, match="nested more than"):
        expression("(" * (EXPRESSIONS.levels + 1) + "age" + ")" * (EXPRESSIONS.levels + 1), SCHEMA)


def test_a_long_chain_of_conditions_is_not_deep() -> None:
    assert answer(" OR ".join(f"age = {n}" for n in range(300)), age=299) is True
    assert answer(" AND ".join(f"age <> {n}" for n in range(300)), age=299) is False
    assert answer(f"age IN ({', '.join(str(n) for n in range(5_000))})", age=4_999) is True


BOTH = pytest.mark.parametrize("limits", [EXPRESSIONS, QUERIES], ids=lambda limits: limits.what)


def tree(text: str) -> exp.Expression:
    made = sqlglot.parse_one(text)
    assert isinstance(made, exp.Expression)
    return made


@BOTH
def test_a_text_may_be_so_long_and_no_longer(limits: Limits) -> None:
    limits.check_text("x" * limits.characters)
    with pytest.raises(UnsupportedSqlError, match=f"^{limits.what} of {limits.characters + 1} characters"):
        limits.check_text("x" * (limits.characters + 1))


@BOTH
def test_what_no_engine_can_store_is_refused(limits: Limits) -> None:
    for text in ("a\0b", "\ud800", "a\udfff"):
        with pytest.raises(InvalidParameterError, match=f"^{limits.what} holds a NUL"):
            limits.check_text(text)


@BOTH
@pytest.mark.parametrize(
    ("before", "after"), [("(", ")"), ("CASE ", " END"), ("[", "]"), ("{", "}"), ("NOT ", ""), ("- ", "")]
)
def test_nesting_goes_so_deep_and_no_deeper(limits: Limits, before: str, after: str) -> None:
    def tokens(levels: int) -> list[sqlglot.tokenizer_core.Token]:
        return list(sqlglot.tokenize(before * levels + "x" + after * levels, read="duckdb"))

    limits.check_tokens(tokens(limits.levels))
    with pytest.raises(UnsupportedSqlError, match=f"nested more than {limits.levels} deep"):
        limits.check_tokens(tokens(limits.levels + 1))


@BOTH
def test_trees_are_counted_by_levels_and_chains_are_one(limits: Limits) -> None:
    few = replace(limits, levels=6)
    few.check_tree(tree(" AND ".join(f"x{i} = 1" for i in range(50))))
    few.check_tree(tree("((a + 1) + 1)"))
    with pytest.raises(UnsupportedSqlError, match="nested more than 6 deep"):
        few.check_tree(tree("a" + " + 1" * 8))


def test_words_are_counted() -> None:
    few = replace(QUERIES, words=3)
    few.check_tokens(list(sqlglot.tokenize("a b c")))
    with pytest.raises(UnsupportedSqlError, match="4 words and signs"):
        few.check_tokens(list(sqlglot.tokenize("a b c d")))
