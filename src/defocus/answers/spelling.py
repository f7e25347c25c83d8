"""One text for every value. Keys of answers are written by strangers, and not each of them has a text of its own."""

from fractions import Fraction
from typing import Any

__all__ = ["spelt"]

_LONGEST = 3321
"""Whole numbers of more bits, about a thousand digits, are spelt in hexadecimal: Python refuses long ones."""


def spelt(value: Any) -> str:
    r"""The value as text that every file, page and terminal can hold. No value can make this fail.

    Halves of characters are spelt out, and so are whole numbers of a thousand digits and more.

    >>> spelt("ada"), spelt(12), spelt("\ud800"), spelt((1, "a")), spelt(-(16**1000))[:6]
    ('ada', '12', '\\ud800', "(1, 'a')", '-0x100')
    """
    return _text(value).encode("utf-8", "backslashreplace").decode()


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    if type(value) is int and value.bit_length() > _LONGEST:
        return hex(value)
    try:
        return str(value)
    except Exception:  # noqa: BLE001  # an object may refuse in any way
        if isinstance(value, Fraction):
            return f"{_text(value.numerator)}/{_text(value.denominator)}"
        return f"({', '.join(map(_text, value))})" if type(value) is tuple else f"<{type(value).__name__}>"
