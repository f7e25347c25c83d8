r"""The matrix mechanism: a strategy measured with exact noise.

How wide an interval around a reconstructed answer must be.

An answer's error is :math:`\sum_i a_i z_i` with independent noise :math:`z_i`.

*Gaussian.* The noise is so much wider than its grid (a plan makes it at least :math:`2^8` steps) that the sum is normal
but for the rounding of z, and its quantile that of a normal law.

*Laplace.* A Laplace variable is :math:`\sqrt{2 b^2 E}\,N` with E exponential and N normal, so the sum is
:math:`\sqrt{V} N` with :math:`V = \tau^2 \sum_i \omega_i E_i`, :math:`\sum_i \omega_i = 1` and :math:`\tau^2` its
variance. V is smaller than :math:`\tau^2 E_1` in convex order. With :math:`h(v) = P(|N| > t/\sqrt v)`, convex up to
:math:`t^2/3` and concave beyond, let :math:`\hat h` be h continued by its tangent from there: convex and above h. Hence
:math:`P(|\sum a_i z_i| > t) \le E \hat h(\tau^2 E_1)` whatever the weights, and t is found from that.
A discrete Laplace variable is within one step of a continuous one.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, Number
from defocus.mechanisms import Gaussian, Laplace
from defocus.mechanisms.mechanism import outside
from defocus.noise import Bits, discrete_gaussian, discrete_laplace
from defocus.privacy.events import Event
from defocus.workloads.marginals import Marginals
from defocus.workloads.queries import Array
from defocus.workloads.record_counts import checked
from defocus.workloads.strategy import IntArray, Strategy
from defocus.workloads.workload import Workload

__all__ = ["Measurement", "allowed_outside", "laplace_factor", "normal_factor"]


_FAINTEST = 1e-300
"""Below this, tails are not computed but lost to underflow."""


def normal_factor(confidence: Number) -> float:
    """How many standard deviations hold a normal error with this confidence.

    >>> round(normal_factor(0.95), 3)
    1.96
    """
    return -NormalDist().inv_cdf(allowed_outside(confidence) / 2)  # the lower tail: one minus it may be one


def laplace_factor(confidence: Number) -> float:
    """How many standard deviations hold any sum of Laplace errors with at least this confidence.

    >>> 2.118 < laplace_factor(0.95) < 2.6  # a single one needs 2.118
    True
    """
    return _laplace(allowed_outside(confidence))


def allowed_outside(confidence: Number) -> float:
    """The probability that an interval of this confidence may miss; refused where floats do not hold it."""
    allowed = outside(confidence)
    if allowed < _FAINTEST:
        raise InvalidParameterError(
            f"confidence is within {_FAINTEST:.0e} of one.", fix="ask for a little less, for example 0.999999."
        )
    return allowed


@lru_cache(maxsize=64)
def _laplace(allowed: float) -> float:
    low, high = 0.0, 1.0
    while _tail(high) > allowed:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _tail(middle) > allowed else (low, middle)
    return high * (1 + 1e-6)


def _tail(t: float) -> float:
    """E ĥ(E₁) at variance one, by the midpoint rule over the exponential law, a little from above."""
    from scipy.special import erfc  # noqa: PLC0415  # tenths of a second that most users of the room never need

    bend = t * t / 3
    edges = np.linspace(0.0, bend, 20_001)
    ends = edges[1:]  # h grows, so its value at the upper end bounds each cell
    values = erfc(t / np.sqrt(2 * ends))
    inner = float((values * -np.diff(np.exp(-edges))).sum())
    slope = t * bend**-1.5 * math.exp(-1.5) / math.sqrt(2 * math.pi)
    # beyond the bend: E[h(bend) + slope (E − bend); E > bend] = e^(−bend) (h(bend) + slope)
    return float(inner + math.exp(-bend) * (float(values[-1]) + slope))


@final
@dataclass(frozen=True, slots=True)
class Measurement:
    """Release Ax + z for an integer strategy A and independent discrete noise z.

    Guarantee:
        That of ``noise`` for its sensitivity, which a plan computes from the integers of A; see
        :mod:`defocus.workloads.strategy` for the derivation. The sum is reduced modulo 2**64, which is
        post-processing.
    Assumes:
        One unit of the ledger's kind holds at most the contribution the plan was made for.

    Error:
        Unbiased in every row, with the variance of ``noise``; ``error`` and ``interval`` are in integer steps of a row.
    """

    strategy: Strategy
    noise: Gaussian | Laplace
    name: str
    fingerprint: str
    """Of the strategy and of the workload that it is for."""

    def __repr__(self) -> str:
        return f"Measurement({self.name}, {self.fingerprint}, rows={self.strategy.rows}, noise={self.noise!r})"

    @property
    def event(self) -> Event:
        """What one measurement owes."""
        return self.noise.event

    @property
    def error(self) -> float:
        """The expected absolute error of one row."""
        return self.noise.error

    def interval(self, confidence: Number) -> float:
        """The half-width for one row."""
        return float(self.noise.interval(confidence))

    def variances(self, workload: Workload | Marginals) -> Array:
        """The variance of each answer to a workload that the strategy determines."""
        return self.strategy.variances(workload) * self.noise.variance

    def half_widths(self, workload: Workload | Marginals, confidence: Number) -> Array:
        """For each answer, what its error stays within with this probability."""
        return self.reach(confidence) * np.sqrt(self.variances(workload))

    def reach(self, confidence: Number) -> float:
        """How many standard errors an answer stays within with this probability."""
        factor = normal_factor(confidence) if isinstance(self.noise, Gaussian) else laplace_factor(confidence)
        slack = math.sqrt(self.strategy.rows / self.noise.variance)  # rounding of the noise: one step in each row
        return factor + slack

    def check(self, value: Any) -> None:
        """Refuse data over another domain, by its type and shape alone."""
        checked(value, self.strategy.sizes)

    def sample(self, value: Any, bits: Bits | None = None) -> IntArray:
        """The noisy rows."""
        rows = self.strategy.measure(value)
        if isinstance(self.noise, Gaussian):
            noise = discrete_gaussian(self.noise.sigma, len(rows), bits)
        else:
            noise = discrete_laplace(self.noise.scale, len(rows), bits)
        return np.add(rows, noise)
