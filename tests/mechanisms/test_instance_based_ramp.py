"""The ramp: a brute-force check of its promise over all small graphs, its law, its refusals."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats
from tests.mechanisms.small_graphs import degrees_and_triangles, moves, neighbours, value

from defocus.errors import DefocusError, UnfitDataError
from defocus.mechanisms import Ladder, Laplace, Ramp, instance_based
from defocus.noise.testing import seeded

CTX = mpmath.MPContext()
CTX.dps = 22


def tail(m: Ramp, level: int, x: Any) -> Any:
    """P(X > x) by numerical integration of the density that the docstring states."""
    z = CTX.mpf(level) + CTX.mpf(m.margin.numerator) / m.margin.denominator
    eps, factor = CTX.mpf(float(m.epsilon)), CTX.mpf(float(m.factor))

    def density(u: Any) -> Any:
        return factor * (z + m.step * u) ** m.power * CTX.exp(-eps * u)

    depth = (((m.power + 1) * m.step * x / factor + z ** (m.power + 1)) ** (CTX.mpf(1) / (m.power + 1)) - z) / m.step
    return CTX.quad(density, [depth, depth + 5 / eps, depth + 40 / eps, CTX.inf]) / CTX.quad(
        density, [0, 5 / eps, 40 / eps, CTX.inf]
    )


def closed_tail(m: Ramp, level: int) -> Any:
    """The same in closed form."""
    a = CTX.mpf(float(m.epsilon)) / m.step
    z = CTX.mpf(level) + CTX.mpf(m.margin.numerator) / m.margin.denominator
    p, slope = m.power, CTX.mpf(float(m.factor)) / (m.step * (m.power + 1))

    def integral(start: Any) -> Any:
        return CTX.fsum(CTX.binomial(p, j) * CTX.factorial(j) * start ** (p - j) / a ** (j + 1) for j in range(p + 1))

    @cache
    def beyond(twice: int) -> Any:
        w = (CTX.mpf(twice) / 2 / slope + z ** (p + 1)) ** (CTX.mpf(1) / (p + 1)) - z
        return CTX.exp(-a * w) * integral(z + w) / integral(z)

    return beyond


def law(m: Ramp, level: int) -> Any:
    beyond = closed_tail(m, level)

    def pmf(k: int) -> Any:
        k = abs(k)
        return 1 - beyond(1) if k == 0 else (beyond(2 * k - 1) - beyond(2 * k + 1)) / 2

    return pmf


def worst_ratio(m: Ramp, pairs: set[tuple[int, int, int, int]], reach: int) -> float:
    laws = {level: law(m, level) for pair in pairs for level in (pair[1], pair[3])}
    places = sorted({*range(-8, 9), *(int(s * 2.5**i) for i in range(60) for s in (-1, 1) if 2.5**i < reach)})
    shifts = {(b - a, first, second) for a, first, b, second in pairs}
    return float(
        max(abs(CTX.log(laws[first](x + shift) / laws[second](x))) for shift, first, second in shifts for x in places)
    )


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("n", [4, 5, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("statistic", ["triangles", "2-stars"])
def test_no_two_neighbouring_graphs_differ_by_more_than_epsilon(statistic: str, n: int, epsilon: Fraction) -> None:
    levels = moves(n, statistic)
    m = Ramp(epsilon=epsilon, typical=1)
    assert worst_ratio(m, neighbours(n, value(n, statistic), levels), 10**5) <= float(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("n", [5, pytest.param(6, marks=pytest.mark.slow)])
def test_powers_of_the_largest_degrees_keep_the_promise_for_stars(n: int, k: int, epsilon: Fraction) -> None:
    """The level is the largest degree; an edge moves k-stars by at most twice degree^(k−1) / (k−1)!."""
    p = k - 1
    m = Ramp(epsilon=epsilon, typical=1, power=p, factor=Fraction(2, math.factorial(p)))
    levels = degrees_and_triangles(n)[0].max(1)
    assert (moves(n, f"{k}-stars") <= float(m.factor) * levels**p).all()
    assert worst_ratio(m, neighbours(n, value(n, f"{k}-stars"), levels), 10**5) <= float(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("power", [1, 2, 3])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(2)])
def test_no_levels_and_moves_at_all_differ_by_more_than_epsilon(epsilon: Fraction, step: int, power: int) -> None:
    m = Ramp(epsilon=epsilon, typical=1, power=power, step=step)
    pairs = {
        (0, a, sign * shift, b)
        for a in (0, 1, 2, 5, 20, 300)
        for b in range(max(0, a - step), a + step + 1)
        for shift in {0, min(a, b) ** power}
        for sign in (-1, 1)
    }
    worst = worst_ratio(m, pairs, 10**12)
    assert 0.8 * float(epsilon) < worst <= float(epsilon) * (1 + 1e-12)


def test_without_the_margin_the_promise_would_be_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    m = Ramp(epsilon=Fraction(1, 10), typical=1)
    pairs = {(0, a, a, b) for a in (1, 3, 5, 9) for b in (a, a + 1)}
    assert worst_ratio(m, pairs, 1000) <= 0.1
    monkeypatch.setattr(instance_based, "_kappa", lambda _: Fraction(1, 10))
    assert worst_ratio(m, pairs, 1000) > 0.13


@pytest.mark.parametrize(
    "m",
    [
        Ramp(epsilon=Fraction(1, 2), typical=7),
        Ramp(epsilon=2, typical=7, step=3),
        Ramp(epsilon=1, typical=7, power=2, factor=Fraction(1, 2)),
    ],
    ids=["plain", "step", "power"],
)
def test_tail_error_and_interval_follow_from_the_density(m: Ramp) -> None:
    for x in (0, 5, 60):
        assert m.tail(7, x) == pytest.approx(float(tail(m, 7, CTX.mpf(x) + 0.5)), rel=1e-9)
        assert float(closed_tail(m, 7)(2 * x + 1)) == pytest.approx(m.tail(7, x), rel=1e-9)
    mean = CTX.quad(lambda x: closed_tail(m, 7)(2 * x), [0, 10, 100, 1000, 10**4, 10**5])
    assert m.error == pytest.approx(float(mean), rel=1e-4)
    for confidence in (0.5, 0.95):
        width = m.interval(confidence)
        assert m.tail(7, width) <= 1 - confidence < m.tail(7, width - 1)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("m", "level"),
    [
        (Ramp(epsilon=Fraction(1, 2), typical=1), 0),
        (Ramp(epsilon=Fraction(1, 2), typical=1), 40),
        (Ramp(epsilon=3, typical=1), 0),
        (Ramp(epsilon=1, typical=1, power=2), 6),
        (Ramp(epsilon=1, typical=1, step=4, factor=2), 6),
    ],
    ids=["level zero", "plain", "no margin", "power", "step"],
)
def test_noise_has_the_declared_law_and_no_other(m: Ramp, level: int) -> None:
    bits = seeded(17)
    sizes = np.sort(np.abs([m.sample((1000, level), bits) - 1000 for _ in range(9000)]))
    edges = np.unique(np.quantile(sizes, np.linspace(0.05, 0.98, 24)).astype(int))
    observed = np.histogram(sizes, [-0.5, *(edges + 0.5), np.inf])[0]

    def p_value(law: Ramp) -> float:
        expected = -np.diff([1.0, *(law.tail(level, int(e)) for e in edges), 0.0]) * len(sizes)
        return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)

    assert p_value(m) > 1e-4
    assert p_value(replace(m, epsilon=Fraction(m.epsilon) * Fraction(11, 10))) < 1e-6
    assert p_value(replace(m, epsilon=Fraction(m.epsilon) * Fraction(10, 11))) < 1e-6


@pytest.mark.statistical
def test_noise_is_symmetric() -> None:
    m, bits = Ramp(epsilon=1, typical=1), seeded(5)
    up = sum(m.sample((0, 30), bits) > 0 for _ in range(4000))
    assert abs(up - 2000) < 5 * math.sqrt(1000) + 4000 * 0.02


def test_it_needs_half_the_noise_of_the_ladder_and_no_delta() -> None:
    for epsilon in (0.1, 1.0):
        ramp = Ramp(epsilon=epsilon, typical=293).error
        ladder = Ladder(epsilon=epsilon, cap=4037, typical=293).error
        assert 0.45 < ramp / ladder < 0.52
        assert ramp < 0.1 * Laplace.calibrated(epsilon=epsilon, sensitivity=4037).error


def test_the_error_at_a_level_is_the_one_of_the_docstring() -> None:
    m = Ramp(epsilon=Fraction(1, 10), typical=293)
    q = 0.1 * (293 + 9)
    assert m.margin == 9
    assert m.error == pytest.approx(100 * (q * q + 3 * q + 3) / (q + 1))


def test_a_negative_level_counts_as_zero_and_huge_values_are_cut() -> None:
    m = Ramp(epsilon=1, typical=1)
    assert m.sample((5, -7), seeded(2)) == m.sample((5, 0), seeded(2))
    top = 2**63 - 1
    assert all(0 < m.sample((top, 2**40), seeded(i)) <= top for i in range(20))


@pytest.mark.parametrize("value", [(1,), (1, 2, 3), 5, (1.0, 2.0), (True, 1), "ab", None], ids=repr)
def test_data_that_is_not_a_value_and_a_level_is_refused(value: Any) -> None:
    m = Ramp(epsilon=1, typical=1)
    for act in (m.check, m.sample):
        with pytest.raises(UnfitDataError):
            act(value)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", None, 10**400, 2.0**-70])
def test_an_epsilon_or_factor_out_of_range_is_refused(bad: Any) -> None:
    for name in ("epsilon", "factor"):
        with pytest.raises(DefocusError) as refusal:
            Ramp(**{"epsilon": 1, "typical": 1, name: bad})
        assert name in refusal.value.what
        assert refusal.value.fix


@pytest.mark.parametrize(("name", "bad"), [("power", 0), ("power", 13), ("step", 0), ("step", 1.5), ("typical", -1)])
def test_whole_parameters_out_of_range_are_refused(name: str, bad: Any) -> None:
    with pytest.raises(DefocusError, match=name):
        Ramp(**{"epsilon": 1, "typical": 1, name: bad})
