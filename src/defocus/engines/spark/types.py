"""What Spark's types hold, and how a column comes into the one type its kind has everywhere, whatever is in it.

Numbers, dates and moments read from text in Spark, whose own casts know suffixes and forms that others do not.

The patterns are those of ``schema.py``, so that all engines read the same texts. Everything here is NULL where it
cannot be read, and none of it can fail.
"""

from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from defocus.engines import schema
from defocus.engines.schema import Kind, converted, of_kind, within
from defocus.engines.syntax import fill_spark, hoisted, native, readers
from defocus.engines.syntax import fill_spark as fill

__all__ = ["READERS", "Typed", "convert", "sendable"]


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
    return converted(name, type_.kind, kind, lambda column: _canonical(column, type_))


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
    in_range = pc.and_(pc.greater_equal(counts, -most), pc.less_equal(counts, most))
    return pc.multiply(pc.if_else(in_range, counts, pa.scalar(None, pa.int64())), times).cast(to)


_IS_NUMBER = f"LENGTH(a) <= {schema.LONGEST_NUMBER} AND a RLIKE p"
_WHOLE = "TRY_CAST(REGEXP_EXTRACT(a, p, {}) AS INT)"
_DIGITS = "LPAD(CAST({} AS STRING), {}, '0')"
_DAY = f"CONCAT({_DIGITS.format('y', 4)}, '-', {_DIGITS.format('m', 2)}, '-', {_DIGITS.format('d', 2)})"
_TIME = f"CONCAT({_DIGITS.format('h', 2)}, ':', {_DIGITS.format('i', 2)}, ':', {_DIGITS.format('s', 2)}, '.', u)"


def _to_integer(x: exp.Expression) -> exp.Expression:
    """The whole number nearest to the one that a text says, halves away from zero."""
    read = "TRY_CAST(TRY_CAST(a AS DECIMAL(38, 0)) AS BIGINT)"
    return fill(f"CASE WHEN {_IS_NUMBER} THEN {read} END", a=x, p=_pattern(schema.NUMBER))


def _to_float(x: exp.Expression) -> exp.Expression:
    """The number that a text says."""
    infinity = "CASE WHEN CONTAINS(a, '-') THEN CAST('-Infinity' AS DOUBLE) ELSE CAST('Infinity' AS DOUBLE) END"
    template = f"CASE WHEN {_IS_NUMBER} THEN TRY_CAST(a AS DOUBLE) WHEN a RLIKE q THEN {infinity} END"
    return fill(template, a=x, p=_pattern(schema.NUMBER), q=_pattern(f"(?i){schema.INFINITE}"))


def _to_boolean(x: exp.Expression) -> exp.Expression:
    """Whether a text says yes or no."""
    return fill(schema.SAYS, a=x)


def _to_date(x: exp.Expression) -> exp.Expression:
    """The date that a text says, if there is such a day in the years 1 to 9999."""
    return _moment(x, schema.DATE, f"TRY_CAST({_DAY} AS DATE)")


def _to_timestamp(x: exp.Expression) -> exp.Expression:
    """The moment that a text says; what it says of a zone is passed over, as DuckDB does."""
    midnight = f"CAST(DATE_ADD(TRY_CAST({_DAY} AS DATE), 1) AS TIMESTAMP_NTZ)"
    read = f"TRY_CAST(CONCAT({_DAY}, ' ', {_TIME}) AS TIMESTAMP_NTZ)"
    return _moment(x, schema.MOMENT, f"CASE WHEN h = 24 THEN {midnight} ELSE {read} END")


def _moment(x: exp.Expression, pattern: str, wanted: str) -> exp.Expression:
    """The parts of a text of a known form, checked one by one, then the moment they make."""
    text, day, clock = hoisted("a"), _pattern(schema.DAY_FIRST), _pattern(schema.CLOCK)
    parts = {name: fill(_WHOLE.format(group), a=text, p=day) for name, group in (("y", 1), ("m", 3), ("d", 4))}
    times = {"h": 1, "i": 2, "s": 4}
    parts |= {name: fill(f"COALESCE({_WHOLE.format(group)}, 0)", a=text, p=clock) for name, group in times.items()}
    parts["u"] = fill("RPAD(SUBSTRING(REGEXP_EXTRACT(a, p, 6), 1, 6), 6, '0')", a=text, p=clock)
    last = "(h = 24 AND i = 0 AND s = 0 AND u = '000000')"
    value = fill(
        f"CASE WHEN y BETWEEN 1 AND 9999 AND (h <= 23 OR {last}) AND i <= 59 AND s <= 59 THEN {wanted} END",
        alone=True,
        later=None,
        **parts,
    )
    return fill("CASE WHEN a RLIKE p THEN v END", alone=True, a=x, later={"v": value, "p": _pattern(pattern)})


def _pattern(text: str) -> exp.Expression:
    r"""As Java writes it, to which ``\v`` is a line break of any kind, one of which may follow ``$``."""
    whole = text.removesuffix("$") + (r"\z" if text.endswith("$") else "")
    return exp.Literal.string(whole.replace(r"\v", r"\x0B"))


READERS = readers(integer=_to_integer, number=_to_float, boolean=_to_boolean, date=_to_date, timestamp=_to_timestamp)
