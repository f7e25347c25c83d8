"""Ladder, noisy local sensitivity and ramp: brute-force checks of their promises over all small graphs; their laws."""

import math
from collections import Counter
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
from defocus.mechanisms import Ladder, Laplace, NoisyLocalSensitivity, Ramp, instance_based
from defocus.mechanisms.instance_based import _rung_weights
from defocus.noise.testing import seeded
from defocus.privacy import events

CTX = mpmath.MPContext()
CTX.dps = 25


def widths(m: Ladder, first: int, rungs: int) -> list[int]:
    return [min(first + m.step * t, m.cap) for t in range(rungs)]


def ladder_law(m: Ladder, first: int, reach: int) -> dict[int, Any]:
    """The probabilities within ``reach``, from the definition: rung by rung, the rest summed far beyond."""
    rungs = widths(m, first, 4000)
    q = CTX.exp(-CTX.mpf(float(m.epsilon)) / 2)
    total = 1 + CTX.fsum(2 * w * q ** (t + 1) for t, w in enumerate(rungs))
    found, at = {0: 1 / total}, 0
    for t, w in enumerate(rungs):
        for x in range(at + 1, min(at + w, reach) + 1):
            found[x] = found[-x] = q ** (t + 1) / total
        at += w
        if at >= reach:
            return found
    return found


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize("n", [3, 4, 5, pytest.param(6, marks=pytest.mark.long)])
@pytest.mark.parametrize(("statistic", "factor"), [("triangles", 1), ("2-stars", 2)])
def test_no_two_neighbouring_graphs_have_ratios_that_span_more_than_epsilon(
    statistic: str, factor: int, n: int, epsilon: Fraction
) -> None:
    levels = moves(n, statistic)
    m = Ladder(epsilon=epsilon, cap=factor * (n - 2), typical=1)
    assert levels.max() == m.cap
    laws = {int(level): ladder_law(m, int(level), 80) for level in set(levels.tolist())}
    spans, sizes = [], []
    # Noise is added to the value, so that only the difference of the values counts.
    pairs = neighbours(n, value(n, statistic), levels)
    for shift, first, second in {(b - a, first, second) for a, first, b, second in pairs}:
        p, q = laws[first], laws[second]
        ratios = [CTX.log(p[x + shift] / q[x]) for x in range(-60, 60)]
        spans.append(max(ratios) - min(ratios))
        sizes.append(max(map(abs, ratios)))
    assert max(spans) <= float(epsilon) * (1 + 1e-12)
    assert 0.5 * float(epsilon) < max(sizes) <= float(epsilon) * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("first", [0, 3, 12])
def test_the_noise_of_the_ladder_has_the_declared_law_and_no_other(first: int) -> None:
    m, bits = Ladder(epsilon=1, cap=12, typical=3), seeded(23)
    drawn = np.array([m.sample((500, first), bits) - 500 for _ in range(6000)])
    sizes = np.abs(drawn)
    edges = np.unique(np.quantile(sizes, np.linspace(0.05, 0.98, 20)).astype(int))
    observed = np.histogram(sizes, [-0.5, *(edges + 0.5), np.inf])[0]

    def p_value(epsilon: Fraction) -> float:
        exact = ladder_law(Ladder(epsilon=epsilon, cap=12, typical=3), first, 3000)
        cdf = np.cumsum([float(exact[0]), *(2 * float(exact[x]) for x in range(1, 3001))])
        expected = np.diff([0.0, *cdf[edges], 1.0]) * len(sizes)
        return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)

    assert p_value(Fraction(1)) > 1e-4
    assert p_value(Fraction(11, 10)) < 1e-6
    assert p_value(Fraction(10, 11)) < 1e-6
    assert abs(np.sign(drawn).sum()) < 5 * math.sqrt(len(drawn))


@pytest.mark.parametrize(("epsilon", "first", "cap", "step"), [(1, 5, 40, 1), (0.5, 3, 9, 2), (2, 10, 10, 1)])
def test_error_and_interval_of_the_ladder_follow_from_the_law(epsilon: float, first: int, cap: int, step: int) -> None:
    m = Ladder(epsilon=epsilon, cap=cap, typical=first, step=step)
    exact = ladder_law(m, first, 3000)
    assert m.error == pytest.approx(float(CTX.fsum(abs(x) * p for x, p in exact.items())), rel=1e-9)
    for confidence in (0.3, 0.5, 0.9, 0.99):
        width = m.interval(confidence)
        assert CTX.fsum(exact[x] for x in range(-width, width + 1)) >= confidence
        assert CTX.fsum(exact[x] for x in range(-width + 1, width)) < confidence


def test_more_rungs_may_be_given_and_are_made_to_rise() -> None:
    m = Ladder(epsilon=1, cap=100, typical=3)
    assert m.sample((0, 5), seeded(9)) == m.sample((0, 5, 6, 7), seeded(9))
    assert m.sample((0, 5, 5, 9), seeded(9)) == m.sample((0, 5, -3, 9), seeded(9))
    assert m.sample((0, 500), seeded(9)) == m.sample((0, 100), seeded(9))


def test_it_is_an_exponential_mechanism() -> None:
    assert Ladder(epsilon=0.5, cap=3, typical=1).event == events.Exponential(0.5)


@pytest.mark.parametrize("bad", [(1,), 5, (1.0, 2.0), (True, 1), "ab", None], ids=repr)
def test_data_without_a_rung_is_refused(bad: Any) -> None:
    m = Ladder(epsilon=1, cap=5, typical=1)
    for act in (m.check, m.sample):
        with pytest.raises(UnfitDataError):
            act(bad)


@pytest.mark.parametrize(
    ("name", "bad"),
    [(name, bad) for name in ("epsilon", "cap", "step") for bad in (0, -1, math.nan, True, "1", None)]
    + [("typical", -1), ("typical", 1.5)],
)
def test_parameters_of_a_ladder_out_of_range_are_refused(name: str, bad: Any) -> None:
    with pytest.raises(DefocusError, match=name):
        Ladder(**{"epsilon": 1, "cap": 5, "typical": 1, name: bad})


def test_long_ladders_are_as_quick_as_short_ones_and_have_the_same_law() -> None:
    long, short = (Ladder(epsilon=2, cap=cap, typical=3) for cap in (10**6, 400))
    assert long.error == pytest.approx(short.error)
    assert long.interval(0.99) == short.interval(0.99)
    drawn = [[m.sample((0, 3), seeded(seed)) for seed in range(50)] for m in (long, short)]
    assert drawn[0] == drawn[1]
    pairs = _rung_weights(Fraction(1), ([3], range(4, 10**6)), 10**6, 128)
    assert len(pairs) < 100
    assert pairs[-1][0] == 0 < pairs[-1][1]


def laplace(scale: Any) -> Any:
    q = CTX.exp(-1 / CTX.mpf(scale))
    return lambda x: (1 - q) / (1 + q) * q ** abs(x)


def bound_law(m: NoisyLocalSensitivity, level: int) -> dict[int, Any]:
    """The law of the bound, from the definition."""
    noise = laplace(1 / (float(m.epsilon) * float(m.share or 0)))
    found: dict[int, Any] = Counter()
    middle = level + m.margin
    for x in range(-400, 400):
        found[max(1, min(middle + x, m.cap))] += noise(x)
    return found


@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 0.05), (1.0, 0.01)])
@pytest.mark.parametrize(("statistic", "factor"), [("triangles", 1), ("2-stars", 2)])
@pytest.mark.parametrize("n", [4, 5, pytest.param(6, marks=pytest.mark.long)])
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


@pytest.mark.slow
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
def test_a_noisy_bound_refuses_data_that_is_not_a_value_and_a_level(bad: Any) -> None:
    m = NoisyLocalSensitivity(epsilon=1, delta=1e-6, cap=9, typical=1)
    for act in (m.check, m.sample):
        with pytest.raises(UnfitDataError):
            act(bad)


@pytest.mark.parametrize(
    ("name", "bad"),
    [(name, bad) for name in ("epsilon", "delta", "cap", "step") for bad in (0, -1, math.nan, True, "1", None)]
    + [("typical", -1), ("share", 0), ("share", 1), ("share", 1e-9), ("share", "a"), ("delta", 1), ("delta", 1e-40)],
)
def test_parameters_of_a_noisy_bound_out_of_range_are_refused(name: str, bad: Any) -> None:
    with pytest.raises(DefocusError, match=name):
        NoisyLocalSensitivity(**{"epsilon": Fraction(1), "delta": 1e-6, "cap": 5, "typical": 1, name: bad})


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


def ramp_law(m: Ramp, level: int) -> Any:
    beyond = closed_tail(m, level)

    def pmf(k: int) -> Any:
        k = abs(k)
        return 1 - beyond(1) if k == 0 else (beyond(2 * k - 1) - beyond(2 * k + 1)) / 2

    return pmf


def worst_ratio(m: Ramp, pairs: set[tuple[int, int, int, int]], reach: int) -> float:
    laws = {level: ramp_law(m, level) for pair in pairs for level in (pair[1], pair[3])}
    places = sorted({*range(-8, 9), *(int(s * 2.5**i) for i in range(60) for s in (-1, 1) if 2.5**i < reach)})
    shifts = {(b - a, first, second) for a, first, b, second in pairs}
    return float(
        max(abs(CTX.log(laws[first](x + shift) / laws[second](x))) for shift, first, second in shifts for x in places)
    )


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("n", [4, 5, pytest.param(6, marks=pytest.mark.long)])
@pytest.mark.parametrize("statistic", ["triangles", "2-stars"])
def test_no_two_neighbouring_graphs_differ_by_more_than_epsilon(statistic: str, n: int, epsilon: Fraction) -> None:
    levels = moves(n, statistic)
    m = Ramp(epsilon=epsilon, typical=1)
    assert worst_ratio(m, neighbours(n, value(n, statistic), levels), 10**5) <= float(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("n", [5, pytest.param(6, marks=pytest.mark.long)])
def test_powers_of_the_largest_degrees_keep_the_promise_for_stars(n: int, k: int, epsilon: Fraction) -> None:
    """The level is the largest degree; an edge moves k-stars by at most twice degree^(k−1) / (k−1)!."""
    p = k - 1
    m = Ramp(epsilon=epsilon, typical=1, power=p, factor=Fraction(2, math.factorial(p)))
    levels = degrees_and_triangles(n)[0].max(1)
    assert (moves(n, f"{k}-stars") <= float(m.factor) * levels**p).all()
    assert worst_ratio(m, neighbours(n, value(n, f"{k}-stars"), levels), 10**5) <= float(epsilon) * (1 + 1e-12)


@pytest.mark.long
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


@pytest.mark.slow
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
def test_the_noise_of_the_ramp_has_the_declared_law_and_no_other(m: Ramp, level: int) -> None:
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
def test_a_ramp_refuses_data_that_is_not_a_value_and_a_level(value: Any) -> None:
    m = Ramp(epsilon=1, typical=1)
    for act in (m.check, m.sample):
        with pytest.raises(UnfitDataError):
            act(value)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", None, 10**400, 2.0**-70])
def test_an_epsilon_or_factor_of_a_ramp_out_of_range_is_refused(bad: Any) -> None:
    for name in ("epsilon", "factor"):
        with pytest.raises(DefocusError) as refusal:
            Ramp(**{"epsilon": 1, "typical": 1, name: bad})
        assert name in refusal.value.what
        assert refusal.value.fix


@pytest.mark.parametrize(("name", "bad"), [("power", 0), ("power", 13), ("step", 0), ("step", 1.5), ("typical", -1)])
def test_whole_parameters_of_a_ramp_out_of_range_are_refused(name: str, bad: Any) -> None:
    with pytest.raises(DefocusError, match=name):
        Ramp(**{"epsilon": 1, "typical": 1, name: bad})
