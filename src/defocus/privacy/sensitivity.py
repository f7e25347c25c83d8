"""How far one unit can move a statistic."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import final

from defocus.errors import InvalidParameterError, Number, positive

__all__ = ["Norm", "Sensitivity"]


class Norm(StrEnum):
    """In which norm the movement of a vector is measured."""

    L1 = "L1"
    L2 = "L2"
    LINF = "Linf"


@final
@dataclass(frozen=True, slots=True)
class Sensitivity:
    """An exact bound on the distance between the statistics of neighbouring data sets.

    >>> Sensitivity(Norm.L1, 3)
    Sensitivity(norm=<Norm.L1: 'L1'>, bound=Fraction(3, 1))
    """

    norm: Norm
    bound: Fraction

    def __init__(self, norm: Norm | str, bound: Number) -> None:
        try:
            object.__setattr__(self, "norm", Norm(norm))
        except ValueError:
            raise InvalidParameterError(
                f"There is no norm called {norm!r}.", fix=f"use one of {', '.join(Norm)}."
            ) from None
        object.__setattr__(self, "bound", Fraction(positive("bound", bound)))
