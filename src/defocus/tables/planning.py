"""How a budget is shared between the measurements of one question, and with which noise each is made."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

from defocus.errors import CannotCalibrateError, InvalidParameterError, NotDeclaredError, Number, positive
from defocus.mechanisms import PartitionSelection, Quantiles, RangeFinding
from defocus.privacy import calibrate
from defocus.privacy.budgets import Budget
from defocus.privacy.events import DiscreteLaplace, Event, Exponential, Pure, compose
from defocus.tables.aggregates import Distinct, Histogram, Quantile, Units
from defocus.tables.arranging import Arrangement
from defocus.tables.bounding import Bound, root_above
from defocus.tables.noises import CellNoise, Reach, gaussian, gaussian_event, laplace

__all__ = ["GRID", "Plan", "plan"]

GRID = 1 << 24
"""What a full row weighs: fine enough that rounding does not matter, coarse enough that noise fits in 64 bits."""
_COARSER = 1 << 12
_SCALE = 1 << 38
"""Noise scales are kept below this many steps."""
_PERSON = 1 << 30
"""What one person weighs at most where the number of rows is yet to be found."""
_CONTRIBUTIONS = Fraction(1, 20)
"""The share of the budget that finds out how many rows people have."""
_KEYS = Fraction(3, 10)
"""The share of the budget that finds keys."""
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

    @property
    def event(self) -> Event:
        """What the whole release owes."""
        searched = () if self.contributions is None else (self.contributions,)
        parts = [each.event for each in (*searched, *self.splits, *self.others.values(), *self.findings.values())]
        return compose([*([] if self.selection is None else [self.selection.event]), *parts])


@final
@dataclass(frozen=True, slots=True)
class _Task:
    """One measurement that wants a share. It adds noise to cells if it has a reach, else it chooses or is pure."""

    name: str
    importance: float
    reach: Reach | None = None
    fixed: Fraction | None = None
    chooses: bool = False
    """Whether it is an exponential mechanism, of bounded range; what has no reach and does not choose is pure."""


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
    private_keys = keys is None
    people_in = 1 if bound is None else bound.people_in if keys is None else min(bound.people_in, keys)
    epsilon, delta = _amounts(budget)
    if private_keys and not delta:
        raise NotDeclaredError(
            "Keys that nobody named can only be found with a delta: whether a key exists depends on single people.",
            fix="pass delta=, for example 1e-6, or name the keys.",
        )
    checked = _weights(arrangement, weights)
    columns = (
        len(arrangement.splits) + len(arrangement.aggregates) + len(arrangement.searched) - len(arrangement.source)
    )
    grid = _grid(bound, epsilon / (columns * (2 if replace else 1)))
    find = bound is not None and bound.find
    total = _PERSON if find else grid * (1 if bound is None else bound.total)
    reaches = _reaches(bound, total, people_in)
    methods = {
        name: _method(each, epsilon, total) for name, each in arrangement.aggregates if isinstance(each, Quantile)
    }
    tasks = _tasks(arrangement, reaches, checked, methods, replace=replace)
    searched = epsilon * _CONTRIBUTIONS if find else Fraction(0)
    left = (epsilon - searched) * (1 - _KEYS if private_keys else 1)
    pure = _pure(tasks, left)
    mixed = _mixed(tasks, left, delta / 2 if private_keys else delta) if delta else None
    use_mixed = mixed is not None and _error(tasks, mixed) < _error(tasks, pure)
    chosen = mixed if use_mixed and mixed is not None else pure
    selection = None
    if private_keys:
        part, spent = delta / 2 if use_mixed else delta, (epsilon - searched) * _KEYS
        selection = PartitionSelection(epsilon=spent, delta=part, groups=people_in, replace=replace)
    made = _assembled(arrangement, total, chosen, methods, selection=selection, replace=replace)
    one = Reach(1, Fraction(1))
    counted = laplace(one.replaced() if replace else one, searched) if find else None
    full = total if bound is None else total // bound.total
    return dataclasses.replace(made, grid=full, contributions=counted)


def _assembled(
    arrangement: Arrangement,
    total: int,
    noises: Mapping[str, CellNoise | Fraction],
    methods: Mapping[str, str],
    *,
    selection: PartitionSelection | None,
    replace: bool,
) -> Plan:
    """The plan in which each task has the noise that was found for it; one person weighs at most ``total``."""
    others: dict[str, CellNoise | Quantiles] = {}
    for name, aggregate in arrangement.aggregates:
        if isinstance(aggregate, Quantile):
            others[name] = Quantiles(
                levels=aggregate.levels,
                epsilon=_epsilon(noises[name]),
                buckets=aggregate.buckets,
                sensitivity=total,
                replace=replace,
                method=methods[name],
            )
        elif isinstance(aggregate, Units | Distinct | Histogram):
            others[name] = _noise(noises[name])
    return Plan(
        arrangement=arrangement,
        grid=total,
        people_grid=GRID,
        contributions=None,
        selection=selection,
        findings={
            text: RangeFinding(epsilon=_epsilon(noises[f"bounds of {text}"]), sensitivity=total, replace=replace)
            for text in arrangement.searched
        },
        splits=tuple(_noise(noises[f"split {i}"]) for i in range(len(arrangement.splits))),
        others=others,
    )


def _reaches(bound: Bound | None, total: int, people_in: int) -> tuple[Reach, Reach]:
    """How far one person can move weights of rows, and weights of people in ``people_in`` groups."""
    bounded = None if bound is None or bound.find else bound
    rows = Reach(total, Fraction(total) if bounded is None else total // bounded.total * bounded.l2())
    return rows, Reach(GRID * people_in, GRID * root_above(people_in))


def _method(aggregate: Quantile, epsilon: Fraction, total: int) -> str:
    """How quantiles are found: decided once, since what they owe depends on it."""
    if aggregate.intervals:
        return "tree"
    ways = Quantiles(levels=aggregate.levels, epsilon=epsilon, buckets=aggregate.buckets, sensitivity=total)
    return "tree" if isinstance(ways.event, DiscreteLaplace) else "search"


def _tasks(
    arrangement: Arrangement,
    reaches: tuple[Reach, Reach],
    weights: Mapping[str, float],
    methods: Mapping[str, str],
    *,
    replace: bool,
) -> list[_Task]:
    rows, people = reaches
    made = [_Task(f"split {i}", arrangement.importance(i, weights), rows) for i in range(len(arrangement.splits))]
    for name, aggregate in arrangement.aggregates:
        weight = weights.get(name, 1.0)
        if isinstance(aggregate, Units):
            made.append(_Task(name, weight, people))
        elif isinstance(aggregate, Distinct):
            made.append(_Task(name, weight, Reach(aggregate.at_most, Fraction(aggregate.at_most))))
        elif isinstance(aggregate, Histogram):
            made.append(_Task(name, weight, rows))
        elif isinstance(aggregate, Quantile):
            made.append(_Task(name, weight * len(aggregate.levels), chooses=methods[name] == "search"))
    made += [_Task(f"bounds of {text}", 1.0, fixed=_BOUNDS) for text in arrangement.searched]
    if not replace:
        return made
    return [_Task(t.name, t.importance, t.reach and t.reach.replaced(), t.fixed, t.chooses) for t in made]


def _pure(tasks: Sequence[_Task], epsilon: Fraction) -> dict[str, CellNoise | Fraction]:
    """Shares of epsilon. The variance of a task is proportional to 1/share², so shares go with the cube root."""
    shares = _shares(tasks, 1 / 3)
    return {
        task.name: laplace(task.reach, epsilon * share) if task.reach is not None else epsilon * share
        for task, share in zip(tasks, shares, strict=True)
    }


def _mixed(tasks: Sequence[_Task], epsilon: Fraction, delta: Fraction) -> dict[str, CellNoise | Fraction] | None:
    """Gaussian noise where noise is added. Variances are proportional to 1/share of rho, so shares go with the root."""
    if all(task.reach is None for task in tasks):
        return None
    shares = _shares(tasks, 1 / 2)
    wanted = tuple((task.reach, task.chooses, share) for task, share in zip(tasks, shares, strict=True))
    try:
        x = _calibrated(wanted, epsilon, delta)
    except CannotCalibrateError:
        return None
    return {
        task.name: _spent(chooses, share, x) if reach is None else gaussian(reach, x / math.sqrt(share))
        for task, (reach, chooses, share) in zip(tasks, wanted, strict=True)
    }


@lru_cache(maxsize=256)
def _calibrated(wanted: tuple[tuple[Reach | None, bool, Fraction], ...], epsilon: Fraction, delta: Fraction) -> float:
    """The least x for which a task with share s may have Gaussian noise of x/√s times its reach."""

    def family(x: float) -> Event:
        parts: list[Event] = []
        for reach, chooses, share in wanted:
            if reach is not None:
                parts.append(gaussian_event(reach, x / math.sqrt(share)))
            else:
                spent = _spent(chooses, share, x)
                parts.append(Exponential(spent) if chooses else Pure(spent))
        return compose(parts)

    return calibrate(family, Budget(epsilon, delta))


def _spent(chooses: bool, share: Fraction, x: float) -> Fraction:
    """What a task without a reach may spend in epsilon: as much of rho, s/(2x²), as Gaussian noise of ratio x/√s.

    A choice of bounded range e is (e²/8)-zCDP. Laplace noise for e, which trees and searches for bounds add, is at
    most (e²/2)-zCDP.
    """
    return Fraction((2 if chooses else 1) * math.sqrt(share) / x)


def _shares(tasks: Sequence[_Task], power: float) -> list[Fraction]:
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


def _error(tasks: Sequence[_Task], noises: Mapping[str, CellNoise | Fraction]) -> float:
    """What is minimised: the variance of each task relative to its reach, weighted by importance."""
    total = 0.0
    for task in tasks:
        made = noises[task.name]
        if isinstance(made, CellNoise):
            reach = 1.0 if task.reach is None else float(task.reach.l1)
            total += task.importance * made.variance / reach**2
        else:
            total += task.importance * 8 / float(made) ** 2
    return total


def _grid(bound: Bound | None, epsilon: Fraction) -> int:
    """The finest grid on which the noise of a measurement that may spend about ``epsilon`` fits in 64 bits."""
    most = 1 if bound is None else max(bound.total, bound.people_in)
    grid = GRID
    while grid > 1 and grid * most / epsilon > _SCALE:
        grid //= 2
    if grid < _COARSER:
        raise InvalidParameterError(
            f"With {most} rows of one person and an epsilon of {float(epsilon):.3g} for each column, noise does not fit"
            " in 64 bits.",
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
    return {name: float(positive(f"the share of {name}", value)) for name, value in weights.items()}


def _noise(made: CellNoise | Fraction) -> CellNoise:
    assert isinstance(made, CellNoise)  # noqa: S101  # tasks with a reach add noise
    return made


def _epsilon(made: CellNoise | Fraction) -> Fraction:
    assert isinstance(made, Fraction)  # noqa: S101  # tasks without a reach choose
    return made
