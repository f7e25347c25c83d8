"""Making estimates plausible: declared post-processing, which costs nothing and adds bias."""

import numpy as np

from defocus.workloads.atoms import Array

__all__ = ["without_negatives"]


def without_negatives(counts: Array) -> Array:
    """The nearest counts of the same total that are not negative; all zero if the total is not positive.

    Euclidean projection to a simplex: a common amount is taken off and what falls below zero is zero.

    >>> without_negatives(np.array([3.0, -1.0, 2.0])).tolist()
    [2.5, 0.0, 1.5]
    """
    total = float(counts.sum())
    if total <= 0:
        return np.zeros_like(counts)
    ordered = np.sort(counts)[::-1]
    taken = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    last = int(np.flatnonzero(ordered > taken)[-1])
    kept: Array = np.maximum(counts - taken[last], 0.0)
    return kept
