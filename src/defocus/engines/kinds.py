"""The kinds of value that a question can be about, the same on every engine."""

from datetime import date, datetime
from enum import StrEnum
from typing import TypeAlias

__all__ = ["CANONICAL", "Kind", "Value"]

Value: TypeAlias = bool | int | float | str | date | datetime | None
"""What a key or a public constant may be."""


class Kind(StrEnum):
    """What a column or an expression holds. Every kind may also hold NULL."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    """A 64-bit float; decimals are read as such."""
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    """A moment without a time zone; moments with one are read in UTC."""
    OTHER = "other"
    """Anything else: lists, blobs, intervals. Such a column may be there, but no question can be about it."""

    @property
    def numeric(self) -> bool:
        """Whether arithmetic is defined."""
        return self in {Kind.INTEGER, Kind.NUMBER}

    @property
    def countable(self) -> bool:
        """Whether values can be keys of groups: anything but floats, which are never quite equal."""
        return self not in {Kind.NUMBER, Kind.OTHER}


CANONICAL = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.TEXT: "TEXT",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
"""The one type that each kind has everywhere, by a name that every engine knows."""
