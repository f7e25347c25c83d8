"""What a user declares of a run, read in the same way everywhere; without PyTorch."""

import math
from fractions import Fraction

from defocus.errors import InvalidParameterError, positive
from defocus.privacy.units import Unit

__all__ = ["protected", "steps_of"]


def protected(unit: object) -> Unit:
    """The unit, if examples can be counted in it."""
    if not isinstance(unit, Unit) or unit.kind not in {"rows", "user"}:
        raise InvalidParameterError(
            f"Training protects rows or users, but the unit is {unit!s:.60}.", fix='pass rows() or user("patient_id").'
        )
    return unit


def steps_of(epochs: object, size: int, batch: Fraction | int) -> int:
    """In how many steps each of ``size`` units is drawn ``epochs`` times on average; at least one.

    >>> steps_of(2, 100, 30), steps_of(0.001, 100, 30)
    (7, 1)
    """
    return max(1, math.ceil(Fraction(positive("epochs", epochs)) * size / batch))
