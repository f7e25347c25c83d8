"""The plan of a question: what is measured, how the price is shared between measurements, and the noise of each.

Statistics that can share a measurement do.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, TypeVar, final

from defocus.errors import CannotCalibrateError, InvalidParameterError, NotDeclaredError, Number
from defocus.ledger import PlannedNoise
from defocus.mechanisms import PartitionSelection, RangeFinding
from defocus.privacy import calibrate
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event, Exponential, Pure, compose
from defocus.privacy.numbers import at_most
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import Unit
from defocus.tables.aggregates import Aggregate, Measured, Planned
from defocus.tables.contribution import DEFAULT_ROWS, Bound
from defocus.tables.measurement import Statement
from defocus.tables.noise import CellNoise, PersonWeight, Together, gaussian, gaussian_event, laplace
from defocus.tables.rows import Rows
from defocus.tables.splits import Argument, Split
from defocus.tables.statistics import Statistic

__all__ = [
    "GRID",
    "Key",
    "Levels",
    "MeasurementPlan",
    "Noises",
    "Plan",
    "Task",
    "keys_need_delta",
    "plan",
    "plan_measurements",
    "shared",
]

_T = TypeVar("_T")


@final
@dataclass(frozen=True, slots=True)
class MeasurementPlan:
    """The named aggregates with their bounds filled in, and the splits of weights that answer their sums."""

    aggregates: tuple[tuple[str, Aggregate], ...]
    splits: tuple[Split, ...]
    source: Mapping[str, int]
    """For each statistic, the number of the split that answers it."""
    searched: tuple[str, ...]
    """The columns whose bounds are to be found privately."""

    @property
    def statistics(self) -> list[tuple[str, Statistic]]:
        """The aggregates that splits answer."""
        return [(name, aggregate) for name, aggregate in self.aggregates if isinstance(aggregate, Statistic)]

    def quotients(self, split: int) -> bool:
        """Whether a mean or another quotient follows from a split."""
        return any(self.source[name] == split and each.quotient for name, each in self.statistics)

    @property
    def apart(self) -> list[tuple[str, Measured]]:
        """The aggregates that are measured by themselves."""
        return [(name, aggregate) for name, aggregate in self.aggregates if isinstance(aggregate, Measured)]

    @property
    def counts_rows(self) -> bool:
        """Whether anything depends on how many rows of one person count."""
        return bool(self.splits or self.searched or any(aggregate.counts == "rows" for _, aggregate in self.apart))

    @property
    def titles(self) -> list[str]:
        """The columns of the answer."""
        return [title for name, aggregate in self.aggregates for title in aggregate.titles(name)]

    @property
    def texts(self) -> list[str]:
        """The expressions that the aggregates are about, each once."""
        return list(dict.fromkeys(text for _, aggregate in self.aggregates for text in aggregate.texts))

    def in_order(self, columns: Mapping[str, Sequence[_T]]) -> list[_T]:
        """The columns of each aggregate, in the order in which they were asked."""
        return [column for name, _ in self.aggregates for column in columns[name]]

    def importance(self, split: int, weights: Mapping[str, float]) -> float:
        """How much depends on a split."""
        return sum(weights.get(name, 1.0) for name, number in self.source.items() if number == split)


def plan_measurements(rows: Rows, aggregates: Mapping[str, Aggregate]) -> MeasurementPlan:
    """Check every aggregate against the columns, fill in declared bounds, and let sums share splits."""
    checked = tuple((name, aggregate.checked(rows)) for name, aggregate in aggregates.items())
    wanted = {name: aggregate.split for name, aggregate in checked if isinstance(aggregate, Statistic)}
    splits = _merged(list(wanted.values()))
    source = {name: _place(split, splits) for name, split in wanted.items()}
    arguments = [argument for _, aggregate in checked for argument in aggregate.arguments]
    searched = dict.fromkeys(argument.text for argument in arguments if argument.find)
    return MeasurementPlan(checked, tuple(splits), source, tuple(searched))


def _merged(wanted: Sequence[Split]) -> list[Split]:
    """The fewest splits that answer everything: of equal values the highest degree, and no other split for a count."""
    highest: dict[tuple[Argument, ...], Split] = {}
    for split in wanted:
        before = highest.get(split.values, split)
        degrees = tuple(map(max, split.degrees, before.degrees))
        highest[split.values] = Split(split.values, degrees)
    kept = list(highest.values())
    return [split for split in kept if not any(other is not split and _covers(other, split) for other in kept)] or kept


def _covers(large: Split, small: Split) -> bool:
    """Whether ``large`` answers everything that ``small`` does."""
    if not small.values:
        return bool(large.values)
    if len(small.values) != 1 or len(large.values) != 1:
        return False
    few, many = small.values[0], large.values[0]
    counts_only = few.low is None and not few.find and few.missing is None
    return counts_only and many.text == few.text and many.missing is None and many != few


def _place(wanted: Split, splits: Sequence[Split]) -> int:
    """The number of the split with the fewest cells that answers what is wanted."""
    able = [
        i
        for i, split in enumerate(splits)
        if split.values == wanted.values or (_covers(split, wanted) and split != wanted)
    ]
    return min(able, key=lambda i: splits[i].cells)


Key: TypeAlias = tuple[str, str | int]
"""Which measurement: its kind, and its number or name. Names that people choose cannot meet those of other kinds."""


@final
@dataclass(frozen=True, slots=True)
class Noises:
    """What was planned for each task: noise if it adds some, else what it may spend."""

    planned: Mapping[Key, CellNoise | Fraction]

    def noise(self, key: Key, sensitivity: Sensitivity) -> CellNoise:
        """The noise of a task with this sensitivity."""
        noise = self.planned[key]
        if not isinstance(noise, CellNoise) or noise.sensitivity != sensitivity:
            raise AssertionError(f"{key} was planned for another sensitivity")  # also where asserts are left out
        return noise

    def epsilon(self, key: Key) -> Fraction:
        """What a task without a sensitivity may spend."""
        epsilon = self.planned[key]
        assert isinstance(epsilon, Fraction), f"{key} was planned to add noise"  # noqa: S101  # a slip of the planner
        return epsilon


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
    parts: tuple[float, float] = (1.0, 1.0)
    """Which part of the share of its measurement it gets, with Laplace and with Gaussian noise."""
    worth: tuple[float, float] = (1.0, 1.0)
    """What its variance counts with where these are compared, likewise."""


@final
@dataclass(frozen=True, slots=True)
class Levels:
    """Sets of groups that are measured each with its own noise: what part of a share each of them gets."""

    pure: tuple[float, ...]
    """With Laplace noise; 0 for a set that is not measured."""
    mixed: tuple[float, ...]
    """With Gaussian noise."""
    finest: int | None
    """Which of them has all keys, if one has: in the others a bound for each group says nothing."""
    errors: tuple[float, float]
    """The mean variance of all sets after they were combined, for a share that would measure one with variance one."""
    moved: bool = False
    """Whether a row is taken to be replaced by another, whatever the ledger's neighbours: some totals are exact."""


def shared(tasks: Sequence[Task], epsilon: Fraction, delta: Fraction) -> tuple[Noises, bool]:
    """The noise of each task with the least total relative error, and whether it uses the delta."""
    pure = _pure(tasks, epsilon)
    mixed = _mixed(tasks, epsilon, delta) if delta else None
    if mixed is not None and _error(tasks, mixed, 1) < _error(tasks, pure, 0):
        return Noises(mixed), True
    return Noises(pure), False


def _pure(tasks: Sequence[Task], epsilon: Fraction) -> dict[Key, CellNoise | Fraction]:
    """Shares of epsilon. The variance of a task is proportional to 1/share², so shares go with the cube root."""
    shares = _shares(tasks, 1 / 3, 0)
    return {
        task.key: laplace(task.sensitivity, epsilon * share) if task.sensitivity is not None else epsilon * share
        for task, share in zip(tasks, shares, strict=True)
        if share
    }


def _mixed(tasks: Sequence[Task], epsilon: Fraction, delta: Fraction) -> dict[Key, CellNoise | Fraction] | None:
    """Gaussian noise where noise is added. Variances are proportional to 1/share of rho, so shares go with the root."""
    if all(task.sensitivity is None for task in tasks):
        return None
    shares = [(task, share) for task, share in zip(tasks, _shares(tasks, 1 / 2, 1), strict=True) if share]
    wanted = tuple((task.sensitivity, task.chooses, share) for task, share in shares)
    try:
        x = _calibrated(wanted, epsilon, delta)
        return {
            task.key: _spent(chooses, share, x) if sensitivity is None else gaussian(sensitivity, x / math.sqrt(share))
            for (task, _), (sensitivity, chooses, share) in zip(shares, wanted, strict=True)
        }
    except (CannotCalibrateError, InvalidParameterError):  # the noise would be too large for exact numbers
        return None


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


def _shares(tasks: Sequence[Task], power: float, noise: int) -> list[Fraction]:
    """Parts of one: what is fixed first, the rest by importance; ``noise`` is 0 for Laplace and 1 for Gaussian."""
    fixed = sum((task.fixed for task in tasks if task.fixed is not None), Fraction(0))
    scale = min(Fraction(1), Fraction(1, 2) / fixed) if fixed else Fraction(1)
    rest = 1 - fixed * scale
    free = [task.importance**power * task.parts[noise] for task in tasks if task.fixed is None]
    if not free:
        return [Fraction(1, len(tasks)) for _ in tasks]
    whole = [max(1, round(number / sum(free) * 10**6)) if number else 0 for number in free]  # exact parts of one
    parts = (Fraction(part, sum(whole)) for part in whole)
    return [task.fixed * scale if task.fixed is not None else rest * next(parts) for task in tasks]


def _error(tasks: Sequence[Task], noises: Mapping[Key, CellNoise | Fraction], kind: int) -> float:
    """What is minimised: the variance of each task relative to its reach, weighted by importance."""
    total = 0.0
    for task in tasks:
        if task.key not in noises:  # a level that this noise leaves out
            continue
        noise = noises[task.key]
        if isinstance(noise, CellNoise):
            sensitivity = 1.0 if task.sensitivity is None else float(task.sensitivity.l1)
            total += task.importance * task.worth[kind] * noise.variance / sensitivity**2
        else:
            total += task.importance * 8 / float(noise) ** 2
    return total


GRID = 1 << 24
"""What a full row weighs: fine enough that rounding does not matter, coarse enough that noise fits in 64 bits."""
_COARSER = 1 << 12
_SCALE = 1 << 38
"""Noise scales are kept below this many steps."""
_FOUND = 64
"""How many full rows one person weighs where the number of rows is yet to be found."""
_CONTRIBUTIONS = Fraction(1, 20)
"""The least share of the budget that finds out how many rows people have."""
_MANY = 100
"""As many groups are expected where keys are yet to be found."""
_VALUES = Fraction(1, 3)
"""The share of a measurement that finds how many different values people bring."""
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
    """What a full person weighs where people are counted; yet to be found, what they would in the default number."""
    contributions: CellNoise | None
    """The noise on the histogram of contributions, where the bound is to be found."""
    memberships: CellNoise | None
    """Likewise on that of the numbers of groups that people are in, where people are counted in many groups."""
    selection: PartitionSelection | None
    findings: Mapping[str, RangeFinding]
    splits: tuple[CellNoise, ...]
    """The noise of each split; where there are several sets of groups, that of the finest which is measured."""
    others: Mapping[str, Planned]
    """For each aggregate that is measured by itself, how it is released."""
    levels: tuple[tuple[CellNoise | None, ...], ...] = ()
    """Where there are several sets of groups, the noise of each split in each set; None where it is not measured."""
    statements: tuple[Statement, ...] = ()
    """What the engine will be asked for, where somebody wants to look at it."""

    def __str__(self) -> str:
        lines = []
        if self.selection is not None:
            lines.append("keys are found by optimal partition selection")
        if self.contributions is not None:
            lines.append(f"the bound on rows is found from a histogram with {self.contributions.words}")
        if self.memberships is not None:
            lines.append(f"the bound on groups is found from a histogram with {self.memberships.words}")
        lines += [f"the bounds of {text} are found from a histogram with noise" for text in self.findings]
        source = self.arrangement.source.items()
        for place, (split, noise) in enumerate(zip(self.arrangement.splits, self.splits, strict=True)):
            names = ", ".join(name for name, i in source if i == place)
            sums = "1 sum" if split.cells == 1 else f"{split.cells} sums"
            spread = f"standard deviation {noise.variance**0.5 / self.grid:.3g} rows"
            if self.levels:
                of_sets = [x.variance**0.5 / self.grid for x in self.levels[place] if x is not None]
                spread = f"standard deviations {', '.join(f'{x:.3g}' for x in of_sets[:9])} rows by set, coarsest first"
            lines.append(f"{names}: {sums} in each group, with {noise.words}, {spread}")
        lines += [f"{name}: {each.plan_words(self.others[name])}" for name, each in self.arrangement.apart]
        return "\n".join([*lines, *(f"statement {i}: {text}" for i, text in enumerate(self.statements, 1))])

    def grid_of(self, aggregate: Measured) -> int:
        """What one of what an aggregate counts weighs."""
        return aggregate.grid(self.grid, self.people_grid)

    @property
    def event(self) -> Event:
        """What the whole release owes."""
        return compose([each.event for each in self.noise])

    def shared(self, together: Together) -> "Plan":
        """The same release with noise that several owners draw together; what does not add up over them is refused."""
        sought = {"keys that are found": self.selection, "bounds that are found": self.findings or None}
        for what, how in sought.items():
            if how is not None:
                raise _not_together(what, "declare them")
        for name, aggregate in self.arrangement.apart:
            if aggregate.counts != "people" or not isinstance(self.others[name], CellNoise):
                raise _not_together(f"the {aggregate.words}", "ask for counts, sums, means and variances")
        if any(split.total for split in self.splits):
            raise _not_together("a public number of rows", "open the tables without it")
        others = {name: how.shared(together) for name, how in self.others.items() if isinstance(how, CellNoise)}
        return replace(
            self,
            contributions=None if self.contributions is None else self.contributions.shared(together),
            memberships=None if self.memberships is None else self.memberships.shared(together),
            splits=tuple(split.shared(together) for split in self.splits),
            others=others,
            levels=tuple(
                tuple(None if level is None else level.shared(together) for level in levels) for levels in self.levels
            ),
        )

    @property
    def noise(self) -> tuple[PlannedNoise, ...]:
        """The noise of every measurement. A grid that is found with the bound is not known beforehand."""
        rows = None if self.contributions is not None else self.grid
        searches = {"keys": self.selection, "rows of a person": self.contributions, "groups": self.memberships}
        noises = [PlannedNoise(name, each.event) for name, each in searches.items() if each is not None]
        for place, split in enumerate(self.splits):
            if not self.levels:
                noises.append(PlannedNoise(f"sums {place}", split.event, None if split.total else rows))
            for number, level in enumerate(self.levels[place] if self.levels else ()):
                noises += [] if level is None else [PlannedNoise(f"sums {place} of set {number}", level.event, rows)]
        for name, aggregate in self.arrangement.apart:
            how, found = self.others[name], self.memberships if aggregate.counts == "people" else self.contributions
            grid = self.grid_of(aggregate) if isinstance(how, CellNoise) and found is None else None
            sources = tuple(f"column {title}" for title in aggregate.titles(name))
            noises.append(PlannedNoise(f"column {name}", how.event, grid, sources))
        return (*noises, *(PlannedNoise(f"bounds of {text}", each.event) for text, each in self.findings.items()))


def plan(
    arrangement: MeasurementPlan,
    bound: Bound | None,
    budget: Budget,
    *,
    unit: Unit,
    keys: int | None,
    weights: Mapping[str, Number],
    everything: bool = False,
    levels: Levels | None = None,
    sites: int = 1,
) -> Plan:
    """The plan with the least total relative error, as far as it is known before the data is seen.

    ``keys`` is the number of public groups, None where they are to be found; ``everything`` says that all rows of the
    table are asked about, in one group; ``levels`` are several sets of groups. A person may be in so many ``sites``.
    """
    assert budget.epsilon is not None  # noqa: S101  # a question is paid for in epsilon, and perhaps in delta
    epsilon, delta = Fraction(budget.epsilon), Fraction(budget.delta or 0)
    if keys is None and not delta:
        raise keys_need_delta(1e-5)
    if keys is None and unit.per_person not in {None, 1}:
        raise NotDeclaredError(
            f"Keys are found by counting persons, and these rows do not say whose they are: they protect {unit}.",
            fix='name the keys; or name the column of the person: unit=dp.user("…").',
        )
    person = _weighed(arrangement, bound, keys, epsilon, unit, everything=everything, levels=levels, sites=sites)
    finds = person.find and arrangement.counts_rows
    placed = _finds_groups(arrangement, bound, keys)
    for_rows = epsilon * _for_contributions(arrangement, keys) if finds else Fraction(0)
    for_groups = epsilon * _CONTRIBUTIONS if placed else Fraction(0)
    for_values = epsilon * _VALUES / max(1, len(arrangement.splits) + len(arrangement.apart))
    finding = sum(aggregate.finds for _, aggregate in arrangement.apart)
    searched = for_rows + for_groups + finding * for_values
    left = (epsilon - searched) * (1 if keys is not None else 1 - _KEYS)
    tasks = _tasks(arrangement, person, {name: float(weight) for name, weight in weights.items()}, epsilon, levels)
    noises, uses_delta = shared(tasks, left, delta if keys is not None else delta / 2)
    selection = None
    if keys is None:
        part, spent = delta / 2 if uses_delta else delta, (epsilon - searched) * _KEYS
        groups = 1 if bound is None else bound.keys_of
        selection = PartitionSelection(epsilon=spent, delta=part, groups=groups, replace=person.replace)
    measured = [] if levels is None else [_leveled(noises, i, len(levels.pure)) for i in range(len(arrangement.splits))]
    return Plan(
        arrangement=arrangement,
        grid=person.grid,
        people_grid=person.people_grid,
        contributions=laplace(person.moved(Sensitivity(1)), for_rows) if finds else None,
        memberships=laplace(person.moved(Sensitivity(1)), for_groups) if placed else None,
        selection=selection,
        findings={
            text: RangeFinding(
                epsilon=noises.epsilon(("bounds", text)), sensitivity=person.heaviest, replace=person.replace
            )
            for text in arrangement.searched
        },
        splits=tuple([noise for noise in split if noise is not None][-1] for split in measured)
        if levels is not None
        else tuple(_split(noises, person, i, split.cells) for i, split in enumerate(arrangement.splits)),
        others=_others(arrangement, person, noises, {task.key for task in tasks if task.chooses}, for_values),
        levels=tuple(measured),
    )


def _not_together(what: str, instead: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"Several owners cannot answer this together: {what} do not add up over them.", fix=f"{instead}."
    )


def _split(noises: Noises, person: PersonWeight, place: int, cells: int) -> CellNoise:
    """The noise of one division of rows."""
    sensitivity = person.cells(cells)
    noise = CellNoise(None, None) if sensitivity is None else noises.noise(("split", place), sensitivity)
    return replace(noise, total=person.number_is_public)


def _leveled(noises: Noises, split: int, number: int) -> tuple[CellNoise | None, ...]:
    """The noise of one division of rows in each set of groups."""
    found = [noises.planned.get(("split", split * number + level)) for level in range(number)]
    return tuple(noise if isinstance(noise, CellNoise) else None for noise in found)


def _for_contributions(arrangement: MeasurementPlan, keys: int | None) -> Fraction:
    """The share that finds out how many rows people have.

    Rows of people who are not seen are missing in counts and sums, and what may be missing is soon more than the noise.
    The fewer groups there are the more so: two fifths of the budget with one group, a fifth with a hundred, or where
    nobody knows how many. For quotients, which weigh rows unequally and miss none, half of that.
    """
    share = max(2 * _CONTRIBUTIONS, Fraction(40, 100 + (_MANY if keys is None else keys)))
    return share / 2 if all(aggregate.quotient for _, aggregate in arrangement.aggregates) else share


def _finds_groups(arrangement: MeasurementPlan, bound: Bound | None, keys: int | None) -> bool:
    """Whether people are counted in more groups than the default, and nobody said in how many of them at most."""
    counted = any(aggregate.counts == "people" for _, aggregate in arrangement.apart)
    many = keys is None or keys > DEFAULT_ROWS
    return counted and many and bound is not None and bound.find and bound.groups is None


def keys_need_delta(left: float) -> NotDeclaredError:
    """Why keys are not found without a delta, and which one to pass where so much is ``left``."""
    return NotDeclaredError(
        "Keys that nobody named can only be found with a delta: whether a key exists depends on single people.",
        fix=f"pass delta=, for example {at_most(left / _FEW, 1)}, or name the keys."
        if left
        else "name the keys: finding them spends delta outright, and none is left for that.",
    )


def _weighed(
    arrangement: MeasurementPlan,
    bound: Bound | None,
    keys: int | None,
    epsilon: Fraction,
    unit: Unit,
    *,
    everything: bool,
    levels: Levels | None = None,
    sites: int = 1,
) -> PersonWeight:
    public = unit.number_is_public
    moved = public or (levels is not None and levels.moved)
    people_in = 1 if bound is None else bound.people_in if keys is None else min(bound.people_in, keys)
    measurements = len(arrangement.splits) + len(arrangement.apart) + len(arrangement.searched)
    least = 1.0 if levels is None else min(part for part in (*levels.pure, *levels.mixed) if part)
    share = epsilon * Fraction(least) / (measurements * unit.changes * sites)
    rows = 1 if bound is None else _FOUND if bound.find else bound.total
    return PersonWeight(
        bound,
        _grid(rows, share) * rows,
        _grid(people_in, share),
        people_in,
        replace=moved,
        changes=1 if public else unit.changes,
        number_is_public=public and everything and unit.kind == "rows" and bound is None,
        sites=sites,
    )


def _tasks(
    arrangement: MeasurementPlan,
    person: PersonWeight,
    weights: Mapping[str, float],
    epsilon: Fraction,
    levels: Levels | None,
) -> list[Task]:
    """The tasks of the splits, of the aggregates that are measured by themselves, and of the bounds to be found."""
    splits = (
        _in_sets(arrangement, person, weights, levels)
        if levels is not None
        else [
            Task(("split", i), arrangement.importance(i, weights), sensitivity)
            for i, split in enumerate(arrangement.splits)
            if (sensitivity := person.cells(split.cells)) is not None
        ]
    )
    apart = [
        Task(
            ("column", name),
            weights.get(name, 1.0) * aggregate.importance,
            aggregate.sensitivity(person),
            chooses=aggregate.chooses(person, epsilon),
        )
        for name, aggregate in arrangement.apart
    ]
    return [*splits, *apart, *(Task(("bounds", text), 1.0, fixed=_BOUNDS) for text in arrangement.searched)]


def _in_sets(
    arrangement: MeasurementPlan, person: PersonWeight, weights: Mapping[str, float], levels: Levels
) -> list[Task]:
    """One task for each split in each set of groups that is measured.

    Groups of a coarser set are sums of finer ones. A person's weight in them is the same, so it moves by as much in L1
    norm, and at most by that in L2 norm: a bound on the rows of each group is one on those of the finest.
    """
    coarse = person.moved(Sensitivity(person.person))
    parts = list(enumerate(zip(levels.pure, levels.mixed, strict=True)))
    last = [max(level for level, both in parts if both[kind]) for kind in (0, 1)]  # whose variance stands for all
    return [
        Task(
            ("split", i * len(parts) + level),
            arrangement.importance(i, weights),
            person.rows if level == levels.finest else coarse,
            parts=both,
            worth=(
                levels.errors[0] * both[0] ** 2 if level == last[0] else 0.0,
                levels.errors[1] * both[1] if level == last[1] else 0.0,
            ),
        )
        for i in range(len(arrangement.splits))
        for level, both in parts
        if any(both)
    ]


def _others(
    arrangement: MeasurementPlan, person: PersonWeight, noises: Noises, choosing: Collection[Key], for_values: Fraction
) -> dict[str, Planned]:
    """How each aggregate that is measured by itself is released."""
    others: dict[str, Planned] = {}
    for name, aggregate in arrangement.apart:
        key, sensitivity = ("column", name), aggregate.sensitivity(person)
        planned = noises.epsilon(key) if sensitivity is None else noises.noise(key, sensitivity)
        others[name] = aggregate.mechanism(planned, person, chooses=key in choosing, search=for_values)
    return others


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
