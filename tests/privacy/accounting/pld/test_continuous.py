"""Continuous profiles: the accuracy that is assumed of special functions, published formulas, extremes."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erfcx, ndtr
from tests.privacy.accounting.pld import oracles

from defocus.privacy.accounting.pld.continuous import BoundedRange, GaussianProfile, LaplaceProfile
from defocus.privacy.accounting.pld.profiles import Floats, U

UNITS = 16
"""Eight units in the last place are sixteen of 2^-53."""


def worst(computed: Floats, exact: list[oracles.Real]) -> float:
    return max(float(abs(mp.mpf(a) / b - 1)) for a, b in zip(computed.tolist(), exact, strict=True))


def test_the_normal_law_is_as_accurate_as_assumed() -> None:
    z = np.concatenate((np.linspace(-37.5, 8.0, 1501), np.random.default_rng(1).uniform(-37.5, 3, 1500)))
    exact = [mp.erfc(-mp.mpf(x) / mp.sqrt(2)) / 2 for x in z.tolist()]
    # The argument is divided by the square root of two inside, which costs z² units in the last place more.
    room = (UNITS + 2 * z * z) * U
    errors = [abs(float(mp.mpf(a) / b - 1)) for a, b in zip(ndtr(z).tolist(), exact, strict=True)]
    assert np.all(np.array(errors) <= room)


def test_the_scaled_complementary_error_function_is_as_accurate_as_assumed() -> None:
    z = np.concatenate((np.linspace(0.0, 60.0, 801), np.geomspace(1e-12, 1e8, 400)))
    exact = [
        mp.exp(mp.mpf(x) ** 2) * mp.erfc(x) if x < 1e5 else (1 - 1 / (2 * mp.mpf(x) ** 2)) / (x * mp.sqrt(mp.pi))
        for x in z.tolist()
    ]
    assert worst(erfcx(z), exact) <= UNITS * U


def test_the_exponential_functions_are_as_accurate_as_assumed() -> None:
    x = np.concatenate((np.linspace(-700, 700, 1401), np.random.default_rng(2).normal(0, 1, 500)))
    assert worst(np.exp(x), [mp.exp(mp.mpf(v)) for v in x.tolist()]) <= 4 * U
    small = x[(x != 0) & (x < 600)]
    assert worst(np.expm1(small), [mp.expm1(mp.mpf(v)) for v in small.tolist()]) <= 4 * U
    above = small[small > -0.999]
    assert worst(np.log1p(above), [mp.log1p(mp.mpf(v)) for v in above.tolist()]) <= 4 * U


@given(mu=st.floats(-7, 1.7).map(lambda t: 10**t), z=st.lists(st.floats(-37, 37), min_size=1, max_size=8))
def test_a_gaussian_of_any_size_is_within_its_pad(mu: float, z: list[float]) -> None:
    l = mu * np.array(z)
    l = l[np.abs(l) < 690]
    curve = GaussianProfile(mu).curve(l)
    law = oracles.gaussian(mu)
    for place, value, pad in zip(l.tolist(), curve.excess.tolist(), curve.pad.tolist(), strict=True):
        assert abs(value - law.excess(place)) <= pad


@given(epsilon=st.floats(-8, 3).map(lambda t: 10**t), share=st.lists(st.floats(-1.1, 1.1), min_size=1, max_size=8))
def test_a_laplace_of_any_size_is_within_its_pad(epsilon: float, share: list[float]) -> None:
    l = epsilon * np.array(share)
    l = l[l > -690]
    curve = LaplaceProfile(epsilon).curve(l)
    law = oracles.laplace(epsilon)
    for place, value, pad in zip(l.tolist(), curve.excess.tolist(), curve.pad.tolist(), strict=True):
        assert abs(value - law.excess(place)) <= pad


def test_a_blurred_gaussian_pads_for_every_pair_within_the_blur() -> None:
    """P' = e^b P and Q' = e^-b Q pointwise is the worst such pair, up to normalisation."""
    blur, l = 1e-9, np.linspace(-3, 3, 31)
    curve = GaussianProfile(1.0, blur).curve(l)
    law = oracles.gaussian(1.0)
    for place, value, pad in zip(l.tolist(), curve.excess.tolist(), curve.pad.tolist(), strict=True):
        size = abs(place)
        worse = mp.exp(blur) * law.excess(size - 2 * blur) if size >= 2 * blur else law.excess(size) * (1 + 4 * blur)
        assert value + pad >= worse * mp.exp(min(place, 0.0))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_bounded_range_is_the_worst_of_all_pairs_whose_losses_span_epsilon(epsilon: float, share: float) -> None:
    """Dong, Durfee, Rogers (2020): losses t and t - epsilon; no t does better than the formula, one attains it."""
    e, l = mp.mpf(epsilon), mp.mpf(share * epsilon)
    value = mp.mpf(float(BoundedRange(epsilon).curve(np.array([float(l)])).excess[0]))
    found = []
    for i in range(1, 400):
        t = e * i / 400
        q_high = (1 - mp.exp(t - e)) / (mp.exp(t) - mp.exp(t - e))
        pair = [(mp.exp(t) * q_high, q_high), (mp.exp(t - e) * (1 - q_high), 1 - q_high)]
        assert abs(pair[0][0] + pair[1][0] - 1) < 1e-40
        found.append(oracles.delta_of(pair, l))
    assert max(found) <= value * (1 + mp.mpf(10) ** -13)
    assert max(found) >= value * (1 - mp.mpf(10) ** -3)


def test_the_balanced_member_of_a_range_has_both_losses_equal_and_lies_below_the_worst() -> None:
    for epsilon in (0.1, 1.0, 700.0, 1600.0):
        profile = BoundedRange(epsilon)
        member = profile.balanced()
        assert member.losses == (-epsilon / 2, epsilon / 2)
        l = np.linspace(0, epsilon, 50)
        below, above = member.curve(l), profile.curve(l)
        assert np.all(below.excess - below.pad <= above.excess + above.pad)
        assert np.all(profile.tails(l).p_above == member.tails(l).p_above)


def test_extreme_losses_give_neither_warnings_nor_nonsense() -> None:
    l = np.array([-1e300, -1e4, -690.0, 0.0, 690.0, 1e4, 1e300])
    for mu in (1e-300, 1e-9, 1.0, 1e9):
        curve = GaussianProfile(mu).curve(l)
        assert np.all((curve.excess >= 0) & (curve.excess <= 1))
        assert not np.any(np.isnan(curve.pad))
    for profile in (LaplaceProfile(1e-300), LaplaceProfile(1e6), BoundedRange(1e-12), BoundedRange(1e4)):
        curve = profile.curve(l)
        assert np.all((curve.excess >= 0) & (curve.excess <= 1))
        assert math.isfinite(float(curve.pad.max()))


def test_a_gaussian_too_faint_to_square_is_still_answered() -> None:
    """Its standardised losses overflow when squared; the profile at zero is mu/sqrt(2 pi)."""
    curve = GaussianProfile(1e-160).curve(np.array([0.0, 1e-159, 1.0]))
    assert curve.excess[0] == pytest.approx(0.0, abs=1e-14)
    assert curve.excess[1:].tolist() == pytest.approx([0.0, 0.0], abs=1e-14)
    assert not np.any(np.isnan(curve.pad))
