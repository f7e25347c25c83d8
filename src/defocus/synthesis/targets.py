r"""What noisy counts say once they are looked at together: totals, margins, and tables with less noise.

Everything here is post-processing of released numbers, and knows the variance of each.

*Margins.* The counts of a column are known from its own measurement and from the margins of every measured pair; they
are averaged by inverse variance. *Pairs.* A pair is the product of its margins plus an interaction whose rows and
columns sum to zero. The interaction of real columns has a few large singular values, white noise has many of similar
size, so the noisy interaction is shrunk by the rule that has the least mean squared error under white noise.

Reference: Gavish, Donoho (2017), Optimal shrinkage of singular values, Frobenius loss.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Floats",
    "Noisy",
    "by_bins",
    "merged",
    "pooled_margins",
    "raked",
    "simplex",
    "smoothed",
    "table_target",
    "total_of",
]

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Noisy:
    """Counts with independent errors of one standard deviation, in records; NaN where nothing was measured."""

    counts: Floats
    sigma: float

    def with_(self, other: "Noisy | None") -> "Noisy":
        """The average of two measurements of the same counts, by inverse variance.

        >>> one = Noisy(np.array([3.0]), 1.0)
        >>> one.with_(Noisy(np.array([5.0]), 1.0)).counts.tolist()
        [4.0]
        """
        if other is None:
            return self
        mine, theirs = self.sigma**-2, other.sigma**-2
        both = (self.counts * mine + other.counts * theirs) / (mine + theirs)
        counts = np.where(np.isnan(other.counts), self.counts, np.where(np.isnan(self.counts), other.counts, both))
        return Noisy(counts, (mine + theirs) ** -0.5)


def total_of(margins: Sequence[Noisy]) -> tuple[int, float]:
    """About how many records there are, at least one, and its standard error: all columns by inverse variance."""
    weights = [1 / (len(margin.counts) * margin.sigma**2) for margin in margins]
    mean = sum(weight * margin.counts.sum() for weight, margin in zip(weights, margins, strict=True)) / sum(weights)
    return max(1, round(float(mean))), sum(weights) ** -0.5


def simplex(counts: Floats, total: float) -> Floats:
    """The nearest counts that are not negative and add up to the total.

    >>> simplex(np.array([5.0, 3.0, -2.0]), 6).tolist()
    [4.0, 2.0, 0.0]
    """
    descending = np.sort(counts.ravel())[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, descending.size + 1)
    last = np.nonzero(descending > excess)[0]
    cut = excess[last[-1]] if len(last) else excess[0]
    return np.asarray(np.maximum(counts - cut, 0))


def smoothed(counts: Floats, sigma: float) -> Floats:
    """Counts along an order with less noise: differences between neighbours that noise explains are averaged away.

    Haar coefficients below 2.5 standard deviations are dropped, for each of several shifts, and the results averaged.

    Reference: Donoho, Johnstone (1994), thresholding; Coifman, Donoho (1995), averaging over shifts.

    >>> noise = np.random.default_rng(1).normal(0, 3, 256)
    >>> step = np.repeat([10.0, 50.0], 128)
    >>> bool(np.std(smoothed(step + noise, 3.0) - step) < 1.5)
    True
    """
    length = 1 << max(0, (len(counts) - 1).bit_length())
    padded = np.pad(counts, (0, length - len(counts)), mode="symmetric" if len(counts) > 1 else "edge")
    shifts = range(0, length, max(1, length // 16))
    summed = np.zeros(length)
    for shift in shifts:
        summed += np.roll(_thresholded(np.roll(padded, shift), 2.5 * sigma), -shift)
    return np.asarray(summed[: len(counts)] / len(shifts))


def _thresholded(values: Floats, least: float) -> Floats:
    """The values without Haar coefficients of less than ``least``."""
    if len(values) == 1:
        return values
    even, odd = values[::2], values[1::2]
    means = _thresholded((even + odd) / math.sqrt(2), least)
    details = (even - odd) / math.sqrt(2)
    details = np.where(np.abs(details) < least, 0.0, details)
    out = np.empty(len(values))
    out[::2], out[1::2] = (means + details) / math.sqrt(2), (means - details) / math.sqrt(2)
    return out


def merged(counts: Floats, least: float, *, ordered: bool, alone: int = 0) -> NDArray[np.int64]:
    """Which bin each code goes to, so that each bin holds about ``least`` records.

    Neighbours are merged where codes have an order; else rare codes are merged into one bin. The last ``alone`` codes
    keep a bin of their own.

    >>> merged(np.array([1.0, 9.0, 4.0, 4.0, 2.0]), 6, ordered=True).tolist()
    [0, 0, 1, 1, 1]
    >>> merged(np.array([1.0, 9.0, 2.0, 8.0]), 6, ordered=False).tolist()
    [2, 0, 2, 1]
    """
    own = len(counts) - alone
    bins = np.zeros(len(counts), np.int64)
    if not ordered:
        large = counts[:own] >= least
        bins[:own][large] = np.arange(large.sum())
        bins[:own][~large] = large.sum()
    else:
        current, held = 0, 0.0
        for code in range(own):
            if held > 0 and (held >= least or counts[code] >= 2 * least):
                current, held = current + 1, 0.0
            bins[code] = current
            held += counts[code]
        if held < least / 2 and current:
            bins[:own][bins[:own] == current] = current - 1
    after = int(bins[:own].max()) + 1 if own else 0
    bins[own:] = after + np.arange(alone)
    return bins


def pooled_margins(margins: Sequence[Noisy], tables: Mapping[tuple[int, ...], Noisy], total: int) -> list[Floats]:
    """The counts of each column as its own measurement and the margins of all tables say together."""
    top = [margin.counts / margin.sigma**2 for margin in margins]
    bottom = [np.full(len(margin.counts), margin.sigma**-2) for margin in margins]
    for columns, noisy in tables.items():
        if np.isnan(noisy.counts).any():  # its margins are not known
            continue
        for place, column in enumerate(columns):
            others = tuple(axis for axis in range(len(columns)) if axis != place)
            variance = noisy.sigma**2 * math.prod(noisy.counts.shape[axis] for axis in others)
            top[column] = top[column] + noisy.counts.sum(axis=others) / variance
            bottom[column] = bottom[column] + 1 / variance
    return [np.maximum(simplex(a / b, total), 1e-3) for a, b in zip(top, bottom, strict=True)]


def table_target(
    noisy: Noisy, margins: Sequence[Floats], base: Floats, allowed: NDArray[np.bool_] | None = None
) -> Floats:
    """The counts of a table: ``base``, which has its margins, plus what was measured beyond it, shrunk for pairs.

    Cells that are not allowed are empty.
    """
    rest = np.nan_to_num(noisy.counts - base)
    if rest.ndim == 2:
        rest = rest - rest.mean(0) - rest.mean(1)[:, None] + rest.mean()
        rest = _shrunk(rest, noisy.sigma) if min(rest.shape) > 3 else rest
    target = simplex(base + rest, float(base.sum()))
    return raked(target if allowed is None else target * allowed, margins)


def raked(table: Floats, margins: Sequence[Floats], rounds: int = 5) -> Floats:
    """The table scaled by rows and columns until it has the margins, nearly."""
    for _ in range(rounds):
        for axis, margin in enumerate(margins):
            others = tuple(other for other in range(table.ndim) if other != axis)
            shape = [-1 if other == axis else 1 for other in range(table.ndim)]
            table = table * (margin / np.maximum(table.sum(axis=others), 1e-9)).reshape(shape)
    return table


def _shrunk(rest: Floats, sigma: float) -> Floats:
    """Optimal shrinkage of singular values under white noise."""
    rows, columns = rest.shape
    left, values, right = np.linalg.svd(rest, full_matrices=False)
    aspect, scale = min(rows, columns) / max(rows, columns), sigma * math.sqrt(max(rows, columns))
    x = values / scale
    inner: Any = np.maximum((x * x - aspect - 1) ** 2 - 4 * aspect, 0)
    kept = np.where(x > 1 + math.sqrt(aspect), np.sqrt(inner) / np.maximum(x, 1e-9), 0.0)
    return np.asarray((left * (kept * scale)) @ right)


def by_bins(noisy: Noisy, bins: Sequence[NDArray[np.int64]], gone: Sequence[bool]) -> Noisy:
    """Counts by codes as counts by bins; where missing values are told from noise by nobody, they count as none."""
    counts = noisy.counts
    for axis, absent in enumerate(gone):
        if absent:
            last = [slice(None)] * counts.ndim
            last[axis] = slice(-1, None)
            counts = counts.copy()
            counts[tuple(last)] = np.nan_to_num(counts[tuple(last)])
    summed = np.zeros([int(own.max()) + 1 for own in bins])
    np.add.at(summed, np.ix_(*bins), counts)
    return Noisy(summed, noisy.sigma * float(np.sqrt(counts.size / summed.size)))
