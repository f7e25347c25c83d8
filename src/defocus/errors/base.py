"""The root of every error a user can see, and the two that every room raises."""

import re
from typing import Self

__all__ = ["DefocusError", "InvalidParameterError", "MissingExtraError"]


class DefocusError(Exception):
    """Something was refused. The text says what happened, the numbers, and how to mend it.

    >>> print(DefocusError("The cup is empty.", fix="pour some tea."))
    The cup is empty.
    To fix: pour some tea.
    """

    def __init__(self, what: str, *, fix: str, command: str | None = None) -> None:
        super().__init__(what, fix)
        self.what = what
        self.fix = fix
        self.command = command
        """How to mend it on the command line, where that is more than options in the place of parameters."""

    def __str__(self) -> str:
        return f"{self.what}\nTo fix: {self.fix}"

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling between processes, whatever the subclass's constructor takes."""
        return _rebuild, (type(self), self.args, self.__dict__)


_BEFORE, _WIDTH = 60, 100
"""How much of a line is shown before what was refused, and in all."""


def _visible(line: str) -> str:
    """The line with a space in the place of each character that would move the others or act."""
    return "".join(character if character.isprintable() else " " for character in line)


class InvalidParameterError(DefocusError, ValueError):
    """A parameter is outside the range in which its meaning is defined."""

    subject: tuple[str, str, str] | None = None
    """The name of the parameter, what is said of it, and the fix with ``{}`` in the place of the name."""
    span: tuple[int, int] | None = None
    """From where to where in a text the refused part stands."""
    word: str | None = None
    """The word of a text that was refused, where its place is not known."""

    def placed(self, text: str) -> Self:
        """The same refusal with the line of the text that it is about, if that is known, and a mark below.

        >>> error = InvalidParameterError("The unit is unknown.", fix="write 'day'.")
        >>> error.span = 7, 11
        >>> print(error.placed("SELECT yaer(day)"))
        The unit is unknown.
          line 1, column 8:
          SELECT yaer(day)
                 ^^^^
        To fix: write 'day'.
        """
        if self.span is None and self.word is not None:
            found = re.search(rf"\b{re.escape(self.word)}\b", text, re.IGNORECASE)
            self.span = None if found is None else found.span()
        if self.span is None:
            return self
        (start, end), self.span = self.span, None
        first = text.rfind("\n", 0, start) + 1
        line = text[first:].split("\n", 1)[0]
        column, length = start - first, max(1, min(end, first + len(line)) - start)
        left = max(0, column - _BEFORE)
        shown, marks = line[left : left + _WIDTH], " " * (column - left) + "^" * length
        where = f"line {text.count(chr(10), 0, start) + 1}, column {column + 1}"
        self.what = f"{self.what}\n  {where}:\n  {_visible(shown)}\n  {marks[:_WIDTH]}"
        self.args = (self.what, self.fix)
        return self

    @classmethod
    def about(cls, name: str, said: str, fix: str) -> Self:
        """Refuse the parameter ``name``, which a command may call otherwise.

        >>> print(InvalidParameterError.about("epsilon", "must be positive, but it is -1.", "pass {} > 0."))
        epsilon must be positive, but it is -1.
        To fix: pass epsilon > 0.
        """
        error = cls(f"{name} {said}", fix=fix.format(name))
        error.subject = name, said, fix
        return error


class MissingExtraError(DefocusError, ImportError):
    """An optional part is not installed."""

    def __init__(self, feature: str, *, package: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the package {package}, which is not installed.",
            fix=f"run: pip install 'defocus[{extra}]'",
        )


def _rebuild(kind: type[DefocusError], args: tuple[object, ...], state: dict[str, object]) -> DefocusError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error
