"""Degree histograms out of noisy numbers, whichever unit is protected."""

import math

from defocus.answers.columns import Tails, noisy
from defocus.graphs.data import Data
from defocus.graphs.global_noise import VectorNoise
from defocus.graphs.public import IntVector
from defocus.graphs.question import Result
from defocus.mechanisms import Gaussian, Laplace

__all__ = ["by_degree", "difference"]

_OUTSIDE = 0.05
"""What a 95 % interval leaves out."""


def by_degree(method: VectorNoise, values: IntVector, _data: Data) -> Result:
    """One noisy count for each degree from zero on."""
    column = noisy(
        "nodes", values, error=method.mechanism.error, half=method.interval, how=method.how, tails=Tails.LOG_CONCAVE
    )
    return Result((column,), keys={"degree": range(len(values))})


def difference(mechanism: Laplace | Gaussian) -> float:
    r"""A half-width at 95 % for the difference of two independent noises, as a count has that is one of two sums.

    Of two Laplace noises of scale b, the difference exceeds t in size with probability
    :math:`(1 + t/2b)e^{-t/b}`: 5 % at 4.113 b. Discrete noise of the same scale is narrower, and the width is
    rounded up.

    >>> from fractions import Fraction
    >>> difference(Laplace(scale=Fraction(1000)))
    4114
    """
    if isinstance(mechanism, Gaussian):
        return math.ceil(1.96 * math.sqrt(2) * float(mechanism.sigma))
    scale = float(mechanism.scale)
    low, high = 0.0, 10 * scale
    for _ in range(60):
        middle = (low + high) / 2
        outside = (1 + middle / (2 * scale)) * math.exp(-middle / scale)
        low, high = (middle, high) if outside > _OUTSIDE else (low, middle)
    return math.ceil(high)
