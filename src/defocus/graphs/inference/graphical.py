"""Degree sequences that some simple graph has."""

import numpy as np
from numpy.typing import ArrayLike

from defocus.graphs.building import build
from defocus.graphs.graph import Graph
from defocus.graphs.kernels.compiling import compiled
from defocus.graphs.kernels.rows import Longs

__all__ = ["graphical", "is_graphical", "realised"]


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
    found = np.empty(len(cut), np.int64)
    found[order] = _joined(cut[order])[0]
    return found


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
