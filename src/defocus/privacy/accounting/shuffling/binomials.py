r"""Binomial laws as windows of masses with a certified relative error and a certified rest.

Masses are products of consecutive ratios :math:`\frac{n-c}{c+1}\frac{p}{1-p}` that start at the mode, divided by their
sum; all numbers are positive, so an error of one unit in the last place stays one. What the window leaves out on either
side is at most :math:`e^{-L}` by Bernstein's inequality, since it reaches
:math:`L/3 + \sqrt{L^2/9 + 2L\sigma^2}` from the mean.

Sums of two binomials are convolved directly where that is cheap. Elsewhere both laws are tilted, which leaves them
binomial at other odds, so that the part of the tail that is wanted becomes the middle; there a fast transform, whose
error is small beside the largest mass, has a small relative error too. A few tilts cover the lower tail.
"""

import itertools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from defocus.privacy.numbers import bisect

__all__ = ["Floats", "Window", "binomial", "lower_half"]

Floats = NDArray[np.float64]
_U = 2.0**-53
_DIRECT = 2500.0
"""Sums of a variance below this are convolved directly."""


@final
@dataclass(frozen=True, slots=True)
class Window:
    """Masses at ``first``, ``first`` + 1, …; each within a relative ``error``, and ``rest`` beyond either end."""

    first: int
    masses: Floats
    error: float
    rest: float

    @property
    def last(self) -> int:
        """The last value in the window."""
        return self.first + len(self.masses) - 1

    @property
    def values(self) -> Floats:
        """All values in the window."""
        return np.arange(self.first, self.last + 1, dtype=np.float64)


def binomial(trials: int, odds: float, reach: float) -> Window:
    """The law of successes among ``trials`` at ``odds`` p/(1−p), up to a rest of e^−``reach`` on either side.

    ``odds`` may be off by a few units in the last place: over a distance of d from the mode that is d times as much,
    which the error covers.
    """
    if trials == 0 or odds == 0:
        return Window(0, np.ones(1), 0.0, 0.0)
    p = odds / (1 + odds)
    mean, variance = trials * p, trials * p / (1 + odds)
    far = reach / 3 + math.sqrt(reach * reach / 9 + 2 * reach * variance) + 2
    first, last = max(0, math.floor(mean - far)), min(trials, math.ceil(mean + far))
    mode = min(max(math.floor((trials + 1) * p), first), last)
    up = np.arange(mode, last, dtype=np.float64)
    down = np.arange(mode, first, -1, dtype=np.float64)
    masses = np.concatenate(
        (
            np.cumprod(down / (trials - down + 1) / odds)[::-1],
            np.ones(1),
            np.cumprod((trials - up) / (up + 1) * odds),
        )
    )
    masses /= masses.sum()
    rest = 0.0 if (first, last) == (0, trials) else math.exp(-reach)
    return Window(first, masses, 16 * _U * (last - first + 8) + 4 * rest, rest)


def lower_half(first: tuple[int, float], second: tuple[int, float], reach: float) -> Window:
    """The sum of two independent binomials, each given by trials and odds, from e^−``reach`` to beyond its mode."""
    variance = sum(trials * odds / (1 + odds) ** 2 for trials, odds in (first, second))
    if variance < _DIRECT or 0 in (first[0], second[0]):
        a, b = (binomial(trials, odds, reach) for trials, odds in (first, second))
        masses = np.convolve(a.masses, b.masses)
        return Window(a.first + b.first, masses, a.error + b.error + 4 * _U * len(masses), a.rest + b.rest)
    return _by_tilts(first, second, reach, math.sqrt(variance))


def _by_tilts(first: tuple[int, float], second: tuple[int, float], reach: float, spread: float) -> Window:
    """The same in pieces of four standard deviations, each computed where its tilt puts the middle."""
    far = reach / 3 + math.sqrt(reach * reach / 9 + 2 * reach * spread * spread) + 2
    top = _mean(first, second, 0.0) + 2 * spread
    ends = [max(0, round(top - 4 * spread * i)) for i in range(math.ceil((far + 2 * spread) / (4 * spread)) + 1)]
    pieces, error, start = [], 0.0, ends[0]
    for high, low in itertools.pairwise(ends):
        if low < high:
            tilt = _tilt_towards(max((high + low) / 2, 0.5), first, second, 2 + reach / spread)
            masses, off = _tilted(first, second, tilt, low, high)
            pieces.append(masses)
            error, start = max(error, off), low
    return Window(start, np.concatenate(pieces[::-1]), error, math.exp(-reach) if start > 0 else 0.0)


def _mean(first: tuple[int, float], second: tuple[int, float], tilt: float) -> float:
    return sum(trials / (1 + math.exp(tilt) / odds) for trials, odds in (first, second))


def _tilt_towards(goal: float, first: tuple[int, float], second: tuple[int, float], most: float) -> float:
    """The tilt that moves the mean to about ``goal``."""
    return bisect(lambda tilt: _mean(first, second, tilt) <= goal, -1.0, most, steps=60).yes


def _tilted(
    first: tuple[int, float], second: tuple[int, float], tilt: float, low: int, high: int
) -> tuple[Floats, float]:
    """Masses from ``low`` to just below ``high``, and their relative error."""
    shrunk = math.exp(-tilt)
    a, b = (binomial(trials, odds * shrunk, 45.0) for trials, odds in (first, second))
    size = next_fast_len(len(a.masses) + len(b.masses), real=True)
    sums = irfft(rfft(a.masses, size) * rfft(b.masses, size), size)
    start = a.first + b.first
    values = np.arange(low, high)
    found = sums[np.clip(values - start, 0, size - 1)]
    noise = 64 * _U * math.log2(size) * math.sqrt(float(a.masses @ a.masses) * float(b.masses @ b.masses))
    log_norm = sum(trials * math.log1p(odds * math.expm1(-tilt) / (1 + odds)) for trials, odds in (first, second))
    exponent = log_norm + tilt * values
    with np.errstate(under="ignore"):
        masses = np.maximum(found, noise) * np.exp(exponent)
    blur = 8 * _U * (abs(log_norm) + abs(tilt) * high + sum(trials for trials, _ in (first, second)))
    return masses, a.error + b.error + 2 * noise / max(float(found.min()), 2 * noise) + blur
