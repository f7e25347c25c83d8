"""What is publicly known about a table: its columns, and the bounds and domains declared for them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, final

from defocus.engines.kinds import Kind, Value
from defocus.errors import InvalidParameterError, Number, SourceError, UnknownColumnError, WrongKindError, finite

__all__ = ["Column", "Schema", "bounds"]

_LARGEST = 1e75


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column by name, what it holds, and what its owner declared about it without looking at the data.

    >>> Column("days", Kind.NUMBER).declared((0, 30))
    Column(name='days', kind=<Kind.NUMBER: 'number'>, low=0, high=30, values=None)
    """

    name: str
    kind: Kind
    low: Number | None = None
    high: Number | None = None
    values: tuple[Value, ...] | None = None
    growth: tuple[int, int] | None = field(default=None, repr=False)
    """How long a derived text can be: so many times the longest of the data in the row, and so many bytes more."""

    def declared(self, fact: Any) -> "Column":
        """The column with public bounds, a tuple ``(low, high)``, or a public domain, a list of values."""
        if isinstance(fact, tuple) and len(fact) == 2 and self.kind.numeric:
            low, high = bounds(self.name, *fact)
            return replace(self, low=low, high=high)
        if isinstance(fact, list) and fact and self.kind.countable:
            return replace(self, values=self._domain(fact))
        raise InvalidParameterError(
            f"What was declared about the {self.kind} column {self.name!r} is not understood.",
            fix="give a tuple (low, high) for a numeric column, or a list of values for one with a public domain.",
        )

    def value(self, value: Any, what: str = "value") -> Any:
        """A public value of the column, exactly; text is never read as a number. None stands for a missing one."""
        plain = value.item() if hasattr(value, "item") else value
        if plain is not None and not self._holds(plain):
            raise WrongKindError(
                f"A {what} of {self.name!r:.60} is {value!r:.60}, but the column is of kind {self.kind}.",
                fix=f"give {what}s of kind {self.kind}.",
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
        found = [self.value(value) for value in values]
        if None in found:
            raise InvalidParameterError(
                f"The domain of {self.name!r:.60} holds None, which is no value: empty keys stand for all of them.",
                fix='leave it out; to see rows without a value as a group, pass keys=["A", None] to group_by.',
            )
        if len(set(found)) != len(found):
            raise InvalidParameterError(f"The domain of {self.name} names a value twice.", fix="name each value once.")
        return tuple(found)


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
