r"""How many rows one person should count with, found privately, and how many rows may lie beyond that.

A bound of R rows adds noise in proportion to R and takes away the rows beyond it. Which is worse depends on how many
rows people have. That is counted first, for a small share of the budget: one person is in one bucket of the histogram,
so its sensitivity is one, whatever they contribute. The bound is then chosen from the noisy histogram, which is free.

What one person weighs at most is fixed before: with R rows each of them weighs 1/R of it. So the noise, and with it
what is charged, does not depend on R.

No interval with two ends holds every table: one person with any number of rows hides in the noise. So the
:class:`Tail` is taken to thin out beyond the bound as it does up to it, as a power of the number of rows or faster, or
to end where nobody shows any more; intervals are widened by what may then be missing. What hides beyond that leaves
their ends open. They are closed where somebody declares how many rows nobody has more than: :func:`hidden_rows`.

Reference: Amin, Kulesza, Munoz Medina, Vassilvitskii (2019), Bounding user contributions: a bias-variance trade-off in
differential privacy, for the trade-off.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = ["EDGES", "SPREAD", "FoundBound", "Tail", "best_bound", "hidden_rows"]

_Floats: TypeAlias = npt.NDArray[np.float64]

EDGES = tuple(sorted({round(2 ** (j / 2)) for j in range(41)} | {3, 5, 7}))
"""Numbers of rows: bucket i holds people with more than EDGES[i-1] and at most EDGES[i] rows; the last, all others."""
_BELOW = np.array((0, *EDGES[:-1]), np.float64)
"""What people in each bucket have more rows than."""
_ROWS = np.sqrt((_BELOW + 1) * np.array(EDGES))
"""How many rows people in each bucket are taken to have."""

_CONFIDENCE = 0.975
_USUALLY = 0.84
"""One standard deviation above the median: by what a bound is chosen, so that tails which hardly show do not decide."""
_NEARBY = 2.0
"""How many standard deviations of noise tell that people with a few more rows are there."""
SPREAD = 0.125
"""What people's own means are taken to vary by, in units of the range of values."""
_RELATED = 0.25
"""How far they are taken to depend on how many rows a person has: in units of that."""
_HALF = 2.1
"""How many standard errors make half an interval."""
_SURELY = {1: 9.01, 2: 10.87, 4: 13.59, 8: 17.59}
"""What a sum of so many Laplace variables of scale one exceeds anywhere among all buckets with probability 1/400."""

_DRAWS = 400
_NOISES = 4_000
"""How often noise is drawn to learn how large it may be."""
_STREAM = 20_000
"""The seed of the public pseudo-random numbers that possible tails are drawn with: they protect nobody."""
_INDEX = np.geomspace(0.9, 12.0, 32)
"""How fast people thin out: with twice as many rows there are 2**-index as many. With 1 or less, rows have no mean."""
_SIZE = np.exp(np.linspace(-1.5, 1.5, 31))
"""How many people the tail begins with, in units of a first estimate."""
_BEGINS = 15
"""The tail begins where people who have more rows are so many times the scale of the noise, or half of all."""
_ENDLESS = 0.5
"""How likely the tail is to have no end, before it is looked at; else it ends with any of the buckets, alike likely."""
_SHARES = 4.0 ** -np.arange(9)
"""Of which part of all rows it is computed how many may be missing; between, it is interpolated."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    r"""Possible numbers of people in each bucket, as likely as a noisy histogram of them makes them.

    From where few people have more rows on, the number of those with more than n rows is taken to fall as
    :math:`A(n+1)^{-\alpha}`, up to a number of rows T that nobody exceeds, if there is one. A grid of A,
    :math:`\alpha` and T is weighted by how likely they make the noisy counts: each has Laplace noise, and varies by
    chance as the number of people does. From these, numbers of people are drawn; where people show, they are the noisy
    numbers less further noise.

    Guarantee:
        A function of the noisy histogram and of public pseudo-random numbers, so it costs nothing.

    Error:
        ``beyond`` is exceeded by 2.5 % of what is drawn. Beside what noise hides, that covers tails that are no heavier
        than a power law with the index seen; where people with far more rows than all others are few, it need not.
        ``benchmarks/intervals.py`` measures how often intervals hold.

    >>> people = np.zeros(len(EDGES), np.int64)
    >>> people[:8] = [5000, 2500, 1200, 600, 300, 300, 150, 150]
    >>> tail = Tail.of(people, scale=4)
    >>> [int(tail.beyond(rows, np.ones(1))[1][0]) for rows in (8, 16)]  # nobody shows who has more than 8
    [0, 0]
    """

    people: _Floats
    """One line for each draw."""
    rows: _Floats
    """How many rows people in each bucket are taken to have."""

    @classmethod
    def of(cls, noisy: npt.NDArray[np.int64], scale: float, most: int | None = None) -> "Tail":
        """The tail that noisy numbers of people show; ``scale`` is that of the Laplace noise on them.

        ``most`` is what nobody can have more of, if that is public.
        """
        numbers, end = _people(noisy, scale)
        above = numbers[::-1].cumsum()[::-1]
        many = np.nonzero(above >= max(1.0, min(_BEGINS * scale, above[0] / 2)))[0]
        begins = int(many[-1]) if len(many) else 0
        bottom = _BELOW[begins:] + 1
        more, less = bottom / bottom[0], np.append(bottom[1:], np.inf) / bottom[0]
        shape = more ** -_INDEX[:, None] - less ** -_INDEX[:, None]
        expected = (max(float(above[begins]), 2 * scale) * _SIZE[:, None, None] * shape).reshape(-1, len(bottom))
        spread = np.sqrt(scale**2 + expected / 2)  # of Laplace noise, widened to the variance of both
        seen = noisy[begins:]
        up_to = (-np.abs(seen - expected) / spread - np.log(spread)).cumsum(axis=1)
        nobody = np.append((-np.abs(seen) / scale - math.log(scale))[::-1].cumsum()[::-1][1:], 0.0)
        last = np.arange(max(0, end - 1 - begins), len(seen))
        prior = np.full(len(last), (1 - _ENDLESS) / max(1, len(last) - 1))
        prior[-1] = _ENDLESS
        likely = (up_to + nobody)[:, last] + np.log(prior)
        weights = np.exp(likely - likely.max()).ravel()
        random = np.random.default_rng(_STREAM)
        which, ends = np.divmod(random.choice(len(weights), _DRAWS, p=weights / weights.sum()), len(last))
        people = np.tile(numbers, (_DRAWS, 1))
        drawn = random.poisson(expected[which]).astype(np.float64)
        people[:, begins:] = np.where(np.arange(len(seen)) <= last[ends][:, None], drawn, 0.0)
        people[:, begins:end] = np.maximum(0.0, numbers[begins:end] + random.laplace(0, scale, (_DRAWS, end - begins)))
        return cls(people, _ROWS if most is None else np.minimum(_ROWS, most))

    def beyond(self, rows: int, shares: _Floats) -> tuple[_Floats, _Floats]:
        """How many rows lie beyond the bound in groups with these shares of all rows: the median, and at most.

        The latter with 97.5 % probability. Each person's rows are taken to be in one group, where they matter most.
        """
        middle, most = (
            self._interpolated(lambda share, at=at: float(self.missing(share, [rows], at)[0]), shares)  # type: ignore[misc]
            for at in (0.5, _CONFIDENCE)
        )
        return middle, most

    def missing(self, share: float, bounds: Sequence[int], at: float = _CONFIDENCE) -> _Floats:
        """The same in one group, for each of several bounds, with probability ``at`` at most."""
        excess = np.maximum(self.rows[:, None] - np.array(bounds), 0.0)
        return np.asarray(np.quantile(self._thinned(share) @ excess, at, axis=0))

    def apart(self, rows: int, shares: _Floats) -> _Floats:
        """How far means of rows that weigh less are from those of all rows, in units of how people's own means vary.

        With n rows of N, of which min(n, R) of K count, a person moves the difference of the two means by
        min(n, R)/K - n/N of their own. Those who have many rows are taken to differ from others by a quarter of what
        people's means vary by. Within one standard deviation of all draws.
        """
        return self._interpolated(lambda share: float(self.differing(share, [rows])[0]), shares)

    def differing(self, share: float, bounds: Sequence[int]) -> _Floats:
        """The same in one group, for each of several bounds."""
        people = self._thinned(share)
        kept = np.minimum(self.rows[:, None], np.array(bounds, np.float64))
        of_all = self.rows / np.maximum(1.0, people @ self.rows)[:, None]
        counted = np.maximum(1.0, people @ kept)
        lost = 1 - counted / np.maximum(1.0, people @ self.rows)[:, None]
        moved = [
            (people * np.square(kept[:, i] / counted[:, i, None] - of_all)).sum(axis=1) for i in range(len(bounds))
        ]
        return np.asarray(np.sqrt(np.quantile(np.stack(moved, axis=1) + np.square(_RELATED * lost), _USUALLY, axis=0)))

    @staticmethod
    def _interpolated(of: Callable[[float], float], shares: _Floats) -> _Floats:
        """A number for each share: computed for a few of them."""
        if (shares >= 1).all():
            return np.full(len(shares), of(1.0))
        known = [of(float(share)) for share in _SHARES[::-1]]
        return np.interp(np.log(np.clip(shares, _SHARES[-1], 1.0)), np.log(_SHARES[::-1]), known)

    def _thinned(self, share: float) -> _Floats:
        """The people of a group that has this share of all."""
        if share >= 1:
            return self.people
        return np.random.default_rng(_STREAM).binomial(self.people.astype(np.int64), share).astype(np.float64)


@final
@dataclass(frozen=True, slots=True)
class FoundBound:
    """A number of rows that was found privately, and what is known about those who have more."""

    rows: int
    beyond: float
    """About which part of all rows lies beyond it."""
    weight: float
    """How many people with so many rows weigh as much as all people do."""
    hidden: int
    """How many people may have any number of rows without being told from noise, which a bucket of them hides."""
    tail: Tail = field(repr=False)
    beyond_most: float = math.inf
    """How many rows at most may lie beyond it, see :func:`hidden_rows`; any number where nobody declares the most."""

    @property
    def missing(self) -> float:
        """Which part of all rows lies beyond it, with 97.5 % probability at most."""
        rows = float(self.tail.missing(1.0, [self.rows])[0])
        return rows / (rows + self.kept)

    @property
    def kept(self) -> float:
        """About how many rows count, all of them together."""
        return max(1.0, self.weight * self.rows)


def best_bound(
    people: npt.NDArray[np.int64],
    *,
    scale: float,
    groups: int,
    noise: float,
    counts: bool,
    quotients: bool,
    norm: int = 1,
    most: int | None = None,
    rows_most: int | None = None,
) -> FoundBound:
    r"""The number of rows with the least expected error, from a noisy histogram of people by their number of rows.

    Everything is relative to the size of a group. Noise in n cells errs by :math:`\sqrt n\,\sigma R`; a count has
    about two of them, a quotient about half of one. Counts and sums also miss the rows taken away: what the
    :class:`Tail` lets expect in a group, within one standard deviation, is added to half the width of the noise: half
    of it for what the number misses, and half for its interval, of which it widens one side. A quotient such as a mean
    loses no rows, but weighs them unequally, and differs from that of all rows by about :meth:`Tail.apart`.

    Args:
        people: noisy numbers of people, by :data:`EDGES`.
        scale: the scale of the Laplace noise on them.
        groups: among how many groups the rows are spread.
        noise: the standard deviation of one cell, for a person who weighs one.
        counts: whether numbers of rows, sums or histograms are asked.
        quotients: whether means or other quotients are asked.
        norm: 2 where noise grows with the root of the bound: each of what is counted is in a cell of its own, and the
            noise is for the L2 norm.
        most: what nobody can have more of, where that is public: as many groups as there are. Then what is counted of
            one person is in different groups.
        rows_most: how many rows nobody has more than, where that is declared. What :func:`hidden_rows` then says does
            not choose the bound: it is mostly nobody's, and numbers would be worse for it.

    >>> people = np.zeros(len(EDGES), np.int64)
    >>> people[EDGES.index(2)], people[EDGES.index(64)] = 100_000, 10_000
    >>> found = best_bound(people, scale=20, groups=10, noise=1.4, counts=True, quotients=False)
    >>> found.rows, found.beyond
    (64, 0.0)
    >>> best_bound(people // 200, scale=20, groups=10, noise=1.4, counts=True, quotients=False).rows
    3
    """
    groups = max(1, groups)  # none where no key was found
    numbers, end = _people(people, scale)
    known = most if rows_most is None else rows_most
    tail = Tail.of(people, scale, known)
    missing = tail.missing(1 / groups, EDGES, _USUALLY) if most is None else tail.missing(1, EDGES, _USUALLY) / groups
    apart = SPREAD * tail.differing(1 / groups, EDGES) if quotients else np.zeros(len(EDGES))
    total = max(1.0, float((numbers * tail.rows).sum()))
    unseen = max(0, int(people[end:].max())) if end < len(EDGES) else 0  # taken for noise, wherever they are
    hidden = math.ceil(unseen + scale * -math.log(2 * (1 - _CONFIDENCE)))
    options = []
    for place, bound in enumerate(EDGES):
        weights = np.minimum(1.0, bound / tail.rows)
        kept = max(1.0, float((numbers * tail.rows * weights).sum()))
        lost = max(0.0, 1 - kept / total)
        spread = noise * bound ** (1 / norm) * groups / kept
        error = 0.0
        if counts:
            error += _HALF * spread + missing[place] * groups / total
        if quotients:
            error += math.hypot(math.sqrt(0.5) * spread, apart[place])
        options.append((error, FoundBound(bound, lost, kept / bound, hidden, tail)))
    return min(options, key=lambda option: option[0])[1]


def hidden_rows(people: npt.NDArray[np.int64], scale: float, bounds: Sequence[int], most: int) -> _Floats:
    r"""How many rows lie beyond each of several bounds if nobody has more than ``most``: with 97.5 % at most so many.

    Bucket i holds :math:`n_i` people with at most :math:`e_i = \min(\text{its edge}, most)` rows each, so beyond R lie
    at most :math:`\sum_i n_i (e_i - R)^+` rows. The noisy histogram is n + Z, so that this sum of the noisy numbers
    misses it by :math:`\sum_i Z_i (e_i - R)^+`. How far that falls below zero at most, in units of its standard
    deviation and for all R together, is read off pseudo-random draws of the discrete Laplace law: so R may be chosen
    by the same histogram.

    Guarantee:
        A function of the noisy histogram and of public facts.

    >>> people = np.zeros(len(EDGES), np.int64)
    >>> people[EDGES.index(2)] = 1000
    >>> [round(float(rows), -2) for rows in hidden_rows(people, 2.5, [2, 50, 100], 100)]
    [1400.0, 700.0, 0.0]
    """
    ends = np.minimum(np.append(np.array(EDGES[:-1], np.float64), np.inf), most)
    starts = np.array([0, *(edge for edge in EDGES if edge < most)], np.float64)
    weights = np.where(most > _BELOW, np.maximum(ends - starts[:, None], 0.0), 0.0)
    random, ratio = np.random.default_rng(_STREAM), -math.expm1(-1 / scale)
    noise = random.geometric(ratio, (_NOISES, len(EDGES))) - random.geometric(ratio, (_NOISES, len(EDGES)))
    deviations = scale * np.sqrt(2 * np.square(weights).sum(axis=1))
    furthest = np.quantile((noise @ weights.T / deviations).max(axis=1), _CONFIDENCE)
    rows = np.maximum(0.0, weights @ people + furthest * deviations)
    # of a bound between two edges, as of the edge below it, whose weights are no less
    places = np.searchsorted(starts, np.array(bounds, np.float64), side="right") - 1
    return np.where(np.array(bounds) >= most, 0.0, rows[places])


def _people(noisy: npt.NDArray[np.int64], scale: float) -> tuple[_Floats, int]:
    """The numbers of people behind a noisy histogram, and the bucket where they end.

    A bucket, or two, four or eight of them in a row, hold people if noise alone would hardly ever give so many: with
    probability 1/400 anywhere, for each of these lengths.
    """
    end = 0
    for length, limit in _SURELY.items():
        for start in range(end, len(EDGES) - length + 1):
            if noisy[start : start + length].sum() > scale * limit:
                end = start + length
    for length in (1, 2, 4):  # next to them, less is enough: a bucket too many costs little
        if noisy[end : end + length].sum() > _NEARBY * scale * math.sqrt(2 * length):
            end = min(end + length, len(EDGES))
    tails = noisy[:end][::-1].astype(np.float64).cumsum()  # how many have more rows than a bucket begins with
    above = np.maximum.accumulate(np.maximum(tails, 0.0))
    numbers = np.zeros(len(EDGES))
    numbers[:end] = np.diff(above, prepend=0.0)[::-1]
    return numbers, end
