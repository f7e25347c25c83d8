"""Estimates: how many people are in each category, with standard errors and intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, probability
from defocus.local.designs import Frequency, Rappor
from defocus.local.designs.rappor import rappor_regression
from defocus.local.servers.states import State
from defocus.local.servers.supports import supports
from defocus.privacy.pages import html_facts

__all__ = ["Array", "Estimate", "estimate"]

Array: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Estimate:
    """Estimated counts. They come from private reports alone, so they may be shown to anyone and used in any way.

    ``counts`` are unbiased, may be negative and need not add up to ``reports``; ``processing`` names what was done to
    them beyond that, and after it they are biased and have no interval of their own.
    """

    counts: Array
    variances: Array
    reports: int
    labels: Sequence[str] | None = None
    processing: str = "unbiased"

    @property
    def unbiased(self) -> bool:
        """Whether these are the unbiased estimates."""
        return self.processing == "unbiased"

    @property
    def frequencies(self) -> Array:
        """Shares of the people who reported."""
        return self.counts / max(self.reports, 1)

    @property
    def errors(self) -> Array:
        """Standard errors of the unbiased counts."""
        return np.sqrt(self.variances)

    def intervals(self, confidence: Number = 0.95) -> tuple[Array, Array]:
        """Low and high ends that hold each true count with about this probability.

        Estimates are sums over independent reports, so the normal approximation serves; with fewer than some hundred
        reports it does not. For all categories at once, pass 1 - (1 - confidence) / categories.
        """
        if not self.unbiased:
            raise InvalidParameterError(
                "Estimates that were processed carry no interval of their own.",
                fix="take the intervals of the unbiased estimate.",
            )
        level = float(probability("confidence", confidence, zero=False, one=False))
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.errors
        return self.counts - half, self.counts + half

    def top(self, k: int = 10) -> list[tuple[str | int, float, float]]:
        """The k most frequent categories by estimate: label, count, standard error."""
        order = np.argsort(-self.counts, kind="stable")[:k].tolist()
        errors = self.errors
        return [(self.label(i), float(self.counts[i]), float(errors[i])) for i in order]

    def label(self, index: int) -> str | int:
        """What a category is called."""
        if self.labels is None:
            return index
        return self.labels[index] if index < len(self.labels) else "other"

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        most = ", ".join(f"{label}: {count:.4g} ± {error:.2g}" for label, count, error in self.top(3))
        return f"<estimate from {self.reports} reports, {self.processing}; {most}>"

    def _repr_html_(self) -> str:
        facts = {str(label): f"{count:.4g} ± {error:.2g}" for label, count, error in self.top()}
        return html_facts(facts | {"reports": str(self.reports), "processing": self.processing})


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
    return Estimate(counts, variances, n, design.domain.labels)


def _regressed(design: Rappor, state: State) -> Estimate:
    """Debias the bits of every cohort, then least squares."""
    n, p, q = state.reports, float(design.zero), float(design.one)
    sums = (state.tally[:, :-1] - p * state.tally[:, -1:]) / (q - p)
    regression = rappor_regression(design)
    counts = regression.counts(sums.ravel())
    held = np.maximum(counts, 0)
    held *= n / max(held.sum(), 1e-9)
    return Estimate(counts, regression.variances(held, *design.bit_variances()), n, design.domain.labels)


def _pairs(counts: Array, variances: Array, collisions: float) -> Array:
    r"""Ordered pairs of people who share one of the other categories, estimated from the counts, never below 0.

    With T pairs in all and variance v without collisions, :math:`\hat c^2 - v - \hat c` has the mean
    :math:`n_v(n_v-1)` plus the collisions' variance; summed over k categories, :math:`T(1 + \text{collisions}(k-1))`.
    """
    squares = counts**2 - variances - counts
    total = max(float(squares.sum()), 0.0) / (1 + collisions * (len(counts) - 1))
    pairs: Array = total - np.clip(squares, 0.0, total)
    return pairs
