"""One released column: noisy numbers, and how far off they may be."""

from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError

__all__ = ["Column", "Floats", "noisy"]

Floats: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Released numbers. Noise was added and paid for, so all of it may be shown to anyone.

    ``errors`` are expected absolute errors, NaN where nobody knows; ``low`` and ``high`` hold each true number with
    95 % probability, one at a time; ``integral`` is for counts; ``how`` says which noise was used.
    """

    name: str
    values: Floats
    errors: Floats
    low: Floats
    high: Floats
    integral: bool
    how: str

    def __post_init__(self) -> None:
        for field in ("values", "errors", "low", "high"):
            array = np.array(getattr(self, field), dtype=np.float64)
            if array.ndim != 1 or array.shape != np.shape(self.values):
                raise InvalidParameterError(
                    f"The {field} of the column {self.name!r:.60} have the shape {array.shape}.",
                    fix="give one number for each entry.",
                )
            array.setflags(write=False)
            object.__setattr__(self, field, array)

    def taken(self, rows: Any) -> "Column":
        """Some of the entries, in the order given."""
        return replace(self, **{field: getattr(self, field)[rows] for field in ("values", "errors", "low", "high")})


def noisy(name: str, values: Any, *, error: float, half: float, how: str, integral: bool = True) -> Column:
    """A column whose entries all have the same expected error and the same half-width.

    >>> noisy("edges", [41], error=1.9, half=6, how="Laplace noise").high
    array([47.])
    """
    numbers = np.asarray(values, dtype=np.float64)
    full = np.ones_like(numbers)
    return Column(name, numbers, error * full, numbers - half, numbers + half, integral, how)
