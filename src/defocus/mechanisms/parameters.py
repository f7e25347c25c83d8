"""Checks of a mechanism's parameters, and rounding that always lands on the private side."""

from collections.abc import Mapping
from fractions import Fraction
from numbers import Real

from defocus.errors import InvalidParameterError, Number, positive, probability
from defocus.privacy.budgets import Budget
from defocus.privacy.guidance import check_budget
from defocus.privacy.rounding import above

__all__ = [
    "LARGEST_SCALE",
    "SMALLEST_SCALE",
    "checked_budget",
    "checked_rate",
    "noise_scale",
    "not_by_epsilon",
    "outside",
    "scale_for",
]

LARGEST_SCALE = 2**40
"""The widest noise the samplers draw, in steps of the integer grid."""
SMALLEST_SCALE = Fraction(1, 2**40)
"""Narrower noise is zero in every sample that will ever be drawn."""
_RAREST = 1e-300
"""Tails below this are not told apart from nothing."""


def noise_scale(name: str, value: object) -> Number:
    """Return ``value`` if it is a positive scale that the samplers can draw and that protects anyone at all."""
    number = positive(name, value)
    if number < SMALLEST_SCALE:
        raise InvalidParameterError(
            f"{name} is below 2**-40 steps of the grid, which is no noise and no privacy.",
            fix="use a smaller epsilon, or a larger scale.",
        )
    if number > LARGEST_SCALE:
        raise InvalidParameterError(
            f"{name} is {float(number) if number < 2**1000 else 'above 2**1000'}, but exact noise is drawn for scales "
            f"up to 2**40 steps of the grid.",
            fix="use a coarser grid, a smaller sensitivity or a larger budget.",
        )
    return number


def checked_rate(name: str, value: object) -> Number:
    """Return ``value`` if it is positive and of ordinary size, so that nothing computed from it is zero or infinite."""
    number = positive(name, value)
    if not Fraction(1, 2**60) <= number <= 2**60:
        raise InvalidParameterError(f"{name} must lie between 2**-60 and 2**60.", fix=f"pass {name} of ordinary size.")
    return number


def scale_for(sensitivity: Number, epsilon: Number) -> Number:
    """The least scale of at least sensitivity / epsilon: exact for exact input, else the next float above.

    >>> scale_for(1, 0.8), scale_for(1, Fraction(4, 5))
    (1.25, Fraction(5, 4))
    """
    exact = Fraction(sensitivity) / Fraction(epsilon)
    if exact > LARGEST_SCALE or not (isinstance(epsilon, float) or isinstance(sensitivity, float)):
        return noise_scale("the noise scale sensitivity/epsilon", exact)
    return noise_scale("the noise scale sensitivity/epsilon", above(exact))


def checked_budget(value: object) -> Budget:
    """Return ``value`` if it is a budget that may be promised to people."""
    if not isinstance(value, Budget):
        number = isinstance(value, Real) and not isinstance(value, bool)
        raise InvalidParameterError(
            f"Calibration needs a Budget, but got {type(value).__name__}.",
            fix=f"write for example Budget(1, 1e-6){f', or epsilon={value} by name' if number else ''}.",
        )
    return check_budget(value)


def not_by_epsilon(kind: str, named: Mapping[str, object], *, usual: str) -> None:
    """Refuse an epsilon where a scale of noise belongs, and say where it can be given."""
    given = [name for name in ("epsilon", "delta", "budget") if name in named]
    if given:
        raise InvalidParameterError(
            f"{kind} is described by its noise, and takes no {given[0]}.",
            fix=f"let the noise be found: {kind}.calibrated({usual}).",
        )


def outside(value: object) -> float:
    """The probability allowed outside an interval of this ``confidence``: 1 − confidence, in (0, 1)."""
    beyond = float(1 - Fraction(probability("confidence", value, zero=False, one=False)))
    if beyond < _RAREST:
        raise InvalidParameterError(
            "confidence is so close to 1 that no half-width can be told for it.", fix="choose confidence <= 1 - 1e-300."
        )
    return beyond
