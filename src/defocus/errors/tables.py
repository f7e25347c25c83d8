"""Refusals of the tables room. They depend on the schema, the question and the declared facts, never on a row."""

import difflib
from collections.abc import Iterable
from typing import Any

from defocus.errors.base import DefocusError, InvalidParameterError

__all__ = [
    "DatasetFileError",
    "EngineError",
    "NotDeclaredError",
    "NotFinishedError",
    "SourceError",
    "UnknownColumnError",
    "UnsupportedSqlError",
    "WrongKindError",
]


class SourceError(DefocusError):
    """The data could not be opened, or its schema cannot be used."""


class EngineError(DefocusError):
    """The engine failed while it computed. What it said may quote private values, so it is not repeated."""


class DatasetFileError(DefocusError):
    """A dataset file says something that is not understood; names the place in the file."""


class UnknownColumnError(InvalidParameterError):
    """A question is about a column that the table does not have.

    >>> print(UnknownColumnError("depatment", ["age", "department"]))
    There is no column 'depatment'.
    To fix: did you mean 'department'? The columns are age, department.
    """

    def __init__(self, name: object, known: Iterable[str]) -> None:
        names = list(known)
        if not isinstance(name, str):
            shown = ", ".join(names[:20])
            super().__init__(
                f"Columns are asked for by name, and this is {type(name).__name__}.", fix=f"the columns are {shown}."
            )
            return
        same = [known for known in names if known.casefold() == name.casefold()]
        near = same or difflib.get_close_matches(name[:200], names, n=1)
        case = " (upper and lower case count)" if same else ""
        hint = f"did you mean {near[0]!r}{case}? " if near else ""
        shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
        start = "The" if hint else "the"
        super().__init__(f"There is no column {name!r:.80}.", fix=f"{hint}{start} columns are {shown}.")


class WrongKindError(InvalidParameterError):
    """A column or an expression has a kind that an operation cannot use."""


class NotDeclaredError(InvalidParameterError):
    """A question needs a fact about the data, such as bounds or keys, that nobody declared."""


class UnsupportedSqlError(InvalidParameterError):
    """A construct of SQL that cannot be answered privately or is not understood; names it and the alternative."""

    def __init__(self, construct: str, *, why: str, fix: str) -> None:
        super().__init__(f"{construct} is not allowed here: {why}.", fix=fix)


class NotFinishedError(DefocusError):
    """An answer was released, but what SQL does to it afterwards failed. ``answer`` holds it: it is paid for."""

    def __init__(self, answer: Any, *, why: str) -> None:
        super().__init__(
            f"The answer was released, but HAVING, ORDER BY or a formula could not be applied to it: {why}",
            fix="use the answer in the `answer` attribute of this error.",
        )
        self.answer = answer
