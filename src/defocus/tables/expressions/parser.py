"""The parser of expressions, with limits on their length and depth, and what they may not hold.

Hostile text ends quickly, before anything recursive looks at it. A refusal says what, why, and what to write instead.
"""

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from defocus.errors import InvalidParameterError, UnsupportedSqlError

__all__ = [
    "EXPRESSIONS",
    "QUERIES",
    "Limits",
    "at",
    "called",
    "noted",
    "only",
    "parsed",
    "refusal",
    "refuse_unwritable",
]


_CLOCK = (
    "its value depends on when or how often it is asked, not on the row",
    "write a constant, for example DATE '2024-01-31'.",
)
_NESTED = ("only numbers, text, dates and truth values are read", "take the value out before the table is opened.")
_ONE_ROW = "an expression is about one row, and this looks at others"
_BYTES = ("its meaning differs between engines", "write plain text in single quotes, doubling each quote within.")
_PATTERN = ("patterns differ between engines", "use LIKE or ILIKE with a constant pattern, or CONTAINS(x, '...').")
_NAMES = (
    "CASE WHEN, CAST, COALESCE, NULLIF, LEAST, GREATEST, IF, ABS, ROUND, FLOOR, CEIL, SQRT, LN, LOG10, EXP, POWER,"
    " SIGN, MOD, TRUNC, BUCKET, LOWER, UPPER, TRIM, LTRIM, RTRIM, LENGTH, SUBSTRING, CONCAT, REPLACE, LEFT, RIGHT,"
    " STARTS_WITH, ENDS_WITH, CONTAINS, POSITION, YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND, EXTRACT,"
    " DATE_TRUNC, DATE_DIFF, DATE_ADD, LAST_DAY, STRFTIME, MONTHNAME, DAYNAME"
)

_CONSTRUCTS: tuple[tuple[tuple[type[Any], ...], str, str, str], ...] = (
    (
        (exp.Query, exp.Exists, exp.SetOperation),
        "A sub-query",
        _ONE_ROW,
        "join first, or write the values as constants: x IN (1, 2).",
    ),
    (
        (exp.Window, exp.WithinGroup),
        "A window function",
        _ONE_ROW,
        "aggregate with group_by(...).agg(...); a window over one person's rows is a column of its own: derive(...).",
    ),
    (
        (exp.Filter, exp.AggFunc),
        "An aggregate",
        _ONE_ROW,
        "use agg(), for example agg(n=dp.count()), and where() for its filter.",
    ),
    (
        (
            exp.Rand,
            exp.Uuid,
            exp.CurrentDate,
            exp.CurrentTime,
            exp.CurrentTimestamp,
            exp.CurrentDatetime,
            exp.CurrentUser,
            exp.Localtime,
            exp.Localtimestamp,
        ),
        "A function of the clock, of chance or of the session",
        *_CLOCK,
    ),
    ((exp.Star, exp.Columns), "A star", "an expression has one value", "name the columns."),
    (
        (exp.Placeholder, exp.Parameter, exp.SessionParameter, exp.PositionalColumn),
        "A parameter",
        "there is nothing to fill it in",
        "write the value, or the name of the column.",
    ),
    (
        (exp.Bracket, exp.Dot, exp.Struct, exp.Array, exp.Map, exp.JSONExtract, exp.JSONExtractScalar),
        "A list, struct or JSON value",
        *_NESTED,
    ),
    (
        (exp.Tuple,),
        "Several values in brackets",
        "values are compared one by one",
        "write a = 1 AND b = 2 OR a = 3 AND b = 4 for (a, b) IN ((1, 2), (3, 4)).",
    ),
    ((exp.Lambda, exp.Kwarg), "A lambda or a named argument", "functions take values here", "write the values."),
    ((exp.Collate,), "A collation", "text is compared by its bytes", "compare LOWER(x) with a lower-case constant."),
    ((exp.Interval,), "An interval alone", "it is added to a date", "write d + INTERVAL 1 DAY, say."),
    ((exp.AtTimeZone,), "A time zone", "moments are read in UTC", "convert the column before the table is opened."),
    ((exp.RegexpLike, exp.SimilarTo, exp.Glob), "A regular expression or GLOB", *_PATTERN),
    ((exp.ByteString, exp.RawString, exp.National, exp.HexString, exp.BitString), "A special literal", *_BYTES),
    ((exp.Alias, exp.PropertyEQ), "An alias", "an expression has no name", "name it in derive(name=...)."),
    ((exp.DDL, exp.DML, exp.Command, exp.Drop), "A statement", "only expressions are read", "write age >= 18, say."),
    ((exp.Lateral, exp.Unnest, exp.Explode), "LATERAL or UNNEST", "one row would become several", "do so beforehand."),
)
_CLOCK_NAMES = {
    "now", "random", "rand", "setseed", "today", "current_date", "current_time", "current_timestamp", "uuid",
    "gen_random_uuid", "get_current_timestamp", "get_current_time", "transaction_timestamp", "current_user",
    "current_setting", "nextval", "currval", "txid_current", "clock_timestamp", "sysdate", "getdate",
}  # fmt: skip
_AGGREGATE_NAMES = {"avg", "count_if", "countif", "mean", "product", "list", "string_agg", "first", "last", "any_value"}


def only(node: exp.Expression, *names: str) -> None:
    """Refuse a node that carries more than the arguments that were understood."""
    for name, value in node.args.items():
        if name not in names and value not in (None, False, []):
            raise UnsupportedSqlError(
                f"{called(node)} with {name.upper().replace('_', ' ')}",
                why="this form of it is not understood",
                fix=f"leave out {name.replace('_', ' ')}.",
            )


def refusal(node: exp.Expression) -> UnsupportedSqlError:
    """Why a node is not allowed, and what to do."""
    name = called(node)
    if name.lower() in _CLOCK_NAMES:
        return UnsupportedSqlError(f"The function {name.upper()}", why=_CLOCK[0], fix=_CLOCK[1])
    if name.lower() in _AGGREGATE_NAMES or isinstance(node, exp.AggFunc):
        return UnsupportedSqlError(
            f"The aggregate {name.upper()}", why=_ONE_ROW, fix="use agg(), as in agg(n=dp.count())."
        )
    for kinds, construct, why, fix in _CONSTRUCTS:
        if isinstance(node, kinds):
            return UnsupportedSqlError(construct, why=why, fix=fix)
    every = f"the functions are {_NAMES}."
    if not isinstance(node, exp.Func):
        return UnsupportedSqlError(
            f"The construct {name}", why="it is not among what every engine does alike", fix=every
        )
    near = difflib.get_close_matches(name.upper()[:40], _NAMES.split(", "), n=1)
    return UnsupportedSqlError(
        f"The function {name[:40].upper()}",
        why="it is not among those that every engine computes alike",
        fix=f"did you mean {near[0]}? {every}" if near else every,
    )


def called(node: exp.Expr) -> str:
    """What the user wrote for a function, where the parser has another word for it."""
    if isinstance(node, exp.Anonymous):
        return str(node.name)[:40]
    if isinstance(node, exp.GroupConcat):
        return "STRING_AGG"
    if "written" in node.meta or not isinstance(node, exp.Func):
        return str(node.meta.get("written") or node.key).upper()
    spelled = node.sql("duckdb", unsupported_level=ErrorLevel.IGNORE).partition("(")[0]
    return (spelled if spelled.isidentifier() else node.sql_name()).upper()


def noted(tree: exp.Expression, text: str, *, spans: bool = False) -> None:
    """Note at each function how it was written, and with ``spans`` at each node where it stands in the text."""
    for node in tree.walk():
        start, end = node.meta.get("start"), node.meta.get("end")
        if start is None or end is None:
            continue
        if isinstance(node, exp.Func):
            node.meta["written"] = text[start : end + 1]
        if spans:
            node.meta["span"] = (start, end + 1)


@contextmanager
def at(node: exp.Expr) -> Iterator[None]:
    """Whatever is refused inside is about this node, unless it is known to be about a part of it."""
    try:
        yield
    except InvalidParameterError as problem:
        spans = [part.meta["span"] for part in node.walk() if "span" in part.meta]
        if problem.span is None and problem.word is None and spans:
            problem.span = min(start for start, _ in spans), max(end for _, end in spans)
        elif problem.span is None and problem.word is None and isinstance(node, exp.Func):
            problem.word = called(node)
        raise


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


_BRACKETS = {TokenType.L_BRACKET, TokenType.L_BRACE}


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
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        raise InvalidParameterError(
            f"The expression {shown!r} cannot be read{_place(error)}.",
            fix="write one SQL expression, for example age >= 18 AND ward = 'A'; names with spaces or hyphens go in"
            " double quotes, text in single quotes.",
        ) from None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Expression):
        raise InvalidParameterError("The expression is empty.", fix="write for example age >= 18.")
    noted(tree, text)
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
        if token.token_type in _BRACKETS:
            raise UnsupportedSqlError("A list, struct or JSON value", why=_NESTED[0], fix=_NESTED[1])
    EXPRESSIONS.check_tokens(tokens)
    if not tokens and text.strip():
        raise UnsupportedSqlError("A comment", why="there is nothing else in the text", fix="write an expression.")


def _place(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if not details or not details[0].get("line"):
        return ""
    near = str(details[0].get("highlight") or "")[:40]
    return f", near {near!r}" if near else f", at character {details[0].get('col')}"
