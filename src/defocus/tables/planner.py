"""The plan of a question: how the price is shared between measurements, and with which noise each is made.

How a budget is shared between measurements, and with which noise each is made.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, final

from defocus.errors import CannotCalibrateError, InvalidParameterError, NotDeclaredError, Number, in_range
from defocus.mechanisms import PartitionSelection, Quantiles, RangeFinding
from defocus.privacy import calibrate
from defocus.privacy.budgets import Budget
from defocus.privacy.events import DiscreteLaplace, Event, Exponential, Pure, compose
from defocus.privacy.numbers import at_most
from defocus.privacy.sensitivity import Sensitivity
from defocus.tables.aggregates import Distinct, Histogram, Quantile, Units
from defocus.tables.contribution import Bound, root_above
from defocus.tables.measurement import Statement
from defocus.tables.measurement_plan import MeasurementPlan
from defocus.tables.noise import CellNoise, gaussian, gaussian_event, laplace

__all__ = ["GRID", "Key", "Noises", "Plan", "Task", "keys_need_delta", "plan", "shared"]


Key: TypeAlias = tuple[str, str | int]
"""Which measurement: its kind, and its number or name. Names that people choose cannot meet those of other kinds."""


@final
@dataclass(frozen=True, slots=True)
class Noises:
    """What was found for each task: noise if it adds some, else what it may spend."""

    made: Mapping[Key, CellNoise | Fraction]

    def noise(self, key: Key, sensitivity: Sensitivity) -> CellNoise:
        """The noise of a task with this sensitivity."""
        found = self.made[key]
        if not isinstance(found, CellNoise) or found.sensitivity != sensitivity:
            raise AssertionError(f"{key} was planned for another sensitivity")  # also where asserts are left out
        return found

    def epsilon(self, key: Key) -> Fraction:
        """What a task without a sensitivity may spend."""
        found = self.made[key]
        assert isinstance(found, Fraction), f"{key} was planned to add noise"  # noqa: S101  # a slip of the planner
        return found


@final
@dataclass(frozen=True, slots=True)
class Task:
    """One measurement that wants a share. It adds noise to cells if it has a reach, else it chooses or is pure."""

    key: Key
    importance: float
    sensitivity: Sensitivity | None = None
    fixed: Fraction | None = None
    chooses: bool = False
    """Whether it is an exponential mechanism, of bounded range; what has no sensitivity and does not choose is pure."""


def shared(tasks: Sequence[Task], epsilon: Fraction, delta: Fraction) -> tuple[Noises, bool]:
    """The noise of each task with the least total relative error, and whether it uses the delta."""
    pure = _pure(tasks, epsilon)
    mixed = _mixed(tasks, epsilon, delta) if delta else None
    if mixed is not None and _error(tasks, mixed) < _error(tasks, pure):
        return Noises(mixed), True
    return Noises(pure), False


def _pure(tasks: Sequence[Task], epsilon: Fraction) -> dict[Key, CellNoise | Fraction]:
    """Shares of epsilon. The variance of a task is proportional to 1/share², so shares go with the cube root."""
    shares = _shares(tasks, 1 / 3)
    return {
        task.key: laplace(task.sensitivity, epsilon * share) if task.sensitivity is not None else epsilon * share
        for task, share in zip(tasks, shares, strict=True)
    }


def _mixed(tasks: Sequence[Task], epsilon: Fraction, delta: Fraction) -> dict[Key, CellNoise | Fraction] | None:
    """Gaussian noise where noise is added. Variances are proportional to 1/share of rho, so shares go with the root."""
    if all(task.sensitivity is None for task in tasks):
        return None
    shares = _shares(tasks, 1 / 2)
    wanted = tuple((task.sensitivity, task.chooses, share) for task, share in zip(tasks, shares, strict=True))
    try:
        x = _calibrated(wanted, epsilon, delta)
    except CannotCalibrateError:
        return None
    return {
        task.key: _spent(chooses, share, x) if sensitivity is None else gaussian(sensitivity, x / math.sqrt(share))
        for task, (sensitivity, chooses, share) in zip(tasks, wanted, strict=True)
    }


@lru_cache(maxsize=256)
def _calibrated(
    wanted: tuple[tuple[Sensitivity | None, bool, Fraction], ...], epsilon: Fraction, delta: Fraction
) -> float:
    """The least x for which a task with share s may have Gaussian noise of x/√s times its sensitivity."""

    def family(x: float) -> Event:
        parts: list[Event] = []
        for sensitivity, chooses, share in wanted:
            if sensitivity is not None:
                parts.append(gaussian_event(sensitivity, x / math.sqrt(share)))
            else:
                spent = _spent(chooses, share, x)
                parts.append(Exponential(spent) if chooses else Pure(spent))
        return compose(parts)

    return calibrate(family, Budget(epsilon, delta))


def _spent(chooses: bool, share: Fraction, x: float) -> Fraction:
    """What a task without a sensitivity may spend in epsilon: as much of rho, s/(2x²), as Gaussian noise of ratio x/√s.

    A choice of bounded range e is (e²/8)-zCDP. Laplace noise for e, which trees and searches for bounds add, is at
    most (e²/2)-zCDP.
    """
    return Fraction((2 if chooses else 1) * math.sqrt(share) / x)


def _shares(tasks: Sequence[Task], power: float) -> list[Fraction]:
    """Parts of one: what is fixed first, the rest by importance."""
    fixed = sum((task.fixed for task in tasks if task.fixed is not None), Fraction(0))
    scale = min(Fraction(1), Fraction(1, 2) / fixed) if fixed else Fraction(1)
    rest = 1 - fixed * scale
    free = [task.importance**power for task in tasks if task.fixed is None]
    if not free:
        return [Fraction(1, len(tasks)) for _ in tasks]
    parts = iter(_parts(free))
    return [task.fixed * scale if task.fixed is not None else rest * next(parts) for task in tasks]


def _parts(numbers: Sequence[float]) -> list[Fraction]:
    """Numbers as exact parts of one."""
    whole = [max(1, round(number / sum(numbers) * 10**6)) for number in numbers]
    return [Fraction(part, sum(whole)) for part in whole]


def _error(tasks: Sequence[Task], noises: Mapping[Key, CellNoise | Fraction]) -> float:
    """What is minimised: the variance of each task relative to its reach, weighted by importance."""
    total = 0.0
    for task in tasks:
        made = noises[task.key]
        if isinstance(made, CellNoise):
            sensitivity = 1.0 if task.sensitivity is None else float(task.sensitivity.l1)
            total += task.importance * made.variance / sensitivity**2
        else:
            total += task.importance * 8 / float(made) ** 2
    return total


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

    arrangement: MeasurementPlan
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
    arrangement: MeasurementPlan,
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
        contributions=laplace(weighed.moved(Sensitivity(1)), searched) if weighed.find else None,
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
    def rows(self) -> Sensitivity:
        """How far weights of rows move."""
        if self.bound is None or self.find:
            return self.moved(Sensitivity(self.person))
        return self.moved(Sensitivity(self.person, (self.grid * self.bound.l2()) ** 2))

    @property
    def people(self) -> Sensitivity:
        """How far weights of people move."""
        l2 = self.people_grid * root_above(self.people_in)
        return self.moved(Sensitivity(self.people_grid * self.people_in, l2**2))

    def distinct(self, aggregate: Distinct) -> Sensitivity:
        """How far numbers of different values move."""
        return self.moved(Sensitivity(aggregate.at_most))

    def moved(self, sensitivity: Sensitivity) -> Sensitivity:
        """The same under the neighbours of the ledger."""
        return sensitivity.replaced() if self.replace else sensitivity


def _weighed(
    arrangement: MeasurementPlan, bound: Bound | None, keys: int | None, epsilon: Fraction, *, replace: bool
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
    arrangement: MeasurementPlan, weighed: _Weighed, noises: Noises, methods: Mapping[str, str]
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
    arrangement: MeasurementPlan, weighed: _Weighed, weights: Mapping[str, float], methods: Mapping[str, str]
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


def _weights(arrangement: MeasurementPlan, weights: Mapping[str, Number]) -> dict[str, float]:
    names = [name for name, _ in arrangement.aggregates]
    unknown = [name for name in weights if name not in names]
    if unknown:
        raise InvalidParameterError(
            f"There is no column {unknown[0]!r:.60} to give a larger share to.", fix=f"choose among {', '.join(names)}."
        )
    return {name: float(in_range(f"the share of {name}", value, 1e-6, 10**6)) for name, value in weights.items()}
