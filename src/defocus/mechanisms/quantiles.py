"""Quantiles of a histogram: several levels, in many groups, at one cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from defocus.errors import InvalidParameterError, Number, count, finite, positive
from defocus.mechanisms.parameters import LARGEST_SCALE, outside
from defocus.mechanisms.quantile_search import Search
from defocus.mechanisms.quantile_tree import NoisyTree
from defocus.mechanisms.selection import checked_flag
from defocus.mechanisms.values import Integers, IntVector, integers
from defocus.noise import Bits
from defocus.privacy import events

__all__ = ["Located", "Quantiles"]

_METHODS = ("auto", "search", "tree")
_FINEST = 10**6
_MOST_BUCKETS = 1 << 24
_EXTREME = 2**500


@final
@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """Buckets of the levels, and the first and last bucket that each quantile may be in; None where that is unknown.

    Vectors with one entry for each level, or matrices with one row for each group.
    """

    buckets: IntVector
    low: IntVector | None
    high: IntVector | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    r"""For each level q, a bucket with about the share q of all weight before it and 1 − q after it.

    The data is a histogram of integer weights over public buckets, or a matrix with one such histogram in each row,
    for disjoint groups. There are two methods; ``method="auto"`` takes the one with the smaller error where
    a few dozen buckets compete for a level: mostly the search for up to three levels, else the tree.

    *Search*: the level in the middle is found first, by the exponential mechanism; the histogram is cut there, and
    the levels below and above are found in its two parts in the same way. Two levels are found one after the other,
    each in the whole histogram.

    *Tree*: discrete Laplace noise is added to the sums of a tree over the buckets, and the quantiles are read from
    the least-squares estimate of the cumulative histogram, with intervals.

    Guarantee:
        A user adds weights :math:`d \ge 0` of total at most :math:`\Delta` = ``sensitivity``.

        *Search.* Consider one choice in a part with weight N of which the user holds s. The loss of a bucket is how
        far the target :math:`qN` lies outside the ranks the bucket covers,
        :math:`L(t) = \max(0,\ below(t) - qN,\ qN - below(t) - h_t)`; that of a cut is :math:`|before - qN|`. The user
        holds between 0 and s before any place, so each term moves by a number in :math:`[-qs, (1-q)s]` or its
        negative, and a maximum moves no further than its terms: :math:`|\Delta L| \le \max(q, 1-q)\,s`. With
        :math:`P \propto e^{-cL}` and :math:`c = \varepsilon' / 2\max(q, 1-q)\Delta`, the log-likelihood ratios
        of the choice span a range of at most :math:`\varepsilon' s/\Delta`.

        Choices of one depth are made in disjoint parts and groups. Given the cuts made before, a cut takes from
        each bucket the same share of everybody's weight, so the user's weights in the parts add up to their whole
        weight: :math:`\sum s \le \Delta`. The choices are independent, so the ranges of their log-likelihood ratios
        add up, to at most :math:`\sum \varepsilon' s/\Delta \le \varepsilon'`. Hence everything at one depth together
        has bounded range :math:`\varepsilon' = \varepsilon/D`, whatever came before, and the D depths compose to
        :math:`\varepsilon`-DP, and to less for a delta.

        *Tree.* At each of H depths the sums are disjoint, so all of them together move by at most :math:`H\Delta` in
        L1 norm, and noise of scale :math:`H\Delta/\varepsilon` makes them :math:`\varepsilon`-DP. Sums
        that 64 bits might not hold are prevented by cutting each weight to :math:`2^{62}` / ``buckets``, which moves
        neighbours no further apart.

        With ``replace``, one user leaves and another comes: :math:`\Delta` is doubled.
    Assumes:
        The weights of a user over all buckets and groups of the release add up to at most ``sensitivity``. Buckets,
        groups and levels are public. Negative entries count as zero, which no histogram has.

    Error:
        See :meth:`rank_error`. An empty histogram gives random buckets, uniform ones by search; no data is refused.
    Reference:
        Kaplan, Schnapp, Stemmer (2022), Differentially private approximate quantiles, for rows of distinct values;
        the cut through a bucket, so that heavy values do no harm, and users' weights are proven above. Smith (2011),
        Privacy-preserving statistical estimation with optimal convergence rates, for one level. Hay, Rastogi, Miklau,
        Suciu (2010), Boosting the accuracy of differentially private histograms through consistency, for the tree.

    >>> ages = Quantiles(levels=(0.25, 0.5, 0.75), epsilon=1, buckets=100)
    >>> ages.event
    Composed(parts=((Exponential(epsilon=Fraction(1, 2)), 2),))
    >>> ages.sample([0] * 40 + [1_000_000] + [0] * 59)
    array([40, 40, 40])
    >>> deciles = Quantiles(levels=[Fraction(i, 10) for i in range(1, 10)], epsilon=1, buckets=100)
    >>> deciles.event
    DiscreteLaplace(scale=Fraction(2, 1), sensitivity=2)
    >>> deciles.locate([0] * 40 + [1_000_000] + [0] * 59).high
    array([40, 40, 40, 40, 40, 40, 40, 40, 40])
    """

    answers_with: ClassVar[str] = "candidate"
    levels: Sequence[Number]
    epsilon: Number
    buckets: int
    sensitivity: int = 1
    replace: bool = False
    method: str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", _levels(self.levels))
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "buckets", count("buckets", self.buckets))
        object.__setattr__(self, "sensitivity", count("sensitivity", self.sensitivity))
        checked_flag("replace", self.replace)
        if self.method not in _METHODS:
            raise InvalidParameterError("There is no such method.", fix=f"choose method from {', '.join(_METHODS)}.")
        if self.buckets > _MOST_BUCKETS:
            raise InvalidParameterError("buckets must be at most 2**24.", fix="use wider buckets.")
        if not Fraction(1, _EXTREME) <= Fraction(self.epsilon) / self.sensitivity <= _EXTREME:
            raise InvalidParameterError(
                "epsilon and sensitivity are more than 2**500 apart.", fix="pass parameters of ordinary size."
            )
        _ = self.event

    @property
    def event(self) -> events.Event:
        """What one release owes, however many groups it has."""
        return self._way.event

    @property
    def error(self) -> float:
        """The expected rank error of the worst level, in units of weight.

        By search: over all histograms. By tree: the expected error of the cumulative weight where it is least certain.
        """
        return self._way.error

    def rank_error(self, confidence: Number) -> float:
        r"""The rank error of a level, in units of weight, is at most this with probability ``confidence``.

        It is the weight between the chosen bucket and the place of the quantile, whatever the histogram.

        *Search*: one choice among n candidates loses more than t with probability at most
        :math:`m e^{-ct}/(1 + m e^{-ct})`, m = n − 1. An error e of a cut at level p moves the target of a level
        q < p below it by :math:`(q/p) e`, so the errors on the way to a level are added with these weights, each at
        an equal share of 1 − ``confidence``. A cut is one of n = buckets · 65537, as fine as is needed where all weight
        lies in one bucket; to it belongs a further 2⁻¹⁷ of the weight of one bucket. Where the weight is
        spread, errors are several times smaller than this.

        *Tree*: the error is at most the largest error of the estimated cumulative weight, at any bucket; by Chernoff's
        bound at each, added up.
        """
        return self._way.rank_error(outside(confidence))

    def interval(self, confidence: Number) -> float:
        """The same as :meth:`rank_error`."""
        return self.rank_error(confidence)

    def check(self, counts: object) -> None:
        """Refuse anything but integer weights for all buckets: a vector, or a matrix with one row for each group."""
        self._rows(counts)

    def sample(self, counts: Integers | npt.NDArray[np.integer[Any]], bits: Bits | None = None) -> IntVector:
        """The bucket of each level, in the order of ``levels``: a vector, or one row for each group of a matrix."""
        return self.locate(counts, bits).buckets

    def locate(
        self,
        counts: Integers | npt.NDArray[np.integer[Any]],
        bits: Bits | None = None,
        *,
        confidence: Number = Fraction(19, 20),
    ) -> Located:
        """One release with intervals, where the method has them: each holds its quantile with this ``confidence``."""
        beyond = outside(confidence)
        rows, single = self._rows(counts)
        way = self._way
        if isinstance(way, Search):
            found = way.locate(rows, bits)
            return Located(found[0] if single else found, None, None)
        each = way.locate(rows, bits, beyond)
        return Located(*(part[0] for part in each)) if single else Located(*each)

    @property
    def _way(self) -> Search | NoisyTree:
        """The method that is used."""
        moves = self.sensitivity * (2 if self.replace else 1)
        levels = tuple(Fraction(level) for level in self.levels)
        search = Search(levels, self.epsilon, self.buckets, moves)
        tree = NoisyTree(levels, self.epsilon, self.buckets, moves)
        if self.method == "auto":
            return search if tree.least_scale > LARGEST_SCALE or search.typical <= tree.error else tree
        return search if self.method == "search" else tree

    def _rows(self, counts: object) -> tuple[npt.NDArray[np.int64], bool]:
        if not isinstance(counts, np.ndarray) or counts.ndim != 2 or counts.shape[1] != self.buckets:
            vector, _ = integers(counts, length=self.buckets)
            return vector[np.newaxis], True
        if not counts.size:
            return np.zeros(counts.shape, np.int64), False
        return integers(counts.ravel())[0].reshape(counts.shape), False


def _levels(levels: object) -> tuple[Fraction, ...]:
    """Distinct levels strictly between zero and one, exactly as written: 0.9 is nine tenths."""
    if isinstance(levels, str | bytes | dict) or not hasattr(levels, "__len__") or not hasattr(levels, "__iter__"):
        raise InvalidParameterError(
            f"levels must be a sequence of numbers, but it is {type(levels).__name__}.", fix="pass levels=(0.5,)."
        )
    exact: list[Fraction] = []
    for level in levels:
        number = finite("a level", level)
        value = Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
        if not 0 < value < 1:
            raise InvalidParameterError(
                f"A level must lie strictly between 0 and 1, but it is {number}.",
                fix="pass for example 0.01 and 0.99 for nearly the least and the largest value.",
            )
        exact.append(value)
    if not exact or len(set(exact)) < len(exact):
        raise InvalidParameterError("levels must be distinct, at least one.", fix="pass each level once.")
    if math.lcm(*(value.denominator for value in exact)) > _FINEST:
        raise InvalidParameterError(
            "The levels have a common denominator above a million.", fix="round them to at most six decimals."
        )
    return tuple(exact)
