"""What Spark's types hold, and how a column comes into the one type its kind has everywhere, whatever is in it."""

from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from defocus.engines.declaring import declared, of_kind, within
from defocus.engines.kinds import Kind
from defocus.engines.templates import fill_spark, native

__all__ = ["Typed", "convert", "sendable"]

_KINDS = {
    "boolean": Kind.BOOLEAN,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INTEGER),
    **dict.fromkeys(("float", "double", "decimal"), Kind.NUMBER),
    **dict.fromkeys(("string", "char", "varchar"), Kind.TEXT),
    "date": Kind.DATE,
    **dict.fromkeys(("timestamp", "timestamp_ntz"), Kind.TIMESTAMP),
}


@final
@dataclass(frozen=True, slots=True)
class Typed:
    """The type of a column as Spark names it, such as ``decimal(9,2)`` or ``string collate UNICODE``."""

    name: str

    @property
    def word(self) -> str:
        """The name without what follows it."""
        return self.name.partition("(")[0].partition(" ")[0]

    @property
    def kind(self) -> Kind:
        """What it holds; decimals without a fraction are integers."""
        if self.word == "decimal" and self.name.endswith(",0)"):
            return Kind.INTEGER
        return _KINDS.get(self.word, Kind.OTHER)


def convert(name: str, type_: Typed, kind: Kind) -> exp.Expression:
    """A column in the type of its kind, under its own name.

    Guarantee:
        Total: a value that the type cannot hold is NULL, as are dates and moments outside the years 1 to 9999 and
        texts that are not UTF-8. Texts are compared by their bytes, whatever collation the column has.

    A float has 0 added, which makes 0 of -0 and hides it from the statistics and dictionaries of its file. Those leave
    NaN out and hold -0 and 0 apart, so a filter that a reader applied to them would keep or skip many rows because of
    the value of one.
    """
    quoted = exp.to_identifier(name, quoted=True)
    made: exp.Expression = exp.Column(this=quoted)
    own = type_.kind
    if Kind.OTHER not in {kind, own}:
        made = _canonical(made, type_)
        if kind is not own:
            made = declared(made, name, own, kind)
    return exp.Alias(this=made, alias=quoted.copy())


_NATIVE = {
    "float": "CAST(a AS DOUBLE) + CAST(0 AS DOUBLE)",
    "double": "a + CAST(0 AS DOUBLE)",
    "timestamp": "CAST(a AS TIMESTAMP_NTZ)",
    **dict.fromkeys(("string", "char", "varchar"), "TRY_VALIDATE_UTF8(a)"),
}


def _canonical(column: exp.Expression, type_: Typed) -> exp.Expression:
    kind = type_.kind
    template = _NATIVE.get(type_.word)
    if type_.word == "decimal" and kind is Kind.INTEGER:
        template = "TRY_CAST(a AS BIGINT)"
    if "collate" in type_.name:
        column = exp.Collate(this=column, expression=exp.to_identifier("UTF8_BINARY", quoted=True))
    if template is not None:
        column = native(fill_spark(template, a=column))
    return within(of_kind(column, kind), kind)


def sendable(table: pa.Table) -> pa.Table:
    """The same values in types that Spark reads: signed integers, doubles, plain text, moments in microseconds.

    Integers that 64 bits cannot hold become decimals; moments that microseconds cannot hold are NULL.
    """
    return pa.table({field.name: _sendable(table.column(i)) for i, field in enumerate(table.schema)})


def _sendable(column: Any) -> Any:
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return _sendable(column.cast(type_.value_type))
    if pa.types.is_timestamp(type_) and type_.unit != "us":
        return _microseconds(column)
    ways = (
        (pa.types.is_uint64, pa.decimal128(20, 0)),
        (pa.types.is_integer, pa.int64()),
        (pa.types.is_floating, pa.float64()),
        (lambda one: pa.types.is_large_string(one) or one == pa.string_view(), pa.string()),
        (pa.types.is_date64, pa.date32()),
        (lambda one: pa.types.is_null(one) or pa.types.is_large_binary(one), pa.binary()),
        (lambda one: pa.types.is_timestamp(one) and one.tz is not None, pa.timestamp("us", "UTC")),
    )
    return next((column.cast(to) for check, to in ways if check(type_)), column)


def _microseconds(column: Any) -> Any:
    """Moments in another unit: the nearest of nanoseconds, halves away from zero, and NULL for what is too far away."""
    to = pa.timestamp("us", None if column.type.tz is None else "UTC")
    counts = column.cast(pa.int64())
    if column.type.unit == "ns":
        cut = pc.divide(counts, 1000)
        rest = pc.subtract(counts, pc.multiply(cut, 1000))
        up, down = (pc.cast(one, pa.int64()) for one in (pc.greater_equal(rest, 500), pc.less_equal(rest, -500)))
        return pc.subtract(pc.add(cut, up), down).cast(to)
    times = {"s": 1_000_000, "ms": 1_000}[column.type.unit]
    most = (2**63 - 1) // times
    known = pc.and_(pc.greater_equal(counts, -most), pc.less_equal(counts, most))
    return pc.multiply(pc.if_else(known, counts, pa.scalar(None, pa.int64())), times).cast(to)
