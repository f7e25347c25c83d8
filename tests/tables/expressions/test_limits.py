from dataclasses import replace

import pytest
import sqlglot
from sqlglot import exp

from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.expressions.limits import EXPRESSIONS, QUERIES, Limits

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
