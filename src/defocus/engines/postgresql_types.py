"""What PostgreSQL's types hold, and how a column comes into the one type its kind has everywhere, whatever is in it."""

from dataclasses import dataclass
from typing import final

from sqlglot import exp

from defocus.engines.declaring import declared, of_kind, within
from defocus.engines.kinds import Kind
from defocus.engines.postgresql_texts import decimal_to_float, decimal_to_integer
from defocus.engines.templates import fill, native

__all__ = ["Typed", "convert"]

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
    quoted = exp.to_identifier(name, quoted=True)
    made: exp.Expression = exp.Column(this=quoted)
    own = type_.kind
    if Kind.OTHER not in {kind, own}:
        made = _canonical(made, type_)
        if kind is not own:
            made = declared(made, name, own, kind)
    return exp.Alias(this=made, alias=quoted.copy())


def _canonical(column: exp.Expression, type_: Typed) -> exp.Expression:
    kind = type_.kind
    if type_.name == _NUMERIC:
        exact = native(decimal_to_integer(column) if kind is Kind.INTEGER else decimal_to_float(column))
        return of_kind(exact, kind)
    if type_.name == _ZONED:
        column = native(fill("a AT TIME ZONE 'UTC'", a=column))
    made = within(of_kind(column, kind), kind)
    return native(fill(_SHORT, a=made)) if kind is Kind.TEXT else made
