import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.mechanisms import RandomizedResponse
from defocus.noise.testing import replay, seeded


def test_the_truth_has_its_published_probability() -> None:
    """Specification 5: p = e^ε/(1 + e^ε), and e^ε/(e^ε + k − 1) for k categories; Warner's coin at ε = ln 3."""
    assert RandomizedResponse(epsilon=math.log(3)).truth == pytest.approx(0.75)
    assert RandomizedResponse(epsilon=1, categories=7).truth == pytest.approx(math.e / (math.e + 6))
    assert RandomizedResponse(epsilon=1, categories=7).error == pytest.approx(6 / (math.e + 6))


@given(st.fractions(Fraction(1, 1000), 500), st.integers(2, 10**6), st.integers(8, 200))
def test_the_coin_is_enclosed_by_integers(epsilon: Fraction, k: int, precision: int) -> None:
    low, high = RandomizedResponse(epsilon=epsilon, categories=k)._enclosure(precision)
    with mpmath.workprec(precision + 900):
        exact = 1 / (1 + (k - 1) * mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator))
        assert low <= mpmath.ldexp(exact, precision) <= high
    assert high - low <= 2


def test_a_coin_that_64_bits_cannot_decide_is_decided_by_more() -> None:
    m = RandomizedResponse(epsilon=1)
    low, high = m._enclosure(64)
    assert high > low
    for first, truthful in ((low - 1, True), (high, False)):
        assert bool(m.sample([0], replay([first], seeded(1)))[0] == 0) == truthful
    _, exact_high = m._enclosure(128)
    boundary, rest = divmod(exact_high, 2**64)
    assert m.sample([0], replay([boundary, rest - 4], seeded(1)))[0] == 0
    assert m.sample([0], replay([boundary, rest + 4], seeded(1)))[0] == 1


@pytest.mark.statistical
def test_estimates_are_unbiased_and_their_variance_is_the_stated_one() -> None:
    m, bits = RandomizedResponse(epsilon=1, categories=3), seeded(6)
    people = np.repeat([0, 1, 2], [600, 300, 100])
    runs = [m.estimate(np.bincount(m.sample(people, bits), minlength=3)) for _ in range(400)]
    counts = np.array([run.counts for run in runs])
    spread = counts.std(axis=0, ddof=1)
    assert np.abs(counts.mean(axis=0) - [600, 300, 100]).max() < 4 * spread.max() / 20
    stated = np.mean([run.variances for run in runs], axis=0)
    assert spread**2 == pytest.approx(stated, rel=0.25)
    assert counts.sum(axis=1) == pytest.approx(1000)
    half = m.interval(0.9, reports=1000)
    assert (np.abs(counts - [600, 300, 100]) <= half).mean() >= 0.9


def test_more_reports_have_a_wider_interval_but_a_narrower_one_for_each() -> None:
    m = RandomizedResponse(epsilon=1)
    widths = [m.interval(0.95, reports=n) for n in (1, 100, 10_000)]
    assert widths == sorted(widths)
    assert widths[2] / 10_000 < widths[1] / 100 < widths[0]


def test_reports_are_categories_and_keep_their_shape() -> None:
    m, bits = RandomizedResponse(epsilon=1, categories=4), seeded(2)
    assert type(m.sample(3, bits)) is int
    reports = m.sample(np.full(1000, 3), bits)
    assert set(reports.tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize(("value", "nearest"), [(-1, 0), (4, 3), (2**62, 3), (-(2**63), 0)])
def test_who_is_in_no_category_is_taken_to_be_in_the_nearest(value: int, nearest: int) -> None:
    """An error would tell, before or after the charge, what the noise was to hide."""
    asked = RandomizedResponse(epsilon=50, categories=4)
    asked.check(value)
    assert asked.sample(value) == nearest
    assert asked.sample([value, value]).tolist() == [nearest, nearest]
