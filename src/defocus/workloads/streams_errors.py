"""How far off the running sums will be: public, from the strategy and the noise alone."""

import math
import threading
from array import array
from collections.abc import Iterator
from typing import final

import numpy as np

from defocus.errors import Number
from defocus.mechanisms import Laplace
from defocus.workloads.intervals import allowed_outside, normal_factor
from defocus.workloads.streams_designs import Design
from defocus.workloads.toeplitz import Floats

__all__ = ["Errors"]


@final
class Errors:
    """The variance of the running sum after each step, computed as far as it was asked for and kept."""

    __slots__ = ("_design", "_known", "_lock", "_more")

    def __init__(self, design: Design) -> None:
        self._design = design
        self._more: Iterator[float] = design.strategy.variances()
        self._known = array("d")
        self._lock = threading.Lock()

    def variance(self, step: int) -> float:
        """The variance of one entry after ``step`` steps, counted from one."""
        noise = self._design.noise.variance
        with self._lock:
            while len(self._known) < step:
                self._known.append(next(self._more) * noise)
        return self._known[step - 1]

    def all(self) -> Floats:
        """The variances after every step."""
        self.variance(self._design.strategy.steps)
        return np.array(self._known)

    def half_width(self, step: int, confidence: Number) -> float:
        """A half-width that the error of one entry stays within with probability ``confidence``.

        Gaussian noise: the normal quantile, since rows are thousands of grid steps wide. Laplace noise: Chernoff's
        bound on a sum of independent Laplace variables, which holds and is a little wide.
        """
        noise = self._design.noise
        if isinstance(noise, Laplace):
            blocks = step.bit_count()
            return _chernoff(float(noise.scale), blocks, allowed_outside(confidence) / 2)
        return normal_factor(confidence) * math.sqrt(self.variance(step))


def _chernoff(scale: float, terms: int, tail: float) -> float:
    r"""The least of :math:`(n \ln E e^{\lambda X} - \ln p)/\lambda` over a grid of λ: each bounds the upper p-quantile.

    With :math:`q = e^{-1/b}`, :math:`E e^{\lambda X} = \frac{(1-q)^2}{(1-qe^\lambda)(1-qe^{-\lambda})}`.
    """
    rate = np.linspace(0.001, 0.999, 999) / scale
    q = math.exp(-1 / scale)
    log_moment = 2 * math.log1p(-q) - np.log1p(-q * np.exp(rate)) - np.log1p(-q * np.exp(-rate))
    return float(np.min((terms * log_moment - math.log(tail)) / rate))
