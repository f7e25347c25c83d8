"""Everything about a release that is decided before the data is touched."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from defocus.errors import InvalidParameterError, NotDeclaredError, Number, in_range
from defocus.mechanisms import PartitionSelection, Quantiles, RangeFinding
from defocus.privacy.budgets import Budget
from defocus.privacy.digits import at_most
from defocus.privacy.events import DiscreteLaplace, Event, compose
from defocus.tables.aggregates import Distinct, Histogram, Quantile, Units
from defocus.tables.arranging import Arrangement
from defocus.tables.bounding import Bound, root_above
from defocus.tables.noises import CellNoise, Reach, laplace
from defocus.tables.sharing import Noises, Task, shared
from defocus.tables.statements import Statement

__all__ = ["GRID", "Plan", "keys_need_delta", "plan"]

GRID = 1 << 24
"""What a full row weighs: fine enough that rounding does not matter, coarse enough that noise fits in 64 bits."""
_COARSER = 1 << 12
_SCALE = 1 << 38
"""Noise scales are kept below this many steps."""
_FOUND = 64
"""How many full rows one person weighs where the number of rows is yet to be found."""
_CONTRIBUTIONS = Fraction(1, 20)
"""The share of the budget that finds out how many rows people have."""
_KEYS = Fraction(3, 10)
"""The share of the budget that finds keys."""
_FEW = 10
"""A delta to begin with lets so many questions find keys."""
_BOUNDS = Fraction(1, 10)
"""The share of the budget that finds the bounds of a column."""


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """Everything about a release that is decided before the data is touched."""

    arrangement: Arrangement
    grid: int
    """What a full row weighs; where the bound is yet to be found, what it would weigh with the default bound."""
    people_grid: int
    """What a full person weighs where people are counted."""
    contributions: CellNoise | None
    """The noise on the histogram of contributions, where the bound is to be found."""
    selection: PartitionSelection | None
    findings: Mapping[str, RangeFinding]
    splits: tuple[CellNoise, ...]
    others: Mapping[str, CellNoise | Quantiles]
    """For each aggregate that no split answers, how it is released."""
    statements: tuple[Statement, ...] = ()
    """What the engine will be asked for, where somebody wants to look at it."""

    def __str__(self) -> str:
        lines = []
        if self.selection is not None:
            lines.append("keys are found by optimal partition selection")
        if self.contributions is not None:
            lines.append(f"the bound on rows is found from a histogram with {self.contributions.words}")
        lines += [f"the bounds of {text} are found from a histogram with noise" for text in self.findings]
        source = self.arrangement.source.items()
        for place, (split, noise) in enumerate(zip(self.arrangement.splits, self.splits, strict=True)):
            names = ", ".join(name for name, i in source if i == place)
            sums = "1 sum" if split.cells == 1 else f"{split.cells} sums"
            spread = f"standard deviation {noise.variance**0.5 / self.grid:.3g} rows"
            lines.append(f"{names}: {sums} in each group, with {noise.words}, {spread}")
        lines += [f"{name}: {_way(each)}" for name, each in self.others.items()]
        return "\n".join([*lines, *(f"statement {i}: {each}" for i, each in enumerate(self.statements, 1))])

    @property
    def event(self) -> Event:
        """What the whole release owes."""
        searched = () if self.contributions is None else (self.contributions,)
        parts = [each.event for each in (*searched, *self.splits, *self.others.values(), *self.findings.values())]
        return compose([*([] if self.selection is None else [self.selection.event]), *parts])


def plan(
    arrangement: Arrangement,
    bound: Bound | None,
    budget: Budget,
    *,
    replace: bool,
    keys: int | None,
    weights: Mapping[str, Number],
) -> Plan:
    """The plan with the least total relative error, as far as it is known before the data is seen.

    ``keys`` is the number of public groups, None where they are to be found.
    """
    epsilon, delta = _amounts(budget)
    if keys is None and not delta:
        raise keys_need_delta(1e-5)
    checked = _weights(arrangement, weights)
    weighed = _weighed(arrangement, bound, keys, epsilon, replace=replace)
    methods = {
        name: _method(each, epsilon, weighed.person)
        for name, each in arrangement.aggregates
        if isinstance(each, Quantile)
    }
    searched = epsilon * _CONTRIBUTIONS if weighed.find else Fraction(0)
    left = (epsilon - searched) * (1 if keys is not None else 1 - _KEYS)
    tasks = _tasks(arrangement, weighed, checked, methods)
    noises, uses_delta = shared(tasks, left, delta if keys is not None else delta / 2)
    selection = None
    if keys is None:
        part, spent = delta / 2 if uses_delta else delta, (epsilon - searched) * _KEYS
        selection = PartitionSelection(epsilon=spent, delta=part, groups=weighed.people_in, replace=replace)
    return Plan(
        arrangement=arrangement,
        grid=weighed.grid,
        people_grid=weighed.people_grid,
        contributions=laplace(weighed.moved(Reach(1, Fraction(1))), searched) if weighed.find else None,
        selection=selection,
        findings={
            text: RangeFinding(epsilon=noises.epsilon(("bounds", text)), sensitivity=weighed.person, replace=replace)
            for text in arrangement.searched
        },
        splits=tuple(noises.noise(("split", i), weighed.rows) for i in range(len(arrangement.splits))),
        others=_others(arrangement, weighed, noises, methods),
    )


def _way(how: CellNoise | Quantiles) -> str:
    return how.words if isinstance(how, CellNoise) else f"quantiles by {how.method}"


def keys_need_delta(left: float) -> NotDeclaredError:
    """Why keys are not found without a delta, and which one to pass where so much is ``left``."""
    return NotDeclaredError(
        "Keys that nobody named can only be found with a delta: whether a key exists depends on single people.",
        fix=f"pass delta=, for example {at_most(left / _FEW, 1)}, or name the keys."
        if left
        else "name the keys: finding them spends delta outright, and none is left for that.",
    )


@final
@dataclass(frozen=True, slots=True)
class _Weighed:
    """What one person weighs, and how far that moves each kind of measurement, in steps of the grid."""

    bound: Bound | None
    person: int
    people_grid: int
    people_in: int
    replace: bool

    @property
    def find(self) -> bool:
        """Whether the number of rows is yet to be found."""
        return self.bound is not None and self.bound.find

    @property
    def grid(self) -> int:
        """What a full row weighs."""
        return self.person if self.bound is None else self.person // self.bound.total

    @property
    def rows(self) -> Reach:
        """How far weights of rows move."""
        if self.bound is None or self.find:
            return self.moved(Reach(self.person, Fraction(self.person)))
        return self.moved(Reach(self.person, self.grid * self.bound.l2()))

    @property
    def people(self) -> Reach:
        """How far weights of people move."""
        return self.moved(Reach(self.people_grid * self.people_in, self.people_grid * root_above(self.people_in)))

    def distinct(self, aggregate: Distinct) -> Reach:
        """How far numbers of different values move."""
        return self.moved(Reach(aggregate.at_most, Fraction(aggregate.at_most)))

    def moved(self, reach: Reach) -> Reach:
        """The same under the neighbours of the ledger."""
        return reach.replaced() if self.replace else reach


def _weighed(
    arrangement: Arrangement, bound: Bound | None, keys: int | None, epsilon: Fraction, *, replace: bool
) -> _Weighed:
    people_in = 1 if bound is None else bound.people_in if keys is None else min(bound.people_in, keys)
    columns = (
        len(arrangement.splits) + len(arrangement.aggregates) + len(arrangement.searched) - len(arrangement.source)
    )
    each = epsilon / (columns * (2 if replace else 1))
    if bound is not None and bound.find:
        person = _grid(_FOUND, each) * _FOUND
    else:
        person = _grid(1 if bound is None else bound.total, each) * (1 if bound is None else bound.total)
    return _Weighed(bound, person, _grid(people_in, each), people_in, replace)


def _others(
    arrangement: Arrangement, weighed: _Weighed, noises: Noises, methods: Mapping[str, str]
) -> dict[str, CellNoise | Quantiles]:
    """How each aggregate that no split answers is released."""
    made: dict[str, CellNoise | Quantiles] = {}
    for name, aggregate in arrangement.aggregates:
        key = ("column", name)
        if isinstance(aggregate, Quantile):
            made[name] = Quantiles(
                levels=aggregate.levels,
                epsilon=noises.epsilon(key),
                buckets=aggregate.buckets,
                sensitivity=weighed.person,
                replace=weighed.replace,
                method=methods[name],
            )
        elif isinstance(aggregate, Units):
            made[name] = noises.noise(key, weighed.people)
        elif isinstance(aggregate, Distinct):
            made[name] = noises.noise(key, weighed.distinct(aggregate))
        elif isinstance(aggregate, Histogram):
            made[name] = noises.noise(key, weighed.rows)
    return made


def _method(aggregate: Quantile, epsilon: Fraction, person: int) -> str:
    """How quantiles are found, by what would be best with the whole budget: decided once, since the cost follows."""
    if aggregate.intervals:
        return "tree"
    ways = Quantiles(levels=aggregate.levels, epsilon=epsilon, buckets=aggregate.buckets, sensitivity=person)
    return "tree" if isinstance(ways.event, DiscreteLaplace) else "search"


def _tasks(
    arrangement: Arrangement, weighed: _Weighed, weights: Mapping[str, float], methods: Mapping[str, str]
) -> list[Task]:
    made = [
        Task(("split", i), arrangement.importance(i, weights), weighed.rows) for i in range(len(arrangement.splits))
    ]
    for name, aggregate in arrangement.aggregates:
        key, weight = ("column", name), weights.get(name, 1.0)
        if isinstance(aggregate, Units):
            made.append(Task(key, weight, weighed.people))
        elif isinstance(aggregate, Distinct):
            made.append(Task(key, weight, weighed.distinct(aggregate)))
        elif isinstance(aggregate, Histogram):
            made.append(Task(key, weight, weighed.rows))
        elif isinstance(aggregate, Quantile):
            made.append(Task(key, weight * len(aggregate.levels), chooses=methods[name] == "search"))
    return made + [Task(("bounds", text), 1.0, fixed=_BOUNDS) for text in arrangement.searched]


def _grid(most: int, epsilon: Fraction) -> int:
    """The finest grid on which the noise of a measurement that may spend about ``epsilon`` fits in 64 bits."""
    grid = GRID
    while grid > 1 and grid * most / epsilon > _SCALE:
        grid //= 2
    if grid < _COARSER:
        raise InvalidParameterError(
            f"With {most} rows or groups of one person and an epsilon of {float(epsilon):.3g} for each column, noise"
            " does not fit in 64 bits.",
            fix="bound contributions more tightly, or spend more.",
        )
    return grid


def _amounts(budget: Budget) -> tuple[Fraction, Fraction]:
    if budget.epsilon is None:
        raise InvalidParameterError(
            "A question is paid for in epsilon, and in delta if you like.", fix="pass epsilon= and perhaps delta=."
        )
    return Fraction(budget.epsilon), Fraction(budget.delta or 0)


def _weights(arrangement: Arrangement, weights: Mapping[str, Number]) -> dict[str, float]:
    names = [name for name, _ in arrangement.aggregates]
    unknown = [name for name in weights if name not in names]
    if unknown:
        raise InvalidParameterError(
            f"There is no column {unknown[0]!r:.60} to give a larger share to.", fix=f"choose among {', '.join(names)}."
        )
    return {name: float(in_range(f"the share of {name}", value, 1e-6, 10**6)) for name, value in weights.items()}
