"""A planned release, step by step: what the engine computes, the noise, and the columns of the answer.

Writing a question's SQL once before it is charged, so that no charge is lost to SQL that cannot be written.

SQL is written and read by recursion, and Python bounds how deep calls may nest, those of the caller included. So a
question of many layers that is asked from deep within other calls could fail after the charge. It is refused before.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, final

import numpy as np
import pyarrow as pa

from defocus.answers.columns import AnswerColumn
from defocus.engines.engine import integers
from defocus.engines.syntax import column, named
from defocus.errors import InvalidParameterError
from defocus.mechanisms import PartitionSelection, Quantiles
from defocus.noise import Bits
from defocus.tables.aggregates import Aggregate, Distinct, Histogram, Quantile, Statistic
from defocus.tables.answers import nothing, titles
from defocus.tables.contribution import DEFAULT_ROWS, EDGES, Bound, best_bound
from defocus.tables.estimates import Noisy, quantile_columns, read, read_plain
from defocus.tables.keys import EVERYTHING, Keys
from defocus.tables.measurement import Measuring
from defocus.tables.noise import CellNoise
from defocus.tables.planner import Plan
from defocus.tables.rows import Rows
from defocus.tables.sampling import RowSampler
from defocus.tables.splits import Scaled
from defocus.tables.weights import Groups, published

__all__ = ["Run", "rehearse", "texts"]


_QUOTIENTS = ("mean", "variance", "std", "correlation", "covariance", "ratio", "weighted_mean")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One release of a plan. Made after the charge, used once."""

    plan: Plan
    rows: Rows
    by: tuple[str, ...]
    bound: Bound | None
    bits: Bits
    chance: RowSampler
    progress: Callable[[float], None] | None = None

    def answer(self, keys: Keys | None) -> tuple[Keys, tuple[AnswerColumn, ...], tuple[str, ...]]:
        """The keys, found if they are not given, every column with its noise, and what else was found, in words.

        All statements see the same rows, even where others write meanwhile.
        """
        with self.rows.engine.snapshot():
            return self._answer(keys)

    def _answer(self, keys: Keys | None) -> tuple[Keys, tuple[AnswerColumn, ...], tuple[str, ...]]:
        known = keys if keys is not None else self._found_keys()
        if not known.number:
            return known, tuple(column for name, each in self._aggregates for column in nothing(name, each)), ()
        if self.plan.contributions is not None:
            return self._bounded(known, self.plan.contributions)
        with published(self.rows, self.by, known, self.bound) as groups:
            return self._measured(known, groups)

    def _measured(self, known: Keys, groups: Groups) -> tuple[Keys, tuple[AnswerColumn, ...], tuple[str, ...]]:
        """Every column of known groups."""
        measuring = Measuring(groups, self.plan.grid, self.chance.of("sums"), self.progress)
        ranges = self._ranges()
        splits = [split.found(ranges) for split in self.plan.arrangement.splits]
        noisy = [
            Noisy.of(noise.add(cells, self.bits), noise, self.plan.grid)
            for cells, noise in zip(measuring.cells(splits) if splits else [], self.plan.splits, strict=True)
        ]
        columns: list[AnswerColumn] = []
        for name, aggregate in self._aggregates:
            if isinstance(aggregate, Statistic):
                place = self.plan.arrangement.source[name]
                columns.append(read(name, aggregate, splits[place], noisy[place]))
            else:
                apart = replace(measuring, chance=self.chance.of(f"column {name}"))
                columns += self._other(name, aggregate, apart, ranges)
        found = (f"the bounds found for {text} are {low:g} and {high:g}" for text, (low, high) in ranges.items())
        return known, tuple(columns), tuple(found)

    def _bounded(self, keys: Keys, noise: CellNoise) -> tuple[Keys, tuple[AnswerColumn, ...], tuple[str, ...]]:
        """The answer with the bound that a noisy histogram of contributions suggests."""
        with published(self.rows, self.by, keys, self.bound) as groups:
            exact = Measuring(groups, self.plan.grid, self.chance, self.progress).contributions(EDGES)
        asked = [each for _, each in self._aggregates]
        quotients = [isinstance(each, Statistic) and each.operation in _QUOTIENTS for each in asked]
        person = self.plan.grid * DEFAULT_ROWS
        best = best_bound(
            noise.add(exact, self.bits),
            scale=math.sqrt(noise.variance / 2),
            groups=keys.number,
            noise=max((math.sqrt(each.variance) / person for each in self.plan.splits), default=1.0),
            counts=not all(quotients),
            quotients=any(quotients),
        )
        rows = min(best, max(1, person >> 8))  # so that a row still weighs enough
        # In how many groups people are counted was planned, so the number of rows found must not change it.
        most = None if self.bound is None else self.bound.people_in
        plan = replace(self.plan, grid=person // rows, contributions=None)
        run = replace(self, plan=plan, bound=Bound(rows=rows, groups=most))
        known, columns, found = run.answer(keys)
        return known, columns, (f"the bound found is {rows} row{'' if rows == 1 else 's'}", *found)

    @property
    def _aggregates(self) -> tuple[tuple[str, Aggregate], ...]:
        return self.plan.arrangement.aggregates

    def _other(
        self, name: str, aggregate: Aggregate, measuring: Measuring, ranges: Mapping[str, tuple[float, float]]
    ) -> list[AnswerColumn]:
        mechanism = self.plan.others[name]
        if isinstance(aggregate, Quantile) and isinstance(mechanism, Quantiles):
            argument = aggregate.argument
            scaled = Scaled(argument.text, argument.low, argument.high, find=argument.find).found(ranges)
            exact = measuring.buckets(scaled, aggregate.buckets)
            rank = mechanism.rank_error(0.95) / self.plan.grid
            return quantile_columns(name, aggregate, scaled, mechanism.locate(exact, self.bits), rank=rank)
        assert isinstance(mechanism, CellNoise)  # noqa: S101  # only quantiles choose
        if isinstance(aggregate, Distinct):
            exact, grid = measuring.distinct(aggregate.text, aggregate.at_most), 1
            return [read_plain(name, Noisy.of(mechanism.add(exact, self.bits), mechanism, grid), "number of values")]
        if isinstance(aggregate, Histogram):
            exact = measuring.between(aggregate.text, aggregate.edges)
            noisy = mechanism.add(exact, self.bits)
            return [
                read_plain(title, Noisy.of(noisy[:, i : i + 1], mechanism, self.plan.grid), "rows between two edges")
                for i, title in enumerate(titles(name, aggregate))
            ]
        grid = self.plan.people_grid
        noisy = mechanism.add(replace(measuring, grid=grid).people(), self.bits)
        return [read_plain(name, Noisy.of(noisy, mechanism, grid), "number of people")]

    def _ranges(self) -> dict[str, tuple[float, float]]:
        """Bounds for the columns that have none, from everybody's rows."""
        everybody = Groups(self.rows, (), EVERYTHING, None, self.bound)
        found = {}
        for text, finding in self.plan.findings.items():
            measuring = Measuring(everybody, self.plan.grid, self.chance.of(f"bounds of {text}"), self.progress)
            found[text] = finding.sample(measuring.spread(text, finding), self.bits)
        return found

    def _found_keys(self) -> Keys:
        """The keys that enough people have. Which other keys there are is forgotten here."""
        anything = Groups(self.rows, self.by, EVERYTHING, None, self.bound)
        select = Measuring(anything, self.plan.grid, self.chance).keys_sql()
        table = self.rows.engine.run(select, progress=self.progress)
        selection = self.plan.selection
        assert isinstance(selection, PartitionSelection)  # noqa: S101  # planned whenever no keys are given
        numbers = integers(table["n"])
        kept = selection.keep(numbers, self.bits) if len(numbers) else np.zeros(0, np.bool_)
        return Keys(table.select(range(len(self.by))).filter(pa.array(kept)).rename_columns(list(self.by)))


_T = TypeVar("_T")
_LEADING = 60
"""More calls than lead from here to where expressions are read and SQL is written."""
_AROUND = 250
"""How many calls deeper SQL is written here: more than those, and what writing takes for the layers that measuring
nests around rows and values, a dozen calls for each."""


def rehearse(rows: Rows, by: Sequence[str], wanted: Sequence[str]) -> None:
    """Write the part of every statement that may be deep: the rows, their keys and the expressions that are measured.

    Guarantee:
        If it can be written here, so many calls deeper, every statement of the release can: what those nest around it
        is of a fixed depth. Looks at no row, and sends nothing.
    """
    try:
        values = _deeper(_LEADING, lambda: [rows.values(text).sql for text in wanted])
        select = rows.select([*map(column, by), *(named(value, f"v{i}") for i, value in enumerate(values))])
        _deeper(_AROUND, lambda: rows.engine.written(select))
        written = True
    except (RecursionError, InvalidParameterError):  # the expressions were read before, so only depth can be amiss
        written = False
    if not written:
        raise InvalidParameterError(
            "This question is asked from so deep within other calls that its SQL might not be written; nothing was"
            " charged.",
            fix="ask it from a place with fewer nested calls, ask a smaller question, or raise sys.setrecursionlimit.",
        )


def texts(aggregates: Sequence[tuple[str, Aggregate]]) -> list[str]:
    """The expressions that aggregates are about, each once."""
    found: list[str] = []
    for _, aggregate in aggregates:
        if isinstance(aggregate, Statistic):
            found += [argument.text for argument in aggregate.arguments]
        elif isinstance(aggregate, Quantile):
            found.append(aggregate.argument.text)
        elif isinstance(aggregate, Distinct | Histogram):
            found.append(aggregate.text)
    return list(dict.fromkeys(found))


def _deeper(calls: int, work: Callable[[], _T]) -> _T:
    """What the work gives so many calls deeper."""
    return _deeper(calls - 1, work) if calls else work()
