"""Casts between kinds. One that fails on a row gives NULL there."""

from collections.abc import Callable
from functools import partial

from sqlglot import exp

from defocus.engines.schema import Kind
from defocus.errors import UnsupportedSqlError, WrongKindError
from defocus.tables.expressions.guards import attempt, cast, double, in_calendar, integer, kept, settled
from defocus.tables.expressions.operators import Handler, Read
from defocus.tables.expressions.parser import only
from defocus.tables.expressions.terms import Term, made, moment, of
from defocus.tables.expressions.texts import as_text

__all__ = ["CASTS"]

_DType = exp.DataType.Type
_KINDS = {
    _DType.BOOLEAN: Kind.BOOLEAN,
    **dict.fromkeys((_DType.TINYINT, _DType.SMALLINT, _DType.INT, _DType.BIGINT), Kind.INTEGER),
    **dict.fromkeys((_DType.FLOAT, _DType.DOUBLE, _DType.DECIMAL), Kind.NUMBER),
    **dict.fromkeys((_DType.TEXT, _DType.VARCHAR), Kind.TEXT),
    _DType.DATE: Kind.DATE,
    **dict.fromkeys((_DType.TIMESTAMP, _DType.TIMESTAMPNTZ, _DType.DATETIME), Kind.TIMESTAMP),
}


def _cast(node: exp.Expression, read: Read) -> Term:
    """CAST, TRY_CAST, ``::`` and the literals DATE '...' and TIMESTAMP '...'."""
    only(node, "this", "to", "safe")
    x, to = read(node.this), node.args["to"]
    if to.this is _DType.DECIMAL and to.expressions and x.kind in {None, Kind.INTEGER, Kind.NUMBER}:
        return _decimal(to, x)
    kind = _wanted(to)
    if x.kind is None:
        return of(None, kind)
    if x.kind is kind:
        return x
    ways = _WAYS.get((x.kind, kind))
    if ways is None:
        raise WrongKindError(f"A cast from {x.kind} to {kind} differs between engines.", fix=_remedy(x.kind, kind))
    return ways(x)


def _decimal(to: exp.DataType, x: Term) -> Term:
    """A number rounded to so many digits behind the point, and NULL where it has too many before it."""
    size = [part.name for part in to.expressions]
    if not all(one.isdecimal() for one in size) or len(size) > 2:
        raise _unknown(to)
    width, digits = int(size[0]), int(size[1]) if len(size) > 1 else 0
    if not 0 <= digits <= min(width, 15) or not 1 <= width <= 38:
        raise _unknown(to)
    number = settled(of(None, Kind.NUMBER) if x.kind is None else double(x))
    places = {"decimals": of(digits, Kind.INTEGER).sql} if digits else {}
    rounded = made(Kind.NUMBER, exp.Round(this=number.sql, **places), number, infinite=number.infinite)
    limit = of(10.0 ** (width - digits), Kind.NUMBER)
    return kept(rounded, exp.LT(this=exp.Abs(this=rounded.sql.copy()), expression=limit.sql))


def _day(x: Term) -> Term:
    return moment(x.value, Kind.DATE) if isinstance(x.value, str) else in_calendar(attempt(x, Kind.DATE))


def _time(x: Term) -> Term:
    return moment(x.value, Kind.TIMESTAMP) if isinstance(x.value, str) else in_calendar(attempt(x, Kind.TIMESTAMP))


def _nonzero(x: Term) -> Term:
    return made(Kind.BOOLEAN, exp.NEQ(this=exp.Paren(this=x.sql), expression=exp.Literal.number(0)), x)


def _zero_or_one(x: Term) -> Term:
    small = exp.Cast(this=x.sql, to=exp.DataType(this=_DType.INT, nested=False))
    return cast(made(Kind.INTEGER, small, x), Kind.INTEGER)


_WAYS: dict[tuple[Kind, Kind], Callable[[Term], Term]] = {
    (Kind.TEXT, Kind.DATE): _day,
    (Kind.TEXT, Kind.TIMESTAMP): _time,
    (Kind.TEXT, Kind.INTEGER): partial(attempt, kind=Kind.INTEGER),
    (Kind.TEXT, Kind.NUMBER): partial(attempt, kind=Kind.NUMBER),
    (Kind.INTEGER, Kind.NUMBER): double,
    (Kind.NUMBER, Kind.INTEGER): integer,
    (Kind.INTEGER, Kind.BOOLEAN): _nonzero,
    (Kind.BOOLEAN, Kind.INTEGER): _zero_or_one,
    (Kind.DATE, Kind.TIMESTAMP): partial(cast, kind=Kind.TIMESTAMP),
    (Kind.TIMESTAMP, Kind.DATE): partial(cast, kind=Kind.DATE),
    **{(kind, Kind.TEXT): as_text for kind in (Kind.INTEGER, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP)},
}


def _wanted(to: exp.DataType) -> Kind:
    kind = _KINDS.get(to.this)
    if kind is None or to.expressions or to.args.get("nested"):
        raise _unknown(to)
    return kind


def _unknown(to: exp.DataType) -> UnsupportedSqlError:
    return UnsupportedSqlError(
        f"A cast to {to.sql('duckdb')[:40]}",
        why="values are read as six kinds, without lengths",
        fix="cast to BOOLEAN, BIGINT, DOUBLE, DECIMAL(10, 2), TEXT, DATE or TIMESTAMP; LEFT(x, 10) shortens.",
    )


def _remedy(given: Kind, wanted: Kind) -> str:
    if wanted is Kind.BOOLEAN:
        return "compare instead: x = 'true', or x <> 0."
    if given is Kind.NUMBER and wanted is Kind.TEXT:
        return "cast to BIGINT first, or use BUCKET(x, 0.5) as a number."
    return "use EXTRACT(year FROM x) or DATE_DIFF('day', DATE '2000-01-01', x)."


CASTS: dict[type[exp.Expression], Handler] = {exp.Cast: _cast, exp.TryCast: _cast}
