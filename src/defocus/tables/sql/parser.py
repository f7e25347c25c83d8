"""From text to one SELECT, within limits. What the rest of the room does not know is refused here, by its name."""

from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel
from sqlglot.tokenizer_core import Token, TokenType

from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.expressions.parser import QUERIES
from defocus.tables.sql.refusals import refuse_constructs, statement_refusal

__all__ = ["DIALECT", "canonical", "select", "written"]

DIALECT = "duckdb"
"""The dialect that everything is brought into before it is understood."""
_STARTS = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN}


def select(text: object, dialect: object = DIALECT) -> exp.Select:
    """The tree of one SELECT statement, in the dialect of DuckDB, whatever dialect it was written in.

    >>> select("SELECT COUNT(*) FROM visits;").key
    'select'
    """
    language = _dialect(dialect)
    if not isinstance(text, str):
        raise InvalidParameterError(
            f"A query must be text, but it is a {type(text).__name__}.", fix="write SELECT COUNT(*) FROM …"
        )
    QUERIES.check_text(text)
    _check_tokens(_tokens(text, language))
    tree = _tree(text, language)
    if language != DIALECT:
        tree = _tree(_translated(tree), DIALECT)
    return tree


def canonical(node: exp.Expression) -> str:
    """A tree as one line of text."""
    return " ".join(written(node).split())


def written(node: exp.Expression) -> str:
    """A tree as text in the dialect that everything is brought into."""
    return str(node.sql(DIALECT, comments=False, unsupported_level=ErrorLevel.IGNORE))


def _dialect(dialect: object) -> str:
    dialects = sorted(name for name in Dialect.classes if name)
    if not isinstance(dialect, str) or dialect.lower() not in dialects:
        raise InvalidParameterError(
            f"There is no dialect {dialect!r:.40} of SQL.", fix=f"choose one of {', '.join(dialects)}."
        )
    return dialect.lower()


def _tokens(text: str, dialect: str) -> list[Token]:
    try:
        return list(sqlglot.tokenize(text, read=dialect))
    except Exception:  # noqa: BLE001  # whatever hostile text does to the tokenizer, it ends in a refusal
        raise _unreadable(text) from None


def _check_tokens(tokens: list[Token]) -> None:
    """Refuse other statements, a second statement and deep nesting before anything recursive looks at the text."""
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens = tokens[:-1]
    if not tokens:
        raise InvalidParameterError("The query is empty.", fix="write SELECT COUNT(*) FROM …")
    if tokens[0].token_type not in _STARTS:
        raise statement_refusal(tokens[0].text)
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise UnsupportedSqlError("A second statement", why="one query is one release", fix="ask one SELECT at a time.")
    QUERIES.check_tokens(tokens)


def _tree(text: str, dialect: str) -> exp.Select:
    try:
        trees = [tree for tree in sqlglot.parse(text, read=dialect) if not _nothing(tree)]
    except Exception:  # noqa: BLE001  # whatever hostile text does to the parser, it ends in a refusal
        raise _unreadable(text) from None
    if len(trees) > 1:
        raise UnsupportedSqlError("A second statement", why="one query is one release", fix="ask one SELECT at a time.")
    tree: Any = trees[0] if trees else None
    while isinstance(tree, exp.Subquery) and set(_given(tree)) == {"this"}:
        tree = tree.this
    if not isinstance(tree, exp.Expression):
        raise InvalidParameterError("The query is empty.", fix="write SELECT COUNT(*) FROM …")
    QUERIES.check_tree(tree)
    refuse_constructs(tree)
    if not isinstance(tree, exp.Select):
        raise statement_refusal(str(tree.key))
    return tree


def _nothing(tree: object) -> bool:
    return tree is None or isinstance(tree, exp.Semicolon)


def _given(node: exp.Expression) -> list[str]:
    return [name for name, value in node.args.items() if value not in (None, False, [])]


def _translated(tree: exp.Select) -> str:
    """The tree as DuckDB writes it."""
    try:
        return str(tree.sql(DIALECT, comments=False, unsupported_level=ErrorLevel.RAISE))
    except Exception:  # noqa: BLE001  # what the translator cannot do is refused, however it fails
        raise UnsupportedSqlError(
            "Something in this query",
            why="it has no counterpart in DuckDB's SQL",
            fix='write the query in the dialect "duckdb".',
        ) from None


def _unreadable(text: str) -> InvalidParameterError:
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return InvalidParameterError(
        f"The query {shown!r} cannot be read.",
        fix="write one SELECT, for example SELECT ward, COUNT(*) FROM visits GROUP BY ward; names with spaces or"
        " hyphens go in double quotes, text in single quotes.",
    )
