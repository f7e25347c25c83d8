"""How well an attack tells who was in: its ROC curve with intervals, beside the curve that a promise allows at most."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.audit.bounds import below, upto
from defocus.errors import Number, in_range, probability
from defocus.privacy.accounting import account
from defocus.privacy.events import Event
from defocus.privacy.losses import Loss
from defocus.privacy.one_run import OneRun

__all__ = ["Attack", "Claim", "Curve", "Promise", "Rate"]

Claim: TypeAlias = Number | Event | Loss
"""An epsilon, or an event or its loss, whose whole trade-off is promised."""
_Floats: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Promise:
    """What was claimed, as the best curve that an attack on one person can have.

    >>> Promise.of(1, delta=0).most(0.01)
    0.027...
    """

    epsilon: float
    delta: float
    least: Callable[[float], float] = field(repr=False)
    """The trade-off: the least false-negative rate at a false-positive rate."""

    @classmethod
    def of(cls, claimed: Claim, *, delta: Number) -> "Promise":
        """Of an epsilon at ``delta``, or of the event that was charged or its loss, whose whole trade-off counts."""
        at = float(probability("delta", delta, one=False))
        if isinstance(claimed, Event):
            claimed = account(claimed)
        if isinstance(claimed, Loss):
            return cls(claimed.epsilon(at), at, claimed.tradeoff)
        epsilon = float(in_range("claimed", claimed, 0, 700))

        def least(alpha: float) -> float:
            return max(0.0, 1 - at - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - at - alpha))

        return cls(epsilon, at, least)

    def most(self, rate: float) -> float:
        """The largest true-positive rate, in expectation, of any attack with this false-positive rate."""
        return min(1.0, 1 - self.least(min(rate, 1.0)))

    def most_ranked(self, k: int, out: int) -> float:
        r"""The same for the share of persons in who rank above all but ``k`` of ``out`` persons out, in one run.

        Guarantee:
            In expectation over coins and run, given how many are out, it is at most
            :math:`1 - f((k+1)/(\mathrm{out}+1))` for every attack on a release with trade-off f, one person added or
            removed. Let i be a person and J the others who are in. That i, in, outranks all but k of the others out has
            some probability over the run; it is at most 1 − f of the probability of the same event when i is out. Were
            i out, i would be one of out + 1 persons out, of whom at most k + 1 outrank all but k of the others. So that
            probability, averaged over who of them i is, is at most (k + 1)/(out + 1), and the average is inside since
            1 − f is concave and rises.
            Nothing is assumed about how scores depend on each other.
        """
        return self.most((k + 1) / (out + 1))

    def most_area(self, out: int) -> float:
        """The largest area under the curve, in expectation: the mean of :meth:`most_ranked` over all k, rounded up."""
        edges = np.unique(np.linspace(0, out, min(out, 64) + 1).astype(int)).tolist()
        parts = [(b - a) * self.most_ranked(b - 1, out) for a, b in pairwise(edges)]
        return float(sum(parts)) / out


@final
@dataclass(frozen=True, slots=True)
class Rate:
    """A true-positive rate with its interval, at a false-positive rate that is known up to ``fpr_high``.

    >>> print(Rate(0.01, 0.04, 0.2, 0.15, 0.26))
    20.00% (15.00% to 26.00%) at 1.00% false positives (at most 4.00%)
    """

    fpr: float
    fpr_high: float
    tpr: float
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"{self.tpr:.2%} ({self.low:.2%} to {self.high:.2%}) at {self.fpr:.2%} false positives"
            f" (at most {self.fpr_high:.2%})"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """An attack by name: its scores, and who was in.

    Guarantee:
        Each interval holds with ``confidence``, one at a time, where scores of persons in are independent and alike,
        and those of persons out too. Given the model that is so for persons out who were drawn alike and played no part
        in it; for persons in it is so up to what they do to each other's scores. The bound on epsilon in
        :class:`~defocus.audit.Membership` assumes none of that.

    >>> curve = Curve(name="guess", scores=np.arange(200.0), members=np.arange(200) >= 100, confidence=0.95)
    >>> curve.auc, curve.at(0.01).tpr
    ((1.0, 0.96..., 1.0), 1.0)
    """

    name: str
    scores: _Floats = field(repr=False)
    """Higher where a person looks as if in."""
    members: NDArray[np.bool_] = field(repr=False)
    confidence: float

    @property
    def points(self) -> tuple[_Floats, _Floats]:
        """False- and true-positive rates at every threshold, from none to all."""
        ends = np.append(np.sort(np.unique(self.scores))[::-1], -np.inf)
        out, into = np.sort(self.scores[~self.members]), np.sort(self.scores[self.members])
        above = [1 - np.searchsorted(own, ends, side="right") / len(own) for own in (out, into)]
        return above[0], above[1]

    def at(self, fpr: float) -> Rate:
        r"""The true-positive rate where a share ``fpr`` of those out are taken to be in, by a threshold from them.

        Guarantee:
            With the confidence, the rates of the threshold are within ``low`` and ``high``, and at most ``fpr_high``.
            The threshold is the (k+1)-th largest score of n persons out, k = ⌊fpr·n⌋, so it is independent of those in,
            whose hits are binomial: Clopper–Pearson, α/3 for each end. If the threshold's own false-positive rate were
            above x, then at most k of n draws exceeded a level that each exceeds with probability x or more, which
            happens with probability at most Pr[Bin(n, x) ≤ k]: that is α/3 at x = ``fpr_high``.
        """
        out, into = np.sort(self.scores[~self.members])[::-1], self.scores[self.members]
        k = min(int(fpr * len(out) * (1 + 1e-12)), len(out) - 1)
        error, hits = (1 - self.confidence) / 3, int((into > out[k]).sum())
        return Rate(
            fpr=float((out > out[k]).mean()),
            fpr_high=float(upto(k, len(out), error)),
            tpr=hits / len(into),
            low=float(below(hits, len(into), error)),
            high=float(upto(hits, len(into), error)),
        )

    @property
    def auc(self) -> tuple[float, float, float]:
        r"""The probability that a person in scores higher than one out, ties half, and its interval.

        Guarantee:
            With k the smaller of the two numbers of persons, the area U is an average of averages of k independent
            values in [0, 1] with its mean θ, so by convexity its moments are at most theirs, and
            :math:`\Pr[U \ge u] \le e^{-k\,\mathrm{kl}(u, \theta)}` for u ≥ θ, likewise below: both ends of
            :math:`\mathrm{kl}(U, \theta) \le \ln(2/\alpha)/k` hold together.
        Reference:
            Hoeffding (1963), Probability inequalities for sums of bounded random variables, section 5.
        """
        out, into = np.sort(self.scores[~self.members]), self.scores[self.members]
        ranks = np.searchsorted(out, into, side="left") + np.searchsorted(out, into, side="right")
        area = float(ranks.mean() / (2 * len(out)))
        far = math.log(2 / (1 - self.confidence)) / min(len(out), len(into))
        return area, _end(area, far, 0.0), _end(area, far, 1.0)

    def to_json(self) -> dict[str, Any]:
        """The name, the area and the rates, with JSON types only."""
        area, low, high = self.auc
        rates = {f"{100 * x:g} %": dict(zip(Rate.__slots__, _fields(self.at(x)), strict=True)) for x in (0.001, 0.01)}
        return {"attack": self.name, "auc": area, "auc_low": low, "auc_high": high, "tpr_at_fpr": rates}


def _fields(rate: Rate) -> tuple[float, ...]:
    return rate.fpr, rate.fpr_high, rate.tpr, rate.low, rate.high


def _end(area: float, far: float, towards: float) -> float:
    """The point between ``area`` and an end where the divergence from ``area`` is ``far``; rounded outwards."""
    inner, outer = area, towards
    for _ in range(60):
        middle = (inner + outer) / 2
        inner, outer = (middle, outer) if _divergence(area, middle) <= far else (inner, middle)
    return outer


def _divergence(p: float, q: float) -> float:
    parts = [x * math.log(x / y) if y else math.inf for x, y in ((p, q), (1 - p, 1 - q)) if x > 0]
    return sum(parts)


class Attack:
    """What an attack was seen to tell of one person."""

    __slots__ = ()
    bound: OneRun
    """The lower bound on epsilon."""

    @property
    def violation(self) -> bool:
        """Whether the bound on epsilon is above the claim."""
        return self.bound.violation

    @property
    def verdict(self) -> str:
        """``violation`` or ``none found``; an attack that finds nothing proves nothing."""
        return self.bound.verdict
