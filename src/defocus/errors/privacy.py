"""Refusals of the privacy floor."""

from defocus.errors.base import DefocusError, InvalidParameterError

__all__ = ["CannotCalibrateError", "ExpressionError", "FormulaOutOfRangeError", "UnsupportedEventError"]


class FormulaOutOfRangeError(InvalidParameterError):
    """A textbook formula was asked for outside the range in which its theorem holds."""


class UnsupportedEventError(DefocusError):
    """An accountant, a filter or group privacy was given an event it cannot express; nothing is approximated.

    ``accountant`` is the name of an accountant; ``who`` replaces it by whoever else refuses.
    """

    def __init__(self, event: object, *, why: str, fix: str, accountant: str = "", who: str = "") -> None:
        name = type(event).__name__
        super().__init__(f"{who or f'The {accountant} accountant'} cannot express {name}: {why}.", fix=fix)


class CannotCalibrateError(DefocusError):
    """No parameter in the searched range meets the budget, or the family is not monotone."""


class ExpressionError(DefocusError, ValueError):
    """A privacy expression could not be read; the text shows where.

    >>> print(ExpressionError("An event is missing", text="2 * ", position=4, fix="add one."))
    An event is missing, at position 5:
        2 *
            ^
    To fix: add one.
    """

    def __init__(self, what: str, *, text: str, position: int, fix: str) -> None:
        super().__init__(f"{what}, at position {position + 1}:\n{_pointing_at(text, position)}", fix=fix)
        self.position = position


def _pointing_at(text: str, position: int, *, around: int = 32) -> str:
    """The neighbourhood of ``position`` on one line with a caret under it; odd characters become question marks."""
    start, end = max(0, position - around), min(len(text), position + around)
    shown = "".join(c if " " <= c <= "~" else " " if c.isspace() else "?" for c in text[start:end])
    before, after = "..." if start else "", "..." if end < len(text) else ""
    return f"    {before}{shown}{after}\n    {' ' * (len(before) + position - start)}^"
