"""Text into a tree, within limits: hostile text ends quickly, in a refusal that says what to write instead."""

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.expressions.limits import EXPRESSIONS
from defocus.tables.expressions.refusals import nested_value

__all__ = ["parsed"]

_NESTED = {TokenType.L_BRACKET, TokenType.L_BRACE}


def parsed(text: str) -> exp.Expression:
    """The tree of one expression.

    >>> parsed("age >= 18").key
    'gte'
    """
    if not isinstance(text, str):
        raise InvalidParameterError(
            f"An expression must be text, but it is a {type(text).__name__}.", fix="write for example 'age >= 18'."
        )
    EXPRESSIONS.check_text(text)
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
        _check(text, tokens)
        trees = sqlglot.parse(text, read="duckdb")
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, IndexError) as error:
        if isinstance(error, InvalidParameterError):
            raise
        raise InvalidParameterError(
            f"The expression {_short(text)} cannot be read{_place(error)}.",
            fix="write one SQL expression, for example age >= 18 AND ward = 'A'; names with spaces go in double"
            " quotes, text in single quotes.",
        ) from None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Expression):
        raise InvalidParameterError("The expression is empty.", fix="write for example age >= 18.")
    return tree


def _check(text: str, tokens: list[Token]) -> None:
    """Refuse comments, a second statement and deep nesting before anything recursive looks at the text."""
    for token in tokens:
        if token.comments:
            raise UnsupportedSqlError(
                "A comment", why="it may hide a part of the expression from its reader", fix="remove the comment."
            )
        if token.token_type is TokenType.SEMICOLON:
            raise UnsupportedSqlError(
                "A semicolon", why="there is one expression, not several statements", fix="remove what follows it."
            )
        if token.token_type in _NESTED:
            raise nested_value()
    EXPRESSIONS.check_tokens(tokens)
    if not tokens and text.strip():
        raise UnsupportedSqlError("A comment", why="there is nothing else in the text", fix="write an expression.")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _place(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if not details or not details[0].get("line"):
        return ""
    near = str(details[0].get("highlight") or "")[:40]
    return f", near {near!r}" if near else f", at character {details[0].get('col')}"
