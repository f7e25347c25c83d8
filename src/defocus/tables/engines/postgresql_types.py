"""What PostgreSQL's types hold, and how a column comes into the one type its kind has everywhere, whatever is in it."""

from dataclasses import dataclass
from typing import final

from sqlglot import exp

from defocus.errors import SourceError
from defocus.tables.engines.postgresql_texts import decimal_to_float, decimal_to_integer
from defocus.tables.engines.templates import fill, native
from defocus.tables.kinds import Kind

__all__ = ["CANONICAL", "Typed", "convert"]

CANONICAL = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.TEXT: "TEXT",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
"""The one type of each kind."""
_NUMERIC, _ZONED = "numeric", "timestamptz"
_KINDS = {
    "bool": Kind.BOOLEAN,
    **dict.fromkeys(("int2", "int4", "int8"), Kind.INTEGER),
    **dict.fromkeys(("float4", "float8", _NUMERIC), Kind.NUMBER),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid"), Kind.TEXT),
    "date": Kind.DATE,
    **dict.fromkeys(("timestamp", _ZONED), Kind.TIMESTAMP),
}
_WRITTEN = (Kind.INTEGER, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP)
"""Kinds whose text is the same in every engine."""
_WAYS = {
    *((Kind.TEXT, kind) for kind in CANONICAL),
    *((kind, Kind.TEXT) for kind in _WRITTEN),
    (Kind.NUMBER, Kind.INTEGER),
    (Kind.INTEGER, Kind.NUMBER),
    (Kind.DATE, Kind.TIMESTAMP),
    (Kind.TIMESTAMP, Kind.DATE),
}
"""From which kind to which a column can be declared."""


@final
@dataclass(frozen=True, slots=True)
class Typed:
    """The type of a column: its name in the catalogue, its category there, and how many decimals it keeps."""

    name: str
    category: str = ""
    scale: int | None = None

    @property
    def kind(self) -> Kind:
        """What it holds. Domains are what they are made of, enumerations and other strings are text."""
        if self.name == _NUMERIC and self.scale == 0:
            return Kind.INTEGER
        return _KINDS.get(self.name, Kind.TEXT if self.category in {"E", "S"} else Kind.OTHER)


def convert(name: str, type_: Typed, kind: Kind) -> exp.Expression:
    """A column in the type of its kind, under its own name.

    Guarantee:
        Total: a value that the type cannot hold is NULL, and a decimal number beyond the floats is infinite or 0.
        Dates and moments outside the years 1 to 9999, and the infinite ones, are NULL.
    """
    quoted = exp.to_identifier(name, quoted=True)
    made: exp.Expression = exp.Column(this=quoted)
    own = type_.kind
    if Kind.OTHER not in {kind, own}:
        made = _canonical(made, type_)
        if kind is not own:
            made = _declared(made, name, own, kind)
    return exp.Alias(this=made, alias=quoted.copy())


def _canonical(column: exp.Expression, type_: Typed) -> exp.Expression:
    kind = type_.kind
    if type_.name == _NUMERIC:
        exact = native(decimal_to_integer(column) if kind is Kind.INTEGER else decimal_to_float(column))
        return _as(exact, kind)
    if type_.name == _ZONED:
        column = native(fill("a AT TIME ZONE 'UTC'", a=column))
    return _within(_as(column, kind), kind)


def _declared(value: exp.Expression, name: str, own: Kind, kind: Kind) -> exp.Expression:
    if (own, kind) not in _WAYS:
        raise SourceError(
            f"{name!r:.60} holds values of kind {own}, which cannot be read as {kind} alike in every engine.",
            fix="declare another kind, or make a view of the table with a column of that kind.",
        )
    sure = own is not Kind.TEXT and kind is not Kind.INTEGER
    to = exp.DataType.build(CANONICAL[kind])
    return _within(exp.Cast(this=value, to=to) if sure else exp.TryCast(this=value, to=to), kind)


def _as(value: exp.Expression, kind: Kind) -> exp.Expression:
    return exp.Cast(this=value, to=exp.DataType.build(CANONICAL[kind]))


def _within(value: exp.Expression, kind: Kind) -> exp.Expression:
    """A date or moment, if it lies in the years 1 to 9999; anything else as it is."""
    if kind not in {Kind.DATE, Kind.TIMESTAMP}:
        return value
    ends = ("0001-01-01", "9999-12-31") if kind is Kind.DATE else ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")
    low, high = (_as(exp.Literal.string(end), kind) for end in ends)
    known = exp.Between(this=value.copy(), low=low, high=high)
    return exp.Case(ifs=[exp.If(this=known, true=value)])
