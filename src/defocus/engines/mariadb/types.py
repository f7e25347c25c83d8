"""Types of MariaDB, and values read from text there: its own casts never fail, but read what is no number as one.

A pattern says first what the text is, so that nothing is read that is not there.
"""

from dataclasses import dataclass
from typing import Any, final

from sqlglot import exp

from defocus.engines import schema
from defocus.engines.schema import Kind, converted, of_kind
from defocus.engines.syntax import fill_mysql as fill
from defocus.engines.syntax import native, readers

__all__ = [
    "LARGEST",
    "LONGEST",
    "READERS",
    "Typed",
    "convert",
    "decimal_to_integer",
]

LARGEST = "1.7976931348623157e308"
"""The largest float, which stands for infinity: MariaDB has none, and fails where a result would be infinite."""
LONGEST = 65_535
"""Texts of more bytes are NULL: sorting, and so partitions of windows, would compare only their beginnings."""
_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year"), Kind.INTEGER),
    **dict.fromkeys(("float", "double", "decimal"), Kind.NUMBER),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"), Kind.TEXT),
    **dict.fromkeys(("uuid", "inet4", "inet6"), Kind.TEXT),
    "date": Kind.DATE,
    **dict.fromkeys(("datetime", "timestamp"), Kind.TIMESTAMP),
}
_DECIMAL_TO_INTEGER = (
    "CASE WHEN ROUND(a) BETWEEN -9223372036854775808 AND 9223372036854775807 THEN CAST(ROUND(a) AS SIGNED) END"
)
_BEGINS = "0001-01-01"


@final
@dataclass(frozen=True, slots=True)
class Typed:
    """The type of a column as the catalogue writes it, such as ``decimal(9,2)`` or ``bigint(20) unsigned``."""

    name: str
    scale: int | None = None

    @property
    def word(self) -> str:
        """The name without what follows it."""
        return self.name.partition("(")[0].partition(" ")[0]

    @property
    def kind(self) -> Kind:
        """What it holds: ``BOOLEAN`` is another name of ``tinyint(1)``; decimals without a fraction are integers."""
        if self.name in {"tinyint(1)", "bit(1)"}:
            return Kind.BOOLEAN
        if self.word == "decimal" and self.scale == 0:
            return Kind.INTEGER
        return _KINDS.get(self.word, Kind.OTHER)


def convert(name: str, type_: Typed, kind: Kind) -> exp.Expression:
    """A column in the type of its kind, under its own name.

    Guarantee:
        Total: an integer beyond 64 bits with a sign is NULL, as are dates that no calendar has ('2024-00-00') and texts
        beyond 64 KiB. Texts are compared by their bytes, spaces at their ends included.

    A ``tinyint(1)`` that is declared to be an integer is one.
    """
    own = Kind.INTEGER if type_.name == "tinyint(1)" and kind is Kind.INTEGER else type_.kind
    return converted(name, own, kind, lambda column: _canonical(column, type_, own))


def _canonical(column: exp.Expression, type_: Typed, kind: Kind) -> exp.Expression:
    template = "a"
    if type_.word == "decimal" and kind is Kind.INTEGER:
        template = _DECIMAL_TO_INTEGER
    elif type_.name.startswith("bigint") and "unsigned" in type_.name:
        template = "CASE WHEN a <= 9223372036854775807 THEN CAST(a AS SIGNED) END"
    elif kind is Kind.BOOLEAN:
        template = "a <> 0"
    elif kind is Kind.TEXT:
        template = (
            f"CASE WHEN OCTET_LENGTH(a) <= {LONGEST} AND OCTET_LENGTH(CONVERT(a USING utf8mb4)) <= {LONGEST}"
            " THEN CONVERT(a USING utf8mb4) COLLATE utf8mb4_nopad_bin END"
        )
    elif kind in {Kind.DATE, Kind.TIMESTAMP}:
        template = f"CASE WHEN a >= '{_BEGINS}' AND DAYOFMONTH(a) BETWEEN 1 AND DAYOFMONTH(LAST_DAY(a)) THEN a END"
    return of_kind(native(fill(template, a=column)), kind)


def decimal_to_integer(x: exp.Expression) -> exp.Expression:
    """The nearest 64-bit integer of a decimal number, halves away from zero; NULL beyond them."""
    return fill(_DECIMAL_TO_INTEGER, a=x)


def _pattern(text: str) -> str:
    r"""As Perl writes it, to which ``\v`` is a line break of any kind, one of which may follow ``$``."""
    whole = text.removesuffix("$") + (r"\z" if text.endswith("$") else "")
    return exp.Literal.string(whole.replace(r"\v", r"\x0B")).sql("mysql")


_READABLE = f"CHAR_LENGTH(a) <= {schema.LONGEST_NUMBER}"
_IS_NUMBER = f"{_READABLE} AND REGEXP_INSTR(a, {_pattern(schema.NUMBER)}) > 0"
_BLANKS = _pattern(r"[ \t\n\v\f\r]")
_DIGITS = f"REGEXP_REPLACE(a, {_BLANKS}, '')"


def _to_integer(x: exp.Expression) -> exp.Expression:
    """The whole number nearest to the one that a text says; decimals beyond the thirtieth are rounded first."""
    read = decimal_to_integer(fill(f"CAST({_DIGITS} AS DECIMAL(65, 30))", a=x))
    return fill(f"CASE WHEN {_IS_NUMBER} THEN n END", a=x, n=read)


def _to_float(x: exp.Expression) -> exp.Expression:
    """The number that a text says; infinite ones are the largest."""
    infinite = f"{_READABLE} AND REGEXP_INSTR(a, {_pattern('(?i)' + schema.INFINITE)}) > 0"
    return fill(
        f"CASE WHEN {_IS_NUMBER} THEN CAST({_DIGITS} AS DOUBLE)"
        f" WHEN {infinite} THEN CASE WHEN LOCATE('-', a) > 0 THEN -{LARGEST} ELSE {LARGEST} END END",
        a=x,
    )


def _to_boolean(x: exp.Expression) -> exp.Expression:
    """What a text says is so."""
    return fill(schema.SAYS, a=x)


def _to_date(x: exp.Expression) -> exp.Expression:
    """The date that a text says, if there is such a day in the years 1 to 9999."""
    return _moment(x, schema.DATE, timed=False)


def _to_timestamp(x: exp.Expression) -> exp.Expression:
    """The moment that a text says; what it says of a zone is passed over, as DuckDB does."""
    return _moment(x, schema.MOMENT, timed=True)


_LAST = "(h = 24 AND i = 0 AND s = 0 AND u = 0)"
_VALID = f"(h <= 23 OR {_LAST}) AND i <= 59 AND s <= 59"


def _moment(x: exp.Expression, pattern: str, *, timed: bool) -> exp.Expression:
    """The parts of a text of a known form, written anew as MariaDB reads them; a day that does not exist is NULL."""
    day, clock = _group(schema.DAY_FIRST), _group(f".*?{schema.CLOCK}")
    padded = [f"LPAD({day.format(group)}, {width}, '0')" for group, width in ((1, 5), (3, 2), (4, 2))]
    parts = {
        "h": f"CAST({clock.format(1)} AS SIGNED)",
        "i": f"CAST({clock.format(2)} AS SIGNED)",
        "s": f"CAST(CONCAT('0', {clock.format(4)}) AS SIGNED)",
        "u": f"CAST(RPAD(LEFT({clock.format(6)}, 6), 6, '0') AS SIGNED)",
        "y": f"CAST({day.format(1)} AS SIGNED)",
        "d": f"CAST(CONCAT(SUBSTRING({padded[0]}, 2), '-', {padded[1]}, '-', {padded[2]}) AS DATE)",
    }
    has_clock = f"REGEXP_INSTR(a, {_pattern('^.*?' + schema.CLOCK)}) > 0"
    read: dict[str, Any] = {name: fill(part, a=x) for name, part in parts.items()}
    start = "CAST(d AS DATETIME(6))"
    moved = f"{start} + INTERVAL (h * 3600 + i * 60 + s) SECOND + INTERVAL u MICROSECOND"
    value = f"CASE WHEN {has_clock} THEN {moved} ELSE {start} END" if timed else "d"
    checked = f"CASE WHEN y BETWEEN 1 AND 9999 AND (NOT {has_clock} OR ({_VALID})) THEN {value} END"
    return fill(
        f"CASE WHEN {_READABLE} AND REGEXP_INSTR(a, {_pattern(pattern)}) > 0 THEN v END",
        a=x,
        v=fill(checked, a=x, **read),
    )


def _group(pattern: str) -> str:
    r"""A template for a group of what begins a text: all of the text is replaced by it."""
    written = _pattern(f"(?s)^{pattern.removeprefix('^')}.*$").replace("{", "{{").replace("}", "}}")
    return f"REGEXP_REPLACE(a, {written}, '\\\\{{}}')"


READERS = readers(integer=_to_integer, number=_to_float, boolean=_to_boolean, date=_to_date, timestamp=_to_timestamp)
