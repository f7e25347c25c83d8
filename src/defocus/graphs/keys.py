"""What a value is called as a node: one rule for each value, which looks at nothing else.

Whether two values name the same node, and which of two nodes comes first, must not depend on who else is in the data.
So every value has a key of its own, from its type and what it holds, and nodes are told apart and ordered by keys.
"""

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np

__all__ = ["DIGITS", "Key", "key", "order", "written_key"]

Key: TypeAlias = int | str | tuple[Any, ...]
"""A whole number, a text, or a tuple whose first entry says what it is. Keys of equal nodes are equal."""

DIGITS = 18
"""Numbers written with at most so many digits fit in 64 bits."""
_LONGEST = 1000
"""Texts of more digits, and decimals beyond so many, are no whole numbers here."""
_START = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # moments without a zone are taken for UTC
_STEP = dt.timedelta(microseconds=1)


def key(value: Any) -> Key | None:
    """The key of a value, or None if it names no node. No value can make this fail.

    Whole numbers are equal whatever type holds them, and differ from the texts that spell them. Names are numbers,
    text, bytes, dates, moments in microseconds, UUIDs, and tuples of these; nothing else is.

    >>> [key(value) for value in (3, 3.0, "3", 2.5, (1, "a"), float("nan"), True, None, [1])]
    [3, 3, '3', ('number', '2.5'), ('tuple', ('whole', '0x1'), 'a'), None, None, None, None]
    """
    if type(value) is str or type(value) is int:
        return value
    try:
        return _key(value)
    except Exception:  # noqa: BLE001  # an object may refuse in any way, and says something about itself by that
        return None


def written_key(value: Any) -> Key | None:
    """The key where values are written as text, as in CSV: "12" and "-3" are whole numbers, "012" and "12.0" are text.

    >>> [written_key(text) for text in ("12", "-3", "012", "12.0", "-0", "", "x")]
    [12, -3, '012', '12.0', '-0', None, 'x']
    """
    found = key(value)
    if isinstance(found, str):
        if not found:
            return None
        digits = found.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST and found != "-0":
            return int(found) if digits == "0" or digits[0] != "0" else found
    return found


def order(one: Key) -> tuple[int, Any]:
    """What to sort keys by: numbers by size, then text, then the rest by how it is spelt."""
    if isinstance(one, int):
        return 0, one
    return (1, one) if isinstance(one, str) else (2, repr(one))


def _key(value: Any) -> Key | None:  # noqa: C901, PLR0911  # one line for each sort of value
    if value is None or isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | np.integer):
        return int.__index__(value) if isinstance(value, int) else int(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        return None if number != number else int(number) if number.is_integer() else ("number", repr(number))  # noqa: PLR0124  # NaN
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else ("ratio", hex(value.numerator), hex(value.denominator))
    if isinstance(value, bytes):
        return ("bytes", bytes(value))
    if isinstance(value, UUID):
        return ("uuid", hex(value.int))
    if isinstance(value, dt.date):
        return _moment(value)
    if isinstance(value, tuple):
        return ("tuple", *(_part(each) for each in tuple.__iter__(value)))
    return None


def _decimal(value: Decimal) -> Key | None:
    if not value.is_finite():
        return None if value.is_nan() else ("number", "inf" if value > 0 else "-inf")
    if value.adjusted() <= _LONGEST and value == value.to_integral_value():
        return int(value)
    sign, digits, exponent = value.as_tuple()
    short = "".join(map(str, digits)).rstrip("0")
    return ("decimal", sign, short, int(exponent) + len(digits) - len(short))


def _moment(value: dt.date) -> Key | None:
    if not isinstance(value, dt.datetime):
        return ("date", value.toordinal())
    if value != value:  # noqa: PLR0124  # the moment that is missing in pandas
        return None
    plain: dt.datetime = value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
    shift = plain.utcoffset() or dt.timedelta(0)
    return ("moment", (plain.replace(tzinfo=None) - _START - shift) // _STEP)


def _part(value: Any) -> Key:
    """The key of a part of a tuple, where None may stand too. Numbers are spelt, since huge ones have no text."""
    if value is None:
        return ("missing",)
    found = key(value)
    if found is None:
        raise TypeError  # then the whole tuple names nothing
    return ("whole", hex(found)) if isinstance(found, int) else found
