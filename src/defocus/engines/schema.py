r"""Columns of a table: kinds of value, declared facts, names.

The kinds of value that a question can be about, the same on every engine.

How a column that is declared to be of another kind is read, alike in every engine that has no words of its own.

How numbers, dates and moments are written, where an engine must be told before it reads a text.

Patterns are those of DuckDB as far as people write such texts: decimal numbers with an exponent, dates as year, month,
day, times of a day after them. They are regular expressions that PostgreSQL and Java both read, but for ``\v``.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from functools import cache
from typing import Any, TypeAlias, final

import duckdb
import pyarrow as pa
from sqlglot import exp

from defocus.errors import InvalidParameterError, Number, SourceError, UnknownColumnError, WrongKindError, finite
from defocus.noise import system

__all__ = [
    "ARROW",
    "CANONICAL",
    "CLOCK",
    "DATE",
    "DAY_FIRST",
    "INFINITE",
    "LONGEST_NUMBER",
    "MOMENT",
    "NUMBER",
    "SAYS",
    "Column",
    "Kind",
    "Schema",
    "Value",
    "bounds",
    "cased",
    "check_names",
    "converted",
    "declared",
    "lasting",
    "of_kind",
    "retyped",
    "unique",
    "within",
]


Value: TypeAlias = bool | int | float | str | date | datetime | None
"""What a key or a public constant may be."""


class Kind(StrEnum):
    """What a column or an expression holds. Every kind may also hold NULL.

    >>> Kind("integer").numeric, Kind.TEXT.numeric
    (True, False)
    """

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


ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}
"""What a column of each kind is in Arrow, whichever engine reads it."""
CANONICAL = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.TEXT: "TEXT",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
"""The one type that each kind has everywhere, by a name that every engine knows."""


_LARGEST = 1e75


def retyped(name: str, kind: Kind) -> str:
    """How to say that a column of text holds numbers, for where its source does not, as in a CSV file."""
    declared = f'types={{"{name:.60}": "integer"}} or "number", or its kind in the dataset file'
    return f"; if {name:.60} holds numbers, declare {declared}" if kind is Kind.TEXT else ""


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column by name, what it holds, and what its owner declared about it without looking at the data.

    >>> Column("days", Kind.NUMBER).declared((0, 30))
    Column(name='days', kind=<Kind.NUMBER: 'number'>, low=0, high=30, values=None)
    """

    name: str
    kind: Kind
    low: Number | date | None = None
    high: Number | date | None = None
    values: tuple[Value, ...] | None = None
    growth: tuple[int, int] | None = field(default=None, repr=False)
    """How long a derived text can be: so many times the longest of the data in the row, and so many bytes more."""

    def declared(self, fact: Any) -> "Column":
        """The column with public bounds, a tuple ``(low, high)``, or a public domain, a list of values."""
        if isinstance(fact, tuple) and len(fact) == 2 and self.kind in {Kind.DATE, Kind.TIMESTAMP}:
            return self._between(*fact)
        if isinstance(fact, tuple) and len(fact) == 2 and self.kind.numeric:
            low, high = bounds(self.name, *fact)
            return replace(self, low=low, high=high)
        if isinstance(fact, list) and fact and self.kind.countable:
            return replace(self, values=self._domain(fact))
        if isinstance(fact, tuple) and not self.kind.numeric:
            raise WrongKindError(
                f"Bounds were declared for {self.name!r:.60}, but the column is of kind {self.kind}.",
                fix=f"give a tuple (low, high) for a column of numbers or dates{retyped(self.name, self.kind)}.",
            )
        raise InvalidParameterError(
            f"What was declared about the {self.kind} column {self.name!r} is not understood.",
            fix="give a tuple (low, high) for a numeric column or one of dates, or a list of values for one with a"
            " public domain.",
        )

    def _between(self, low: Any, high: Any) -> "Column":
        """The column of dates or moments with its first and last."""
        ends = self.value(low, "bound"), self.value(high, "bound")
        if None in ends or ends[0] >= ends[1]:
            raise InvalidParameterError(
                f"The bounds of {self.name!r:.60} are {ends[0]!s:.40} and {ends[1]!s:.40}; low must be before high.",
                fix="declare the first and the last that there can be, without looking at the data.",
            )
        return replace(self, low=ends[0], high=ends[1])

    def value(self, value: Any, what: str = "value") -> Any:
        """A public value of the column, exactly; text is never read as a number. None stands for a missing one."""
        plain = value.item() if hasattr(value, "item") else value
        if plain is not None and not self._holds(plain):
            raise WrongKindError(
                f"A {what} of {self.name!r:.60} is {value!r:.60}, but the column is of kind {self.kind}.",
                fix=f"give {what}s of kind {self.kind}{retyped(self.name, self.kind)}.",
            )
        return plain

    def _holds(self, plain: object) -> bool:
        if self.kind is Kind.BOOLEAN:
            return isinstance(plain, bool)
        if self.kind is Kind.INTEGER:
            return isinstance(plain, int) and not isinstance(plain, bool) and -(2**63) <= plain < 2**63
        if self.kind is Kind.DATE:
            return isinstance(plain, date) and not isinstance(plain, datetime)
        if self.kind is Kind.TIMESTAMP:
            return isinstance(plain, datetime) and plain.tzinfo is None
        return self.kind is Kind.TEXT and isinstance(plain, str) and _encodable(plain)

    def _domain(self, values: list[Any]) -> tuple[Value, ...]:
        members = [self.value(value) for value in values]
        if None in members:
            raise InvalidParameterError(
                f"The domain of {self.name!r:.60} holds None, which is no value.",
                fix='leave it out; to see rows without a value as a group, pass keys=["A", None] to group_by.',
            )
        if len(set(members)) != len(members):
            raise InvalidParameterError(f"The domain of {self.name} names a value twice.", fix="name each value once.")
        return tuple(members)


@final
@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table. Names are matched exactly, and two that differ in case only are refused.

    >>> Schema([Column("age", Kind.INTEGER)])["age"].kind
    <Kind.INTEGER: 'integer'>
    """

    columns: tuple[Column, ...]

    def __init__(self, columns: Iterable[Column]) -> None:
        object.__setattr__(self, "columns", tuple(columns))
        seen: dict[str, str] = {}
        for column in self.columns:
            folded = column.name.casefold()
            if folded in seen:
                raise SourceError(
                    "The table has two columns that engines cannot tell apart:"
                    f" {seen[folded]!r:.60} and {column.name!r:.60}.",
                    fix="rename one of them.",
                )
            seen[folded] = column.name

    def __getitem__(self, name: str) -> Column:
        column = self.get(name)
        if column is None:
            raise UnknownColumnError(name, self.names)
        return column

    def get(self, name: str) -> Column | None:
        """The column, or None if there is none of that name."""
        return next((column for column in self.columns if column.name == name), None)

    def __contains__(self, name: object) -> bool:
        return any(column.name == name for column in self.columns)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def names(self) -> list[str]:
        """The names, in the order of the table."""
        return [column.name for column in self.columns]

    def usable(self, name: str) -> Column:
        """The column, if a question can be about it."""
        column = self[name]
        if column.kind is Kind.OTHER:
            raise WrongKindError(
                f"The column {name!r} holds values that no question can be about.",
                fix="cast it to a number, text or a date before the table is opened.",
            )
        return column

    def declare(self, facts: Mapping[str, Any]) -> "Schema":
        """The schema with more declared facts: ``{"days": (0, 30), "ward": ["A", "B"]}``."""
        changed = {name: self.usable(name).declared(fact) for name, fact in facts.items()}
        return Schema(changed.get(column.name, column) for column in self.columns)


def bounds(name: str, low: object, high: object) -> tuple[Number, Number]:
    """Bounds that are still apart as the floats in which engines compute, and whose fourth powers are floats too."""
    ends = finite(f"a bound of {name}", low), finite(f"a bound of {name}", high)
    usual = all(-_LARGEST <= end <= _LARGEST for end in ends)
    if not usual or float(ends[1]) - float(ends[0]) < 1 / _LARGEST:
        raise InvalidParameterError(
            f"The bounds of {name!r:.60} are {ends[0]!s:.40} and {ends[1]!s:.40}; as floats, low must be below high.",
            fix="declare (low, high) that hold for most values, without looking at the data.",
        )
    return ends


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


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
    defocus.errors.rooms.SourceError: Two columns of visits.csv look the same: 'age' and 'Age'.
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


_WRITTEN = (Kind.INTEGER, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP)
"""Kinds whose text is the same in every engine."""
_WAYS = {
    *((Kind.TEXT, kind) for kind in CANONICAL),
    *((kind, Kind.TEXT) for kind in _WRITTEN),
    (Kind.NUMBER, Kind.INTEGER),
    (Kind.INTEGER, Kind.NUMBER),
    (Kind.DATE, Kind.TIMESTAMP),
    (Kind.TIMESTAMP, Kind.DATE),
}
"""From which kind to which a column can be declared."""


def declared(value: exp.Expression, name: str, own: Kind, kind: Kind) -> exp.Expression:
    """A value of one kind, in its one type, read as another kind: NULL where it cannot be."""
    if (own, kind) not in _WAYS:
        raise SourceError(
            f"{name!r:.60} holds values of kind {own}, which cannot be read as {kind} alike in every engine.",
            fix="declare another kind, or make a view of the table with a column of that kind.",
        )
    sure = own is not Kind.TEXT and kind is not Kind.INTEGER
    to = exp.DataType.build(CANONICAL[kind])
    return within(exp.Cast(this=value, to=to) if sure else exp.TryCast(this=value, to=to), kind)


def converted(
    name: str, own: Kind, kind: Kind, canonical: Callable[[exp.Expression], exp.Expression]
) -> exp.Expression:
    """A column in the type of its kind, under its own name; one of another kind is left as it is."""
    quoted = exp.to_identifier(name, quoted=True)
    value: exp.Expression = exp.Column(this=quoted)
    if Kind.OTHER not in {kind, own}:
        value = canonical(value)
        if kind is not own:
            value = declared(value, name, own, kind)
    return exp.Alias(this=value, alias=quoted.copy())


def of_kind(value: exp.Expression, kind: Kind) -> exp.Expression:
    """A value in the one type of its kind, by a cast that cannot fail."""
    return exp.Cast(this=value, to=exp.DataType.build(CANONICAL[kind]))


def within(value: exp.Expression, kind: Kind) -> exp.Expression:
    """A date or moment, if it lies in the years 1 to 9999; anything else as it is."""
    if kind not in {Kind.DATE, Kind.TIMESTAMP}:
        return value
    ends = ("0001-01-01", "9999-12-31") if kind is Kind.DATE else ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")
    low, high = (of_kind(exp.Literal.string(end), kind) for end in ends)
    in_range = exp.Between(this=value.copy(), low=low, high=high)
    return exp.Case(ifs=[exp.If(this=in_range, true=value)])


_SPACE = r"[ \t\n\v\f\r]*"
NUMBER = rf"^{_SPACE}[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{{1,3}})?{_SPACE}$"
LONGEST_NUMBER = 1000
"""Texts of more characters are no numbers."""
INFINITE = rf"^{_SPACE}[+-]?(inf|infinity){_SPACE}$"
_DAY = r"([0-9]{1,5})([-/ \\])([0-9]{1,2})\2([0-9]{1,2})"
CLOCK = r"([0-9]{1,2}):([0-9]{1,2})(:([0-9]{1,2})([.]([0-9]*))?)?"
"""A time of day: hours, minutes, seconds (fourth) and their fraction (sixth)."""
DAY_FIRST = rf"^{_SPACE}{_DAY}"
"""What begins with a day: year, month (third), day (fourth)."""
_TIME = rf"[ T]{_SPACE}{CLOCK}( ?(Z|UTC|[+-][0-9]{{2}}(:?[0-9]{{2}})?))?"
DATE = rf"^{_SPACE}{_DAY}(|{_TIME}){_SPACE}$"
MOMENT = rf"^(?:{_DAY}|{_SPACE}{_DAY.replace(chr(92) + '2', chr(92) + '6')}{_TIME}{_SPACE})$"
_WORDS = (("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0"))
SAYS = "CASE WHEN LOWER(a) IN {!r} THEN TRUE WHEN LOWER(a) IN {!r} THEN FALSE END".format(*_WORDS)
"""Whether a text says yes or no; anything else is NULL."""


_SURROGATES = range(0xD800, 0xE000)


@cache
def cased(function: str) -> tuple[str, str]:
    """All characters that LOWER or UPPER changes, and what each becomes.

    Other engines know rules for whole words, by which a text may grow and its last letter matters: Σ is σ, but ς at
    the end of a word. One character for one character is what all engines can do.

    >>> before, after = cased("LOWER")
    >>> after[before.index("É")], len(before) == len(after)
    ('é', True)
    """
    assert function in {"LOWER", "UPPER"}  # noqa: S101  # what the core asks for
    query = f"SELECT chr(i), {function}(chr(i)) FROM (SELECT unnest($1) AS i) WHERE {function}(chr(i)) <> chr(i)"  # noqa: S608  # one of two words
    points = [i for i in range(1, 0x110000) if i not in _SURROGATES and _changes(chr(i), function)]
    with duckdb.connect(config={"threads": 1}) as connection:
        pairs = connection.execute(query, [points]).fetchall()
    single = [(before, after) for before, after in pairs if len(after) == 1]
    return "".join(before for before, _ in single), "".join(after for _, after in single)


def _changes(character: str, function: str) -> bool:
    """Whether Python, which knows at least as much of Unicode, would change it; asking about all takes long."""
    return (character.lower() if function == "LOWER" else character.upper()) != character
