"""How a column that is declared to be of another kind is read, alike in every engine that has no words of its own."""

from sqlglot import exp

from defocus.engines.kinds import CANONICAL, Kind
from defocus.errors import SourceError

__all__ = ["declared", "of_kind", "within"]

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


def declared(value: exp.Expression, name: str, own: Kind, kind: Kind) -> exp.Expression:
    """A value of one kind, in its one type, read as another kind: NULL where it cannot be."""
    if (own, kind) not in _WAYS:
        raise SourceError(
            f"{name!r:.60} holds values of kind {own}, which cannot be read as {kind} alike in every engine.",
            fix="declare another kind, or make a view of the table with a column of that kind.",
        )
    sure = own is not Kind.TEXT and kind is not Kind.INTEGER
    to = exp.DataType.build(CANONICAL[kind])
    return within(exp.Cast(this=value, to=to) if sure else exp.TryCast(this=value, to=to), kind)


def of_kind(value: exp.Expression, kind: Kind) -> exp.Expression:
    """A value in the one type of its kind, by a cast that cannot fail."""
    return exp.Cast(this=value, to=exp.DataType.build(CANONICAL[kind]))


def within(value: exp.Expression, kind: Kind) -> exp.Expression:
    """A date or moment, if it lies in the years 1 to 9999; anything else as it is."""
    if kind not in {Kind.DATE, Kind.TIMESTAMP}:
        return value
    ends = ("0001-01-01", "9999-12-31") if kind is Kind.DATE else ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")
    low, high = (of_kind(exp.Literal.string(end), kind) for end in ends)
    known = exp.Between(this=value.copy(), low=low, high=high)
    return exp.Case(ifs=[exp.If(this=known, true=value)])
