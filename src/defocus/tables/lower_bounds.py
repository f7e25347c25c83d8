r"""Means with few rows of each person, corrected by means with many of them.

The bound that is best for counts loses hardly any rows, so one row of it weighs little and a mean has much noise. A
mean loses no rows to a low bound: it weighs the people with many rows less, which moves it only if their values
differ. Nobody knows whether they do. So a mean is measured with several bounds at once, and what the noise leaves to
be seen of their differences tells how far the lower ones can be relied on.

That costs the first bound a sixteenth of its weight. Most people have far fewer rows than the first bound, so most of
what they may weigh is left to the lower ones: the weights of all of them are cut from one total.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from defocus.answers import AnswerColumn
from defocus.answers.noise_sources import ColumnNoise, Noise
from defocus.tables.found_bound import EDGES, FoundBound

__all__ = ["Ladder", "combined", "lower_bounds"]

_Floats: TypeAlias = npt.NDArray[np.float64]

_PARTS = {1: (1.0,), 2: (15 / 16, 1.0), 3: (15 / 16, 31 / 32, 1.0)}
"""Which part of what a person may weigh the rows of the first bounds weigh together at most, by how many there are."""
_APART = 2
"""A bound is at most this part of the one before: closer ones have little weight left."""
_FAR = 16
"""From such a ratio on there is one in the middle, which tells small differences from noise."""
_SPREAD = 0.25
"""What values of single rows are taken to vary by, in units of their range."""
_WORTH = 0.75
"""Lower bounds are used where they leave at most this part of the error."""
_CHANCE = 2.0
"""How many standard deviations of what groups seem to differ by, squared, are left to chance: it costs little."""
_KURTOSIS = 3.5
"""The variance of a squared quotient of sums with Laplace noise, in units of its squared variance; 2 if normal."""


@final
@dataclass(frozen=True, slots=True)
class Ladder:
    r"""Bounds :math:`R_1 > R_2 > \dots` of rows, and what the rows of a person weigh with the first of them at most.

    With n rows each weighs :math:`W_k = \lfloor c_k / \max(n, R_k) \rfloor` with the first k bounds together, and
    :math:`w_k = W_k - W_{k-1}` with the k-th.

    Guarantee:
        The :math:`c_k` grow and the :math:`R_k` fall, so no :math:`w_k` is negative. Together a person's rows weigh
        :math:`n \sum_k w_k = n W_K \le c_K`, and that is at most what a person may weigh. So all sums with all of
        these weights together move by no more than that in L1 norm, and in L2 norm.

    >>> ladder = Ladder.of(1 << 20, (512, 32))
    >>> [sum(n * weight for weight in ladder.weights(n)) <= 1 << 20 for n in (1, 32, 100, 512, 5000)]
    [True, True, True, True, True]
    """

    steps: tuple[tuple[int, int], ...]
    """For each bound, what a person weighs up to it, and the bound."""

    @classmethod
    def of(cls, person: int, bounds: Sequence[int]) -> "Ladder":
        """The weights of a person who may weigh so much, for these bounds, the highest first."""
        parts = _PARTS[len(bounds)]
        return cls(tuple((int(person * part), rows) for part, rows in zip(parts, bounds, strict=True)))

    def weights(self, rows: int) -> list[int]:
        """What each row of somebody with so many weighs, with each bound."""
        together = [0, *(total // max(rows, bound) for total, bound in self.steps)]
        return [after - before for before, after in pairwise(together)]

    @property
    def grids(self) -> list[int]:
        """What a full row weighs with each bound."""
        return self.weights(1)


def lower_bounds(found: FoundBound, groups: int, noise: float) -> tuple[int, ...]:
    r"""The bounds below the one that was found with which means are measured as well; none if that is no gain.

    The lowest is the one with the least expected error of a mean if values do not depend on whose they are: noise, and
    what it adds that rows weigh unequally. If they do depend on that, the bounds above it take over. A bound in the
    middle tells small differences from noise.

    Args:
        found: the bound that was found.
        groups: among how many groups the rows are spread.
        noise: the standard deviation of one cell, for a person who weighs one.
    """
    rows, people = found.tail.rows, np.median(found.tail.people, axis=0)
    total = max(1.0, float(people @ rows))

    def error(bounds: Sequence[int]) -> float:
        """Of a mean with the last of these bounds."""
        together, before = np.zeros(len(rows)), np.zeros(len(rows))
        for part, bound in zip(_PARTS[len(bounds)], bounds, strict=True):
            before, together = together, part / np.maximum(rows, bound)
        weights = np.maximum(0.0, together - before)
        kept = max(1e-300, float(people @ (rows * weights)))
        unequal = float((people * rows) @ np.square(weights / kept - 1 / total))
        return math.hypot(math.sqrt(0.5) * noise * groups / kept, _SPREAD * math.sqrt(groups * unequal))

    lowest = [edge for edge in EDGES if edge * _APART <= found.rows]
    if not lowest:
        return ()
    ways = [_between(found.rows, edge) for edge in lowest]
    best = min(ways, key=error)
    return best[1:] if error(best) <= _WORTH * error((found.rows,)) else ()


def _between(first: int, last: int) -> tuple[int, ...]:
    """Both bounds, and one in the middle where they are far apart."""
    if last * _FAR > first:
        return first, last
    return first, round(math.sqrt(first * last)), last


def combined(columns: Sequence[AnswerColumn]) -> AnswerColumn:
    r"""One mean from means with different bounds, the highest first.

    From bound to bound, what was known before, with the variance v of its noise, is drawn towards the next mean b. That
    is first moved by what all groups differ by alike, as far as that is more than noise. The rest is
    :math:`b + \lambda(a - b)` with :math:`\lambda = m / (m + v)`, where m is the variance of the noise of b and of what
    groups differ by besides, as far as that shows.

    Guarantee:
        A function of noisy numbers, so it costs nothing.

    Error:
        An average over groups: as exact as the last mean where values do not depend on how many rows people have, and
        hardly less exact than the first where they do. Intervals are those of the first mean, drawn out to the number
        where it lies outside, so they hold what they did.
    """
    first = columns[0]
    values, variance = first.values, _variance(first)
    for column in columns[1:]:
        values, variance = _drawn(values, variance, column.values, _variance(column))
    low, high = np.minimum(first.low, values), np.maximum(first.high, values)
    return replace(first, values=values, low=low, high=high, noise=_alone(first.noise, len(values)))


def _alone(noise: ColumnNoise | None, size: int) -> Noise | None:
    """Noise of as much as this, which is no longer that of what was measured beside it with the first bound."""
    if not isinstance(noise, Noise):
        return None
    return Noise(
        {f"{', '.join(noise.factors)} with lower bounds": noise.errors(size)[:, None]}, noise.width, linear=False
    )


def _drawn(before: _Floats, variance: _Floats, lower: _Floats, own: _Floats) -> tuple[_Floats, _Floats]:
    """Means drawn towards those with the next bound, and their variances; all variances are of noise."""
    known = np.isfinite(variance + own) & (variance + own > 0)
    if not known.any():
        return np.where(np.isfinite(own), lower, before), np.where(np.isfinite(own), own, variance)
    both = np.where(known, variance + own, np.inf)
    apart = before - lower
    alike = float((apart / both).sum() / (1 / both).sum())
    chance = float(1 / (1 / both).sum())
    moved = alike * max(0.0, 1 - chance / max(alike**2, 1e-300))
    weight = np.square(1 / both)
    rest = np.where(known, np.square(apart - moved) - both, 0.0)
    off = max(0.0, float(weight @ rest) / weight.sum() - _CHANCE * math.sqrt(_KURTOSIS / weight.sum()))
    kept = np.where(known, (own + off) / (both + off), np.where(np.isfinite(own), 0.0, 1.0))
    common = chance if moved else 0.0
    drawn = lower + moved + kept * (apart - moved)
    left = np.where(
        known, kept * np.where(known, variance, 0.0) + np.square(1 - kept) * common, np.minimum(variance, own)
    )
    return drawn, left


def _variance(column: AnswerColumn) -> _Floats:
    """Of the noise; infinite where it could hide the group."""
    return np.where(np.isfinite(column.errors), np.square(column.errors), np.inf)
