"""Quantiles of a histogram: several levels, in many groups, at one cost."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt
from scipy.special import lambertw

from defocus.errors import InvalidParameterError, Number, count, finite, positive, whole
from defocus.mechanisms.parameters import outside
from defocus.mechanisms.quantile_search import STEPS, Node, Row, depth, plan, rate, search
from defocus.mechanisms.selection import checked_flag
from defocus.mechanisms.values import Integers, IntVector, integers
from defocus.noise import Bits
from defocus.privacy import events

__all__ = ["Quantiles"]

_FINEST = 10**6
_EXTREME = 2**500


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    r"""For each level q, a bucket with about the share q of all weight before it and 1 − q after it.

    The data is a histogram of integer weights over public buckets, or a matrix with one such histogram in each row, for
    disjoint groups. The level in the middle is found first, by the exponential mechanism; the histogram is
    cut there, and the levels below and above are found in its two parts in the same way. Two levels are found one
    after the other, each in the whole histogram.

    Guarantee:
        A user adds weights :math:`d \ge 0` of total at most :math:`\Delta` = ``sensitivity``. Consider one choice in a
        part with weight N of which the user holds s. The loss of a bucket is how far the target
        :math:`qN` lies outside the ranks the bucket covers,
        :math:`L(t) = \max(0,\ below(t) - qN,\ qN - below(t) - h_t)`; that of a cut is
        :math:`|before - qN|`. The user holds between 0 and s before any place, so each term moves by a number in
        :math:`[-qs, (1-q)s]` or its negative, and a maximum moves no further than its terms:
        :math:`|\Delta L| \le \max(q, 1-q)\,s`. With :math:`P \propto e^{-cL}` and
        :math:`c = \varepsilon' / 2\max(q, 1-q)\Delta`, the log-likelihood ratios of the choice
        span a range of at most :math:`\varepsilon' s/\Delta`.

        Choices of one depth are made in disjoint parts (and groups). Given the cuts made before, a cut takes from each
        bucket the same share of everybody's weight, so the user's weights in the parts add up to their whole
        weight: :math:`\sum s \le \Delta`. The choices are independent, so the ranges of their log-likelihood
        ratios add up, to at most :math:`\sum \varepsilon' s/\Delta \le \varepsilon'`. Hence everything at one depth
        together has bounded range :math:`\varepsilon' = \varepsilon/D`, whatever came before, and the D depths
        compose: :math:`\varepsilon`-DP, and less than that for a delta.
        With ``replace``, one user leaves and another comes, which doubles every range; the rates are halved.
    Assumes:
        The weights of a user over all buckets and groups of the release add up to at most ``sensitivity``. Buckets,
        groups and levels are public. Negative entries count as zero, which no histogram has.

    Error:
        See :meth:`rank_error`. An empty histogram gives uniformly random buckets, in order.
    Reference:
        Kaplan, Schnapp, Stemmer (2022), Differentially private approximate quantiles, for rows of distinct
        values; the cut through a bucket, so that heavy values do no harm, and users' weights are proven above.
        Smith (2011), Privacy-preserving statistical estimation with optimal convergence rates, for one level.

    >>> ages = Quantiles(levels=(0.25, 0.5, 0.75), epsilon=1, buckets=100)
    >>> ages.event
    Composed(parts=((Exponential(epsilon=Fraction(1, 2)), 2),))
    >>> ages.sample([0] * 40 + [1_000_000] + [0] * 59)
    array([40, 40, 40])
    """

    answers_with: ClassVar[str] = "candidate"
    levels: Sequence[Number]
    epsilon: Number
    buckets: int
    sensitivity: int = 1
    replace: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", _levels(self.levels))
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "buckets", count("buckets", self.buckets))
        object.__setattr__(self, "sensitivity", count("sensitivity", self.sensitivity))
        checked_flag("replace", self.replace)
        if self.buckets > 1 << 24:
            raise InvalidParameterError("buckets must be at most 2**24.", fix="use wider buckets.")
        if not Fraction(1, _EXTREME) <= Fraction(self.epsilon) / self.sensitivity <= _EXTREME:
            raise InvalidParameterError(
                "epsilon and sensitivity are more than 2**500 apart.", fix="pass parameters of ordinary size."
            )

    @property
    def event(self) -> events.Event:
        """What one release owes, however many groups it has."""
        rounds = depth(self._nodes)
        return rounds * events.Exponential(self.epsilon if rounds == 1 else self._each)

    @property
    def error(self) -> float:
        """The largest expected rank error of a level, over all histograms, in units of weight."""
        return max(sum(w * self._mean(node) for w, node in path) for path in _paths(self._nodes))

    def rank_error(self, confidence: Number) -> float:
        r"""The rank error of a level, in units of weight, is at most this with probability ``confidence``.

        It is the weight between the chosen bucket and the place of the quantile, whatever the histogram.
        One choice among n candidates loses more than t with probability at most
        :math:`m e^{-ct}/(1 + m e^{-ct})`, m = n − 1. An error e of a cut at level p moves the target of a level
        q < p below it by :math:`(q/p) e`, so the errors along the way to a level are added with these weights, each
        at an equal share of 1 − ``confidence``. A cut is one of n = buckets · 65537, the finest that
        is needed for histograms with all weight in one bucket; where the weight is spread, errors
        are about half of this. To cuts belongs a further 2⁻¹⁷ of the weight of one bucket.
        """
        beyond = outside(confidence)
        return max(sum(w * self._tail(n, beyond / len(path)) for w, n in path) for path in _paths(self._nodes))

    def interval(self, confidence: Number) -> float:
        """The same as :meth:`rank_error`."""
        return self.rank_error(confidence)

    def check(self, counts: object) -> None:
        """Refuse anything but integer weights for all buckets: a vector, or a matrix with one row for each group."""
        self._rows(counts)

    def sample(self, counts: Integers | npt.NDArray[np.integer[Any]], bits: Bits | None = None) -> IntVector:
        """The bucket of each level, in the order of ``levels``: a vector, or one row for each group of a matrix."""
        rows, single = self._rows(counts)
        found = np.zeros((len(rows), len(self.levels)), np.int64)
        nodes, effective = self._nodes, self.sensitivity * (2 if self.replace else 1)
        for i, row in enumerate(rows):
            buckets = search(nodes, Row(row), epsilon=self._each, sensitivity=effective, bits=bits)
            found[i] = [buckets[j] for j in range(len(self.levels))]
        order = np.argsort(np.array([float(level) for level in self.levels]))
        found[:, order] = np.sort(found, axis=1)
        return found[0] if single else found

    @property
    def _nodes(self) -> tuple[Node, ...]:
        return plan([Fraction(level) for level in self.levels])

    @property
    def _each(self) -> Fraction:
        """What each depth spends."""
        return Fraction(self.epsilon) / depth(self._nodes)

    def _rate(self, node: Node) -> float:
        return float(rate(node, self._each, self.sensitivity * (2 if self.replace else 1)))

    def _others(self, node: Node) -> int:
        return self.buckets * (STEPS + 1 if node.splits else 1) - 1

    def _mean(self, node: Node) -> float:
        return float(lambertw(self._others(node) / math.e).real) / self._rate(node)

    def _tail(self, node: Node, beyond: float) -> float:
        others = self._others(node)
        odds = math.log(others) + math.log1p(-beyond) - math.log(beyond) if others else 0.0
        return max(0.0, odds) / self._rate(node)

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
                fix="pass for example 0.01 and 0.99 for the least and the largest value.",
            )
        exact.append(value)
    if not exact or len(set(exact)) < len(exact):
        raise InvalidParameterError("levels must be distinct, at least one.", fix="pass each level once.")
    if math.lcm(*(value.denominator for value in exact)) > _FINEST:
        raise InvalidParameterError(
            "levels have a common denominator above a million.", fix="round them to at most six decimals."
        )
    whole("the number of levels", len(exact), at_least=1)
    return tuple(exact)


def _paths(nodes: Sequence[Node]) -> Iterator[list[tuple[float, Node]]]:
    """For each level the choices on the way to it, with the weight of each one's error."""
    for node in nodes:
        yield [(1.0, node)]
        for path in _paths([node.lower] if node.lower else []):
            yield [(float(_share(path, lower=True)), node), *path]
        for path in _paths([node.upper] if node.upper else []):
            yield [(float(_share(path, lower=False)), node), *path]


def _share(path: list[tuple[float, Node]], *, lower: bool) -> Fraction:
    """How much of an error at the top moves the target at the bottom of ``path``: q of the part, or 1 − q."""
    low, high = Fraction(0), Fraction(1)
    for (_, node), (_, following) in pairwise(path):
        cut = low + node.level * (high - low)
        low, high = (low, cut) if following is node.lower else (cut, high)
    level = low + path[-1][1].level * (high - low)
    return level if lower else 1 - level
