"""Columns as public codes: what a column may hold, how the engine counts it, and how codes become values again.

Every row has a code in every column, whatever it holds. Codes are declared values, in the order in which they were
declared, or cells between public edges; then ``other`` where values were found privately; the last code means missing.
Values outside the bounds count in the nearest cell; values that were not declared count as missing.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from defocus.engines.schema import ARROW, Column, Kind, Value, retyped
from defocus.engines.syntax import BIGINT, decimal, typed, whole
from defocus.errors import InvalidParameterError, NotDeclaredError, WrongKindError, finite

__all__ = ["OTHER", "Domain", "domain_of", "halved"]

OTHER = "other"
"""What stands for values that were not found."""
_CELLS = 512
"""Into how many cells a range is divided at most; neighbours are merged later, where few records are."""
_MOST_VALUES = 1 << 17
_MOST_POPULAR = 100
_DECIMAL = tuple(lead * 10.0**power for power in range(15, -13, -1) for lead in (5, 1))
_UNITS = {
    Kind.NUMBER: _DECIMAL,
    Kind.INTEGER: _DECIMAL,
    Kind.DATE: (365.25, 30.4375, 7.0),
    Kind.TIMESTAMP: (86400.0, 3600.0, 900.0, 60.0),
}
"""Multiples of these are round, the first ones most; for dates about the first of a year, of a month, and weeks."""
_FARTHEST = {
    Kind.NUMBER: 1e308,
    Kind.INTEGER: 2.0**63,
    Kind.DATE: 2.0**31 - 1,
    Kind.TIMESTAMP: 2.0**43,
    Kind.TEXT: 0.0,
    Kind.BOOLEAN: 0.0,
}
"""So far from zero may the ends of cells be."""
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # moments have no zone here


@final
@dataclass(frozen=True, slots=True)
class Domain:
    """The codes of one column.

    >>> ward = Domain("ward", Kind.TEXT, values=("A", "B"))
    >>> ward.size, ward.decode(np.array([1, 0, 2]), np.zeros(3)).to_pylist()
    (3, ['B', 'A', None])
    """

    name: str
    kind: Kind
    values: tuple[Value, ...] = ()
    """The values, where they were declared or found; none where the column has cells."""
    edges: tuple[float, ...] = ()
    """The ends of the cells: numbers, days or seconds since 1970; the last end belongs to the last cell.

    Two ends that are the same hold one value, at which values may pile up.
    """
    step: float | None = None
    """What lies between neighbouring values; None where every float is one."""
    other: bool = False
    """Whether a code stands for all values that were not found."""
    found: bool = False
    """Whether values are found in the course of the release."""

    @property
    def size(self) -> int:
        """How many codes there are."""
        return (max(0, len(self.edges) - 1) or len(self.values)) + self.other + 1

    @property
    def missing(self) -> int:
        """The code of a missing value."""
        return self.size - 1

    @property
    def ordered(self) -> bool:
        """Whether neighbouring codes are alike: cells, and numbers or dates that were declared in ascending order."""
        known = [value for value in self.values if not isinstance(value, str | bool)]
        rising: Any = itertools.pairwise(known)
        return bool(self.edges) or (len(known) == len(self.values) and all(a < b for a, b in rising))

    @property
    def spikes(self) -> tuple[int, ...]:
        """The cells of one value among cells of many."""
        if not self.wide:
            return ()
        widths, least = np.diff(self.edges), self.step or 0.0
        return tuple(np.flatnonzero(widths < 1.5 * least if least else widths == 0).tolist())

    @property
    def wide(self) -> bool:
        """Whether a cell holds several values, of which nothing is known but how many records are in the cell."""
        return bool(len(self.edges)) and bool(np.diff(self.edges).max() > 1.5 * (self.step or 0.0))

    def binned(self, value: exp.Expression, bins: Sequence[int]) -> exp.Expression:
        """The bin of a value in SQL, an integer for every row; ``bins`` has that of each code."""
        case = exp.case().when(value.copy().is_(exp.null()), _literal(bins[self.missing]), copy=False)
        if self.edges:
            starts = [place for place in range(1, len(self.edges) - 1) if bins[place] != bins[place - 1]]
            names = [_literal(bins[place]) for place in (0, *starts)]
            below = [
                (exp.LTE if self.edges[start] == self.edges[start - 1] else exp.LT)(
                    this=value.copy(), expression=self._written(self.edges[start])
                )
                for start in starts
            ]
            return case.else_(halved(below, names), copy=False)
        for place, known in enumerate(self.values):
            case = case.when(exp.EQ(this=value.copy(), expression=_constant(known)), _literal(bins[place]), copy=False)
        return case.else_(_literal(bins[self._unknown]), copy=False)

    def coded(self, called: str) -> pa.Table:
        """All values with their codes, in a column that is ``called`` so, for an engine to join."""
        codes = pa.array(range(len(self.values)), pa.int64())
        return pa.table({self.name: pa.array(self.values, ARROW[self.kind]), called: codes})

    def looked_up(self, value: exp.Expression, code: exp.Expression, bins: Sequence[int]) -> exp.Expression:
        """The bin of a value in SQL, where its ``code`` was joined to it: a few cases, however many values there are.

        Neighbours that share a bin are one case, and so are neighbours whose bins follow each other.
        """
        runs = _runs(bins[: len(self.values)])
        below = [exp.LT(this=code.copy(), expression=_literal(start)) for start, _, _ in runs[1:]]
        names = [_literal(name) if flat else _moved(code, name - start) for start, name, flat in runs]
        case = exp.case().when(value.copy().is_(exp.null()), _literal(bins[self.missing]), copy=False)
        case = case.when(code.copy().is_(exp.null()), _literal(bins[self._unknown]), copy=False)
        return case.else_(halved(below, names), copy=False)

    @property
    def _unknown(self) -> int:
        """The code of values that are not known."""
        return len(self.values) if self.other else self.missing

    def decode(self, codes: NDArray[Any], shares: NDArray[np.float64]) -> pa.Array:
        """A value for each code, in the type of the column: so far, from 0 to 1, between the ends of its cell."""
        gone = codes == self.missing
        if not self.edges:
            names = [*self.values, *([OTHER] if self.other else []), None]
            kinds = pa.array(names, ARROW[self.kind])
            return kinds.take(pa.array(np.where(gone, len(names) - 1, codes), pa.int64()))
        ends = np.array(self.edges)
        cell = np.minimum(codes, len(ends) - 2)
        low, high = ends[cell], ends[cell + 1]
        numbers = low + shares * (high - low)
        if self.step is not None:  # edges lie half a step below the first value of a cell
            first = self.edges[0] + self.step / 2
            places = np.clip(np.round((numbers - first) / self.step), np.ceil((low - first) / self.step - 1e-9), None)
            numbers = first + self.step * np.minimum(places, np.ceil((high - first) / self.step - 1e-9) - 1)
            numbers = np.round(numbers, max(0, 3 - math.floor(math.log10(self.step))))
        return self._typed(np.clip(numbers, ends[0], ends[-1]), gone)

    def roundest(self) -> NDArray[np.float64]:
        """For each cell the place, from 0 to 1, of its roundest value: where people heap who report about.

        >>> gain = domain_of(Column("gain", Kind.INTEGER), (0, 99_999), told=True)
        >>> gain.decode(np.array([40]), gain.roundest()[[40]]).to_pylist()
        [7700]
        """
        low, high = np.array(self.edges[:-1]), np.array(self.edges[1:])
        first, last = (low + self.step / 2, high - self.step / 2) if self.step else (low, high)
        found, left = first.copy(), high > low
        beside = np.append(False, ~left[:-1])  # the lower end is another cell, in which values pile up
        for unit in _UNITS[self.kind]:
            slack = 1e-9 * (high - low)
            own = np.ceil((first - slack) / unit) * unit
            own = np.where(beside & (own <= low + slack), own + unit, own)
            hit = left & (own >= first - slack) & (own <= last + (slack if self.step else -slack))
            found[hit] = own[hit]
            left = left & ~hit
        places = np.divide(found - low, high - low, out=np.full(len(low), 0.5), where=high > low)
        return np.append(places, 0.5)

    def _typed(self, numbers: NDArray[np.float64], gone: NDArray[np.bool_]) -> pa.Array:
        if self.kind is Kind.NUMBER:
            return pa.array(numbers, pa.float64(), mask=gone)
        whole_ones = np.round(numbers).astype(np.int64)
        if self.kind is Kind.INTEGER:
            return pa.array(whole_ones, pa.int64(), mask=gone)
        if self.kind is Kind.DATE:
            return pa.array(whole_ones.astype(np.int32), pa.int32(), mask=gone).cast(pa.date32())
        return pa.array(whole_ones * 1_000_000, pa.int64(), mask=gone).cast(pa.timestamp("us"))

    def _written(self, edge: float) -> exp.Expression:
        """An edge as a constant of the column's kind; a whole day or second above it, where it lies between two."""
        if self.kind is Kind.INTEGER:
            return _literal(math.ceil(edge))
        if self.kind is Kind.NUMBER:
            return decimal(edge)
        moment = _EPOCH + (
            timedelta(days=math.ceil(edge)) if self.kind is Kind.DATE else timedelta(seconds=math.ceil(edge))
        )
        return _constant(moment.date() if self.kind is Kind.DATE else moment)

    def to_json(self) -> dict[str, Any]:
        """Everything about it, as JSON."""
        written = [value.isoformat() if isinstance(value, date) else value for value in self.values]
        return {
            "name": self.name,
            "kind": str(self.kind),
            "values": written,
            "edges": list(self.edges),
            "step": self.step,
            "other": self.other,
        }

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> "Domain":
        """The domain that :meth:`to_json` wrote."""
        kind = Kind(written["kind"])
        read: Callable[[Any], Any] = {Kind.DATE: date.fromisoformat, Kind.TIMESTAMP: datetime.fromisoformat}.get(
            kind, lambda value: value
        )
        values, edges = tuple(read(value) for value in written["values"]), tuple(map(float, written["edges"]))
        step, name = (None if written["step"] is None else float(written["step"])), written["name"]
        pa.array(values, ARROW[kind])  # refused, where they are of another kind
        ends = np.array([*edges, 0.0])
        if not isinstance(name, str) or not np.isfinite(ends).all() or np.abs(ends).max() > _FARTHEST[kind]:
            raise ValueError("a column is not known")
        if (
            (edges and (len(edges) < 2 or values))
            or (np.diff(edges) < 0).any()
            or not 0 < (1.0 if step is None else step) < math.inf
        ):
            raise ValueError("cells do not follow each other")
        return cls(name, kind, values, edges, step, written["other"] is True)


def domain_of(column: Column, fact: Any, *, told: bool) -> Domain:
    """The domain of a column by what its owner declared, or by a ``fact`` that was ``told`` for this synthesis.

    A fact is a list of values, bounds ``(low, high)``, bounds with the step between values ``(low, high, step)``, the
    same with values that are known to be frequent ``(low, high, step, values)``, or None to find the values of a text
    privately.

    >>> domain_of(Column("age", Kind.INTEGER), (0, 3), told=True).edges
    (-0.5, 0.5, 1.5, 2.5, 3.5)
    """
    name, kind = column.name, column.kind
    if told and fact is None:
        if kind is not Kind.TEXT:
            raise WrongKindError(
                f"The values of {name!r:.60} are to be found, but the column is of kind {kind}.",
                fix="values of texts are found; give bounds (low, high) or a list of values for another kind.",
            )
        return Domain(name, kind, other=True, found=True)
    if told and isinstance(fact, tuple):
        return _cells(name, kind, fact)
    if told:
        column = column.declared(fact)
    if column.values is None and kind is Kind.BOOLEAN:
        return Domain(name, kind, values=(False, True))
    if column.values is not None:
        if len(column.values) > _MOST_VALUES:
            raise InvalidParameterError(
                f"The domain of {name!r:.60} has more than {_MOST_VALUES} values.",
                fix=f'let frequent ones be found: columns={{"{name:.40}": None}}, or group them in a derived column.',
            )
        return Domain(name, kind, values=column.values)
    if column.low is not None and column.high is not None:
        return _cells(name, kind, (column.low, column.high))
    raise _undeclared(name, kind)


def _undeclared(name: str, kind: Kind) -> NotDeclaredError:
    ways = {
        Kind.TEXT: f'its values, columns={{"{name:.40}": ["A", "B"]}}, or None to find the frequent ones',
        Kind.DATE: f'its first and last day, columns={{"{name:.40}": (date(2020, 1, 1), date(2024, 12, 31))}}',
        Kind.TIMESTAMP: f'its first and last moment, columns={{"{name:.40}": (datetime(…), datetime(…))}}',
    }
    usual = f'its bounds, columns={{"{name:.40}": (0, 100)}}'
    text = kind is Kind.TEXT
    ends = "low = 2020-01-01 and high = 2024-12-31" if kind in {Kind.DATE, Kind.TIMESTAMP} else "low = 0 and high = 100"
    lines = 'values = ["A", "B"], or its kind, such as "integer", if it holds no text' if text else ends
    found = f" or find the frequent values with --find {name:.40};" if text else ""
    return NotDeclaredError(
        f"Nothing was declared about the {kind} column {name!r:.60}, and nothing is read from the data for that.",
        fix=f"declare {ways.get(kind, usual)}; or leave the column out with only=[…]{retyped(name, kind)}.",
        command=f"declare in the dataset file, under [columns.{name:.40}], {lines};{found} or name the columns to"
        " synthesise with --only.",
    )


def _cells(name: str, kind: Kind, fact: tuple[Any, ...]) -> Domain:
    if len(fact) not in {2, 3, 4} or kind in {Kind.TEXT, Kind.BOOLEAN, Kind.OTHER}:
        raise InvalidParameterError(
            f"What was declared about the {kind} column {name!r:.60} is not understood.",
            fix="give (low, high), (low, high, step) or (low, high, step, popular values) for numbers, days and"
            f" moments, and a list of values otherwise{retyped(name, kind)}.",
        )
    low, high = (_number(name, kind, end) for end in fact[:2])
    if not low < high:
        raise InvalidParameterError(
            f"The bounds of {name!r:.60} do not rise.", fix="declare (low, high) with low below high."
        )
    if not math.isfinite(high - low):
        raise InvalidParameterError(
            f"The bounds of {name!r:.60} are farther apart than any number.", fix="declare the range that is meant."
        )
    step = 1.0 if kind is not Kind.NUMBER else None
    if len(fact) > 2 and fact[2] is not None:
        step = float(finite(f"the step of {name}", fact[2]))
        if not 0 < step <= high - low or (kind is not Kind.NUMBER and step != int(step)):
            raise InvalidParameterError(
                f"The step of {name!r:.60} is not between 0 and the width of its bounds.",
                fix="give the distance of neighbouring values, for example 0.1.",
            )
    popular = _popular(name, kind, (low, high, step), fact[3]) if len(fact) == 4 else []
    spikes = (low, high, *((0.0,) if kind.numeric and low < 0 < high else ()), *popular)
    if step is None:
        return Domain(name, kind, edges=_with_spikes(np.linspace(low, high, _CELLS + 1).tolist(), spikes, None))
    number = round((high - low) / step) + 1
    cells = min(number, _CELLS)
    places = [number * cell // cells for cell in range(cells + 1)]
    edges = tuple(low - step / 2 + step * place for place in places)
    if cells < number:  # only whole steps, so that no cell is without a value
        edges = _with_spikes(
            edges, [spike for spike in spikes if abs(math.remainder(spike - low, step)) <= 1e-9 * step], step
        )
    return Domain(name, kind, edges=edges, step=step)


def _popular(name: str, kind: Kind, range_: tuple[float, float, float | None], said: Any) -> list[float]:
    """Values that are known to be frequent: each has a cell of its own."""
    low, high, step = range_
    if isinstance(said, str) or not isinstance(said, Sequence) or len(said) > _MOST_POPULAR:
        raise InvalidParameterError(
            f"The popular values of {name!r:.60} are no list of at most {_MOST_POPULAR} values.",
            fix="give a list that is public knowledge: (0, 99_999, 1, [5000, 7298]).",
        )
    found = [_number(name, kind, value) for value in said]
    for value in found:
        if not low <= value <= high or (step is not None and abs(math.remainder(value - low, step)) > 1e-9 * step):
            raise InvalidParameterError(
                f"A popular value of {name!r:.60} is not one of the values that its bounds and step allow.",
                fix="name values within the bounds, a whole number of steps above the lower one.",
            )
    return found


def _number(name: str, kind: Kind, end: Any) -> float:
    if kind is Kind.DATE and isinstance(end, date) and not isinstance(end, datetime):
        return float((end - _EPOCH.date()).days)
    if kind is Kind.TIMESTAMP and isinstance(end, datetime) and end.tzinfo is None:
        return (end - _EPOCH).total_seconds()
    if kind.numeric:
        return float(finite(f"a bound of {name}", end))
    raise WrongKindError(
        f"A bound of {name!r:.60} is {end!r:.60}, but the column is of kind {kind}.", fix=f"give bounds of kind {kind}."
    )


def _constant(value: Value) -> exp.Expression:
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, datetime):
        return typed(exp.Literal.string(value.isoformat(sep=" ")), exp.DataType.Type.TIMESTAMP)
    if isinstance(value, date):
        return typed(exp.Literal.string(value.isoformat()), exp.DataType.Type.DATE)
    return exp.Literal.string(str(value))


def _literal(number: int) -> exp.Expression:
    return exp.Literal.number(int(number)) if number >= 0 else exp.Neg(this=exp.Literal.number(-int(number)))


def _moved(code: exp.Expression, by: int) -> exp.Expression:
    """A code and so many more, or fewer: engines compute with what they are told to be whole numbers."""
    known = typed(code.copy(), BIGINT)
    return (exp.Sub if by < 0 else exp.Add)(this=known, expression=_literal(abs(by))) if by else known


def _runs(bins: Sequence[int]) -> list[tuple[int, int, bool]]:
    """The first place of each run of bins, its bin, and whether all of the run have it, or each one more than before.

    >>> _runs([0, 1, 2, 9, 9, 9, 3, 4])
    [(0, 0, False), (3, 9, True), (6, 3, False)]
    """
    runs: list[tuple[int, int, bool]] = []
    steps = [int(after) - int(before) for before, after in itertools.pairwise(bins)]
    place = 0
    while place < len(bins):
        step = steps[place] if place < len(steps) else 0
        end = place
        while end < len(steps) and steps[end] == step and step in {0, 1}:
            end += 1
        runs.append((place, int(bins[place]), step != 1))
        place = end + 1
    return runs


def halved(below: Sequence[exp.Expression], names: Sequence[exp.Expression]) -> exp.Expression:
    """The name of the cell that a value is in, by whether it is below each inner edge: few comparisons for each row."""
    if not below:
        return names[0]
    middle = len(below) // 2
    left = halved(below[:middle], names[: middle + 1])
    right = halved(below[middle + 1 :], names[middle + 1 :])
    return exp.case().when(below[middle].copy(), left, copy=False).else_(right, copy=False)


def _with_spikes(edges: Sequence[float], spikes: Sequence[float], step: float | None) -> tuple[float, ...]:
    """Edges with a cell for each value at which values may pile up: zero, and bounds, where all beyond them count."""
    if step is None:
        kept = [edge for edge in edges if edge not in spikes]
        return tuple(sorted([*kept, *spikes, *spikes]))
    ends = {end for spike in spikes for end in (spike - step / 2, spike + step / 2)}
    return tuple(sorted({*edges, *ends}))
