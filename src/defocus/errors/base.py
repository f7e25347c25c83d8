"""The root of every error a user can see, and the two that every room raises."""

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


class InvalidParameterError(DefocusError, ValueError):
    """A parameter is outside the range in which its meaning is defined."""

    subject: tuple[str, str, str] | None = None
    """The name of the parameter, what is said of it, and the fix with ``{}`` in the place of the name."""

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
