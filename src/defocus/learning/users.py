"""Whose each example is: every user by itself, whoever else is in the data."""

import datetime as dt
from typing import Any
from uuid import UUID

from defocus.errors import UnfitDataError
from defocus.errors.plain import Plain, guarded, number
from defocus.mechanisms.columns import declared, read_column

__all__ = ["numbered"]

_KINDS = "iufbUSTO"
"""Whole numbers, fractions, truth values, texts, bytes and objects, by numpy's letters."""


def numbered(users: Any, length: int) -> list[int | None]:
    """The number of the user of each example, counted from zero; None for one that is nobody's.

    Guarantee:
        A type and a length that are declared are refused or not, whatever is in them. Numbers, texts, bytes, dates and
        UUIDs name a user each; what is missing and anything else names nobody. Equal numbers name one user, and a text
        that spells a number names another.

    >>> numbered(["b", 3, None, 3.0, float("nan"), "b", "3", [3]], 8)
    [0, 1, None, 1, None, 0, 2, None]
    """
    array = hasattr(users, "__array__") or declared(users) is not None
    given: tuple[Any, Any] = read_column(users) if array else (users, None)
    found, there = given
    if array and found.dtype.kind not in _KINDS:
        raise UnfitDataError(
            f"users= must hold numbers or texts, but is of type {str(declared(users))[:40]}.",
            fix="convert it, for example with users.astype(str).",
        )
    if (not isinstance(found, list | tuple | range) and (not array or found.ndim != 1)) or len(found) != length:
        raise UnfitDataError(
            "users= must name one user for each example.",
            fix="pass a list or a one-dimensional array as long as the data.",
        )
    keys = [guarded(_key, cell, None) for cell in (found.tolist() if array else found)]
    places: dict[Any, int] = {}
    known = [True] * length if there is None else there.tolist()
    return [
        places.setdefault(key, len(places)) if here and key is not None else None
        for key, here in zip(keys, known, strict=True)
    ]


def _key(cell: Any) -> Plain | tuple[str] | None:
    """What a user is told apart by; None for nobody."""
    found: Plain | tuple[str] | None = number(cell)
    if found is None and isinstance(cell, bytes | UUID | dt.date) and cell == cell:  # noqa: PLR0124 # a missing date
        found = (repr(cell),)
    return found if found == found else None  # noqa: PLR0124 # NaN
