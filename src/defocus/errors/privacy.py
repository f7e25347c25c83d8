"""Refusals of the privacy floor."""

from defocus.errors.base import DefocusError, InvalidParameterError

__all__ = ["CannotCalibrateError", "ExpressionError", "FormulaOutOfRangeError", "UnsupportedEventError"]


class FormulaOutOfRangeError(InvalidParameterError):
    """A textbook formula was asked for outside the range in which its theorem holds."""


class UnsupportedEventError(DefocusError):
    """An accountant was given an event it cannot express; it never approximates silently."""

    def __init__(self, event: object, *, accountant: str, why: str, fix: str) -> None:
        name = type(event).__name__
        super().__init__(f"The {accountant} accountant cannot express {name}: {why}.", fix=fix)


class CannotCalibrateError(DefocusError):
    """No parameter in the searched range meets the budget, or the family is not monotone."""


class ExpressionError(DefocusError, ValueError):
    """A privacy expression could not be read."""
