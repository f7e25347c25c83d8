"""Aggregates: what can be asked of each group. One class knows its measurement, its noise, its estimate and its words.

Here are those that are measured by themselves: people, quantiles and histograms; different values are in
:mod:`defocus.tables.distinct_values`. What follows from sums, which share measurements, is in
:mod:`defocus.tables.statistics`.
"""

import builtins
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self, TypeAlias, final

import numpy as np
from sqlglot import exp

from defocus.answers import AnswerColumn, Effect, PreviewColumn, Rule
from defocus.errors import InvalidParameterError, Number, finite, probability, whole
from defocus.mechanisms import Quantiles
from defocus.noise import Bits
from defocus.privacy.events import DiscreteLaplace, Event
from defocus.privacy.sensitivity import Sensitivity
from defocus.tables.measurement import Measuring
from defocus.tables.noise import PersonWeight
from defocus.tables.rows import Rows
from defocus.tables.splits import Argument, checked_text, numeric

__all__ = [
    "Aggregate",
    "Histogram",
    "Measured",
    "Planned",
    "Quantile",
    "Ranges",
    "Units",
    "count_units",
    "histogram",
    "max",
    "median",
    "min",
    "quantile",
    "quantiles",
]

Ranges: TypeAlias = Mapping[str, tuple[float, float]]
"""The bounds that were found, by expression."""
_BUCKETS = 1024
_EXTREME = Fraction(1, 200)
"""Minimum and maximum are the quantiles this far from the ends: beyond, single people would decide."""


class Aggregate(ABC):
    """Something to ask of each group; everything in it is public. Its ``repr`` is part of what a ledger remembers."""

    __slots__ = ()
    counts: ClassVar[str] = "rows"
    """What is counted: "rows" and "people" by their weights, "values" one by one."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What is asked, in words."""

    def checked(self, rows: Rows) -> Self:  # noqa: ARG002  # for those that are about columns
        """The same with declared bounds filled in; refused if it does not fit the columns."""
        return self

    def titles(self, name: str) -> list[str]:
        """The columns of the answer that it fills."""
        return [name]

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What it clips."""
        return ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The expressions that it is about."""
        return tuple(argument.text for argument in self.arguments)

    @property
    def call(self) -> tuple[str, Mapping[str, Any]]:
        """The function that makes it, and what this takes; no name where there is none."""
        return "", {}

    @property
    def quotient(self) -> bool:
        """Whether its error depends on the size of the group, as that of a mean does."""
        return False

    @property
    def finds(self) -> bool:
        """Whether a part of its share finds how much of one person counts."""
        return False

    @property
    def limits(self) -> tuple[float, float]:
        """How far rows that noise hides may move it, here upwards alone: see ``limits`` of :class:`.AnswerColumn`."""
        return math.inf, math.inf

    @property
    def shared(self) -> object:
        """What is equal in aggregates that SQL asks for apart and :meth:`together` measures once."""
        return self

    def together(self, others: Sequence["Aggregate"]) -> tuple["Aggregate", Sequence["Aggregate"]]:
        """One aggregate for all others, which share what is measured, and these in the order of its columns."""
        return self, others


class Planned(Protocol):
    """How an aggregate is released: noise on its cells, or a mechanism that chooses. It knows what it owes."""

    @property
    def event(self) -> Event: ...  # noqa: D102


class Measured(Aggregate):
    """An aggregate that is measured by itself: a statement counts cells for each group, and each cell gets noise."""

    __slots__ = ()
    cell: ClassVar[str]
    """What one cell is, in words."""
    in_blocks: ClassVar[bool] = False
    """Whether a group is one cell with noise of its own, so that answers in files can have it."""

    def grid(self, rows: int, people: int) -> int:
        """What one of what it counts weighs, where a full row and a full person weigh so much."""
        return rows if self.counts == "rows" else people

    @property
    def cells(self) -> int:
        """How many cells each group has."""
        return len(self.titles(""))

    @property
    def importance(self) -> int:
        """How many numbers depend on it, by which the budget is shared."""
        return 1

    def rule(self, unit: str | None) -> str | None:  # noqa: ARG002  # for those that bound people
        """What is bounded or dropped, in words; ``unit`` names the person, None where each row is a unit."""
        return None

    @abstractmethod
    def sensitivity(self, person: PersonWeight) -> Sensitivity | None:
        """How far one person moves all cells together; None for a mechanism that has a budget instead of noise."""

    def chooses(self, person: PersonWeight, epsilon: Fraction) -> bool:  # noqa: ARG002  # for quantiles
        """Whether an exponential mechanism chooses from the cells."""
        return False

    def mechanism(self, planned: Any, person: PersonWeight, *, chooses: bool, search: Fraction) -> Planned:  # noqa: ARG002
        """How it is released, from the planned noise or what it may spend, and what it may spend on finding."""
        mechanism: Planned = planned
        return mechanism

    def plan_words(self, mechanism: Any) -> str:
        """How it is released, in words."""
        return str(mechanism.words)

    def searching(self, measuring: Measuring) -> exp.Select | None:  # noqa: ARG002  # for those that find something
        """What the engine is asked for first, to find how much of one person counts."""
        return None

    def settled(
        self,
        measuring: Measuring,
        mechanism: Any,
        bits: Bits,  # noqa: ARG002  # for those that find something
    ) -> tuple["Measured", Measuring, Any, tuple[str, ...]]:
        """What is measured, how and with which noise after something was found, and what to say about that."""
        return self, measuring, mechanism, ()

    def found(self, ranges: Ranges) -> Self:  # noqa: ARG002  # for those that have bounds
        """The same with the bounds that were found."""
        return self

    @abstractmethod
    def statement(self, measuring: Measuring) -> exp.Select:
        """What the engine is asked for."""

    def foreseen(self, name: str, mechanism: Any, grid: int) -> list[PreviewColumn]:
        """What is known about its columns beforehand."""
        error = float(np.sqrt(mechanism.variance)) / grid
        half = mechanism.width * error
        return [PreviewColumn(title, mechanism.words, error, half) for title in self.titles(name)]

    def release(self, name: str, measuring: Measuring, mechanism: Any, bits: Bits) -> list[AnswerColumn]:
        """Its columns, with noise."""
        exact = measuring.exact(self.statement(measuring), self.cells)
        noisy, how = mechanism.noisy(exact, bits, measuring.grid), f"{self.cell}, {mechanism.words}"
        columns = enumerate(self.titles(name))
        return [
            replace(noisy, cells=noisy.cells[:, i : i + 1], source=f"column {title}").count(title, np.ones(1), how)
            for i, title in columns
        ]


@final
@dataclass(frozen=True, slots=True)
class Units(Measured):
    """The number of people."""

    counts = "people"
    in_blocks = True
    words = cell = "number of people"
    call = "count_units", {}  # nothing is added to it

    def sensitivity(self, person: PersonWeight) -> Sensitivity:
        """How far one person moves all cells together."""
        return person.people

    def statement(self, measuring: Measuring) -> exp.Select:
        """What the engine is asked for."""
        return measuring.people_sql()


@final
@dataclass(frozen=True, slots=True)
class Histogram(Measured):
    """How many rows lie between neighbouring edges; what lies outside them counts in the outermost."""

    cell = "rows between two edges"
    text: str
    edges: tuple[float, ...]

    @property
    def words(self) -> str:
        """What is asked, in words."""
        return f"histogram of {self.text}"

    @property
    def texts(self) -> tuple[str, ...]:
        """The column."""
        return (self.text,)

    @property
    def call(self) -> tuple[str, Mapping[str, Any]]:
        """The function that makes it."""
        return "histogram", {"column": self.text, "edges": self.edges}

    def checked(self, rows: Rows) -> Self:
        """The same, refused if it does not fit the columns."""
        numeric(rows, self.text)
        return self

    def titles(self, name: str) -> list[str]:
        """The columns of the answer that it fills."""
        return [f"{name}_{low:g}_to_{high:g}" for low, high in itertools.pairwise(self.edges)]

    def rule(self, unit: str | None) -> str:  # noqa: ARG002  # it is the same for all units
        """What is bounded or dropped, in words."""
        return f"values of {self.text} outside the edges count in the outermost, missing ones not at all"

    def sensitivity(self, person: PersonWeight) -> Sensitivity:
        """How far one person moves all cells together."""
        return person.rows

    def statement(self, measuring: Measuring) -> exp.Select:
        """What the engine is asked for."""
        return measuring.between_sql(self.text, self.edges)


@final
@dataclass(frozen=True, slots=True)
class Quantile(Measured):
    """Values below which given shares of the rows lie; ``single`` if there is one and it is shown as a number."""

    argument: Argument
    levels: tuple[Fraction, ...]
    buckets: int = _BUCKETS
    single: bool = True
    intervals: bool = False
    """Whether intervals are wanted, even where a choice without them would err less."""

    @property
    def words(self) -> str:
        """What is asked, in words."""
        return f"quantile {', '.join(f'{float(level):g}' for level in self.levels)} of {self.argument.text}"

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What it clips."""
        return (self.argument,)

    @property
    def call(self) -> tuple[str, Mapping[str, Any]]:
        """The function that makes it."""
        name, levels = (
            ("quantile", {"level": self.levels[0]}) if self.single else ("quantiles", {"levels": self.levels})
        )
        given = {"column": self.argument.text, **levels, **self.argument.given("bounds")}
        return name, {**given, "buckets": self.buckets, "intervals": self.intervals}

    def checked(self, rows: Rows) -> Self:
        """The same, refused if it does not fit the columns."""
        return replace(self, argument=self.argument.declared(rows))

    def titles(self, name: str) -> list[str]:
        """The columns of the answer that it fills."""
        percents = (f"{float(100 * level):g}".replace(".", "_") for level in self.levels)
        return [name] if self.single else [f"{name}_{percent}" for percent in percents]

    @property
    def cells(self) -> int:
        """How many cells each group has."""
        return self.buckets

    @property
    def quotient(self) -> bool:
        """Its error depends on the group."""
        return True

    def rule(self, unit: str | None) -> str | None:  # noqa: ARG002  # whoever is protected
        """What stands for the smallest and the largest value."""
        extreme = [level for level in self.levels if level in (_EXTREME, 1 - _EXTREME)]
        if not extreme:
            return None
        ends = " and ".join("smallest" if level == _EXTREME else "largest" for level in extreme)
        percents = " and ".join(f"{float(100 * level):g} %" for level in extreme)
        shown = f"the quantile of {percents} of {self.argument.text} stands for the {ends} value"
        return Rule(f"{shown}, which would belong to one person", Effect.TOLD)

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds of the values."""
        return self.argument.bottom, self.argument.bottom + self.argument.width

    @property
    def importance(self) -> int:
        """One for each level."""
        return len(self.levels)

    @property
    def shared(self) -> object:
        """The argument and its buckets."""
        return self.argument, self.buckets

    def together(self, others: Sequence[Aggregate]) -> tuple[Aggregate, Sequence[Aggregate]]:
        """Several levels at one cost."""
        if len(others) == 1:
            return self, others
        ordered = sorted((other for other in others if isinstance(other, Quantile)), key=lambda other: other.levels)
        levels = tuple(sorted(level for other in ordered for level in other.levels))
        return replace(self, levels=levels, single=False), ordered

    def sensitivity(self, person: PersonWeight) -> None:
        """None: its mechanism takes what one person weighs."""

    def chooses(self, person: PersonWeight, epsilon: Fraction) -> bool:
        """By what would be best with the whole budget: decided once, since the cost follows."""
        if self.intervals:
            return False
        best = Quantiles(levels=self.levels, epsilon=epsilon, buckets=self.buckets, sensitivity=person.heaviest)
        return not isinstance(best.event, DiscreteLaplace)

    def found(self, ranges: Ranges) -> Self:
        """The same with the bounds that were found."""
        return replace(self, argument=self.argument.found(ranges))

    def plan_words(self, mechanism: Any) -> str:
        """How it is released, in words."""
        return f"quantiles by {mechanism.method}"

    def mechanism(self, planned: Any, person: PersonWeight, *, chooses: bool, search: Fraction) -> Quantiles:  # noqa: ARG002
        """The exponential mechanism, or a tree of noisy sums."""
        return Quantiles(
            levels=self.levels,
            epsilon=planned,
            buckets=self.buckets,
            sensitivity=person.heaviest,
            replace=person.replace,
            method="search" if chooses else "tree",
        )

    def statement(self, measuring: Measuring) -> exp.Select:
        """What the engine is asked for."""
        return measuring.buckets_sql(self.argument, self.buckets)

    def foreseen(self, name: str, mechanism: Any, grid: int) -> list[PreviewColumn]:
        """What is known beforehand: how far off it is in rank."""
        rank = mechanism.interval(0.95) / grid
        how = _way(rank, tree=mechanism.method == "tree")
        return [PreviewColumn(title, how, rank=rank) for title in self.titles(name)]

    def release(self, name: str, measuring: Measuring, mechanism: Any, bits: Bits) -> list[AnswerColumn]:
        """The middle of each chosen bucket. How far off it is in rank is known beforehand; in value a tree tells."""
        places = mechanism.locate(measuring.exact(self.statement(measuring), self.cells), bits)
        argument, tree = self.argument, places.low is not None
        step = argument.width / self.buckets
        digits = builtins.max(0, 1 - math.floor(math.log10(step)))
        values = np.round(argument.bottom + (places.buckets + 0.5) * step, digits)
        low = high = np.full(values.shape, np.nan)
        if tree:
            low, high = argument.bottom + places.low * step, argument.bottom + (places.high + 1) * step
        rank = float(mechanism.rank_error(0.95) / measuring.grid)
        how, unknown = f"{_way(rank, tree=tree)}, so of fewer rows it says nothing", np.full(len(values), np.nan)
        off = None if tree else rank
        return [
            AnswerColumn(title, values[:, i], unknown, low[:, i], high[:, i], integral=False, how=how, rank=off)
            for i, title in enumerate(self.titles(name))
        ]


def _way(rank: float, *, tree: bool) -> str:
    way = "tree of noisy sums" if tree else "exponential mechanism"
    return f"{way}; at most {rank:.4g} rows from that rank among the rows that count, with 95 % probability"


def count_units() -> Units:
    """The number of people: units of a user-level table, rows of a row-level one.

    >>> count_units()
    Units()
    """
    return Units()


def quantile(
    column: str,
    level: Number,
    low: Number | None = None,
    high: Number | None = None,
    *,
    bounds: Any = None,
    buckets: int = _BUCKETS,
    intervals: bool = False,
) -> Quantile:
    """The value below which a share ``level`` of the rows lies, on a public grid of ``buckets`` between the bounds.

    ``intervals`` asks for an interval around it, which a tree of noisy sums gives; without, a single quantile is chosen
    by the exponential mechanism, which errs less but tells its error in ranks only.

    >>> quantile("age", 0.9, 0, 120).levels
    (Fraction(9, 10),)
    """
    return Quantile(
        Argument.of(column, low, high, bounds), (_level(level),), _buckets(buckets), intervals=bool(intervals)
    )


def quantiles(
    column: str,
    levels: Sequence[Number],
    low: Number | None = None,
    high: Number | None = None,
    *,
    bounds: Any = None,
    buckets: int = _BUCKETS,
    intervals: bool = False,
) -> Quantile:
    """Several quantiles at once, for one cost, in rising order.

    >>> len(quantiles("age", [0.25, 0.5, 0.75], 0, 120).levels)
    3
    """
    wanted = tuple(_level(level) for level in levels)
    if not wanted or list(wanted) != sorted(set(wanted)):
        raise InvalidParameterError(
            "Quantiles need levels in rising order, each once.", fix="write for example [0.25, 0.5, 0.75]."
        )
    return Quantile(
        Argument.of(column, low, high, bounds), wanted, _buckets(buckets), single=False, intervals=bool(intervals)
    )


def median(
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, **how: Any
) -> Quantile:
    """The quantile of one half.

    >>> median("age", 0, 120).levels
    (Fraction(1, 2),)
    """
    return quantile(column, Fraction(1, 2), low, high, bounds=bounds, **how)


def min(  # noqa: A001  # reads as dp.min
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, **how: Any
) -> Quantile:
    """Nearly the smallest value: the quantile of 0.5 %. The very smallest belongs to one person, so it is not asked.

    >>> min("age", 0, 120).levels
    (Fraction(1, 200),)
    """
    return quantile(column, _EXTREME, low, high, bounds=bounds, **how)


def max(  # noqa: A001  # reads as dp.max
    column: str, low: Number | None = None, high: Number | None = None, *, bounds: Any = None, **how: Any
) -> Quantile:
    """Nearly the largest value: the quantile of 99.5 %. The very largest belongs to one person, so it is not asked.

    >>> max("age", 0, 120).levels
    (Fraction(199, 200),)
    """
    return quantile(column, 1 - _EXTREME, low, high, bounds=bounds, **how)


def histogram(column: str, edges: Sequence[Number]) -> Histogram:
    """How many rows lie in [e0, e1), [e1, e2), …; what lies outside the edges counts in the outermost.

    >>> histogram("age", [0, 18, 65, 120]).edges
    (0.0, 18.0, 65.0, 120.0)
    """
    given: object = edges
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidParameterError(
            f"The edges of a histogram are {type(given).__name__}.", fix="write them out, for example [0, 10, 20]."
        )
    numbers = tuple(float(finite("an edge", edge)) for edge in edges)
    if len(numbers) < 2 or any(a >= b for a, b in itertools.pairwise(numbers)):
        raise InvalidParameterError(
            "A histogram needs at least two rising edges.", fix="write for example [0, 10, 20]."
        )
    return Histogram(checked_text(column), numbers)


def _level(level: object) -> Fraction:
    number = probability("level", level, zero=False, one=False)
    return Fraction(str(number)) if isinstance(number, float) else Fraction(number)


def _buckets(buckets: object) -> int:
    number = whole("buckets", buckets, at_least=2)
    if number > 1 << 16:
        raise InvalidParameterError(f"buckets is {number}.", fix="use at most 65536.")
    return number
