r"""What is measured: all columns, then in rounds the pairs of columns that the model has most wrong.

Guarantee:
    Only Gaussian noise touches the counts. A stage multiplies each marginal by a whole number :math:`g_k` and adds
    discrete Gaussian noise of one public :math:`\sigma` to all cells. A person moves a marginal by at most W in L2 norm
    (:class:`~defocus.synthesis.counting.Counter`), so the stage moves by at most
    :math:`W\sqrt{\sum_k g_k^2} \le W \Delta`, with :math:`\Delta` planned for the stage whatever was chosen before.
    Stages are a fixed sequence of mechanisms, each chosen after seeing the results of those before, and are charged as
    that: one event.

    *Scores.* How wrong the model is about a pair is :math:`\|counts - model\|_1`, a whole number. By the triangle
    inequality it moves by at most :math:`\|counts - counts'\|_1 \le W`, so all P scores move by :math:`W\sqrt P`.
Assumes:
    Where a person is replaced, that is one removed and one added: W is twice as large.

Reference:
    McKenna, Mullins, Sheldon, Miklau (2022), AIM: an adaptive and iterative mechanism for differentially private
    synthetic data, for choosing what to measure by what is wrong now.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as field_
from functools import reduce
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import Number
from defocus.mechanisms import Gaussian
from defocus.noise import Bits
from defocus.privacy.events import DiscreteGaussian, Event
from defocus.synthesis.field import Codes, Floats, MarkovField, counted, narrow
from defocus.synthesis.prediction import Prediction, Scores, area, labels_of, scores_of
from defocus.synthesis.targets import (
    Noisy,
    by_bins,
    merged,
    pooled_margins,
    raked,
    simplex,
    smoothed,
    table_target,
    total_of,
)

__all__ = [
    "CELLS",
    "COLUMNS",
    "MOST",
    "PLAIN",
    "STEPS",
    "Counts",
    "CountsByClass",
    "Fitted",
    "Setup",
    "Spending",
    "column_shares",
    "events",
    "fitted",
    "pairs_of",
]

STEPS = 1 << 14
"""In how many steps the sensitivity of all stages together is divided."""
CELLS, COLUMNS = 1 << 24, 500
"""At least as many cells as any stage measures, and the most columns."""
MOST = 400_000
"""So many records there are at most unless somebody asks for more."""


class Counts(Protocol):
    """Whatever counts sets of columns exactly."""

    def __call__(self, sets: Sequence[tuple[int, ...]], bins: Any) -> list[NDArray[np.int64]]:
        """The weight in each cell of each set of columns."""
        ...


CountsByClass: TypeAlias = Callable[[Scores, Any], NDArray[np.int64]]
"""Whatever counts rows exactly by class of score and by the code of what is predicted."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Which part of the whole each stage may spend."""

    columns: float = 0.15
    scores: float = 0.06
    rounds: tuple[float, ...] = (0.25, 0.52)
    """For the pairs of each round."""
    check: float = 0.02
    tree: bool = False
    """Whether pairs never form a cycle: a Bayesian network in which each column has one parent at most."""
    prediction: float = 0.0
    """For how well a column is predicted; nothing is measured for that where it is zero."""

    def with_prediction(self) -> "Spending":
        """The same with a part for a prediction, as large as that of the check, taken from the largest stage."""
        if not self.rounds:
            return replace(self, columns=self.columns - self.check, prediction=self.check)
        rounds = (*self.rounds[:-1], self.rounds[-1] - self.check)
        return replace(self, rounds=rounds, prediction=self.check)

    def stages(self) -> Iterator[float]:
        """The parts in the order in which they are spent: columns, then scores and pairs by turns, then the checks."""
        yield self.columns
        for part in self.rounds:
            yield self.scores / len(self.rounds)
            yield part
        yield self.check
        if self.prediction:
            yield self.prediction

    def deltas(self) -> list[int]:
        """The sensitivity of each stage in steps, whose squares add up to at most those of :data:`STEPS`."""
        return [math.isqrt(math.floor(part * STEPS * STEPS)) for part in self.stages()]


def events(spending: Spending, sigma: Number, weight: int) -> list[Event]:
    """What the stages owe, if one person weighs so much."""
    return [DiscreteGaussian(sigma, delta * weight, CELLS) for delta in spending.deltas()]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Public facts that the measurements depend on."""

    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]
    missing: tuple[bool, ...]
    """Whether the last code of a column stands for a missing value."""
    sigma: Number
    """Of the noise on every cell."""
    weight: int
    """What one person weighs."""
    grid: int
    """What a full row weighs."""
    spending: Spending
    allowed: Mapping[tuple[int, ...], NDArray[np.bool_]] = field_(default_factory=dict)
    """Pairs of columns of which not all combinations of codes may occur: those that may."""
    records: int | None = None
    """How many synthetic records there are; about as many as rows by default."""
    released: Mapping[tuple[int, ...], Sequence[Noisy]] = field_(default_factory=dict)
    """Counts of rows by codes that were released before, with NaN where nothing is known."""
    spikes: tuple[tuple[int, ...], ...] = ()
    """For each column the codes at which values may pile up, whatever their neighbours hold."""
    target: int | None = None
    """The column that is to be predicted, where there is one: the spending has a part for it."""
    focus: tuple[tuple[int, ...], ...] = ()
    """Sets of columns that must be good: pairs inside them are measured in any case, and only they are checked."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """What was measured, and records that meet it. Released numbers only."""

    records: Codes
    """One row for each synthetic record, one column for each column: bins."""
    bins: tuple[NDArray[np.int64], ...]
    """For each column the bin of each code."""
    within: tuple[Floats, ...]
    """For each column about how many records have each code."""
    margins: tuple[Noisy, ...]
    """The noisy counts of each column, by bins."""
    tables: dict[tuple[int, ...], Noisy]
    """The noisy counts of the pairs that were measured, by bins."""
    total: float
    """About how many rows there are."""
    distances: Noisy
    """The total variation distance between data and records in each set that was checked, by bins, as measured."""
    checked: tuple[tuple[int, ...], ...]
    """The sets of columns that were checked: those that must be good, or all pairs."""
    prediction: Prediction | None = None
    """How well a model of the records predicts a column of the data, where that was asked."""


@final
@dataclass(slots=True)
class _Stages:
    """Draws noise for one stage after the other; each has its sensitivity, and there are no more than were charged."""

    setup: Setup
    bits: Bits
    left: list[int]
    unit: float
    """What a synthetic record stands for, in weights."""
    resolved: bool = True
    """Whether so much as the number of rows is told from noise; else no pair is."""

    def measured(self, counts: Sequence[NDArray[np.int64]], shares: Floats) -> list[Noisy]:
        """Noisy counts of several marginals; each has its share of the stage."""
        delta = self.left.pop(0)
        if not counts:
            return []
        factors = [math.isqrt(math.floor(delta * delta * float(share))) for share in shares / shares.sum()]
        assert sum(factor * factor for factor in factors) <= delta * delta  # noqa: S101  # isqrt rounds down
        exact = np.concatenate([own.ravel() * factor for own, factor in zip(counts, factors, strict=True)])
        noisy = self._drawn(exact, delta).astype(np.float64)
        found, start, sigma = [], 0, float(self.setup.sigma)
        for own, factor in zip(counts, factors, strict=True):
            part = noisy[start : start + own.size].reshape(own.shape)
            start += own.size
            scale = max(factor, 1) * self.unit
            found.append(Noisy(part / scale, sigma / scale))
        return found

    def scored(self, scores: Sequence[int]) -> Noisy:
        """Noisy whole numbers, each of which one person moves by at most what they weigh."""
        delta = self.left.pop(0)
        factor = math.isqrt(delta * delta // max(1, len(scores)))
        noisy = self._drawn(np.asarray(scores, np.int64) * factor, delta)
        scale = max(factor, 1) * self.unit
        return Noisy(noisy.astype(np.float64) / scale, float(self.setup.sigma) / scale)

    def _drawn(self, exact: NDArray[np.int64], delta: int) -> NDArray[np.int64]:
        if not len(exact):
            return exact
        bound = delta * self.setup.weight
        return Gaussian(sigma=self.setup.sigma, sensitivity=bound, dimension=len(exact)).sample(exact, self.bits)


def fitted(
    setup: Setup,
    count: Counts,
    bits: Bits,
    random: np.random.Generator,
    *,
    by_class: CountsByClass | None = None,
) -> Fitted:
    """Measure and fit by turns. ``count`` and ``by_class`` give exact counts, which go nowhere but into noise."""
    stages = _Stages(setup, bits, setup.spending.deltas(), float(setup.grid))
    number = len(setup.sizes)
    alone = [(i,) for i in range(number)]
    codes = [np.arange(size) for size in setup.sizes]
    raw = stages.measured(count(alone, codes), column_shares(setup.sizes, setup.ordered))
    raw = _with_released(raw, setup.released)
    seen, error = total_of(raw)
    total = min(seen, MOST) if setup.records is None else setup.records
    scale, stages.unit, stages.resolved = total / seen, setup.grid * seen / total, seen > _SEEN * error
    raw = [Noisy(margin.counts * scale, margin.sigma * scale) for margin in raw]
    within, bins, fine, most = [], [], _fineness(setup, total, stages.unit), _most_bins(setup)
    for i, margin in enumerate(raw):
        kept = list(setup.spikes[i]) if setup.spikes else []
        how = fine if setup.ordered[i] else None
        own, own_bins = _binned(margin, total, fine=how, most=most, missing=setup.missing[i], spikes=kept)
        within.append(own)
        bins.append(own_bins)
    margins = [
        Noisy(_summed(margin.counts, own), margin.sigma * math.sqrt(len(own) / (own.max() + 1)))
        for margin, own in zip(raw, bins, strict=True)
    ]
    field = MarkovField([int(own.max()) + 1 for own in bins], total, random)
    field.hold_margins([np.maximum(_summed(own, into), 1e-3) for own, into in zip(within, bins, strict=True)])
    for columns, allowed in setup.allowed.items():
        field.allow(columns, _coarser(allowed, [bins[i] for i in columns]))
    tables: dict[tuple[int, ...], Noisy] = {}
    for columns, before in setup.released.items():
        for noisy in before if len(columns) > 1 else ():
            gone = [bool(within[i][-1] == 0) for i in columns]
            scaled = Noisy(noisy.counts * scale, noisy.sigma * scale)
            tables[columns] = by_bins(scaled, [bins[i] for i in columns], gone).with_(tables.get(columns))
    if tables:
        _hold(field, margins, tables)
        field.fit(_SWEEPS // 2)
    _rounds(setup, count, stages, field, bins, margins, tables)
    field.settle(_SETTLING)
    found = (field.records, tuple(bins), tuple(within), tuple(margins), tables, float(seen))
    done = Fitted(*found, Noisy(np.zeros(0), math.nan), setup.focus or tuple(pairs_of(number)))
    done = _checked(count, stages, done)
    return (
        done if setup.target is None or by_class is None else _predicted(setup.target, by_class, stages, done, random)
    )


def column_shares(sizes: Sequence[int], ordered: Sequence[bool]) -> Floats:
    """How much of the first stage each column gets: in proportion to cells**(2/3), for the least absolute error."""
    cells = [min(size, _SMOOTH if smooth else _LARGE) for size, smooth in zip(sizes, ordered, strict=True)]
    return np.asarray(np.array(cells, float) ** (2 / 3))


def _with_released(raw: Sequence[Noisy], released: Mapping[tuple[int, ...], Sequence[Noisy]]) -> list[Noisy]:
    """The counts of all columns with what released counts say about them.

    Counts by several columns leave out rows in which another column is missing. As many are missing there as the
    column's own counts say, and none where noise hides them.
    """
    total, found = total_of(raw)[0], list(raw)
    seen = [own.counts[-1] > _SEEN * own.sigma for own in raw]
    shares = [min(0.9, own.counts[-1] / total) if told else 0.0 for own, told in zip(raw, seen, strict=True)]
    for columns, noisy in ((columns, one) for columns, before in released.items() for one in before):
        if np.isnan(noisy.counts[(slice(-1),) * len(columns)]).any():  # it does not tell all codes
            continue
        for place, i in enumerate(columns):
            others = [axis for axis in range(len(columns)) if axis != place]
            known = np.where(np.isnan(noisy.counts).all(axis=tuple(others)), np.nan, 0.0)
            own, variance = known + np.nansum(noisy.counts, axis=tuple(others)), noisy.sigma**2
            for axis in others:
                share = shares[columns[axis]] * bool(np.isnan(np.take(noisy.counts, -1, axis)).all())
                own, variance = own / (1 - share), variance * (noisy.counts.shape[axis] - 1) / (1 - share) ** 2
                unsure = raw[columns[axis]].sigma / total if share else 0.0
                variance += float(np.nanmean(own) * unsure) ** 2
            hidden = np.isnan(own) & (found[i].counts < _SEEN * found[i].sigma)
            mine = Noisy(np.where(hidden, 0.0, found[i].counts), found[i].sigma)
            found[i] = mine.with_(Noisy(own, math.sqrt(variance)))
    return found


def _checked(count: Counts, stages: _Stages, done: Fitted) -> Fitted:
    """The result with what held-back budget says about each set that is to be checked."""
    sizes = [int(own.max()) + 1 for own in done.bins]
    found = stages.scored(_distances(stages.unit, count, done.checked, done.bins, done.records, sizes))
    scale = 2 * max(1, len(done.records))
    return replace(done, distances=Noisy(found.counts / scale, found.sigma / scale))


def _predicted(
    target: int, by_class: CountsByClass, stages: _Stages, done: Fitted, random: np.random.Generator
) -> Fitted:
    """The result with how well a model of its records predicts a column of the data."""
    sizes = [int(own.max()) + 1 for own in done.bins]
    labels = labels_of(done.records, target, done.bins[target])
    scores = scores_of(done.records, sizes, target, labels, random)
    (noisy,) = stages.measured([by_class(scores, done.bins)], np.ones(1))
    auc, error = area(noisy)
    own = area(Noisy(scores.counted(done.records, labels).astype(np.float64), 0.0))[0]
    return replace(done, prediction=Prediction("", auc, error, own))


def pairs_of(columns: int) -> list[tuple[int, ...]]:
    """All pairs of so many columns; of one column, itself.

    >>> pairs_of(3), pairs_of(1)
    ([(0, 1), (0, 2), (1, 2)], [(0,)])
    """
    return list(itertools.combinations(range(columns), 2)) or [(0,)]


def _rounds(  # noqa: PLR0917  # what measuring and fitting share
    setup: Setup,
    count: Counts,
    stages: _Stages,
    field: MarkovField,
    bins: Sequence[NDArray[np.int64]],
    margins: Sequence[Noisy],
    tables: dict[tuple[int, ...], Noisy],
) -> None:
    """Choose pairs, measure them and fit the field, round by round; ``tables`` grows."""
    pairs = list(itertools.combinations(range(len(field.sizes)), 2))
    groups = [_grouped(margin, ordered=ordered) for margin, ordered in zip(field.margins, setup.ordered, strict=True)]
    coarse = [group[own] for group, own in zip(groups, bins, strict=True)]
    coarse_sizes = [int(group.max()) + 1 for group in groups]
    narrowed = [group.astype(narrow(coarse_sizes)) for group in groups]
    costs = np.array([float(field.sizes[i] * field.sizes[j]) / 2 for i, j in pairs]) ** (2 / 3)
    must = {pair for own in setup.focus for pair in itertools.combinations(sorted(own), 2)}
    shares = costs * np.where([pair in must for pair in pairs], _FOCUS, 1.0)
    rounds = len(setup.spending.rounds)
    sweeps = _SWEEPS if setup.target is None else 2 * _SWEEPS  # predictions gain from it, marginals hardly
    for place in range(rounds):
        model = np.stack([group[field.records[:, i]] for i, group in enumerate(narrowed)], 1)
        scores = stages.scored(_distances(stages.unit, count, pairs, coarse, model, coarse_sizes))
        gains = _gains(scores, pairs, model, coarse_sizes) * stages.resolved
        budget = stages.left[0] ** 2 / (2 * (float(setup.sigma) / stages.unit) ** 2)
        tree = setup.spending.tree or (not place and rounds > 1)
        chosen = _forest(pairs, gains, len(field.sizes)) if tree else _worthwhile(gains, costs, budget)
        if place == rounds - 1:
            chosen = list(dict.fromkeys([*chosen, *(p for p, pair in enumerate(pairs) if pair in must)]))
        sets = [pairs[p] for p in chosen]
        for columns, noisy in zip(sets, stages.measured(count(sets, bins), shares[chosen]), strict=True):
            tables[columns] = noisy.with_(tables.get(columns))
        _hold(field, margins, tables)
        field.fit(sweeps if place == rounds - 1 else sweeps // 2)


def _distances(  # noqa: PLR0917
    unit: float, count: Counts, pairs: Sequence[tuple[int, ...]], bins: Any, records: NDArray[Any], sizes: Sequence[int]
) -> list[int]:
    """How far the records are from the data in each pair, as a whole number of weights."""
    exact = count(pairs, bins)
    return [
        int(np.abs(own - np.rint(unit * counted(records, columns, sizes)).astype(np.int64)).sum())
        for own, columns in zip(exact, pairs, strict=True)
    ]


def _gains(
    scores: Noisy, pairs: Sequence[tuple[int, ...]], model: NDArray[Any], sizes: Sequence[int]
) -> NDArray[np.float64]:
    """How wrong each pair is beyond what sampling alone would show, in records; zero where noise hides it."""
    gains = np.zeros(len(pairs))
    for p, columns in enumerate(pairs):
        chance = np.sqrt(4 / math.pi * counted(model, columns, sizes)).sum()
        own = scores.counts[p]
        gains[p] = math.sqrt(max(own * abs(own) - chance**2, 0)) if own > 2 * scores.sigma else 0
    return gains


def _forest(pairs: Sequence[tuple[int, ...]], gains: NDArray[np.float64], columns: int) -> list[int]:
    """A spanning forest of the pairs that are most wrong."""
    root, chosen = list(range(columns)), []
    for p in np.argsort(-gains):
        i, j = (root[column] for column in pairs[p])
        if gains[p] > 0 and i != j:
            root = [i if one == j else one for one in root]
            chosen.append(int(p))
    return chosen


def _worthwhile(gains: NDArray[np.float64], costs: NDArray[np.float64], budget: float) -> list[int]:
    """The pairs that lower the error by more than their noise adds, when all share the budget."""
    chosen: list[int] = []
    values, spent = gains / costs, 0.0
    for p in np.argsort(-values):
        if gains[p] <= 0 or (chosen and values[p] < _WORTH * math.sqrt((spent + costs[p]) / (2 * budget))):
            break
        chosen.append(int(p))
        spent += costs[p]
    return chosen


def _hold(field: MarkovField, margins: Sequence[Noisy], tables: dict[tuple[int, ...], Noisy]) -> None:
    """Give the field the targets that all measurements together suggest."""
    pooled = pooled_margins(margins, tables, field.number)
    field.hold_margins(pooled)
    for columns, noisy in tables.items():
        own = [pooled[i] for i in columns]
        base = reduce(np.multiply.outer, own) / field.number ** (len(own) - 1)
        field.hold(columns, table_target(noisy, own, base, field.allowed.get(columns)))
    for columns, allowed in field.allowed.items():
        if columns not in tables:
            base = np.outer(*(pooled[i] for i in columns)) * allowed
            field.hold(columns, raked(base, [pooled[i] for i in columns]))


def _most_bins(setup: Setup) -> int:
    """So many bins a column has at most: all pairs together, or one triple in focus, have at most _PAIRED cells."""
    most = math.isqrt(2 * _PAIRED) // len(setup.sizes)
    return min(most, math.floor(math.cbrt(_PAIRED))) if any(len(own) > 2 for own in setup.focus) else most


def _binned(
    margin: Noisy, total: int, *, fine: float | None, most: int, missing: bool, spikes: Sequence[int] = ()
) -> tuple[Floats, NDArray[np.int64]]:
    """About how many records have each code, and the bin of each code."""
    gone = missing and len(margin.counts) > 1 and margin.counts[-1] < _SEEN * margin.sigma
    raw = margin.counts[:-1] if gone else margin.counts
    if fine is not None and len(raw) > PLAIN:
        own = len(raw) - (missing and not gone)
        plain = np.setdiff1d(np.arange(own), spikes)
        flat = np.where(raw[:own] > _SEEN * margin.sigma, raw[:own], 0.0)  # neighbours say nothing about spikes
        flat[plain] = smoothed(raw[plain], margin.sigma)
        raw = np.concatenate([flat, raw[own:]])
    counts = simplex(raw, total)
    least = _SEEN * margin.sigma
    if fine is not None:
        # Of many codes, those that fill a bin each take no bins from the others.
        rest = counts[counts < total / fine].sum() / total if len(counts) > PLAIN else 1.0
        least = max(least, total / fine * math.sqrt(rest))
    alone = int(missing and not gone)
    weights = counts.copy()
    if fine is None:  # the most frequent codes have bins of their own
        weights[np.argsort(-counts[: len(counts) - alone], kind="stable")[most - 1 - alone :]] = 0.0
    bins = merged(weights, least, ordered=fine is not None, alone=alone)
    while int(bins.max()) >= most:
        least *= 1.25
        bins = merged(weights, least, ordered=fine is not None, alone=alone)
    if gone:  # so few that noise hides them: they go with the last bin, and are not made up
        counts, bins = np.append(counts, 0.0), np.append(bins, bins[-1])
    return counts, bins


def _fineness(setup: Setup, total: int, unit: float) -> float:
    """About how many bins a column with an order has, so that pairs are neither too coarse nor lost in noise.

    With k bins each, a pair has k² cells, whose noise adds up to a share of about k² sigma / n; bins blur about 1 / k.
    """
    if not setup.spending.rounds:  # without pairs, bins are all the same
        return 64.0
    pairs = max(1, math.comb(len(setup.sizes), 2))
    sigma = float(setup.sigma) * math.sqrt(pairs) / (math.sqrt(sum(setup.spending.rounds)) * STEPS * unit)
    return min(64.0, max(6.0, _FINENESS * math.cbrt(total / sigma)))


def _grouped(margin: Floats, *, ordered: bool) -> NDArray[np.int64]:
    """At most so many groups of bins of about equal mass, for the scores."""
    if not ordered or len(margin) <= _GROUPS:
        return np.arange(len(margin))
    place = np.minimum((np.cumsum(margin) - margin / 2) / margin.sum() * _GROUPS, _GROUPS - 1).astype(int)
    return np.asarray(np.unique(place, return_inverse=True)[1])


def _coarser(allowed: NDArray[np.bool_], bins: Sequence[NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Which combinations of bins hold an allowed combination of codes."""
    left = np.zeros((int(bins[0].max()) + 1, allowed.shape[1]), np.bool_)
    np.logical_or.at(left, bins[0], allowed)
    both = np.zeros((len(left), int(bins[1].max()) + 1), np.bool_)
    np.logical_or.at(both.T, bins[1], left.T)
    return both


def _summed(counts: Floats, bins: NDArray[np.int64]) -> Floats:
    return np.asarray(np.bincount(bins, counts, int(bins.max()) + 1), np.float64)


_LARGE, _SMOOTH = 2000, 64
"""Domains of more codes get no larger share; where codes have an order, neighbours are smoothed."""
_PAIRED = 1 << 22
"""So many cells all pairs of bins have together at most: what is kept in memory, and no more than CELLS."""
_SEEN = 3.0
"""Counts of so many standard deviations are told from none."""
_FINENESS = 3.0
PLAIN = 33
"""Counts of so few codes are not smoothed."""
_GROUPS = 8
_FOCUS = 4.0
"""How much more budget a pair gets that must be good."""
_WORTH = 0.8
_SWEEPS = 60
_SETTLING = 6
