"""Noise for a noisy bound: a brute-force check of its promise over all small graphs, its law, its refusals."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats
from tests.mechanisms.small_graphs import moves, neighbours, value

from defocus.errors import DefocusError, UnfitDataError
from defocus.mechanisms import NoisyLocalSensitivity
from defocus.noise.testing import seeded
from defocus.privacy import events

CTX = mpmath.MPContext()
CTX.dps = 25


def laplace(scale: Any) -> Any:
    q = CTX.exp(-1 / CTX.mpf(scale))
    return lambda x: (1 - q) / (1 + q) * q ** abs(x)


def bound_law(m: NoisyLocalSensitivity, level: int) -> dict[int, Any]:
    """The law of the bound, from the definition."""
    noise = laplace(1 / (float(m.epsilon) * float(m.share or 0)))
    found: dict[int, Any] = Counter()
    for x in range(-400, 400):
        found[max(1, min(level + x + m.margin, m.cap))] += noise(x)
    return found


@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 0.05), (1.0, 0.01)])
@pytest.mark.parametrize(("statistic", "factor"), [("triangles", 1), ("2-stars", 2)])
@pytest.mark.parametrize("n", [4, 5, pytest.param(6, marks=pytest.mark.slow)])
def test_no_two_neighbouring_graphs_differ_by_more_than_epsilon_and_delta(
    n: int, statistic: str, factor: int, epsilon: float, delta: float
) -> None:
    """The hockey-stick divergence of bound and value together, summed over all outcomes."""
    m = NoisyLocalSensitivity(epsilon=epsilon, delta=delta, cap=factor * (n - 2), typical=1)
    levels = moves(n, statistic)
    bounds = {int(level): bound_law(m, int(level)) for level in set(levels.tolist())}
    second = epsilon * (1 - float(m.share or 0))
    values = {b: laplace(b / second) for b in range(1, m.cap + 1)}
    span = range(-150, 151)
    tables = {b: np.array([float(values[b](x)) for x in span]) for b in values}
    worst = 0.0
    for shift, one, two in {(b - a, one, two) for a, one, b, two in neighbours(n, value(n, statistic), levels)}:
        lost = 0.0
        for b in values:
            p = float(bounds[one][b]) * tables[b]
            q = float(bounds[two][b]) * np.roll(tables[b], shift)
            lost += np.maximum(p - math.exp(epsilon) * q, 0)[10:-10].sum()
        worst = max(worst, lost)
    assert worst <= delta


@pytest.mark.parametrize(
    ("epsilon", "share", "delta"), [(1, 0.15, 1e-6), (0.1, 0.5, 1e-9), (5, 0.9, 0.3), (3, 0.5, 0.1)]
)
def test_the_margin_is_the_least_that_delta_allows(epsilon: float, share: float, delta: float) -> None:
    m = NoisyLocalSensitivity(epsilon=epsilon, delta=delta, cap=10**6, typical=100, share=share)
    q = CTX.exp(-CTX.mpf(epsilon) * CTX.mpf(share))
    assert q ** (m.margin + 1) / (1 + q) <= delta
    assert m.margin == 0 or q**m.margin / (1 + q) > delta


def test_the_share_left_out_is_the_best_one() -> None:
    for epsilon, level in ((0.1, 293), (1, 293), (1, 20), (0.5, 10**5)):
        errors = {
            share: NoisyLocalSensitivity(epsilon=epsilon, delta=1e-6, cap=10**7, typical=level, share=share).error
            for share in np.linspace(0.005, 0.9, 60)
        }
        best = NoisyLocalSensitivity(epsilon=epsilon, delta=1e-6, cap=10**7, typical=level).error
        assert best <= 1.01 * min(errors.values())


@pytest.mark.statistical
def test_bound_and_value_have_the_declared_laws_and_no_others() -> None:
    m, bits = NoisyLocalSensitivity(epsilon=1, delta=1e-3, cap=60, typical=20, share=0.4), seeded(31)
    drawn = [m.bounded((100, 20), bits) for _ in range(9000)]

    def fits(scale: float) -> float:
        law = dict.fromkeys(range(1, 61), 0.0)
        noise = laplace(1 / (0.4 / scale))
        for x in range(-300, 300):
            law[max(1, min(20 + x + m.margin, 60))] += float(noise(x))
        cuts = range(27, 60, 2)
        observed = np.histogram([d.bound for d in drawn], [0.5, *(c + 0.5 for c in cuts), 60.5])[0]
        expected = np.histogram(list(law), [0.5, *(c + 0.5 for c in cuts), 60.5], weights=list(law.values()))[0]
        return float(stats.chisquare(observed, expected / expected.sum() * observed.sum()).pvalue)

    assert fits(1.0) > 1e-4
    assert fits(1.1) < 1e-6
    scaled = np.array([abs(d.value - 100) * 0.6 / d.bound for d in drawn])
    assert stats.kstest(scaled + 0.005, "expon").pvalue > 1e-4
    assert stats.kstest(1.1 * scaled, "expon").pvalue < 1e-6


def test_the_event_is_the_whole_budget() -> None:
    assert NoisyLocalSensitivity(epsilon=1, delta=1e-6, cap=9, typical=1).event == events.Approximate(1, 1e-6)


def test_the_interval_holds_for_the_bound_that_came() -> None:
    m = NoisyLocalSensitivity(epsilon=1, delta=1e-6, cap=4037, typical=293)
    assert m.interval(0.95) == m.interval_for(293 + m.margin, 0.95)
    assert m.interval_for(100, 0.95) < m.interval_for(1000, 0.95)
    assert m.error == pytest.approx((293 + m.margin) / (1 - float(m.share or 0)), rel=1e-3)


@pytest.mark.parametrize("bad", [(1,), (1, 2, 3), 5, (1.0, 2.0), (True, 1), "ab", None], ids=repr)
def test_data_that_is_not_a_value_and_a_level_is_refused(bad: Any) -> None:
    m = NoisyLocalSensitivity(epsilon=1, delta=1e-6, cap=9, typical=1)
    for act in (m.check, m.sample):
        with pytest.raises(UnfitDataError):
            act(bad)


@pytest.mark.parametrize(
    ("name", "bad"),
    [(name, bad) for name in ("epsilon", "delta", "cap", "step") for bad in (0, -1, math.nan, True, "1", None)]
    + [("typical", -1), ("share", 0), ("share", 1), ("share", 1e-9), ("share", "a"), ("delta", 1), ("delta", 1e-40)],
)
def test_parameters_out_of_range_are_refused(name: str, bad: Any) -> None:
    with pytest.raises(DefocusError, match=name):
        NoisyLocalSensitivity(**{"epsilon": Fraction(1), "delta": 1e-6, "cap": 5, "typical": 1, name: bad})
