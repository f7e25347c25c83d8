"""The parser of expressions, with limits on their length and depth.

How long and how deep a text may be: hostile text ends quickly, before anything recursive looks at it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.expressions.refusals import nested_value

__all__ = ["EXPRESSIONS", "QUERIES", "Limits", "parsed", "refuse_unwritable"]


_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.PARAMETER, TokenType.INTERVAL}


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """What one kind of text may be like."""

    what: str
    """What it is called at the beginning of a refusal."""
    levels: int
    """How deep it may be nested."""
    shorter: str
    """How to write it shorter."""
    flatter: str
    """How to write it with less nesting."""
    characters: int = 100_000
    words: int = 100_000
    """How many words and signs there may be."""

    def check_text(self, text: str) -> None:
        """Refuse a text that is too long, or that no engine can store."""
        if len(text) > self.characters:
            raise UnsupportedSqlError(
                f"{self.what} of {len(text)} characters", why=f"at most {self.characters} are read", fix=self.shorter
            )
        refuse_unwritable(self.what, text)

    def check_tokens(self, tokens: Sequence[Token]) -> None:
        """Refuse too many words, and deep nesting."""
        if len(tokens) > self.words:
            raise UnsupportedSqlError(
                f"{self.what} of {len(tokens)} words and signs", why=f"at most {self.words} are read", fix=self.shorter
            )
        level = prefixes = 0
        for token in tokens:
            prefixes = prefixes + 1 if token.token_type in _PREFIXES else 0
            level += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            if max(level, prefixes) > self.levels:
                raise self._too_deep()

    def check_tree(self, tree: exp.Expression) -> None:
        """Refuse a tree of too many levels, without recursion. A chain of ANDs or of ORs is one level."""
        waiting: list[tuple[exp.Expression, int]] = [(tree, 0)]
        while waiting:
            node, level = waiting.pop()
            if level > self.levels:
                raise self._too_deep()
            for child in node.iter_expressions():
                chained = isinstance(node, exp.And | exp.Or) and type(child) is type(node)
                waiting.append((child, level if chained else level + 1))

    def _too_deep(self) -> UnsupportedSqlError:
        return UnsupportedSqlError(
            f"{self.what} nested more than {self.levels} deep",
            why="engines differ in how much nesting they bear",
            fix=self.flatter,
        )


EXPRESSIONS = Limits(
    what="An expression",
    levels=64,
    shorter="write it shorter; join with a public table instead of listing very many values.",
    flatter="name its parts with derive(), or write a long list with IN.",
)
QUERIES = Limits(
    what="A query",
    levels=100,
    shorter="join with a public table instead of listing very many values.",
    flatter="name parts of it in a WITH clause.",
    words=20_000,
)


def refuse_unwritable(what: str, text: str) -> None:
    """Refuse characters that engines cut off or cannot store: NUL and lone surrogates."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidParameterError(
            f"{what} holds a NUL character or half a surrogate pair.", fix="remove it: no engine can store it."
        )


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
            fix="write one SQL expression, for example age >= 18 AND ward = 'A'; names with spaces or hyphens go in"
            " double quotes, text in single quotes.",
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
