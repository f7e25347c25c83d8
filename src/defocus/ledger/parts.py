"""Parts of the data that have nobody in common: what a release from one of them costs the others is nothing."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

from defocus.errors import InvalidParameterError
from defocus.ledger.text import line
from defocus.privacy.units import Adjacency, Unit

__all__ = ["MOST_PARTS", "Parts", "key_of", "labels_of"]

MOST_PARTS = 1_000
"""How many parts one charge can name."""
_LONGEST = 300
_TAG = b"defocus ledger part 1\n"
_ROWS, _PEOPLE, _PERIODS = "rows", "people", "periods"
_WHY = {
    _ROWS: "each row is in one part",
    _PEOPLE: "the owner of the data declares that each person is in one part only",
    _PERIODS: "each unit is what one person has in one part",
}


@final
@dataclass(frozen=True, slots=True)
class Parts:
    """The column that divides the data, the kind of its values, and why nobody is in two parts.

    ``apart`` is "rows" where the unit is one row, which has one value of the column, and "people" where the unit is a
    person and the owner declares that all their rows have the same value, now and in whatever data is added later. It
    is "periods" where the unit is what one person has in one part, so that a person's parts have a budget each.

    Guarantee:
        Written in the first entry of a ledger, and held against every later opening: the same label means the same
        rows for as long as the ledger lives. The kind belongs to it: 1 as a number and "1" as a text could select the
        same row under two labels, and each would pay only half.
    Assumes:
        A row never moves to another part once something was released from its own.

    >>> print(Parts("day", "date", "rows"))
    parts by day (date); each row is in one part
    """

    column: str
    kind: str
    apart: str

    def __str__(self) -> str:
        return f"parts by {self.column} ({self.kind}); {_WHY[self.apart]}"

    def check(self, unit: Unit) -> "Parts":
        """These parts, if a ledger that protects ``unit`` can count them apart.

        Where one unit is replaced by another, its row may leave one part for another, so that two are touched at
        once; and a node or an edge of a graph has no row. Both are refused rather than counted.
        """
        line("the column of the parts", self.column)
        line("the kind of the parts", self.kind)
        if self.apart not in _WHY:
            raise InvalidParameterError(
                f"There is no reason {self.apart!r:.40} for parts.", fix="give rows, people or periods."
            )
        if unit.adjacency is not Adjacency.ADD_REMOVE:
            raise InvalidParameterError(
                f"Parts cannot be counted apart where the unit is {unit}: its row may move from one part to another.",
                fix="leave the parts out of this ledger, or protect units that are added or removed.",
            )
        if unit.per_person not in {None, 1} and self.apart != _PERIODS:
            raise InvalidParameterError(
                f"Parts cannot be counted apart where the unit is {unit}: one person may be in several.",
                fix="leave the parts out of this ledger, or protect people who are in one part each.",
            )
        fits = unit.kind in {_ROWS: {"rows", "event"}, _PEOPLE: {"user"}, _PERIODS: {"user", "rows"}}[self.apart]
        if not fits or unit.period != (self.column if self.apart == _PERIODS else None):
            raise InvalidParameterError(
                f"That {_WHY[self.apart]} says nothing about {unit}.",
                fix="give the reason that belongs to the unit: rows for rows and events, people for people, periods for"
                " what people have in a period.",
            )
        return self

    def to_dict(self) -> dict[str, Any]:
        """The parts with JSON types only."""
        return {"column": self.column, "kind": self.kind, "apart": self.apart}


def labels_of(given: object) -> tuple[str, ...]:
    """The labels of a charge, sorted, each once; none means everybody.

    >>> labels_of(["b", "a", "b"])
    ('a', 'b')
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidParameterError(
            f"parts must list the labels of parts, but it is {type(given).__name__}.",
            fix='write parts=["2026-11-14"], and leave it out where the release is about everybody.',
        )
    labels = tuple(sorted({line("the label of a part", label, longest=_LONGEST) for label in given}))
    if len(labels) > MOST_PARTS:
        raise InvalidParameterError(
            f"One charge can name {MOST_PARTS} parts, and this one names {len(labels)}.",
            fix="charge everybody, by naming none, or ask about fewer parts.",
        )
    return labels


def key_of(label: str) -> str:
    """What a label is looked up by: the same length for each, and no two alike in any database's collation."""
    return hashlib.sha256(_TAG + label.encode("utf-8", "surrogatepass")).hexdigest()
