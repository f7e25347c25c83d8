"""Intervals that also hold what bounding and clipping take away, up to what somebody declares about it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from defocus.answers import AnswerColumn, Effect, Tails
from defocus.answers.columns import Floats
from defocus.errors import InvalidParameterError, Number, finite, probability
from defocus.mechanisms.ranges import FoundRange
from defocus.tables.aggregates import Aggregate
from defocus.tables.found_bound import SPREAD, FoundBound
from defocus.tables.noise import Noisy
from defocus.tables.splits import Split
from defocus.tables.statistics import Statistic

__all__ = ["Bias"]

_KNOWN = ("count", "sum", "mean")
_ADDED = ("count", "sum", "squares")
"""Sums miss the rows beyond a bound; other statistics are of rows that weigh less."""
_AVERAGES = ("mean", "weighted_mean", "covariance", "correlation")
"""Their values vary by a part of their range at most; all vary by half of what they are from the nearer end of it."""
_WIDTH = 1.96
_HARDLY = 1.1


@final
@dataclass(frozen=True, slots=True)
class Bias:
    r"""At most a share b of each group's rows lies beyond the bound, and clipping moves an average by at most c.

    Error:
        Let rows weigh K together, of which N would without a bound, so :math:`N - K \le bN`. A count of N lies between
        K and :math:`K/(1-b)`. Values are clipped to [L, U]: a sum moves by at most :math:`bK/(1-b)` rows of L or of U
        each, and a mean is one part in :math:`1-b` of what is measured and another part in [L, U]. Clipping moves a
        mean by at most c, and a sum by c for each row. So an interval that holds what is measured holds, widened by
        this, the statistic of all rows as they are. What is declared is not checked.

        Where nothing is declared about a bound that was found, N - K is at most what its
        :class:`~defocus.tables.found_bound.Tail` lets expect, and quotients are as far apart as that lets expect. Few
        people with very many rows are not expected and may hide in the noise, so ends are open: how far the truth may
        lie outside is in ``limits``, which depends on the question alone. Where the largest number of rows of one
        person is declared, N - K is at most :func:`~defocus.tables.found_bound.hidden_rows` in each group with 97.5 %
        probability, and ends of counts, sums and means hold that.

    >>> print(Bias(0.02, {"days": 0.1}))
    at most 2 % of the rows of each group lie beyond the bound, and clipping moves an average of days by at most 0.1
    """

    beyond: float | None = None
    clipped: Mapping[str, float] = field(default_factory=dict)
    found: FoundBound | None = None
    """The bound, if it was found and nothing was declared about it."""
    ranges: Mapping[str, FoundRange] = field(default_factory=dict)
    """Bounds of values that were found, by column."""

    @property
    def of_rows(self) -> Effect:
        """What a bound on rows does to intervals: nothing that they do not hold, where that is declared or found."""
        if self.found is not None:
            return Effect.OPEN if self.is_open else Effect.TOLD
        return Effect.BOUND if self.beyond is None else Effect.READ

    @property
    def is_open(self) -> bool:
        """Whether people with any number of rows may hide in the noise."""
        return self.found is not None and math.isinf(self.found.beyond_most)

    def opened(self, column: AnswerColumn, aggregate: Aggregate) -> AnswerColumn:
        """The column of something else than a sum, whose ends are open where rows may lie beyond what counts."""
        hides = self.found is not None and self.found.beyond_most > 0 and aggregate.counts == "rows"
        return replace(column, limits=aggregate.limits) if hides or aggregate.finds else column

    def of_found(self, found: FoundBound) -> "Bias":
        """The same with what a bound that was found lets expect, unless something is declared about that."""
        return self if self.beyond is not None else replace(self, found=found)

    def of(self, text: str) -> Effect:
        """Likewise what clipping a column does."""
        if text in self.ranges:
            return Effect.TOLD
        return Effect.READ if text in self.clipped else Effect.BOUND

    def of_ranges(self, ranges: Mapping[str, FoundRange], asked: Mapping[str, Aggregate]) -> "Bias":
        """The same with bounds of values that were found, where only sums and means are asked of these.

        What lies beyond one is taken to lie as far from it as it is from zero, on average: values that thin out as
        the inverse of their square do.
        """
        others = {text for each in asked.values() if not _linear(each) for text in each.texts}
        held = {text: found for text, found in ranges.items() if text not in self.clipped and text not in others}
        return replace(self, ranges=held)

    def _cut(self, text: str) -> tuple[float, float]:
        """How far clipping moves an average up and down at most."""
        if text in self.ranges:
            found = self.ranges[text]
            return found.below * abs(found.low), found.above * abs(found.high)
        c = self.clipped.get(text, 0.0)
        return c, c

    @classmethod
    def declared(
        cls, beyond: Number | None, clipped: Mapping[str, Number] | None, asked: Mapping[str, Aggregate]
    ) -> "Bias":
        """What somebody declares, refused where the effect on something that is asked is not known."""
        for name, aggregate in asked.items():
            if not isinstance(aggregate, Statistic) or aggregate.operation not in _KNOWN:
                raise InvalidParameterError(
                    f"What a bound does to {name} is not known.",
                    fix="ask counts, sums and means apart from others, and let covering(…) widen those.",
                )
        moved = {text: abs(float(finite(f"clipped[{text!r}]", c))) for text, c in (clipped or {}).items()}
        texts = {text for aggregate in asked.values() for text in aggregate.texts}
        if unknown := sorted(set(moved) - texts):
            raise InvalidParameterError(f"{unknown[0]!r:.60} is not asked about.", fix="name a column as it is asked.")
        if beyond is None and not moved:
            raise InvalidParameterError("Nothing is declared.", fix="pass beyond=0.02, or clipped={'days': 0.1}.")
        return cls(None if beyond is None else float(probability("beyond", beyond, one=False)), moved)

    def __str__(self) -> str:
        beyond = f"at most {100 * (self.beyond or 0):g} % of the rows of each group lie beyond the bound"
        said = [] if self.beyond is None else [beyond]
        said += [f"clipping moves an average of {text} by at most {most:g}" for text, most in self.clipped.items()]
        return ", and ".join(said)

    def widened(self, column: AnswerColumn, statistic: Statistic, split: Split, noisy: Noisy) -> AnswerColumn:
        """The column with intervals that hold what is declared, or was found, as well."""
        operation = statistic.operation
        rows = np.maximum(noisy.count("", split.everyone, "").high, 0.0)
        if self.found is not None and (self.is_open or (self.found.beyond_most > 0 and operation not in _KNOWN)):
            column = replace(column, limits=replace(statistic, arguments=split.values).limits)
        if self.found is not None and operation not in _ADDED and (self.is_open or operation not in _KNOWN):
            column = self._apart(column, statistic, split, rows)
        if operation not in _KNOWN:
            return column
        b: float | Floats = self.beyond or 0.0
        lost = b / (1 - b) * rows
        usual, most = (lost, lost) if self.found is None else self._lost(rows)
        if self.found is not None and not self.is_open:
            usual = most = np.full(len(rows), self.found.beyond_most)
            b = self._part(noisy.count("", split.everyone, "").low)
        bottom, top, up, down = 0.0, 1.0, 0.0, 0.0
        if operation != "count":
            (value,) = split.values
            bottom, top, (up, down) = value.bottom, value.bottom + value.width, self._cut(value.text)
        if operation == "mean":
            under, over = np.minimum(bottom - column.low, 0.0), np.maximum(top - column.high, 0.0)
            return self._with(column, column.low + b * under - up, column.high + b * over + down)
        every = rows + most
        return self._with(
            column,
            column.values - _beyond(column.values - column.low, -min(0.0, bottom), usual, most) - up * every,
            column.values + _beyond(column.high - column.values, max(0.0, top), usual, most) + down * every,
        )

    def _part(self, rows: Floats) -> Floats:
        """Which part of all rows of groups of which at least so many count lies beyond the bound, at most."""
        hidden, counted = _some(self.found).beyond_most, np.maximum(rows, 0.0)
        return np.where(hidden + counted > 0, hidden / np.maximum(hidden + counted, 1e-300), 0.0)

    def _lost(self, rows: Floats) -> tuple[Floats, Floats]:
        """How many rows of groups with so many rows lie beyond the bound that was found: the median, and at most."""
        found = _some(self.found)
        return found.tail.beyond(found.rows, _shares(rows, found))

    def _apart(self, column: AnswerColumn, statistic: Statistic, split: Split, rows: Floats) -> AnswerColumn:
        """The column with intervals that hold how far a quotient of rows that weigh less is from that of all rows."""
        found, (low, high) = _some(self.found), statistic.moments.range(split.values)
        near = np.minimum(column.values - low, high - column.values) if np.isfinite(low + high) else column.values
        spread = np.abs(near) / 2
        if statistic.operation in _AVERAGES:
            spread = np.minimum(spread, SPREAD * (high - low))
        differs = _WIDTH * spread * found.tail.apart(found.rows, _shares(rows, found))
        return self._with(
            column,
            np.maximum(low, column.values - np.hypot(column.values - column.low, differs)),
            np.minimum(high, column.values + np.hypot(column.high - column.values, differs)),
        )

    @staticmethod
    def _with(column: AnswerColumn, low: Floats, high: Floats) -> AnswerColumn:
        """The column with wider intervals; those of more than 95 % are known where that hardly matters."""
        with np.errstate(invalid="ignore"):
            same = bool((high - low <= _HARDLY * (column.high - column.low)).all())
        tails = column.tails if same else Tails.UNKNOWN
        return replace(column, low=low, high=high, tails=tails)


def _linear(aggregate: Aggregate) -> bool:
    return isinstance(aggregate, Statistic) and aggregate.operation in _KNOWN


def _beyond(half: Floats, each: float, usual: Floats, most: Floats) -> Floats:
    """Half an interval that also holds rows of this worth: what noise and missing rows vary by is independent."""
    return each * usual + np.hypot(half, each * (most - usual))


def _shares(rows: Floats, found: FoundBound) -> Floats:
    """Which part of all rows groups with so many rows have; one group has all."""
    return np.minimum(1.0, rows / found.kept) if len(rows) > 1 else np.ones(len(rows))


def _some(found: FoundBound | None) -> FoundBound:
    assert found is not None  # noqa: S101  # asked before
    return found
