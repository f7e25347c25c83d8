"""Choosing one event that tells two data sets apart, from the choosing runs only."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from defocus.audit.bounds import promise
from defocus.audit.codings import Coding, Split, atoms, coarse, joint, ranges, ratios
from defocus.audit.columns import Array, Column, views

__all__ = ["Event", "choose"]

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
    found = [_best(coding, split, alpha, delta) for coding in single]
    order = sorted(range(len(found)), key=lambda i: -found[i].promise)[:_PAIRED]
    small = [coarse(single[i], split, _CELLS) for i in order]
    learned = [joint(a, b) for a, b in combinations(small, 2) if a.name != b.name]
    learned += [ranges(score, split) for score in _scores(columns, split)]
    for coding in learned:
        event = _best(coding, split, alpha, delta)
        found.append(replace(event, promise=event.promise - _doubt(split)))
    nothing = Event("any output at all", 0, float("-inf"), np.ones(2 * split.n, dtype=bool))
    return max([nothing, *found], key=lambda event: event.promise)


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
