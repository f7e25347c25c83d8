"""Small differences of large numbers, computed without the difference."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "log_bernoulli", "log_expm1", "log_sum"]

Floats = NDArray[np.float64]

_SMALL, _TERMS, _LARGE = 0.05, 14, 30.0


def log_expm1(x: Floats) -> Floats:
    """log(e^x − 1) for x > 0, whatever its size."""
    with np.errstate(divide="ignore"):
        return x + np.log(-np.expm1(-x))


def log_sum(x: Floats) -> Floats:
    """The logarithm of the sum of e^x along the last axis; minus infinity for an empty or vanishing sum."""
    if x.shape[-1] == 0:
        return np.full(x.shape[:-1], -np.inf)
    largest = np.max(x, axis=-1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        total: Floats = largest[..., 0] + np.log(np.sum(np.exp(x - largest), axis=-1))
    return total


def log_bernoulli(beta: Floats, base: Floats) -> Floats:
    r"""The logarithm of :math:`(1+u)^\beta - 1 - \beta u`, which Bernoulli's inequality makes non-negative.

    For beta above 1 or below 0, with ``base`` = log(1 + u); both are broadcast. With :math:`v = (\beta-1)\log(1+u)`
    and :math:`s = u/(1+u)` it is :math:`(1+u)\,(e^v - 1 - (\beta-1)s)`: the Taylor series where everything is
    small, this form where it is not (its sibling :math:`e^{\beta\log(1+u)} - 1 - \beta u` for beta near zero), and
    the same divided by :math:`e^v` where that would overflow.
    """
    beta, base = np.broadcast_arrays(beta, base)
    power = beta - 1
    v = power * base
    with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
        u, s = np.expm1(base), -np.expm1(-base)
        near_one = np.expm1(np.minimum(v, _LARGE)) - power * s
        near_zero = np.expm1(np.minimum(beta * base, _LARGE)) * (1 - s) - beta * s
        plain = base + np.log(np.where(np.abs(beta) < 0.5, near_zero, near_one))
        steep = base + v + np.log1p(-np.exp(-v) * (1 + power * s))
        series = np.ones_like(v)
        for k in range(_TERMS, 1, -1):
            series = 1 + (beta - k) / (k + 1) * u * series
        small = np.log(np.abs(beta * power) / 2) + 2 * np.log(np.abs(u)) + np.log(series)
        tiny = np.abs(u) * (2 + np.abs(beta)) < _SMALL
    return np.where(tiny, small, np.where(v > _LARGE, steep, plain))
