"""Inference from noisy degrees: isotonic fits, graphical sequences, plausible histograms."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from defocus.answers.columns import Floats
from defocus.graphs.data import build
from defocus.graphs.graph import Graph
from defocus.graphs.kernels.rows import Longs
from defocus.machine_code import compiled

__all__ = ["falling", "graphical", "is_graphical", "plausible_counts", "realised", "rising"]


def is_graphical(degrees: ArrayLike) -> bool:
    """Whether some simple graph has these degrees.

    Reference:
        Erdős, Gallai (1960).

    >>> is_graphical([2, 2, 2]), is_graphical([3, 1, 1]), is_graphical([3, 3, 1, 1])
    (True, False, False)
    """
    d = np.sort(np.asarray(degrees, dtype=np.int64))[::-1]
    n = len(d)
    if not n:
        return True
    if d[-1] < 0 or d[0] >= n or d.sum() % 2:
        return False
    k = np.arange(1, n + 1)
    total, sums = int(d.sum()), np.cumsum(d)
    # Of the entries after the k-th, those of at least k count as k: they come first.
    reach = np.maximum(np.searchsorted(-d, -k, side="right"), k)
    before = np.concatenate([[0], sums])
    rest = k * (reach - k) + (total - before[reach])
    return bool((sums <= k * (k - 1) + rest).all())


def graphical(degrees: ArrayLike) -> Longs:
    """The degrees of a simple graph that are nearest to ``degrees``, in the sum of absolute differences.

    Numbers below zero count as zero and numbers above n - 1 as n - 1. This is the most likely degree sequence if
    ``degrees`` are the true ones with Laplace noise.

    Reference:
        Karwa, Slavković (2016), Inference using noisy degrees: differentially private β-model and synthetic graphs,
        Algorithm 1 and Theorem 3.

    >>> graphical([3, 3, 1, 1]).tolist()
    [3, 1, 1, 1]
    """
    cut, order = _cut(degrees)
    nearest = np.empty(len(cut), np.int64)
    nearest[order] = _joined(cut[order])[0]
    return nearest


def realised(degrees: ArrayLike) -> Graph:
    """A simple graph whose degrees are :func:`graphical` of ``degrees``: one of many, and not a typical one.

    >>> realised([1, 2, 1]).degrees.tolist()
    [1, 2, 1]
    """
    cut, order = _cut(degrees)
    _, left, right = _joined(cut[order])
    return build(len(cut), order[left], order[right])


def _cut(degrees: ArrayLike) -> tuple[Longs, Longs]:
    """The degrees as whole numbers within [0, n - 1], and their order, largest first."""
    numbers = np.asarray(degrees)
    whole = numbers if numbers.dtype.kind in "iu" else np.rint(np.nan_to_num(numbers.astype(np.float64)))
    cut = np.clip(whole, 0, max(len(whole) - 1, 0)).astype(np.int64)
    return cut, np.argsort(-cut, kind="stable")


@compiled
def _joined(wanted: Longs) -> tuple[Longs, Longs, Longs]:
    """Join each node, largest first, to as many of the next largest as it wants and as want any.

    ``wanted`` falls, and stays so: of several that want the same, the last ones are taken.
    """
    left_over = wanted.copy()
    n = len(wanted)
    got = np.zeros(n, np.int64)
    left = np.empty(wanted.sum(), np.int64)
    right = np.empty(wanted.sum(), np.int64)
    edges, end = 0, n
    for i in range(n):
        while end > i + 1 and left_over[end - 1] == 0:  # those who want none are at the end
            end -= 1
        take = min(left_over[i], end - i - 1)
        if take <= 0:
            continue
        last = i + take
        value = left_over[last]
        first = last
        while first > i + 1 and left_over[first - 1] == value:
            first -= 1
        stop = last
        while stop + 1 < n and left_over[stop + 1] == value:
            stop += 1
        ties = last - first + 1
        for j in range(i + 1, first):
            left_over[j] -= 1
            got[j] += 1
            left[edges], right[edges] = i, j
            edges += 1
        for j in range(stop - ties + 1, stop + 1):
            left_over[j] -= 1
            got[j] += 1
            left[edges], right[edges] = i, j
            edges += 1
        got[i] += take
        left_over[i] = 0
    return got, left[:edges], right[:edges]


def rising(values: ArrayLike) -> Floats:
    r"""The vector that never falls with the least squared distance to ``values``.

    Error:
        If the true vector never falls, no entry of the sum of squared errors can grow by it: the projection on a
        convex set that holds the truth is nearer to it. For a vector of few different values in long runs, noise
        is averaged over each run: the squared error falls from n to the number of runs times :math:`\log^3 n`.
    Reference:
        Hay, Rastogi, Miklau, Suciu (2010), Boosting the accuracy of differentially private histograms through
        consistency, Theorem 2; Barlow, Bartholomew, Bremner, Brunk (1972) for pooling adjacent violators.

    >>> rising([1, 3, 2, 4]).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415  # slow to load

    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size:
        return numbers
    return np.asarray(isotonic_regression(numbers).x, dtype=np.float64)


def falling(values: ArrayLike) -> Floats:
    """The nearest vector that never rises.

    >>> falling([4, 2, 3, 1]).tolist()
    [4.0, 2.5, 2.5, 1.0]
    """
    return rising(np.asarray(values, dtype=np.float64)[::-1])[::-1]


_DISPERSION = 4.0
"""How much counts of neighbouring degrees differ: a count of mean m has variance m + m² / 4 beforehand."""
_SMOOTHING = 0.1
"""Over which part of a degree the histogram is averaged to find that mean."""
_FLOOR = 1e-4
"""No mean is zero, or a degree that looked empty could hold nobody, however much speaks for it."""
_WORK = 1e9
"""Above so many steps the simpler answer is given."""


def plausible_counts(cumulative: ArrayLike, total: int, *, scale: float, gaussian: bool = False) -> Floats:
    r"""The number of nodes of each degree, from noisy numbers of nodes of at most each degree.

    Args:
        cumulative: noisy numbers of nodes of degree at most 0, 1, …; the last of all, ``total``, is left out.
        total: the public number of nodes.
        scale: of the Laplace noise, or the standard deviation of Gaussian noise.
        gaussian: whether the noise is Gaussian.

    The true cumulative counts are a chain that starts at zero, ends at ``total`` and never falls. Beforehand, each
    step is taken to be negative binomial around a mean that is read off an isotonic fit, averaged over neighbouring
    degrees. Forward and backward recursions give the law of every step given all the noisy numbers. The answer is the
    median of each, which has the least expected absolute error.

    Guarantee:
        Post-processing: it reads released numbers and public facts only. The law beforehand is a guess that
        can make the answer worse, never less private.

    Error:
        On the graphs of ``benchmarks/graphs.py`` a fifth to a third less than isotonic regression alone.
        Counts are whole, do not fall below zero, and need not add up to ``total``.

    >>> plausible_counts([2.0, 7.0, 8.0, 8.0], 8, scale=0.01).tolist()
    [2.0, 5.0, 1.0, 0.0, 0.0]
    """
    noisy = np.asarray(cumulative, dtype=np.float64)
    fit = np.clip(rising(noisy), 0, total)
    counts = np.diff(np.concatenate([[0.0], fit, [float(total)]]))
    if len(noisy) < 2 or not total:
        return counts
    half = math.ceil((5 if gaussian else 8) * scale) + 1
    used = _used(fit, total, scale)
    if used * (2 * half + 1.0) ** 2 > _WORK:
        return counts
    means = _averaged(counts)[: used + 1] + _FLOOR
    chain = np.concatenate([[0.0], noisy[:used], [float(total)]])
    medians = _medians(chain, means, _likelihoods(chain, half, float(scale), gaussian=gaussian))
    counts[: used + 1] = np.where(np.isnan(medians), counts[: used + 1], medians)
    counts[used + 1 :] = 0.0
    return counts


def _used(fit: Floats, total: int, scale: float) -> int:
    """Twice as far as to where the fit says that nearly all nodes are counted; beyond it there is nobody."""
    reached = int(np.argmax(fit > total - max(0.5, 2 * scale))) or len(fit)
    return min(len(fit), 2 * reached + 200)


def _averaged(counts: Floats) -> Floats:
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    place = np.arange(len(counts))
    half = np.maximum(1, (_SMOOTHING * place).astype(np.int64))
    low, high = np.maximum(place - half, 0), np.minimum(place + half + 1, len(counts))
    averaged: Floats = np.maximum((sums[high] - sums[low]) / (high - low), 0)
    return averaged


def _medians(chain: Floats, means: Floats, likely: Floats) -> Floats:
    """The median of every step of the chain given all of it: forward, then backward; NaN where nothing is possible."""
    steps, width = len(means), likely.shape[1]
    base = np.rint(chain).astype(np.int64)
    before = _steps_beforehand(np.diff(base), means, width)
    forward = np.empty_like(likely)
    forward[0] = likely[0]
    for i in range(steps):
        reached = np.convolve(forward[i], before[i])[width - 1 : 2 * width - 1]
        forward[i + 1] = _scaled(likely[i + 1] * reached, likely[i + 1])
    medians = np.full(steps, np.nan)
    backward = np.ones(width)
    for i in reversed(range(steps)):
        ahead = likely[i + 1] * backward
        step = np.cumsum(before[i] * np.convolve(ahead, forward[i][::-1]))
        if step[-1] > 0:
            medians[i] = base[i + 1] - base[i] + np.searchsorted(step, step[-1] / 2) - (width - 1)
        backward = _scaled(np.convolve(ahead, before[i][::-1])[width - 1 : 2 * width - 1], np.ones(width))
    return medians


def _likelihoods(chain: Floats, half: int, scale: float, *, gaussian: bool) -> Floats:
    """How likely each noisy number is if the true one lies at most ``half`` away; the two ends are known."""
    values = np.rint(chain)[:, None] + np.arange(-half, half + 1)
    off = (chain[:, None] - values) / scale
    likely: Floats = np.exp(-off * off / 2 if gaussian else -np.abs(off))
    likely[(values < 0) | (values > chain[-1])] = 0.0
    likely[[0, -1]] = np.arange(-half, half + 1) == 0
    return likely


def _steps_beforehand(jumps: NDArray[np.int64], means: Floats, width: int) -> Floats:
    """The negative binomial weight of every step within ``width`` of the one that the noisy numbers take."""
    from scipy.special import gammaln  # noqa: PLC0415  # slow to load

    sizes = jumps[:, None] + np.arange(-(width - 1), width)
    at = np.maximum(sizes, 0)
    logs = gammaln(_DISPERSION + at) - gammaln(1.0 + at) + at * np.log(means / (_DISPERSION + means))[:, None]
    logs[sizes < 0] = -np.inf
    highest = logs.max(axis=1, keepdims=True)
    weights: Floats = np.exp(logs - np.where(np.isfinite(highest), highest, 0))
    return weights


def _scaled(masses: Floats, otherwise: Floats) -> Floats:
    """Masses that add up to one; where all are zero, ``otherwise``."""
    whole = masses.sum()
    return masses / whole if whole > 0 else otherwise
