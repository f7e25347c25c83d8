"""Numbers as short text that errs on the safe side: advice that is printed must hold as it is printed."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

__all__ = ["at_least", "at_most", "roughly"]


def at_least(value: float, digits: int = 6, *, forgiving: float = 0.0) -> str:
    """The least number of so many digits that is not below ``value``: for noise that suffices, and upper bounds.

    A number that is off by a part of ``forgiving`` only is shown as what it stands for.

    >>> at_least(4.4224501), at_least(7.0), at_least(0.1 + 0.2, forgiving=2**-46)
    ('4.42246', '7', '0.3')
    """
    return _written(value, digits, ROUND_CEILING, forgiving)


def at_most(value: float, digits: int = 6, *, forgiving: float = 0.0) -> str:
    """The largest number of so many digits that is not above ``value``: for what is left, and lower bounds.

    >>> at_most(0.99999999), at_most(0.25)
    ('0.999999', '0.25')
    """
    return _written(value, digits, ROUND_FLOOR, forgiving)


def roughly(value: float, digits: int = 4) -> str:
    """The nearest number of so many digits, for what is an estimate in any case.

    >>> roughly(3.14159), roughly(20000.0)
    ('3.142', '20000')
    """
    return _written(value, digits, ROUND_HALF_EVEN, 0.0)


def _written(value: float, digits: int, rounding: str, forgiving: float) -> str:
    if not math.isfinite(value):
        return str(value)
    exact = Decimal(value)
    nearest = Context(prec=digits, rounding=ROUND_HALF_EVEN).create_decimal(exact)
    # What is typed back as the same float is that number.
    close = float(nearest) == value or abs(nearest - exact) <= abs(exact) * Decimal(forgiving)
    number = (nearest if close else Context(prec=digits, rounding=rounding).create_decimal(exact)).normalize()
    _, figures, exponent = number.as_tuple()
    small_enough = isinstance(exponent, int) and -digits - 2 <= exponent and len(figures) + exponent <= digits + 3
    return f"{number:f}" if small_enough else f"{number:e}"
