"""Types of PostgreSQL, and values read from text there, though it fails where a text cannot be read.

A pattern says first what the text is, so that nothing is read that is not there.
"""

from dataclasses import dataclass
from typing import final

from sqlglot import exp

from defocus.engines import schema
from defocus.engines.schema import Kind, converted, of_kind, within
from defocus.engines.syntax import fill, hoisted, native, readers

__all__ = [
    "READERS",
    "Typed",
    "convert",
    "decimal_to_float",
    "decimal_to_integer",
]


_IS_NUMBER = f"CASE WHEN LENGTH(a) <= {schema.LONGEST_NUMBER} THEN a ~ '{schema.NUMBER}' END"
_LARGEST = str(2**1024 - 2**970)
"""From here on, a number is nearer to 2**1024 than to the largest float."""
_LEAST = "2.4703282292062327209e-324"
"""Up to half the least float, a number is nearer to 0."""
_DECIMAL_TO_FLOAT = (
    f"CASE WHEN a = CAST('NaN' AS DECIMAL) THEN NULL"
    f" WHEN a >= CAST('{_LARGEST}' AS DECIMAL) THEN CAST('Infinity' AS DOUBLE PRECISION)"
    f" WHEN a <= CAST('-{_LARGEST}' AS DECIMAL) THEN CAST('-Infinity' AS DOUBLE PRECISION)"
    f" WHEN ABS(a) <= CAST('{_LEAST}' AS DECIMAL) THEN CAST('0' AS DOUBLE PRECISION)"
    " ELSE CAST(a AS DOUBLE PRECISION) END"
)
_DECIMAL_TO_INTEGER = (
    "CASE WHEN ROUND(a) BETWEEN CAST('-9223372036854775808' AS DECIMAL) AND CAST('9223372036854775807' AS DECIMAL)"
    " THEN CAST(ROUND(a) AS BIGINT) END"
)


def decimal_to_float(x: exp.Expression) -> exp.Expression:
    """The nearest float of a decimal number; NaN is NULL."""
    return fill(_DECIMAL_TO_FLOAT, a=x)


def decimal_to_integer(x: exp.Expression) -> exp.Expression:
    """The nearest 64-bit integer of a decimal number, halves away from zero; NULL beyond them and for NaN."""
    return fill(_DECIMAL_TO_INTEGER, a=x)


def _to_float(x: exp.Expression) -> exp.Expression:
    """The number that a text says."""
    sign = "CASE WHEN STRPOS(a, '-') > 0 THEN CAST('-Infinity' AS DOUBLE PRECISION)"
    template = (
        f"CASE WHEN {_IS_NUMBER} THEN n WHEN a ~* '{schema.INFINITE}' THEN {sign}"
        " ELSE CAST('Infinity' AS DOUBLE PRECISION) END END"
    )
    return fill(template, alone=True, a=x, later={"n": decimal_to_float(_trimmed())})


def _to_integer(x: exp.Expression) -> exp.Expression:
    """The whole number nearest to the one that a text says."""
    return fill(f"CASE WHEN {_IS_NUMBER} THEN n END", alone=True, a=x, later={"n": decimal_to_integer(_trimmed())})


def _trimmed() -> exp.Expression:
    return fill(r"CAST(REGEXP_REPLACE(a, '[ \t\n\v\f\r]', '', 'g') AS DECIMAL)", a=hoisted("a"))


def _to_boolean(x: exp.Expression) -> exp.Expression:
    """What a text says is so."""
    return fill(schema.SAYS, a=x)


def _to_date(x: exp.Expression) -> exp.Expression:
    """The date that a text says, if there is such a day in the years 1 to 9999."""
    return _moment(x, schema.DATE, "CAST({start} AS DATE)")


def _to_timestamp(x: exp.Expression) -> exp.Expression:
    """The moment that a text says; what it says of a zone is passed over, as DuckDB does."""
    return _moment(x, schema.MOMENT, "{start} + ({time})")


def _moment(x: exp.Expression, pattern: str, wanted: str) -> exp.Expression:
    """The parts of a text of a known form, checked one by one, then the moment they make."""
    group = "CAST(REGEXP_SUBSTR(a, '{}', 1, 1, 'c', {}) AS INT)"
    parts = {
        "y": group.format(schema.DAY_FIRST, 1),
        "m": group.format(schema.DAY_FIRST, 3),
        "d": group.format(schema.DAY_FIRST, 4),
        "h": f"COALESCE({group.format(schema.CLOCK, 1)}, 0)",
        "i": f"COALESCE({group.format(schema.CLOCK, 2)}, 0)",
        "s": f"COALESCE({group.format(schema.CLOCK, 4)}, 0)",
        "u": f"CAST(RPAD(LEFT(COALESCE(REGEXP_SUBSTR(a, '{schema.CLOCK}', 1, 1, 'c', 6), ''), 6), 6, '0') AS INT)",
    }
    read = {name: fill(f"CASE WHEN a ~ '{pattern}' THEN {part} END", a=hoisted("a")) for name, part in parts.items()}
    start = "CAST(MAKE_DATE(y, m, 1) + (d - 1) AS TIMESTAMP)"
    time = "h * INTERVAL '1 hour' + i * INTERVAL '1 minute' + s * INTERVAL '1 second' + u * INTERVAL '1 microsecond'"
    last = "(h = 24 AND i = 0 AND s = 0 AND u = 0)"
    value = fill(
        "CASE WHEN y BETWEEN 1 AND 9999 AND m BETWEEN 1 AND 12 AND d BETWEEN 1 AND 31"
        f" AND (h <= 23 OR {last}) AND i <= 59 AND s <= 59"
        f" THEN CASE WHEN EXTRACT(MONTH FROM {start}) = m THEN {wanted.format(start=start, time=time)} END END",
        alone=True,
        later=None,
        **read,
    )
    return fill("v", alone=True, a=x, later={"v": value})


_NUMERIC, _ZONED = "numeric", "timestamptz"
_KINDS = {
    "bool": Kind.BOOLEAN,
    **dict.fromkeys(("int2", "int4", "int8"), Kind.INTEGER),
    **dict.fromkeys(("float4", "float8", _NUMERIC), Kind.NUMBER),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid"), Kind.TEXT),
    "date": Kind.DATE,
    **dict.fromkeys(("timestamp", _ZONED), Kind.TIMESTAMP),
}

_SHORT = f"CASE WHEN OCTET_LENGTH(a) <= {2**24} THEN a END"
"""A text grows to 64 times its length at most, and one of a gigabyte makes the server fail."""


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
        Dates and moments outside the years 1 to 9999, and the infinite ones, are NULL. So are texts beyond 16 MiB.
    """
    return converted(name, type_.kind, kind, lambda column: _canonical(column, type_))


def _canonical(column: exp.Expression, type_: Typed) -> exp.Expression:
    kind = type_.kind
    if type_.name == _NUMERIC:
        exact = native(decimal_to_integer(column) if kind is Kind.INTEGER else decimal_to_float(column))
        return of_kind(exact, kind)
    if type_.name == _ZONED:
        column = native(fill("a AT TIME ZONE 'UTC'", a=column))
    value = within(of_kind(column, kind), kind)
    return native(fill(_SHORT, a=value)) if kind is Kind.TEXT else value


READERS = readers(integer=_to_integer, number=_to_float, boolean=_to_boolean, date=_to_date, timestamp=_to_timestamp)
