"""What may be done to estimates afterwards: closer to the truth on average, and biased. It costs no privacy."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from defocus.errors import InvalidParameterError
from defocus.local.estimates import Array, Estimate

__all__ = ["PROCESSES", "Process", "isotonic", "norm_sub", "process", "simplex"]

Process: TypeAlias = Literal["norm-sub", "simplex", "isotonic"]


def process(estimate: Estimate, how: Process) -> Estimate:
    """The estimate after one of these; it says so, and gives no intervals any more.

    * ``norm-sub``: negative counts become 0 and one number is taken from all others, again and again, until the counts
      add up to the number of reports. Biased upwards for rare categories, downwards for frequent ones.
    * ``simplex``: the nearest counts, by squared distance, that are not negative and add up to the number of reports.
      Both have the same result; this one is computed by sorting.
    * ``isotonic``: the nearest counts that do not rise from one category to the next: for categories that are known,
      from public facts, to be in the order of their frequency.

    Reference: Wang et al. (2020), Locally differentially private frequency estimation with consistency; Barlow et al.
    (1972), Statistical inference under order restrictions.
    """
    if how not in PROCESSES:
        raise InvalidParameterError(
            f"There is no processing named {str(how)[:40]!r}.", fix=f"choose one of {', '.join(PROCESSES)}."
        )
    if not estimate.unbiased:
        raise InvalidParameterError(
            "The estimate was processed already.", fix="process the unbiased one; steps do not add up."
        )
    return replace(
        estimate, counts=PROCESSES[how](estimate.counts, float(estimate.reports)), processing=f"{how}: biased"
    )


def norm_sub(counts: Array, total: float) -> Array:
    """Clip and subtract until nothing changes.

    >>> norm_sub(np.array([5.0, 3.0, -2.0]), 6.0)
    array([4., 2., 0.])
    """
    kept = np.ones(len(counts), np.bool_)
    while True:
        shift = (counts[kept].sum() - total) / kept.sum()
        still = kept & (counts - shift > 0)
        if still.sum() in (0, kept.sum()):
            return np.where(kept, np.maximum(counts - shift, 0.0), 0.0)
        kept = still


def simplex(counts: Array, total: float) -> Array:
    """The nearest non-negative counts of this total, by the threshold that sorting finds.

    >>> simplex(np.array([5.0, 3.0, -2.0]), 6.0)
    array([4., 2., 0.])
    """
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    last = int(np.flatnonzero(falling > excess).max(initial=0))
    near: Array = np.maximum(counts - excess[last], 0.0)
    return near


def isotonic(counts: Array, _total: float) -> Array:
    """The nearest counts that never rise, by pooling neighbours that do.

    >>> isotonic(np.array([5.0, 1.0, 3.0]), 0.0)
    array([5., 2., 2.])
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415  # slow to load

    found: Array = isotonic_regression(counts, increasing=False).x
    return found


PROCESSES: dict[str, Callable[[Array, float], Array]] = {"norm-sub": norm_sub, "simplex": simplex, "isotonic": isotonic}
"""By name."""
