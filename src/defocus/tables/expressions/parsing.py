"""Text into a tree, within limits: hostile text ends quickly, in a refusal that says what to write instead."""

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.expressions.refusals import nested_value

__all__ = ["MOST_CHARACTERS", "MOST_LEVELS", "parsed", "refuse_deep", "refuse_unwritable"]

MOST_CHARACTERS = 100_000
MOST_LEVELS = 64
_OPENING = {TokenType.L_PAREN, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.END}
_NESTED = {TokenType.L_BRACKET, TokenType.L_BRACE}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.PARAMETER, TokenType.INTERVAL}


def parsed(text: str) -> exp.Expression:
    """The tree of one expression.

    >>> parsed("age >= 18").key
    'gte'
    """
    if not isinstance(text, str):
        raise InvalidParameterError(
            f"An expression must be text, but it is a {type(text).__name__}.", fix="write for example 'age >= 18'."
        )
    if len(text) > MOST_CHARACTERS:
        raise UnsupportedSqlError(
            f"An expression of {len(text)} characters",
            why=f"at most {MOST_CHARACTERS} are read",
            fix="write it shorter; join with a public table instead of listing very many values.",
        )
    refuse_unwritable("An expression", text)
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


def refuse_unwritable(what: str, text: str) -> None:
    """Refuse characters that engines cut off or cannot store: NUL and lone surrogates."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidParameterError(
            f"{what} holds a NUL character or half a surrogate pair.", fix="remove it: no engine can store it."
        )


def refuse_deep(tree: exp.Expression) -> None:
    """Refuse a tree of too many levels. A chain of ANDs or of ORs is one level."""
    open_nodes: list[tuple[exp.Expression, int]] = [(tree, 0)]
    while open_nodes:
        node, level = open_nodes.pop()
        if level > MOST_LEVELS:
            raise _too_deep()
        for child in node.iter_expressions():
            chained = isinstance(node, exp.And | exp.Or) and type(child) is type(node)
            open_nodes.append((child, level if chained else level + 1))


def _check(text: str, tokens: list[Token]) -> None:
    """Refuse comments, a second statement and deep nesting before anything recursive looks at the text."""
    level = prefixes = 0
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
        prefixes = prefixes + 1 if token.token_type in _PREFIX else 0
        level += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if max(level, prefixes) > MOST_LEVELS:
            raise _too_deep()
    if not tokens and text.strip():
        raise UnsupportedSqlError("A comment", why="there is nothing else in the text", fix="write an expression.")


def _too_deep() -> UnsupportedSqlError:
    return UnsupportedSqlError(
        f"An expression nested more than {MOST_LEVELS} deep",
        why="engines differ in how much nesting they bear",
        fix="name its parts with derive(), or write a long list with IN.",
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _place(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if not details or not details[0].get("line"):
        return ""
    near = str(details[0].get("highlight") or "")[:40]
    return f", near {near!r}" if near else f", at character {details[0].get('col')}"
