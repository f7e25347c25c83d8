"""Which names a column may have, decided before any engine renames or confuses them."""

import re
import unicodedata
from collections.abc import Iterable

from defocus.errors import SourceError
from defocus.noise import system

__all__ = ["check_names", "lasting", "unique"]

_LONGEST = 1000
_TOKEN = re.compile(r" [0-9a-f]{32}\b")


def unique(name: str) -> str:
    """A name that begins as the given one and is unlike any other: what follows is drawn at random."""
    return f"{name} {system().integer(128):032x}"


def lasting(text: str) -> str:
    """A text with the names that :func:`unique` made as they were before, and so the same each time.

    >>> lasting(f"SELECT * FROM {unique('visits')}")
    'SELECT * FROM visits'
    """
    return _TOKEN.sub("", text)


def check_names(names: Iterable[object], where: str) -> list[str]:
    """The names of a table's columns, if they can be told apart by every engine and by people.

    >>> check_names(["age", "Age"], "visits.csv")
    Traceback (most recent call last):
    ...
    defocus.errors.tables.SourceError: Two columns of visits.csv look the same: 'age' and 'Age'.
    To fix: rename one of them.
    """
    seen: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str):
            raise SourceError(
                f"A column of {where} is called {name!r:.40}, which is not text.", fix="name every column with text."
            )
        if not name.strip() or len(name) > _LONGEST or any(unicodedata.category(c) in {"Cc", "Cs"} for c in name):
            raise SourceError(
                f"A column of {where} has a name that cannot be written: {name!a:.60}.",
                fix=f"give it a name of 1 to {_LONGEST} characters without control characters.",
            )
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
        if folded in seen:
            raise SourceError(
                f"Two columns of {where} look the same: {seen[folded]!r:.60} and {name!r:.60}.",
                fix="rename one of them.",
            )
        seen[folded] = name
    if not seen:
        raise SourceError(f"There is no column in {where}.", fix="check that this is the right table.")
    return list(seen.values())
