import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.noise import discrete_laplace
from defocus.noise.testing import seeded
from defocus.tables.power_laws import Design, Law, least

SCALES = st.lists(st.floats(0.01, 10), min_size=1, max_size=4).map(tuple)


def exact(normal: float, scale: float, t: float) -> float:
    """Normal plus one Laplace variable in closed form."""

    def phi(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2))

    a = normal / scale
    grown = math.exp(a * a / 2)
    return phi(-t / normal) + grown / 2 * (
        math.exp(-t / scale) * phi(t / normal - a) - math.exp(t / scale) * phi(-t / normal - a)
    )


@pytest.mark.parametrize("normal", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("t", [0.0, 0.1, 1.0, 4.0])
def test_one_laplace_variable_agrees_with_the_closed_form(normal: float, scale: float, t: float) -> None:
    assert Law(normal, (scale,)).tail(t) == pytest.approx(exact(normal, scale, t), abs=1e-8)


@pytest.mark.parametrize("t", [0.0, 0.5, 3.0, 10.0])
def test_two_equal_laplace_variables_agree_with_the_closed_form(t: float) -> None:
    """The density of the sum is (1 + x) e^-x / 4, so the tail is (2 + t) e^-t / 4."""
    assert Law(0.0, (1.0, 1.0)).tail(t) == pytest.approx((2 + t) * math.exp(-t) / 4, abs=1e-8)


@given(normal=st.floats(0, 10), scales=SCALES, t=st.floats(-50, 50))
def test_tails_are_symmetric_probabilities_that_fall(normal: float, scales: tuple[float, ...], t: float) -> None:
    law = Law(normal, scales)
    assert 0 <= law.tail(t) <= 1
    assert law.tail(t) + law.tail(-t) == pytest.approx(1, abs=1e-7)
    assert law.tail(t + 0.1) <= law.tail(t) + 1e-7


@settings(max_examples=30)
@given(normal=st.floats(0, 5), scales=SCALES, alpha=st.floats(0.001, 0.5))
def test_the_critical_value_has_the_level_it_was_asked_for(
    normal: float, scales: tuple[float, ...], alpha: float
) -> None:
    law = Law(normal, scales)
    c = law.critical(alpha)
    assert 2 * law.tail(c) <= alpha
    assert 2 * law.tail(0.999 * c) >= alpha * (1 - 1e-5)


@pytest.mark.statistical
def test_the_tail_is_that_of_real_noise_and_no_other() -> None:
    n, b = 200_000, 1000
    bits, rng = seeded(3), np.random.default_rng(3)
    noise = 0.3 * discrete_laplace(b, n, bits) - 0.7 * discrete_laplace(b, n, bits) + 500 * rng.standard_normal(n)
    seen = float(np.mean(noise > 1500))
    assert seen == pytest.approx(Law(500, (300, 700)).tail(1500), abs=0.0025)
    assert seen != pytest.approx(Law(550, (330, 770)).tail(1500), abs=0.0025)


def test_without_any_spread_the_tail_is_a_step() -> None:
    assert [Law(0.0).tail(t) for t in (-1, 0, 1)] == [1, 0, 0]


def test_noise_weighs_most_at_the_ends_and_half_in_the_middle() -> None:
    def noise(p: float) -> float:
        return Design(p, 0.0, 100, 1, lambda _: 0.0, laplace=1.0).null_law.deviation ** 2

    assert noise(0.5) == pytest.approx(noise(1e-9) / 2)
    assert noise(1e-9) == pytest.approx(2 / 100**2)


def test_two_groups_add_their_variances() -> None:
    one = Design(0.5, 0.0, 100, 1, lambda _: 0.25, gaussian=3.0)
    two = Design(0.5, 0.0, 100, 2, lambda _: 0.25, gaussian=3.0)
    assert two.null_law.deviation**2 == pytest.approx(2 * one.null_law.deviation**2)
    assert one.without_noise.null_law.deviation == pytest.approx(0.05)


def test_the_least_number_is_rounded_up() -> None:
    assert least(lambda x: x * x >= 2, 0, 1) == pytest.approx(math.sqrt(2), rel=1e-8)
    assert least(lambda x: x * x >= 2, 0, 1) ** 2 >= 2
