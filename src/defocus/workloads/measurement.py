"""The matrix mechanism: a strategy measured with exact noise."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.errors import Number
from defocus.mechanisms import Gaussian, Laplace
from defocus.noise import Bits, discrete_gaussian, discrete_laplace
from defocus.privacy.events import Event
from defocus.workloads.intervals import laplace_factor, normal_factor
from defocus.workloads.marginals import Marginals
from defocus.workloads.queries import Array
from defocus.workloads.record_counts import checked
from defocus.workloads.strategy import IntArray, Strategy
from defocus.workloads.workload import Workload

__all__ = ["Measurement"]


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
