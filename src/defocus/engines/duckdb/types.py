"""What DuckDB's types hold, and how a column comes into the one type its kind has everywhere, whatever is in it."""

from typing import Any

from sqlglot import exp

from defocus.engines.schema import CANONICAL, Kind, within

__all__ = ["FINER", "convert", "kind_of"]

_TYPES = {**CANONICAL, Kind.TEXT: "VARCHAR"}
"""The one type of each kind, as DuckDB calls it."""
_INTEGERS = ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint")
_MOMENTS = ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone", "timestamptz_ns")
_KINDS = {
    "boolean": Kind.BOOLEAN,
    **dict.fromkeys((*_INTEGERS, "hugeint", "uhugeint"), Kind.INTEGER),
    **dict.fromkeys(("float", "double", "decimal"), Kind.NUMBER),
    **dict.fromkeys(("varchar", "enum", "uuid"), Kind.TEXT),
    "date": Kind.DATE,
    **dict.fromkeys(_MOMENTS, Kind.TIMESTAMP),
}
FINER = {"float", "double", "decimal", "timestamp_ns", "timestamptz_ns"}
"""Types with values that the type of their kind may round to one, unless a decimal has no fraction."""
_GUARDED = (Kind.DATE, Kind.TIMESTAMP)
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and last microsecond of the years 1 to 9999, counted from 1970."""


def kind_of(type_: Any) -> Kind:
    """The kind of a DuckDB type; decimals without a fraction are integers."""
    if type_.id == "decimal" and dict(type_.children)["scale"] == 0:
        return Kind.INTEGER
    return Kind.OTHER if str(type_) == "JSON" else _KINDS.get(type_.id, Kind.OTHER)


def convert(name: str, type_: Any, kind: Kind, *, collated: bool) -> exp.Expression:
    """A column in the type of its kind, under its own name.

    Guarantee:
        Total: a value that the type cannot hold is NULL. Dates and moments outside the years 1 to 9999, and the
        infinite ones, are NULL too: DuckDB fails on some of them, and other engines do not know them.

    Floats, dates and moments go through TRY, which changes no value but hides the statistics and the dictionary of
    its file from DuckDB. Parquet's statistics leave NaN out, and DuckDB 2.0 believes them: with values up to 5 and NaN
    it takes ``x < 10`` for true of all rows, and with one more row of 11 for true of all but NaN, so one person would
    move a count by thousands. That the optimiser be told to leave statistics alone is not enough: a filter is still
    handed to the reader, which skips a file whose largest number is 1 where NaN counts as greater than 4. Of
    nanoseconds it takes the least for the earliest, and drops the check of years; and it casts the entries of a
    dictionary before it checks them, and fails, for good, on the least moment.

    ``collated`` columns may compare text by rules of their own, under which one value equals two keys; they are
    made to compare bytes.
    """
    quoted = exp.to_identifier(name, quoted=True)
    value: exp.Expression = exp.Column(this=quoted)
    own = kind_of(type_)
    if Kind.OTHER not in {kind, own}:
        if own in _GUARDED or type_.id in {"float", "double"}:
            value = exp.Anonymous(this="TRY", expressions=[value])
        if type_.id in {"timestamp with time zone", "timestamptz_ns"}:
            value = _in_utc(value, nanoseconds=type_.id == "timestamptz_ns")
        elif str(type_) != _TYPES[own]:
            value = _cast(value, own)
        else:
            value = within(value, own)
        if kind is not own:  # only from a value that is known to be sound: DuckDB fails on others even where it tries
            value = _cast(value, kind)
        if kind is Kind.TEXT and collated:
            value = exp.Collate(this=value, expression=exp.to_identifier("C", quoted=True))
    return exp.Alias(this=value, alias=quoted.copy())


def _cast(value: exp.Expression, kind: Kind) -> exp.Expression:
    """A value of another kind or type, if there is one."""
    return within(exp.TryCast(this=value, to=exp.DataType.build(_TYPES[kind], dialect="duckdb")), kind)


def _in_utc(column: exp.Expression, *, nanoseconds: bool) -> exp.Expression:
    """A moment with a zone as one without, in UTC, whatever zone the connection is in."""
    count: exp.Expression = exp.Anonymous(this="epoch_us", expressions=[column])
    if nanoseconds:
        whole = exp.Anonymous(this="epoch_ns", expressions=[column])
        count = exp.IntDiv(this=whole, expression=exp.Literal.number(1000))
    in_range = exp.Between(this=count, low=exp.convert(_FIRST), high=exp.convert(_LAST))
    moment = exp.Anonymous(this="make_timestamp", expressions=[count.copy()])
    return exp.Case(ifs=[exp.If(this=in_range, true=moment)])
