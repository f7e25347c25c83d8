import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.mechanisms import AboveThreshold, Answer, Crossings
from defocus.noise.testing import seeded

FAR = 10**6


@given(st.integers(1, 200), st.booleans(), st.integers(1, 20), st.fractions(Fraction(1, 50), 10))
def test_the_scales_spend_exactly_epsilon(positives: int, monotone: bool, bound: int, epsilon: Fraction) -> None:
    m = AboveThreshold(epsilon=epsilon, threshold=0, positives=positives, monotone=monotone, sensitivity=bound)
    level, answer = (Fraction(s) for s in m.scales)
    assert bound / level + (1 if monotone else 2) * positives * bound / answer == epsilon


@given(st.floats(1e-3, 50))
def test_rounded_scales_spend_at_most_epsilon(epsilon: float) -> None:
    level, answer = (Fraction(s) for s in AboveThreshold(epsilon=epsilon, threshold=0, positives=3).scales)
    assert 1 / level + 6 / answer <= Fraction(epsilon)


def test_the_budget_is_split_as_published() -> None:
    """Lyu, Su, Li (2017), Section 4.2: ε₁ : ε₂ = 1 : (2c)^(2/3), for monotone answers 1 : c^(2/3)."""
    for positives, monotone in ((1, False), (25, False), (25, True)):
        m = AboveThreshold(epsilon=1, threshold=0, positives=positives, monotone=monotone)
        first = 1 / float(m.scales[0])
        assert (1 - first) / first == pytest.approx(((1 if monotone else 2) * positives) ** (2 / 3), rel=0.01)


def test_a_long_run_below_uses_nearly_the_whole_promise() -> None:
    """Forty answers rise, the last falls: the outcome 'only the last is above' tells them apart by nearly ε."""
    m = AboveThreshold(epsilon=1, threshold=4)
    b1, b2 = (float(s) for s in m.scales)

    def chance(low: int, last: int) -> Any:
        total = mpmath.mpf(0)
        for r in range(-120, 121):
            level = mpmath.tanh(1 / (2 * b1)) * mpmath.exp(-abs(r) / b1)
            total += level * below(4 + r - low, b2) ** 200 * (1 - below(4 + r - last, b2))
        return total

    loss = float(mpmath.log(chance(0, 1) / chance(1, 0)))
    assert 0.85 < loss <= 1


def below(k: int, scale: float) -> Any:
    """P(X < k)."""
    q = mpmath.exp(-1 / scale)
    return q ** (1 - k) / (1 + q) if k <= 0 else 1 - q**k / (1 + q)


def test_it_stops_after_the_declared_number_of_positives() -> None:
    m = AboveThreshold(epsilon=1, threshold=0, positives=2)
    answers = [-FAR, FAR, -FAR, FAR, FAR, FAR]
    assert m.sample(answers, seeded(1)) == Crossings(positions=(1, 3), gaps=None, answered=4)
    assert [a.above for a in m.stream(iter(answers), seeded(1))] == [False, True, False, True]


def test_too_few_positives_answer_everything() -> None:
    m = AboveThreshold(epsilon=1, threshold=0, positives=5)
    assert m.sample([-FAR, FAR, -FAR], seeded(1)) == Crossings(positions=(1,), gaps=None, answered=3)
    assert m.sample([-FAR], seeded(1)).positions == ()


def test_gaps_are_released_only_for_positives_and_only_if_asked() -> None:
    m = AboveThreshold(epsilon=1, threshold=100, positives=2, gap=True)
    found = m.sample([-FAR, FAR, 2 * FAR], seeded(1))
    assert found.gaps is not None
    assert found.gaps[0] == pytest.approx(FAR - 100, abs=200)
    assert found.gaps[1] == pytest.approx(2 * FAR - 100, abs=200)
    streamed = list(m.stream([-FAR, FAR], seeded(1)))
    assert streamed[0] == Answer(above=False, gap=None)
    assert streamed[1].gap == pytest.approx(FAR - 100, abs=200)
    assert next(AboveThreshold(epsilon=1, threshold=0).stream([FAR], seeded(1))) == Answer(above=True, gap=None)


def test_a_gap_beyond_64_bits_is_cut() -> None:
    m = AboveThreshold(epsilon=1, threshold=-(2**63), gap=True)
    assert m.sample([2**63 - 1], seeded(1)).gaps == (2**63 - 1,)


def test_a_stream_draws_on_its_answers_only_as_far_as_it_needs() -> None:
    def asked() -> Iterator[int]:
        yield -FAR
        yield FAR
        raise AssertionError("asked for an answer after it had stopped")

    assert len(list(AboveThreshold(epsilon=1, threshold=0).stream(asked(), seeded(1)))) == 2


def test_the_threshold_is_drawn_once_for_the_whole_run() -> None:
    """Equal answers far more often agree than they would under fresh thresholds: noise on answers is nearly absent."""
    m = AboveThreshold(epsilon=40, threshold=0, positives=50, monotone=True)
    assert m.scales[0] < m.scales[1]
    runs = [m.sample([0] * 50, seeded(i)).positions for i in range(200)]
    sizes = [len(r) for r in runs]
    mean = sum(sizes) / 200
    variance = sum((s - mean) ** 2 for s in sizes) / 199
    assert variance > 1.2 * 50 * 0.25, "independent comparisons would have a binomial variance"


@pytest.mark.statistical
def test_stream_and_sample_have_one_law() -> None:
    m, bits = AboveThreshold(epsilon=2, threshold=1, positives=2), seeded(4)
    once = Counter(m.sample([0, 2, 1], bits).positions for _ in range(2000))
    one_by_one = Counter(tuple(i for i, a in enumerate(m.stream([0, 2, 1], bits)) if a.above) for _ in range(2000))
    for outcome in once | one_by_one:
        a, b = once[outcome], one_by_one[outcome]
        assert abs(a - b) < 5 * math.sqrt(a + b + 1)
