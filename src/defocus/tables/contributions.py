r"""How many rows one person should count with, found privately: the bound with the least expected error.

A bound of R rows adds noise in proportion to R and takes away the rows beyond it. Which is worse depends on how many
rows people have. That is counted first, for a small share of the budget: one person is in one bucket of the histogram,
so its sensitivity is one, whatever they contribute. The bound is then chosen from the noisy histogram, which is free.

What one person weighs at most is fixed before: with R rows each of them weighs 1/R of it. So the noise, and with it
what is charged, does not depend on R.

Reference: Amin, Kulesza, Munoz Medina, Vassilvitskii (2019), Bounding user contributions: a bias-variance trade-off in
differential privacy, for the trade-off.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["EDGES", "best_bound"]

EDGES = tuple(sorted({round(2 ** (j / 2)) for j in range(41)} | {3, 5, 7}))
"""Numbers of rows: bucket i holds people with more than EDGES[i-1] and at most EDGES[i] rows; the last, all others."""


def best_bound(
    people: npt.NDArray[np.int64], *, scale: float, groups: int, noise: float, counts: bool, quotients: bool
) -> int:
    r"""The number of rows with the least expected error, from a noisy histogram of people by their number of rows.

    Everything is relative to the size of a group. Noise in n cells errs by :math:`\sqrt n\,\sigma R`; a count has
    about two of them, a quotient about half of one. Counts and sums also err by the rows taken away. A quotient such
    as a mean loses no rows, but weighs them unequally: with a spread of a quarter of its range it errs by a quarter of
    :math:`\sqrt{\sum w^2/(\sum w)^2 - 1/n}`. Buckets that may hold nothing but noise are taken as empty.

    Args:
        people: noisy numbers of people, by :data:`EDGES`.
        scale: the scale of the Laplace noise on them.
        groups: among how many groups the rows are spread.
        noise: the standard deviation of one cell, for a person who weighs one.
        counts: whether numbers of rows, sums or histograms are asked.
        quotients: whether means or other quotients are asked.

    >>> people = np.zeros(len(EDGES), np.int64)
    >>> people[EDGES.index(2)], people[EDGES.index(64)] = 100_000, 10_000
    >>> best_bound(people, scale=20, groups=10, noise=1.4, counts=True, quotients=False)
    64
    >>> best_bound(people // 200, scale=20, groups=10, noise=1.4, counts=True, quotients=False)
    2
    """
    sure = people > scale * math.log(20 * len(EDGES))
    known = np.where(sure, people, 0).astype(np.float64)
    rows = np.array(_middles(EDGES))
    total = max(1.0, float((known * rows).sum()))
    errors = []
    for bound in EDGES:
        weights = np.minimum(1.0, bound / rows)
        kept = max(1.0, float((known * rows * weights).sum()))
        spread = noise * bound * groups / kept
        uneven = float((known * rows * weights**2).sum()) / kept**2 - 1 / total
        of_counts = math.hypot(math.sqrt(2) * spread, 1 - kept / total) if counts else 0.0
        of_quotients = math.hypot(math.sqrt(0.5) * spread, math.sqrt(max(0.0, uneven) * groups) / 4)
        errors.append(of_counts + (of_quotients if quotients else 0.0))
    return EDGES[int(np.argmin(errors))]


def _middles(edges: Sequence[int]) -> list[float]:
    """A number of rows in the middle of each bucket."""
    return [(low + 1 + high) / 2 for low, high in zip((0, *edges), edges, strict=False)]
