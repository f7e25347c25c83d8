"""What an expression may not hold, by name, why, and what to write instead."""

import difflib
from typing import Any

from sqlglot import exp

from defocus.errors import UnsupportedSqlError

__all__ = ["nested_value", "only", "refusal"]

_CLOCK = (
    "its value depends on when or how often it is asked, not on the row",
    "write a constant, for example DATE '2024-01-31'.",
)
_NESTED = ("only numbers, text, dates and truth values are read", "take the value out before the table is opened.")
_ONE_ROW = "an expression is about one row, and this looks at others"
_BYTES = ("its meaning differs between engines", "write plain text in single quotes, doubling each quote within.")
_PATTERN = ("patterns differ between engines", "use LIKE with a constant pattern, or LOWER(x) LIKE '...'.")
_NAMES = (
    "CASE WHEN, CAST, COALESCE, NULLIF, LEAST, GREATEST, IF, ABS, ROUND, FLOOR, CEIL, SQRT, LN, LOG10, EXP, POWER,"
    " SIGN, MOD, BUCKET, LOWER, UPPER, TRIM, LTRIM, RTRIM, LENGTH, SUBSTRING, CONCAT, REPLACE, LEFT, RIGHT,"
    " STARTS_WITH, YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND, EXTRACT, DATE_TRUNC, DATE_DIFF"
)

_CONSTRUCTS: tuple[tuple[tuple[type[Any], ...], str, str, str], ...] = (
    (
        (exp.Query, exp.Exists, exp.SetOperation),
        "A sub-query",
        _ONE_ROW,
        "join first, or write the values as constants: x IN (1, 2).",
    ),
    ((exp.Window, exp.WithinGroup), "A window function", _ONE_ROW, "aggregate with group_by(...).agg(...)."),
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
        (exp.Bracket, exp.Dot, exp.Struct, exp.Array, exp.Map, exp.JSONExtract, exp.JSONExtractScalar, exp.Tuple),
        "A list, struct or JSON value",
        *_NESTED,
    ),
    ((exp.Lambda, exp.Kwarg), "A lambda or a named argument", "functions take values here", "write the values."),
    ((exp.Collate,), "A collation", "text is compared by its bytes", "compare LOWER(x) with a lower-case constant."),
    ((exp.Interval,), "An interval", "engines add intervals differently", "use DATE_DIFF('day', a, b) and a constant."),
    ((exp.AtTimeZone,), "A time zone", "moments are read in UTC", "convert the column before the table is opened."),
    ((exp.RegexpLike, exp.SimilarTo, exp.Glob, exp.ILike), "A regular expression, GLOB or ILIKE", *_PATTERN),
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
                f"{_called(node)} with {name.upper().replace('_', ' ')}",
                why="this form of it is not understood",
                fix=f"leave out {name.replace('_', ' ')}.",
            )


def nested_value() -> UnsupportedSqlError:
    """The refusal of lists and structs, and of fields of them."""
    return UnsupportedSqlError("A list, struct or JSON value", why=_NESTED[0], fix=_NESTED[1])


def refusal(node: exp.Expression) -> UnsupportedSqlError:
    """Why a node is not allowed, and what to do."""
    name = node.name if isinstance(node, exp.Anonymous) else _called(node)
    if name.lower() in _CLOCK_NAMES:
        return UnsupportedSqlError(f"The function {name.upper()}", why=_CLOCK[0], fix=_CLOCK[1])
    if name.lower() in _AGGREGATE_NAMES or isinstance(node, exp.AggFunc):
        return UnsupportedSqlError(
            f"The aggregate {name.upper()}", why=_ONE_ROW, fix="use agg(), as in agg(n=dp.count())."
        )
    for kinds, construct, why, fix in _CONSTRUCTS:
        if isinstance(node, kinds):
            return UnsupportedSqlError(construct, why=why, fix=fix)
    if isinstance(node, exp.Func):
        return _unknown(name)
    return UnsupportedSqlError(f"The construct {name}", why="it is not among what every engine does alike", fix=_all())


def _unknown(name: str) -> UnsupportedSqlError:
    near = difflib.get_close_matches(name.upper()[:40], _NAMES.split(", "), n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return UnsupportedSqlError(
        f"The function {name[:40].upper()}",
        why="it is not among those that every engine computes alike",
        fix=hint + _all(),
    )


def _all() -> str:
    return f"the functions are {_NAMES}."


def _called(node: exp.Expression) -> str:
    return node.sql_name() if isinstance(node, exp.Func) else str(node.key).upper()
