"""Exact laws at sixty digits, and the test of a sample against one."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

Pmf = Callable[[int], float]
Fit = Callable[[npt.NDArray[np.int64], Pmf], float]


@pytest.fixture(autouse=True)
def sixty_digits() -> Any:
    with mpmath.workdps(60):
        yield


@pytest.fixture(scope="session")
def fit() -> Fit:
    """The p-value of a chi-square test of integers against a law, in some thirty bins."""

    def p_value(sample: npt.NDArray[np.int64], pmf: Pmf) -> float:
        reach = 1
        while 2 * pmf(reach) * sample.size > 1e-3:
            reach *= 2
        chance = np.array([pmf(x) for x in range(-reach, reach + 1)])
        seen = np.bincount(np.clip(sample, -reach, reach) + reach, minlength=chance.size)
        groups = (np.cumsum(chance) * 30).astype(int)
        expected = np.bincount(groups, chance) * sample.size
        observed = np.bincount(groups, seen)
        keep = expected > 5
        return float(stats.chisquare(observed[keep], expected[keep] * observed[keep].sum() / expected[keep].sum())[1])

    return p_value


@pytest.fixture(scope="session")
def laplace_pmf() -> Callable[[float], Pmf]:
    def of(scale: float) -> Pmf:
        q = np.exp(-1 / scale)
        return lambda x: float((1 - q) / (1 + q) * np.exp(-abs(x) / scale))

    return of


@pytest.fixture(scope="session")
def gaussian_pmf() -> Callable[[float], Pmf]:
    def of(sigma: float) -> Pmf:
        reach = int(40 * sigma) + 2
        total = float(np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2)).sum())
        return lambda x: float(np.exp(-(x**2) / (2 * sigma**2)) / total)

    return of


@pytest.fixture(scope="session")
def exact() -> Callable[[Fraction | int], Any]:
    """A fraction as an mpmath number."""
    return lambda q: mpmath.mpf(Fraction(q).numerator) / Fraction(q).denominator
