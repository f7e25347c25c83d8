"""Floor 0: every error the user can see, worded in one place.

::

    DefocusError
    ├── InvalidParameterError (ValueError)
    │   └── FormulaOutOfRangeError      a textbook formula used where it is unsound
    ├── UnsupportedEventError           an accountant cannot express an event
    ├── CannotCalibrateError            no parameter meets the budget, or the family is not monotone
    ├── ExpressionError (ValueError)    an expression that could not be read
    └── MissingExtraError (ImportError)
"""

from defocus.errors.base import DefocusError, InvalidParameterError, MissingExtraError
from defocus.errors.checks import Number, count, finite, in_range, non_negative, positive, probability, whole
from defocus.errors.privacy import (
    CannotCalibrateError,
    ExpressionError,
    FormulaOutOfRangeError,
    UnsupportedEventError,
)

__all__ = [
    "CannotCalibrateError",
    "DefocusError",
    "ExpressionError",
    "FormulaOutOfRangeError",
    "InvalidParameterError",
    "MissingExtraError",
    "Number",
    "UnsupportedEventError",
    "count",
    "finite",
    "in_range",
    "non_negative",
    "positive",
    "probability",
    "whole",
]
