"""How many digits the noise leaves meaningful, and numbers written with exactly those."""

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "brief", "decimals", "rounded", "written"]

Floats: TypeAlias = NDArray[np.float64]

_UNKNOWN = 6
"""Significant digits of a number whose error nobody knows."""


def decimals(errors: Floats, *, integral: bool = False) -> int | None:
    """The decimals of a whole column: none for counts; else the coarsest power of ten at most half its least error.

    A column is written with one number of decimals, so that it can be read and added up; the least noisy group
    decides, so that no group loses anything. A negative number stands for tens, hundreds and so on. None where no
    error is known.

    Error:
        Rounding to a step of at most half the standard error adds at most 1/48, two percent, to the variance.

    >>> decimals(np.array([0.104, 3.0])), decimals(np.array([950.0])), decimals(np.array([14.0]), integral=True)
    (2, -2, 0)
    """
    if integral:
        return 0
    known = errors[np.isfinite(errors) & (errors > 0)]
    return None if not known.size else -math.floor(math.log10(float(known.min()) / 2))


def rounded(values: Floats, places: int | None) -> Floats:
    """The values with so many decimals; as they are where the number is unknown. Never −0."""
    if places is None:
        return values
    # numpy scales by a power of ten, which overflows for very many or very few digits
    return np.round(values, places) + 0.0 if abs(places) <= 300 else values


def written(value: Any, places: int | None) -> str:
    """One number for people: so many decimals, groups of three digits set apart, a dash where there is none.

    >>> written(-12345.678, 1), written(1234.0, -2), written(float("nan"), 0)
    ('-12 345.7', '1 200', '–')
    """
    number = float(value)
    if not math.isfinite(number):
        return "–" if math.isnan(number) else ("∞" if number > 0 else "-∞")
    if places is None or abs(places) > 15 or abs(number) >= 1e15:
        return f"{number:.{_UNKNOWN}g}"
    number = float(rounded(np.array(number), places))
    return f"{number:,.{max(places, 0)}f}".replace(",", " ")


def brief(value: Any) -> str:
    """An error for people: two digits are enough to know how large it is.

    >>> brief(24.49), brief(0.003721), brief(123456.0), brief(0.0)
    ('24', '0.0037', '120 000', '0')
    """
    number = float(value)
    if not math.isfinite(number) or number == 0:
        return written(number, 0)
    return written(number, 1 - math.floor(math.log10(abs(number))))
