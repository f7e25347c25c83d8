"""Events that tell two worlds apart, learned from some of the runs.

Outputs sorted into few classes, learned from some of the runs and applied to all of them.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from defocus.audit.bounds import promise
from defocus.audit.outcomes import Array, Column, views

__all__ = ["Coding", "Event", "Split", "atoms", "choose", "coarse", "joint", "ranges", "ratios"]


_BINS = 256
_ATOMS = 1024
_RARE = 4  # an exact value seen less often while learning is no class of its own


@final
@dataclass(frozen=True, slots=True)
class Split:
    """Which runs do what: of ``n`` runs on each data set, the first learn, the next choose, the rest judge."""

    n: int
    learn: int
    train: int

    def of(self, codes: Array, what: str) -> tuple[Array, Array]:
        """The part of ``codes`` (all runs on the first data set, then on the second) with the job ``what``."""
        start, stop = {"learn": (0, self.learn), "choose": (self.learn, self.train), "judge": (self.train, self.n)}[
            what
        ]
        return codes[start:stop], codes[self.n + start : self.n + stop]


@final
@dataclass(frozen=True, slots=True)
class Coding:
    """A class for every run. ``ordered`` classes have thresholds; ``tell`` puts a set of classes into words."""

    name: str
    codes: NDArray[np.int64]
    size: int
    ordered: bool
    plain: bool
    """Whether any set of classes reads well."""
    tell: Callable[[NDArray[np.bool_]], str]


def ranges(column: Column, split: Split, bins: int = _BINS) -> Coding:
    """Classes of neighbouring numbers: each value where they are few, else quantiles with fine tails."""
    first, second = split.of(column.values, "learn")
    seen = np.concatenate([first, second])
    seen = np.sort(seen[np.isfinite(seen)]) if seen.dtype.kind == "f" else np.sort(seen)
    edges = np.unique(seen)
    if len(edges) > bins:
        edges = np.unique(seen[_ranks(len(seen), bins)])
    codes = np.searchsorted(edges, column.values, side="right")
    size = len(edges) + 1
    if column.values.dtype.kind == "f":
        codes = np.where(np.isnan(column.values), size, codes)

    def tell(chosen: NDArray[np.bool_]) -> str:
        return _intervals(column, edges, chosen)

    return Coding(column.name, codes.astype(np.int64), size + 1, ordered=True, plain=False, tell=tell)


def atoms(column: Column, split: Split) -> Coding:
    """A class for each exact value or label seen often enough while learning, one more for all others."""
    first, second = split.of(column.values, "learn")
    values, counts = np.unique(np.concatenate([first, second]), return_counts=True)
    often = np.argsort(-counts, kind="stable")[:_ATOMS]
    frequent = np.sort(values[often[counts[often] >= _RARE]])
    place = np.searchsorted(frequent, column.values)
    inside = np.minimum(place, max(len(frequent) - 1, 0))
    hit = frequent[inside] == column.values if len(frequent) else np.zeros(len(column.values), dtype=bool)

    labels = column.labels

    def tell(chosen: NDArray[np.bool_]) -> str:
        names = [column.show(v.item()) if labels is None else labels[int(v)] for v in frequent]
        return _listed(column.name, names, chosen)

    codes = np.where(hit, inside, len(frequent)).astype(np.int64)
    return Coding(column.name, codes, len(frequent) + 1, ordered=False, plain=column.labels is not None, tell=tell)


def coarse(coding: Coding, split: Split, most: int) -> Coding:
    """The same classes merged into at most ``most``: neighbours where there is an order, like ratios where not."""
    if coding.size <= most:
        return coding
    rank = np.arange(coding.size) if coding.ordered else np.argsort(np.argsort(-ratios(coding, split), kind="stable"))
    first, second = split.of(coding.codes, "learn")
    weight = np.bincount(np.concatenate([first, second]), minlength=coding.size)[np.argsort(rank)]
    below = np.cumsum(weight) - weight / 2
    group = np.minimum((below / max(below[-1], 1) * most).astype(np.int64), most - 1)[rank]
    return Coding(
        coding.name, group[coding.codes], most, ordered=coding.ordered, plain=False, tell=lambda _: coding.name
    )


def joint(one: Coding, other: Coding) -> Coding:
    """Both at once."""
    name = f"{one.name} together with {other.name}"

    def tell(chosen: NDArray[np.bool_]) -> str:
        return f"{name}: in {int(chosen.sum())} of {len(chosen)} learned cells"

    return Coding(
        name, one.codes * other.size + other.codes, one.size * other.size, ordered=False, plain=False, tell=tell
    )


def ratios(coding: Coding, split: Split) -> NDArray[np.float64]:
    """The learned log-likelihood ratio of each class, first data set over second, drawn towards zero where rare."""
    first, second = (np.bincount(part, minlength=coding.size) for part in split.of(coding.codes, "learn"))
    return np.asarray(np.log((first + 0.5) / (second + 0.5)))


def _ranks(n: int, bins: int) -> NDArray[np.int64]:
    """Positions of the quantiles: evenly spread, and halving towards both ends."""
    even = np.linspace(0, n - 1, bins - 32)
    tail = n / 2.0 ** np.arange(1, 17)
    return np.unique(np.clip(np.concatenate([even, tail, n - 1 - tail]), 0, n - 1).astype(np.int64))


def _intervals(column: Column, edges: Array, chosen: NDArray[np.bool_]) -> str:
    """A set of neighbouring classes as intervals; class i holds edges[i-1] <= x < edges[i], the last is NaN."""
    inner = chosen[:-1].astype(np.int64)
    starts = np.flatnonzero(np.diff(inner, prepend=0) == 1)
    stops = np.flatnonzero(np.diff(inner, append=0) == -1)
    parts = []
    for start, stop in zip(starts, stops, strict=True):
        low = column.show(edges[start - 1].item()) if start > 0 else None
        high = column.show(edges[stop].item()) if stop < len(edges) else None
        if low is None or high is None:
            parts.append("any number" if low is high else f">= {low}" if high is None else f"< {high}")
        else:
            parts.append(f"in [{low}, {high})")
    parts += ["not a number"] if chosen[-1] else []
    more = f" or in {len(parts) - 4} more ranges" if len(parts) > 4 else ""
    return f"{column.name} is {' or '.join(parts[:4])}{more}"


def _listed(name: str, labels: list[str], chosen: NDArray[np.bool_]) -> str:
    """A set of exact values; told by what it leaves out where it holds all the rare ones."""
    others = bool(chosen[-1])
    picked = [label for label, inside in zip(labels, chosen[:-1] ^ others, strict=True) if inside]
    shown = ", ".join(label if len(label) <= 60 else f"{label[:57]}..." for label in picked[:5])
    more = f" and {len(picked) - 5} more" if len(picked) > 5 else ""
    if others:
        return f"{name} is {'none of' if len(picked) > 1 else 'not'} {shown}{more}" if picked else f"{name} is anything"
    return f"{name} is {'one of' if len(picked) > 1 else 'exactly'} {shown}{more}"


_LOOKED_INTO = 12  # columns of numbers whose lattice, residues, … are looked at one by one
_PAIRED = 6
_CELLS = 32


@final
@dataclass(frozen=True, slots=True)
class Event:
    """A set of outputs, fixed before the judging runs are looked at."""

    words: str
    likelier: int
    """Which data set it is likelier on: 0 or 1."""
    promise: float
    holds: NDArray[np.bool_]
    """Whether it happened, in every run."""


def choose(columns: list[Column], split: Split, *, alpha: float, delta: float) -> Event:
    """The event with the highest promised bound among thresholds, value sets, pairs and learned scores.

    The first part of the choosing runs learns the classes and their likelihood ratios, the
    second compares the candidate events; by the Neyman–Pearson lemma the best event is a
    threshold of the likelihood ratio, so sets of classes are tried in the order of it.
    """
    single = [coding for coding in _codings(_looked_into(columns, split), split) if coding.size > 1]
    candidates = [_best(coding, split, alpha, delta) for coding in single]
    order = sorted(range(len(candidates)), key=lambda i: -candidates[i].promise)[:_PAIRED]
    small = [coarse(single[i], split, _CELLS) for i in order]
    learned = [joint(a, b) for a, b in combinations(small, 2) if a.name != b.name]
    learned += [ranges(score, split) for score in _scores(columns, split)]
    for coding in learned:
        event = _best(coding, split, alpha, delta)
        candidates.append(replace(event, promise=event.promise - _doubt(split)))
    nothing = Event("any output at all", 0, float("-inf"), np.ones(2 * split.n, dtype=bool))
    return max([nothing, *candidates], key=lambda event: event.promise)


def _best(coding: Coding, split: Split, alpha: float, delta: float) -> Event:
    """The best set of classes along each order of them: by likelihood ratio, and by value where there is one."""
    counts = [np.bincount(part, minlength=coding.size) for part in split.of(coding.codes, "choose")]
    runs = split.train - split.learn
    best = (-np.inf, 0, np.zeros(coding.size, dtype=bool))
    for order, handicap in _orders(coding, split):
        hits = [np.cumsum(count[order])[:-1] for count in counts]
        for side in (0, 1):
            value = promise(hits[side], hits[1 - side], runs, alpha, delta) - handicap
            at = int(np.argmax(value))
            if value[at] > best[0]:
                chosen = np.zeros(coding.size, dtype=bool)
                chosen[order[: at + 1]] = True
                best = (float(value[at]), side, chosen)
    score, side, chosen = best
    return Event(coding.tell(chosen), side, score, chosen[coding.codes])


def _orders(coding: Coding, split: Split) -> Iterator[tuple[NDArray[np.int64], float]]:
    """Orders in which to gather classes, and what an event must promise more to be preferred to a threshold."""
    if coding.ordered:
        classes = np.arange(coding.size)
        yield classes, 0.0
        yield np.concatenate([classes[-2::-1], classes[-1:]]), 0.0  # the last class is what is not a number
    likelier = np.argsort(-ratios(coding, split), kind="stable")
    for order in (likelier, likelier[::-1]):
        yield order, 0.0 if coding.plain else _doubt(split)


def _doubt(split: Split) -> float:
    """What a learned event must promise more than a plain one, since the best of many promises too much."""
    return max(0.01, 1 / math.sqrt(split.train - split.learn))


def _codings(columns: Iterable[Column], split: Split) -> Iterator[Coding]:
    for column in columns:
        if column.labels is None:
            yield ranges(column, split)
        if column.labels is not None or column.numeric or column.name.startswith("fraction"):
            yield atoms(column, split)


def _looked_into(columns: list[Column], split: Split) -> list[Column]:
    """All columns, and more views of the numeric ones that differ most between the data sets while learning."""
    numeric = [column for column in columns if column.numeric]
    kept = _strongest(numeric, split, _LOOKED_INTO)
    others = [column for column in columns if not column.numeric]
    seen = [view for column in kept for view in views(column)]
    if len(numeric) > _LOOKED_INTO:
        grids = [views(column)[0] for column in numeric]
        seen += _strongest(grids, split, _LOOKED_INTO)
    return others[: 4 * _LOOKED_INTO] + kept + seen


def _strongest(columns: list[Column], split: Split, most: int) -> list[Column]:
    if len(columns) <= most:
        return columns
    order = sorted(range(len(columns)), key=lambda i: -abs(_shift(columns[i].values, split)))[:most]
    return [columns[i] for i in sorted(order)]


def _shift(values: Array, split: Split) -> float:
    """The learned difference of means in standard deviations."""
    first, second = (_plain(part) for part in split.of(values, "learn"))
    spread = float(np.sqrt((first.var() + second.var()) / 2))
    gap = float(first.mean() - second.mean())
    return gap / spread if spread > 0 else gap * 1e300


def _plain(values: Array) -> NDArray[np.float64]:
    """As floats, with NaN and infinities replaced, and large ones drawn in so that sums stay finite."""
    return np.clip(np.nan_to_num(values.astype(np.float64)), -1e100, 1e100)


def _scores(columns: list[Column], split: Split) -> Iterator[Column]:
    """Learned scores of several columns at once: the sum of their log-likelihood ratios, and a linear one."""
    numeric = _strongest([column for column in columns if column.numeric], split, 64)
    if len(numeric) < 2:
        return
    yield _summed("likelihood ratio of all entries", [ranges(c, split, _CELLS) for c in numeric], split)
    grids = [ranges(views(c)[0], split, _CELLS) for c in numeric]
    yield _summed("likelihood ratio of the lowest set bits of all entries", grids, split)
    matrix = np.column_stack([_plain(c.values) for c in numeric])
    scale = np.abs(matrix[: split.learn]).max(axis=0)
    matrix /= np.where(scale > 0, scale, 1.0)
    first, second = split.of(matrix, "learn")
    spread = np.cov(first.T) + np.cov(second.T)
    spread += np.eye(len(spread)) * (1e-12 + 1e-10 * np.trace(spread))
    weights = np.linalg.solve(spread, first.mean(axis=0) - second.mean(axis=0))
    yield Column("linear discriminant of all entries", matrix @ weights)


def _summed(name: str, codings: list[Coding], split: Split) -> Column:
    total = np.zeros(2 * split.n)
    for coding in codings:
        total += ratios(coding, split)[coding.codes]
    return Column(f"learned {name}", total)
