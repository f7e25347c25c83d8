"""Estimates: how many people are in each category, with standard errors and intervals."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.answers import Answer, AnswerColumn, Tails
from defocus.answers.columns import CONFIDENCE, Floats
from defocus.answers.tables import Keys, plain
from defocus.errors import InvalidParameterError, choice
from defocus.local.designs import Frequency, Rappor
from defocus.local.designs.rappor import nearest_counts, rappor_matrix, rappor_regression
from defocus.local.domains import OTHER, Categories
from defocus.local.servers.counts import State
from defocus.local.servers.supports import supports

__all__ = [
    "PROCESSES",
    "Array",
    "Collected",
    "CollectedAnswer",
    "Estimate",
    "Process",
    "empirical_bayes",
    "estimate",
    "estimated",
    "group_variances",
    "isotonic",
    "norm_sub",
    "process",
    "scaled_up",
    "simplex",
]


class CollectedAnswer(Answer):
    """Estimates from private reports. They come from reports alone, so they may be shown to anyone."""

    __slots__ = ()
    reports: int
    rejected: int
    collected: str

    @property
    def notes(self) -> Sequence[str]:
        """How many reports were rejected."""
        return [f"{self.rejected} reports were rejected: no client makes them"] if self.rejected else []

    @property
    def facts(self) -> Mapping[str, Any]:
        """From how many reports it is."""
        return {"reports": self.reports, "rejected": self.rejected, "collected": self.collected}

    def _topics(self) -> Mapping[str, Sequence[str]]:
        paid = "reading reports is free; what people pay is charged by collect, before they are asked"
        return {"protected": [self.collected] if self.collected else [], "cost": [paid]}


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Collected(CollectedAnswer):
    """Estimates with nothing else to them: the mean of everybody's numbers, or strings that are frequent.

    >>> from defocus.local import mean
    >>> ages = mean("duchi", 0, 120, epsilon=2)
    >>> found = ages.estimate(ages.encode([40.0] * 5000))
    >>> 20 < found.value < 60, found.reports
    (True, 5000)
    """

    keys: Keys = field()
    columns: tuple[AnswerColumn, ...] = field()
    question: str = field()
    things: tuple[str, str] = field()
    reports: int
    rejected: int = 0
    """How many reports were rejected while these were counted."""
    collected: str = ""
    """By which oracle, and what each report promises."""


def estimated(name: str, values: Floats, errors: Floats, how: str) -> tuple[AnswerColumn]:
    """Estimates with standard errors. Each is a sum over independent reports, so intervals are those of normal noise.

    With fewer than some hundred reports they are not. For all entries at once, ask for a confidence of
    1 - (1 - confidence) / entries.
    """
    half = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2) * errors
    low, high = values - half, values + half
    return (AnswerColumn(name, np.array(values), errors, low, high, integral=False, how=how, tails=Tails.NORMAL),)


Array: TypeAlias = NDArray[np.float64]

_FEW, _MOST = 3, 20
"""So many categories are named in one line, and in a table."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Estimate(CollectedAnswer):
    """Estimated counts. They come from private reports alone, so they may be shown to anyone and used in any way.

    ``counts`` are unbiased, may be negative and need not add up to ``reports``; ``processing`` names what was done to
    them beyond that, and after it they are biased and have no interval of their own.

    >>> from defocus import local
    >>> asked = local.oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> found = asked.estimate(asked.encode(["red"] * 2000))
    >>> found.reports, found.top(1)[0][0]
    (2000, 'red')
    """

    counts: Array
    variances: Array
    reports: int
    labels: Sequence[str] | None = None
    processing: tuple[str, ...] = ()
    rejected: int = 0
    """How many reports were rejected while these were counted."""
    collected: str = ""
    """By which oracle, and what each report promises."""
    others: bool = False
    """Whether the last category is of all values outside of the domain."""
    nearest: Callable[[], Array] | None = None
    """Non-negative counts of this total that are nearest to what was measured, where that is not the counts."""

    @property
    def unbiased(self) -> bool:
        """Whether these are the unbiased estimates."""
        return not self.processing

    @property
    def frequencies(self) -> Array:
        """Shares of the people who reported."""
        return self.counts / max(self.reports, 1)

    @property
    def errors(self) -> Array:
        """Standard errors of unbiased counts; NaN after a processing, and where nobody reported."""
        return np.sqrt(self.variances) if self.unbiased else np.full(len(self), np.nan)

    def top(self, k: int = 10) -> list[tuple[str | int, float, float]]:
        """The k most frequent categories by estimate: label, count, standard error (NaN after a processing)."""
        errors = self.errors
        return [(self.label(i), float(self.counts[i]), float(errors[i])) for i in self._order(k)]

    def label(self, index: int) -> str | int:
        """What a category is called."""
        if self.others and index == len(self) - 1:
            return OTHER
        return index if self.labels is None else self.labels[index]

    @property
    def columns(self) -> tuple[AnswerColumn, ...]:
        """The counts with standard errors and 95 % intervals; processed ones have neither."""
        last = f"; category {len(self) - 1} is of all other values" if self.others and self.labels is None else ""
        how = f"{'unbiased, ' if self.unbiased else ''}from {self.reports} reports{last}"
        return estimated("count", self.counts, self.errors, how)

    @property
    def categories(self) -> Sequence[str | int]:
        """What every category is called, in order; by number where they have no labels, also the one of the others."""
        return range(len(self)) if self.labels is None else [self.label(i) for i in range(len(self))]

    @property
    def keys(self) -> Keys:
        """The categories."""
        return {"category": self.categories}

    @property
    def question(self) -> str:
        """What was asked."""
        return f"how many people are in each of {len(self)} categories"

    @property
    def things(self) -> tuple[str, str]:
        """An entry is a category."""
        return "category", "categories"

    def _first(self) -> list[int]:
        return self._order(_MOST)

    def _order(self, most: int) -> list[int]:
        chosen: list[int] = np.argsort(-self.counts, kind="stable")[:most].tolist()
        return chosen

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        most = ", ".join(f"{plain(label)}: {_brief(count, error)}" for label, count, error in self.top(_FEW))
        return f"<estimate from {self.reports} reports, {'; '.join(self.processing) or 'unbiased'}; {most}>"


def _brief(count: float, error: float) -> str:
    return f"{count:.4g}" if math.isnan(error) else f"{count:.4g} ± {error:.2g}"


def group_variances(design: Frequency, reports: int, counts: Array, size: int) -> Array:
    r"""The variance of the sum of the estimates of ``size`` categories, in which ``counts`` people are together.

    How many of g categories a report supports has, with :math:`p_2` and :math:`q_2` for two at once
    (:attr:`Frequency.together`), the variance :math:`gq(1-q) + g(g-1)(q_2-q^2)` for a person of none of them, and
    :math:`p(1-p) + (g-1)q(1-q) + 2(g-1)(p_2-pq) + (g-1)(g-2)(q_2-q^2)` for a person of one.
    """
    p, q, rest = design.p, design.q, size - 1
    own, others = design.together[0] - p * q, design.together[1] - q * q
    outside = size * q * (1 - q) + size * rest * others
    inside = p * (1 - p) + rest * q * (1 - q) + 2 * rest * own + rest * (rest - 1) * others
    held = np.clip(counts, 0, reports)
    variances: Array = (held * float(inside) + (reports - held) * float(outside)) / float(p - q) ** 2
    return variances


def scaled_up(counts: Array, variances: Array, reports: int, everyone: int) -> tuple[Array, Array]:
    r"""Counts among all people, and their variances, from those among ``reports`` of them who were drawn at random.

    With s people for each who reported, :math:`s^2` times the variance of the noise, and
    :math:`(s - 1)\,n_v(1 - n_v/n)` for who was drawn: that of a hypergeometric count, scaled up.
    """
    scale = everyone / max(reports, 1)
    grown = scale * counts
    held = np.clip(grown, 0.0, everyone)
    return grown, scale**2 * variances + (scale - 1) * held * (1 - held / max(everyone, 1))


def estimate(state: State) -> Estimate:
    """The unbiased estimate of every category's count, with the variance of each.

    The variance :math:`n_v p(1-p) + (n-n_v) q(1-q)` over :math:`(p-q)^2` takes the estimate, kept between 0 and n,
    for the unknown :math:`n_v`.
    """
    design = state.design
    if isinstance(design, Rappor):
        return _regressed(design, state)
    if not isinstance(design, Frequency):
        raise InvalidParameterError(f"{design.name} estimates no frequencies.", fix="ask for its mean instead.")
    n, p, q = state.reports, float(design.p), float(design.q)
    contrast = float(design.p - design.q)
    counts: Array = ((supports(design, state.tally) - n * q) / contrast).astype(np.float64)
    held = np.clip(counts, 0, n)
    variances = (held * p * (1 - p) + (n - held) * q * (1 - q)) / contrast**2
    if design.collisions:
        together = float(design.collisions)
        variances += together * _pairs(counts, variances, together)
    return _counted(state, counts, variances)


def _counted(state: State, counts: Array, variances: Array) -> Estimate:
    """The estimate; where nobody reported there is nothing to know variances from."""
    domain = state.design.domain
    return Estimate(
        counts,
        variances if state.reports else np.full_like(variances, np.nan),
        state.reports,
        domain.labels if isinstance(domain, Categories) else None,
        rejected=sum(state.rejected.values()),
        collected=state.design.promise,
        others=domain.outside == OTHER,
    )


def _regressed(design: Rappor, state: State) -> Estimate:
    """Debias the bits of every cohort, then least squares; of more candidates than bits, non-negative ones."""
    n, p, q = state.reports, float(design.zero), float(design.one)
    sums = (state.tally[:, :-1] - p * state.tally[:, -1:]) / (q - p)
    matrix = rappor_matrix(design)

    def nearest() -> Array:
        return nearest_counts(matrix, design.cohorts * sums.ravel(), float(n))

    if design.domain.size > len(matrix):
        found = nearest()
        return replace(_counted(state, found, np.full_like(found, np.nan)), processing=(_TOO_MANY,))
    regression = rappor_regression(design)
    counts = regression.counts(sums.ravel())
    held = np.maximum(counts, 0)
    held *= n / max(held.sum(), 1e-9)
    variances = regression.variances(held, *design.bit_variances())
    return replace(_counted(state, counts, variances), nearest=nearest)


_TOO_MANY = "non-negative: biased, as there are more candidates than bits of all cohorts"


def _pairs(counts: Array, variances: Array, collisions: float) -> Array:
    r"""Ordered pairs of people who share one of the other categories, estimated from the counts, never below 0.

    With T pairs in all and variance v without collisions, :math:`\hat c^2 - v - \hat c` has the mean
    :math:`n_v(n_v-1)` plus the collisions' variance; summed over k categories, :math:`T(1 + \text{collisions}(k-1))`.
    """
    squares = counts**2 - variances - counts
    total = max(float(squares.sum()), 0.0) / (1 + collisions * (len(counts) - 1))
    pairs: Array = total - np.clip(squares, 0.0, total)
    return pairs


Process: TypeAlias = Literal["norm-sub", "simplex", "isotonic", "non-negative", "empirical-bayes"]

_FEWEST = 20
"""With fewer categories their distribution is not known well enough to shrink towards it."""
_PLACES, _ROUNDS = 60, 200
"""How many counts a prior is spread over, and how often it is fitted."""


def process(estimate: Estimate, how: Process) -> Estimate:
    """The estimate after one of these; it says so, and gives no intervals any more.

    * ``norm-sub``: negative counts become 0 and one number is taken from all others, again and again, until the counts
      add up to the number of reports. Biased upwards for rare categories, downwards for frequent ones.
    * ``simplex``: the nearest counts, by squared distance, that are not negative and add up to the number of reports.
      Both have the same result; this one is computed by sorting.
    * ``empirical-bayes``: each count is drawn towards what counts of this collection usually are, by how much noise it
      has; then as ``norm-sub``. The squared error is less for most collections of many categories, down to a seventh,
      and at times 8 % more (``benchmarks/local_processing.py``); with fewer than 20 it is that of ``norm-sub``.
    * ``non-negative``: of ``rappor``, the counts that are not negative and add up to the number of reports, with
      filters nearest to what was reported: .4 to .8 of the error; for all others the same as ``simplex``.
    * ``isotonic``: the nearest counts that do not rise from one category to the next: for categories that are known,
      from public facts, to be in the order of their frequency.

    Reference: Wang et al. (2020), Locally differentially private frequency estimation with consistency; Barlow et al.
    (1972), Statistical inference under order restrictions; Kiefer, Wolfowitz (1956), Consistency of the maximum
    likelihood estimator in the presence of infinitely many incidental parameters.

    >>> from defocus import local
    >>> asked = local.oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> found = process(asked.estimate(asked.encode(["red"] * 2000)), "norm-sub")
    >>> round(found.counts.sum()), bool((found.counts >= 0).all())
    (2000, True)
    """
    name = choice("processing", how, PROCESSES)
    if not estimate.unbiased:
        raise InvalidParameterError(
            "The estimate was processed already.", fix="process the unbiased one; steps do not add up."
        )
    if name == "non-negative" and estimate.nearest is not None:
        counts = estimate.nearest()
    else:
        counts = PROCESSES[name](estimate.counts, float(estimate.reports), estimate.variances)
    return replace(estimate, counts=counts, processing=(f"{name}: biased",))


def norm_sub(counts: Array, total: float, _variances: Array | None = None) -> Array:
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


def simplex(counts: Array, total: float, _variances: Array | None = None) -> Array:
    """The nearest non-negative counts of this total, by the threshold that sorting finds.

    >>> simplex(np.array([5.0, 3.0, -2.0]), 6.0)
    array([4., 2., 0.])
    """
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    last = int(np.flatnonzero(falling > excess).max(initial=0))
    near: Array = np.maximum(counts - excess[last], 0.0)
    return near


def isotonic(counts: Array, _total: float, _variances: Array | None = None) -> Array:
    """The nearest counts that never rise, by pooling neighbours that do.

    >>> isotonic(np.array([5.0, 1.0, 3.0]), 0.0)
    array([5., 2., 2.])
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415  # slow to load

    fitted: Array = isotonic_regression(counts, increasing=False).x
    return fitted


def empirical_bayes(counts: Array, total: float, variances: Array) -> Array:
    """The expected counts under the prior that is most likely for all of them, if their noise is Gaussian.

    The prior is a distribution over counts from zero to the largest, fitted by expectation maximisation to all
    categories together. It follows from released numbers alone.

    >>> found = empirical_bayes(np.array([90.0, 5.0, -5.0] * 10), 1000.0, np.full(30, 25.0))
    >>> found[:3].round(1)
    array([93.1,  3.4,  3.4])
    """
    if len(counts) < _FEWEST or not (np.isfinite(variances).all() and (variances > 0).all()):
        return norm_sub(counts, total)
    most = float(counts.max())
    least = float(np.sqrt(variances.min()))
    if most <= least:  # nothing stands out of the noise
        return norm_sub(counts, total)
    places = np.concatenate([[0.0], np.geomspace(least / 20, most, _PLACES)])
    fits = -((counts[:, np.newaxis] - places) ** 2) / (2 * variances[:, np.newaxis])
    likely = np.exp(fits - fits.max(axis=1, keepdims=True))
    prior = np.full(len(places), 1 / len(places))
    for _ in range(_ROUNDS):
        prior = likely.T @ (1 / (likely @ prior)) * prior / len(counts)
    joint = likely * prior
    return norm_sub(joint @ places / joint.sum(axis=1), total)


PROCESSES: dict[str, Callable[[Array, float, Array], Array]] = {
    "norm-sub": norm_sub,
    "simplex": simplex,
    "isotonic": isotonic,
    "non-negative": simplex,
    "empirical-bayes": empirical_bayes,
}
"""By name."""
