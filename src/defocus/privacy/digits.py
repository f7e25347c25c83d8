"""Numbers as short text that errs on the safe side: advice that is printed must hold as it is printed."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

__all__ = ["at_least", "at_most"]


def at_least(value: float, digits: int = 6) -> str:
    """The least number of so many digits that is not below ``value``: for noise that suffices.

    >>> at_least(4.4224501), at_least(7.0)
    ('4.42246', '7')
    """
    return _written(value, digits, ROUND_CEILING)


def at_most(value: float, digits: int = 6) -> str:
    """The largest number of so many digits that is not above ``value``: for what is left to spend.

    >>> at_most(0.99999999), at_most(0.25)
    ('0.999999', '0.25')
    """
    return _written(value, digits, ROUND_FLOOR)


def _written(value: float, digits: int, rounding: str) -> str:
    nearest = f"{value:.{digits}g}"
    if not math.isfinite(value) or float(nearest) == value:  # what is typed back is the same float
        return nearest
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))):.{digits}g}"
