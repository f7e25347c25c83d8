"""Intervals for what never falls, from noisy numbers: degrees in order of size, numbers of nodes of each degree.

A vector that never falls is at most its average over any window to the right, and at least that over any window to the
left. Noise averages out over a window, so where the vector is flat, long windows say nearly exactly where it is; where
it rises, short ones do. All lengths are tried, and what may be missed is divided among them, so that it holds that the
better end is taken.
"""

import math

import numpy as np

from defocus.answers.columns import Floats
from defocus.errors import count, in_range
from defocus.mechanisms import Gaussian, Laplace

__all__ = ["level_bounds", "step_bounds", "sum_reach"]

_MISSED = 0.05
_FIRST = 0.6
"""Which part of what may be missed single numbers take, which decide where a vector rises; windows share the rest."""
_GROWTH = 4
"""How much longer each window is than the one before."""
_FLOAT = 1e-6
"""What averages of whole numbers are off by in floating point, and more."""
_TRIED = np.linspace(0.005, 0.995, 199)


def sum_reach(mechanism: Laplace | Gaussian, terms: int, outside: float) -> float:
    r"""What the sum of so many independent noises exceeds with probability ``outside`` at most.

    Guarantee:
        By Chernoff's bound, for any :math:`\lambda` that is tried. A discrete Laplace noise of scale b has
        :math:`E e^{\lambda X} = (\cosh\frac1b - 1)/(\cosh\frac1b - \cosh\lambda) \le 1/(1 - \lambda^2b^2)` for
        :math:`\lambda < 1/b`, since :math:`(\cosh x - 1)/x^2` grows with x; discrete Gaussian noise has
        :math:`E e^{\lambda X} \le e^{\lambda^2\sigma^2/2}`.
    Reference:
        Canonne, Kamath, Steinke (2020), The discrete Gaussian for differential privacy, Corollary 17.

    >>> from fractions import Fraction
    >>> [round(sum_reach(Laplace(scale=Fraction(2)), terms, 0.01) / terms, 2) for terms in (1, 100)]
    [13.84, 0.87]
    """
    least = -math.log(float(in_range("outside", outside, 0, 1)))
    many = count("terms", terms)
    if isinstance(mechanism, Gaussian):
        return float(mechanism.sigma) * math.sqrt(2 * many * least)
    return float(mechanism.scale) * float(((least - many * np.log1p(-(_TRIED**2))) / _TRIED).min())


def level_bounds(noisy: Floats, mechanism: Laplace | Gaussian) -> tuple[Floats, Floats]:
    """Ends that hold each entry of a vector that never falls with 95 %, one at a time."""
    first = float(mechanism.interval(1 - _MISSED * _FIRST))
    low, high = noisy - first, noisy + first
    lengths = _lengths(len(noisy))
    sums = np.concatenate([[0.0], np.cumsum(noisy)])
    for length in lengths:
        means = (sums[length:] - sums[:-length]) / length
        off = sum_reach(mechanism, length, _MISSED * (1 - _FIRST) / 2 / len(lengths)) / length
        low[length - 1 :] = np.maximum(low[length - 1 :], means - off)
        high[: len(means)] = np.minimum(high[: len(means)], means + off)
    return low, high


def step_bounds(
    cumulative: Floats, mechanism: Laplace | Gaussian, *, total: float | None, first: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Ends that hold each step of a vector that starts at zero and never falls with 95 %, one at a time.

    A step is at most the average to its right less the average to its left. What bounds it from below is its two ends
    alone: any longer window says less, as the vector rises in it.

    Args:
        cumulative: the noisy vector, without what it starts from.
        mechanism: its noise.
        total: what follows the vector for ever, if that is known.
        first: what the difference of two noises exceeds with probability 1 %, and with 2 % at most.

    >>> from fractions import Fraction
    >>> low, high = step_bounds(np.repeat([900.0, 1000.0], 500), Laplace(scale=2), total=1000.0, first=(10.6, 9.2))
    >>> [(int(low[i]), int(high[i])) for i in (0, 250, 500, 750)]
    [(891, 900), (0, 1), (91, 100), (0, 1)]
    """
    ends = [] if total is None else [float(total)]
    chain = np.concatenate([[0.0], cumulative, ends])
    steps = np.diff(chain)
    low, high = np.maximum(steps - first[1], 0.0), steps + first[0]
    lengths = _lengths(len(steps))
    for length in lengths:
        after = len(chain) - 1 if total is None else len(chain) - 1 + length
        padded = np.concatenate([np.zeros(length), chain, np.full(after + 1 - len(chain), total or 0.0)])
        sums = np.concatenate([[0.0], np.cumsum(padded)])
        means = (sums[length:] - sums[:-length]) / length
        # Entry i of the chain is entry i + length of what is padded, and its window to the left begins at i + 1.
        right, left = means[length + 1 :], means[1 : len(steps) + 1]
        met = min(len(right), len(steps))
        off = sum_reach(mechanism, 2 * length, 0.02 / len(lengths)) / length
        high[:met] = np.minimum(high[:met], right[:met] - left[:met] + off)
    high = np.maximum(high, 0.0)
    return np.ceil(np.minimum(low, high) - _FLOAT), np.floor(high + _FLOAT)  # steps are whole


def _lengths(entries: int) -> list[int]:
    lengths = []
    length = _GROWTH
    while length <= entries:
        lengths.append(length)
        length *= _GROWTH
    return lengths
