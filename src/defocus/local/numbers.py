"""One way to write each number, so that equal descriptions are the same text on every machine."""

from defocus.errors import Number

__all__ = ["canonical"]

_EXACT = 1 << 53
"""Below this, every JSON reader holds an integer exactly."""


def canonical(value: Number) -> Number:
    """The same number as an int, a float or a Fraction, whichever comes first and holds it; ints below 2**53 only.

    >>> from fractions import Fraction
    >>> canonical(1.0), canonical(Fraction(1, 2)), canonical(Fraction(1, 3))
    (1, 0.5, Fraction(1, 3))
    """
    if value == int(value) and -_EXACT < value < _EXACT:
        return int(value)
    try:
        near = float(value)
    except OverflowError:
        return value
    return near if near == value else value
