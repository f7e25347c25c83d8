"""The ladder: a brute-force check of its promise over all small graphs, its law, its refusals."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats
from tests.mechanisms.small_graphs import moves, neighbours, value

from defocus.errors import DefocusError, UnfitDataError
from defocus.mechanisms import Ladder
from defocus.mechanisms.instance_based import _rung_weights
from defocus.noise.testing import seeded
from defocus.privacy import events

CTX = mpmath.MPContext()
CTX.dps = 25


def widths(m: Ladder, first: int, rungs: int) -> list[int]:
    return [min(first + m.step * t, m.cap) for t in range(rungs)]


def law(m: Ladder, first: int, reach: int) -> dict[int, Any]:
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
@pytest.mark.parametrize("n", [3, 4, 5, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("statistic", "factor"), [("triangles", 1), ("2-stars", 2)])
def test_no_two_neighbouring_graphs_have_ratios_that_span_more_than_epsilon(
    statistic: str, factor: int, n: int, epsilon: Fraction
) -> None:
    levels = moves(n, statistic)
    m = Ladder(epsilon=epsilon, cap=factor * (n - 2), typical=1)
    assert levels.max() == m.cap
    laws = {int(level): law(m, int(level), 80) for level in set(levels.tolist())}
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


@pytest.mark.statistical
@pytest.mark.parametrize("first", [0, 3, 12])
def test_noise_has_the_declared_law_and_no_other(first: int) -> None:
    m, bits = Ladder(epsilon=1, cap=12, typical=3), seeded(23)
    drawn = np.array([m.sample((500, first), bits) - 500 for _ in range(6000)])
    sizes = np.abs(drawn)
    edges = np.unique(np.quantile(sizes, np.linspace(0.05, 0.98, 20)).astype(int))
    observed = np.histogram(sizes, [-0.5, *(edges + 0.5), np.inf])[0]

    def p_value(epsilon: Fraction) -> float:
        exact = law(Ladder(epsilon=epsilon, cap=12, typical=3), first, 3000)
        cdf = np.cumsum([float(exact[0]), *(2 * float(exact[x]) for x in range(1, 3001))])
        expected = np.diff([0.0, *cdf[edges], 1.0]) * len(sizes)
        return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)

    assert p_value(Fraction(1)) > 1e-4
    assert p_value(Fraction(11, 10)) < 1e-6
    assert p_value(Fraction(10, 11)) < 1e-6
    assert abs(np.sign(drawn).sum()) < 5 * math.sqrt(len(drawn))


@pytest.mark.parametrize(("epsilon", "first", "cap", "step"), [(1, 5, 40, 1), (0.5, 3, 9, 2), (2, 10, 10, 1)])
def test_error_and_interval_follow_from_the_law(epsilon: float, first: int, cap: int, step: int) -> None:
    m = Ladder(epsilon=epsilon, cap=cap, typical=first, step=step)
    exact = law(m, first, 3000)
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
def test_parameters_out_of_range_are_refused(name: str, bad: Any) -> None:
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
