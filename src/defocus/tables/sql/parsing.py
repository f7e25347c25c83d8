"""From text to one SELECT, within limits. What the rest of the room does not know is refused here, by its name."""

from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel
from sqlglot.tokenizer_core import Token, TokenType

from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.expressions.parsing import refuse_unwritable
from defocus.tables.sql.refusals import refuse_constructs, statement_refusal

__all__ = ["DIALECT", "canonical", "select", "written"]

DIALECT = "duckdb"
"""The dialect that everything is brought into before it is understood."""
_MOST_CHARACTERS = 100_000
_MOST_TOKENS = 20_000
_MOST_LEVELS = 100
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.PARAMETER, TokenType.INTERVAL}
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
    if len(text) > _MOST_CHARACTERS:
        raise UnsupportedSqlError(
            f"A query of {len(text)} characters",
            why=f"at most {_MOST_CHARACTERS} are read",
            fix="join with a public table instead of listing very many values.",
        )
    refuse_unwritable("A query", text)
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
    known = sorted(name for name in Dialect.classes if name)
    if not isinstance(dialect, str) or dialect.lower() not in known:
        raise InvalidParameterError(
            f"There is no dialect {dialect!r:.40} of SQL.", fix=f"choose one of {', '.join(known)}."
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
    if len(tokens) > _MOST_TOKENS:
        raise UnsupportedSqlError(
            f"A query of {len(tokens)} words and signs",
            why=f"at most {_MOST_TOKENS} are read",
            fix="join with a public table instead of listing very many values.",
        )
    level = prefixes = 0
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise UnsupportedSqlError(
                "A second statement", why="one query is one release", fix="ask one SELECT at a time."
            )
        prefixes = prefixes + 1 if token.token_type in _PREFIXES else 0
        level += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if max(level, prefixes) > _MOST_LEVELS:
            raise _too_deep()


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
    _check_depth(tree)
    refuse_constructs(tree)
    if not isinstance(tree, exp.Select):
        raise statement_refusal(str(tree.key))
    return tree


def _nothing(tree: object) -> bool:
    return tree is None or isinstance(tree, exp.Semicolon)


def _given(node: exp.Expression) -> list[str]:
    return [name for name, value in node.args.items() if value not in (None, False, [])]


def _check_depth(tree: exp.Expression) -> None:
    """A chain of ANDs or of ORs is one level."""
    waiting: list[tuple[exp.Expression, int]] = [(tree, 0)]
    while waiting:
        node, level = waiting.pop()
        if level > _MOST_LEVELS:
            raise _too_deep()
        for child in node.iter_expressions():
            chained = isinstance(node, exp.And | exp.Or) and type(child) is type(node)
            waiting.append((child, level if chained else level + 1))


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


def _too_deep() -> UnsupportedSqlError:
    return UnsupportedSqlError(
        f"A query nested more than {_MOST_LEVELS} deep",
        why="engines differ in how much nesting they bear",
        fix="name parts of it in a WITH clause.",
    )


def _unreadable(text: str) -> InvalidParameterError:
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return InvalidParameterError(
        f"The query {shown!r} cannot be read.",
        fix="write one SELECT, for example SELECT ward, COUNT(*) FROM visits GROUP BY ward; names with spaces go in"
        " double quotes, text in single quotes.",
    )
