r"""Means and other quotients with few rows of each person, corrected by those with many of them.

The bound that is best for counts loses hardly any rows, so one row of it weighs little and a mean has much noise. A
mean, a variance or a ratio of sums loses no rows to a low bound: it weighs the people with many rows less, which moves
it only if their values differ. Nobody knows whether they do. So it is measured with both bounds at once, and what the
noise leaves to be seen of their difference tells how far the lower one can be relied on.

That costs the first bound a sixteenth of its weight. Most people have far fewer rows than it allows for, so most of
what they may weigh is left to the lower one: both weights are cut from one total.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from defocus.answers import AnswerColumn
from defocus.answers.noise_sources import Noise
from defocus.tables.found_bound import EDGES, FoundBound

__all__ = ["Ladder", "combined", "lower_bound"]

_Floats: TypeAlias = npt.NDArray[np.float64]

_PARTS = (15 / 16, 1.0)
"""Which part of what a person may weigh their rows weigh with the first bound at most, and with both together."""
_APART = 2
"""How many times the lower bound the first is at least: closer ones have little weight left."""
_SPREAD = 0.25
"""What values of single rows are taken to vary by, in units of their range."""
_WORTH = 0.75
"""A lower bound is used where it leaves at most this part of the error."""
_CHANCE = 2.0
"""How many standard deviations of what groups seem to differ by, squared, are left to chance: it costs little."""
_KURTOSIS = 3.5
"""The variance of a squared quotient of sums with Laplace noise, in units of its squared variance; 2 if normal."""


@final
@dataclass(frozen=True, slots=True)
class Ladder:
    r"""Bounds :math:`R_1 > R_2`, and what the rows of a person weigh at most: with the first, and with both together.

    With n rows each weighs :math:`W_k = \lfloor c_k / \max(n, R_k) \rfloor` with the first k bounds together, and
    :math:`w_k = W_k - W_{k-1}` with the k-th.

    Guarantee:
        The :math:`c_k` grow and the :math:`R_k` fall, so no :math:`w_k` is negative. Together a person's rows weigh
        :math:`n \sum_k w_k = n W_2 \le c_2`, and that is what a person may weigh. So all sums with both weights
        together move by no more than that in L1 norm, and in L2 norm.

    >>> ladder = Ladder.of(1 << 20, (512, 32))
    >>> [sum(n * weight for weight in ladder.weights(n)) <= 1 << 20 for n in (1, 32, 100, 512, 5000)]
    [True, True, True, True, True]
    """

    steps: tuple[tuple[int, int], ...]
    """For each bound, what a person weighs up to it, and the bound."""

    @classmethod
    def of(cls, person: int, bounds: tuple[int, int]) -> "Ladder":
        """The weights of a person who may weigh so much, for these bounds, the higher first."""
        return cls(tuple((int(person * part), rows) for part, rows in zip(_PARTS, bounds, strict=True)))

    def weights(self, rows: int) -> list[int]:
        """What each row of somebody with so many weighs, with each bound."""
        together = [0, *(total // max(rows, bound) for total, bound in self.steps)]
        return [after - before for before, after in pairwise(together)]

    @property
    def grids(self) -> list[int]:
        """What a full row weighs with each bound."""
        return self.weights(1)


def lower_bound(found: FoundBound, groups: int, noise: float) -> int | None:
    r"""The bound below the one that was found with which quotients are measured as well; none if that is no gain.

    It is the one with the least expected error of a mean if values do not depend on whose they are: noise, and what
    it adds that rows weigh unequally. If they do depend on that, the higher bound corrects it.

    Args:
        found: the bound that was found.
        groups: among how many groups the rows are spread.
        noise: the standard deviation of one cell, for a person who weighs one.
    """
    rows, people = found.tail.rows, np.median(found.tail.people, axis=0)
    total = max(1.0, float(people @ rows))

    def error(weights: _Floats) -> float:
        """Of a mean in which each of somebody's rows weighs so much, by how many rows they have."""
        kept = max(1e-300, float(people @ (rows * weights)))
        unequal = float((people * rows) @ np.square(weights / kept - 1 / total))
        return math.hypot(math.sqrt(0.5) * noise * groups / kept, _SPREAD * math.sqrt(groups * unequal))

    first = _PARTS[0] / np.maximum(rows, found.rows)
    errors = {edge: error(_PARTS[1] / np.maximum(rows, edge) - first) for edge in EDGES if edge * _APART <= found.rows}
    best = min(errors, key=lambda edge: errors[edge], default=None)
    return best if best is not None and errors[best] <= _WORTH * error(1 / np.maximum(rows, found.rows)) else None


def combined(first: AnswerColumn, lower: AnswerColumn, limits: tuple[float, float]) -> AnswerColumn:
    r"""One mean, or another quotient, from those with both bounds.

    That with the lower bound, b, is moved by what all groups differ by alike, as far as that is more than noise. Then
    the first, a, is drawn towards it: :math:`b + \lambda(a - b)` with :math:`\lambda = m / (m + v)`, where v is the
    variance of the noise of a, and m that of b and of what groups differ by besides, as far as that shows. What all
    groups differ by may move it out of the ``limits`` in which it lies whatever the data: then it is the nearer one.

    Guarantee:
        A function of noisy numbers, so it costs nothing.

    Error:
        An average over groups: as exact as the lower mean where values do not depend on how many rows people have, and
        hardly less exact than the first where they do. Intervals are those of the first mean, drawn out to the number
        where it lies outside, so they hold what they did. The standard error stays that of the first: what the noise of
        both leaves of it is taken for a noise of its own.
    """
    variance, own = _variance(first), _variance(lower)
    both = variance + own
    known = np.isfinite(both) & (both > 0)
    apart = first.values - lower.values
    kept = np.where(np.isfinite(own), 0.0, 1.0)
    if known.any():
        moved = _alike(apart[known], both[known])
        apart = apart - moved
        off = _besides(apart[known], both[known])
        kept[known] = (own[known] + off) / (both[known] + off)
    values = np.clip(first.values - (1 - kept) * apart, *limits)
    low, high = np.minimum(first.low, values), np.maximum(first.high, values)
    return replace(first, values=values, low=low, high=high, noise=_noise(first, lower, kept))


def _alike(apart: _Floats, variances: _Floats) -> float:
    """What all groups differ by alike, less what chance may be of it; their noise has these variances."""
    chance = 1 / float((1 / variances).sum())
    mean = float((apart / variances).sum()) * chance
    return mean * max(0.0, 1 - chance / mean**2) if mean else 0.0


def _besides(apart: _Floats, variances: _Floats) -> float:
    """What groups differ by one by one, squared, less what chance may be of it."""
    weights = np.square(1 / variances)
    seen = float(weights @ (np.square(apart) - variances)) / float(weights.sum())
    return max(0.0, seen - _CHANCE * math.sqrt(_KURTOSIS / float(weights.sum())))


def _variance(column: AnswerColumn) -> _Floats:
    """Of the noise; infinite where it could hide the group."""
    return np.where(np.isfinite(column.errors), np.square(column.errors), np.inf)


def _noise(first: AnswerColumn, lower: AnswerColumn, kept: _Floats) -> Noise | None:
    """Of which noises it is made: so much of those of the first, and the rest of those of the lower."""
    one, other = first.noise, lower.noise
    if not isinstance(one, Noise) or not isinstance(other, Noise):
        return None
    both = {
        source: np.where(part[:, None] > 0, part[:, None] * each, 0.0)
        for noise, part in ((one, kept), (other, 1 - kept))
        for source, each in noise.factors.items()
    }
    size = len(kept)
    left = np.square(one.errors(size)) - np.square(Noise(both, one.width, linear=False).errors(size))
    own = {f"{first.name}, with both bounds": np.sqrt(np.maximum(left, 0.0))[:, None]}
    return Noise({**both, **own}, one.width, linear=False)
