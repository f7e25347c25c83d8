"""Profiles made of others: exchange, Poisson sampling, and exchange under sampling."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.accounting.pld import oracles
from tests.privacy.accounting.pld.cases import CASES, PLAIN, Case

from defocus.privacy import account
from defocus.privacy.accounting.pld.profiles import BoundedRange, GaussianProfile, LaplaceProfile, Profile
from defocus.privacy.accounting.pld.sampling import Batched, ReplacedGaussian, Reversed, SampledProfile, ShuffledProfile
from defocus.privacy.accounting.shuffling import amplification
from defocus.privacy.events import Gaussian, Pure, Sampled, SampledGaussian, Shuffled
from defocus.privacy.units import Adjacency

rates = st.floats(-9, -0.0005).map(lambda t: 10**t)
INNER: list[Profile] = [GaussianProfile(1.0), GaussianProfile(0.05), LaplaceProfile(2.0), BoundedRange(1.5)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_reversing_twice_changes_nothing(case: Case) -> None:
    l = np.linspace(-2, 2, 41)
    once, twice = case.profile.curve(l), Reversed(Reversed(case.profile)).curve(l)
    assert np.all(np.abs(once.excess - twice.excess) <= twice.pad)
    assert np.all(twice.pad >= once.pad * (1 - 1e-12))
    back = Reversed(Reversed(case.profile))
    assert (back.top, back.bottom) == (case.profile.top, case.profile.bottom)
    before, after = case.profile.tails(l), back.tails(l)
    for one, other in zip(before, after, strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_a_rate_of_one_changes_nothing(case: Case) -> None:
    l = np.linspace(-2, 2, 41)
    inner, outer = case.profile.curve(l), SampledProfile(case.profile, 1.0).curve(l)
    assert outer.excess.tolist() == inner.excess.tolist()
    assert SampledProfile(case.profile, 1.0).top == case.profile.top


@settings(max_examples=60)
@given(mu=st.floats(-3, 1).map(lambda t: 10**t), rate=rates, z=st.floats(-36, 36))
def test_the_sampling_identity_holds_for_any_gaussian_and_rate(mu: float, rate: float, z: float) -> None:
    """Zhu, Dong, Wang (2022), Theorem 11: x'(log(1 - q + q e^l)) = q x(l)."""
    inner, q = mp.mpf(mu) * z, mp.mpf(rate)
    outer = float(mp.log(1 - q + q * mp.exp(inner)))
    curve = SampledProfile(GaussianProfile(mu), rate).curve(np.array([outer]))
    # The outer loss was rounded, so ask for the profile exactly there.
    exact = oracles.sampled_law(oracles.gaussian(mu), rate).excess(outer)
    assert abs(float(curve.excess[0]) - exact) <= curve.pad[0]
    backwards = Reversed(SampledProfile(GaussianProfile(mu), rate)).curve(np.array([-outer]))
    assert abs(float(backwards.excess[0]) - mp.exp(-mp.mpf(outer)) * exact) <= backwards.pad[0]


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0, 7.5])
@pytest.mark.parametrize("rate", [0.5, 1e-3, 1e-7])
def test_close_to_the_least_loss_the_pad_covers_what_rounding_moves(mu: float, rate: float) -> None:
    """There the inner loss runs off to minus infinity, and one unit of the outer one moves it far."""
    least = math.log1p(-rate)
    l = [least, *(least + k * math.ulp(least) for k in (-3, -2, -1, 1, 2, 3, 10, 100, 10_000, 10**6, 10**9))]
    law = oracles.sampled_law(oracles.gaussian(mu), rate)
    curve = SampledProfile(GaussianProfile(mu), rate).curve(np.array(l))
    for place, value, pad in zip(l, curve.excess.tolist(), curve.pad.tolist(), strict=True):
        assert abs(value - law.excess(place)) <= pad, place


def test_well_below_the_least_loss_nothing_is_left() -> None:
    curve = SampledProfile(GaussianProfile(1.0), 0.01).curve(np.array([-0.02, -1.0, -600.0]))
    assert curve.excess.tolist() == [0, 0, 0]
    assert np.all(curve.pad <= 1e-299)


def test_sampling_twice_is_sampling_once_at_the_product() -> None:
    l = np.linspace(-0.005, 0.02, 60)
    twice = SampledProfile(SampledProfile(GaussianProfile(1.0), 0.125), 0.25).curve(l)
    once = SampledProfile(GaussianProfile(1.0), 0.03125).curve(l)
    assert np.all(np.abs(twice.excess - once.excess) <= twice.pad + once.pad)


@pytest.mark.parametrize("inner", INNER, ids=str)
@pytest.mark.parametrize("rate", [0.9, 0.1, 1e-4])
def test_the_exchanged_profile_is_the_worse_of_both_directions(inner: Profile, rate: float) -> None:
    top = min(SampledProfile(inner, rate).top, 3.0)
    l = np.linspace(-1.2 * top, 1.2 * top, 61)
    removed = SampledProfile(inner, rate)
    both = Batched(inner, rate).curve(l)
    for direction in (removed, Reversed(removed)):
        curve = direction.curve(l)
        assert np.all(both.excess + both.pad >= curve.excess - curve.pad)
    up, down = l >= 0, l < 0
    first, second = removed.curve(l), Reversed(removed).curve(l)
    worse = np.where(up, first.excess, second.excess)
    assert np.all(np.abs(both.excess - worse) <= both.pad + first.pad + second.pad)
    assert np.any(down)


@pytest.mark.parametrize("rate", [0.3, 0.01, 1e-6])
@pytest.mark.parametrize("end", [0.5, 5.0, 39.0, 41.0, 200.0, 700.0])
def test_ends_of_the_support_are_rounded_outward(rate: float, end: float) -> None:
    q = mp.mpf(rate)
    profile = SampledProfile(LaplaceProfile(end), rate)
    assert profile.top >= mp.log(1 - q + q * mp.exp(mp.mpf(end)))
    assert profile.bottom <= mp.log(1 - q + q * mp.exp(-mp.mpf(end)))
    assert profile.top <= mp.log(1 - q + q * mp.exp(mp.mpf(end))) * (1 + 1e-12) + mp.exp(-34)


@given(end=st.floats(40, 707), log_rate=st.floats(-300, -3))
def test_ends_are_rounded_outward_where_rate_and_loss_cancel(end: float, log_rate: float) -> None:
    rate = 10**log_rate
    exact = mp.log(1 - mp.mpf(rate) + mp.mpf(rate) * mp.exp(mp.mpf(end)))
    assert SampledProfile(LaplaceProfile(end), rate).top >= exact


def test_mass_at_infinity_shrinks_with_the_rate_and_is_never_rounded_down() -> None:
    case = next(case for case in PLAIN if case.name == "approximate 1.0 1e-08")
    profile = SampledProfile(case.profile, 0.3)
    assert profile.at_infinity >= mp.mpf(0.3) * mp.mpf(1e-8)
    assert profile.at_infinity == pytest.approx(3e-9)
    assert Batched(case.profile, 0.3).at_infinity == profile.at_infinity
    assert profile.atoms() is None
    assert Reversed(case.profile).atoms() is None


def test_the_atoms_of_a_sampled_coin_are_the_mixture() -> None:
    inner = next(case for case in PLAIN if case.name == "response 3.0 of 5").profile
    atoms = SampledProfile(inner, 0.1).atoms()
    assert atoms is not None
    exact = sorted(oracles.sampled(oracles.response(3.0, 5), 0.1), key=lambda pair: pair[0] / pair[1])
    for p, q, (a, b) in zip(atoms.p, atoms.q, exact, strict=True):
        assert abs(mp.mpf(p) / a - 1) <= atoms.error
        assert abs(mp.mpf(q) / b - 1) <= atoms.error
    swapped = Reversed(SampledProfile(inner, 0.1)).atoms()
    assert swapped is not None
    assert swapped.p == atoms.q[::-1]
    assert swapped.losses == tuple(-l for l in reversed(atoms.losses))
    both: Profile = Batched(inner, 0.1)
    assert both.atoms() is None


def profile_of(epsilon: float, users: int) -> ShuffledProfile:
    found = amplification(Shuffled(Pure(epsilon), users))
    assert found is not None
    return ShuffledProfile(found)


@settings(max_examples=20, deadline=None)
@given(epsilon=st.floats(0.1, 5), users=st.integers(1, 2000), share=st.floats(0.01, 0.99))
def test_the_curve_is_symmetric_and_its_tails_are_those_of_one_pair(epsilon: float, users: int, share: float) -> None:
    profile = profile_of(epsilon, users)
    l = np.array([share * epsilon])
    above, below = profile.curve(l), profile.curve(-l)
    assert below.excess[0] == pytest.approx(np.exp(-l[0]) * above.excess[0], rel=1e-12)
    tails = profile.tails(l)
    assert tails.p_above - np.exp(l) * tails.q_above == pytest.approx(above.excess, rel=1e-9, abs=1e-14)
    mirrored = profile.tails(-l)
    assert mirrored.q_below == pytest.approx(tails.p_above)


def test_nothing_is_lost_beyond_the_local_epsilon() -> None:
    profile = profile_of(1, 100)
    assert profile.curve(np.array([1.0, 2.0, 50.0])).excess.tolist() == [0, 0, 0]
    assert (profile.bottom, profile.top) == (-1, 1)


def test_the_grid_rises_and_a_finer_one_has_more_points() -> None:
    profile = profile_of(2, 1000)
    coarse, fine = (profile.grid(step, -30.0) for step in (0.1, 0.005))
    assert np.all(np.diff(coarse) > 0)
    assert np.all(np.diff(fine) > 0)
    assert len(fine) > 3 * len(coarse)


def test_without_shuffling_one_user_loses_what_the_report_tells() -> None:
    for epsilon in (0.2, 0.9):
        alone = account(Pure(1)).delta(epsilon)
        assert account(Shuffled(Pure(1), 1), adjacency="replace").delta(epsilon) == pytest.approx(alone, rel=1e-6)


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(160)
lengths = st.floats(0, 1)


@settings(max_examples=40, deadline=None)
@given(
    mu=st.floats(0.2, 2.5),
    rate=st.floats(0.01, 0.99),
    a=lengths,
    b=lengths,
    angle=st.floats(0, math.pi),
    l=st.floats(-3, 3),
)
def test_no_two_contributions_are_worse_than_opposite_ones_of_full_length(
    *, mu: float, rate: float, a: float, b: float, angle: float, l: float
) -> None:
    """The profile of (1-q)N(0,I) + qN(a,I) against (1-q)N(0,I) + qN(b,I), integrated over the plane of a and b."""
    x, y = NODES[:, None], NODES[None, :]
    weights = WEIGHTS[:, None] * WEIGHTS[None, :] / (2 * math.pi)
    first, second = mu * a, (mu * b * math.cos(angle), mu * b * math.sin(angle))
    with_one = np.exp(first * x - first**2 / 2)
    with_other = np.exp(second[0] * x + second[1] * y - (mu * b) ** 2 / 2)
    gain = (1 - rate) * -math.expm1(l) + rate * (with_one - math.exp(l) * with_other)
    delta = float((weights * np.maximum(gain, 0)).sum())
    worst = float(ReplacedGaussian(mu, rate).curve(np.array([l])).excess[0]) + max(0.0, -math.expm1(l))
    assert delta <= worst + 2e-3 * rate  # the kink costs the quadrature its digits


def test_no_data_of_a_few_units_loses_more_when_one_is_replaced() -> None:
    """All samples of up to three other units, whose sums are added to either contribution, on one axis."""
    x = np.linspace(-14, 14, 20_001)
    for rate, mu, others in [(0.3, 1.0, (1.0, -0.4)), (0.6, 2.0, (0.7, 0.7, -1.0)), (0.05, 0.5, (-1.0,))]:
        for one, other in [(1.0, -1.0), (1.0, 0.0), (0.5, -1.0), (1.0, 1.0)]:

            def law(unit: float, rate: float = rate, mu: float = mu, others: tuple[float, ...] = others) -> object:
                density = np.zeros_like(x)
                units = (unit, *others)
                for mask in range(2 ** len(units)):
                    drawn = [bool(mask >> i & 1) for i in range(len(units))]
                    weight = math.prod(rate if i else 1 - rate for i in drawn)
                    centre = mu * sum(u for u, i in zip(units, drawn, strict=True) if i)
                    density += weight * np.exp(-((x - centre) ** 2) / 2) / math.sqrt(2 * math.pi)
                return density

            p, q = np.asarray(law(one)), np.asarray(law(other))
            for l in (-1.0, 0.0, 0.5, 2.0):
                found = float(np.maximum(p - math.exp(l) * q, 0).sum() * (x[1] - x[0]))
                worst = float(ReplacedGaussian(mu, rate).curve(np.array([l])).excess[0]) + max(0.0, -math.expm1(l))
                assert found <= worst + 1e-6, (rate, mu, one, other, l)


@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "delta", "published"),
    [(1, 0.01, 1000, 1e-5, 2.84345), (0.7, 0.001, 5000, 1e-6, 1.51162), (2, 0.1, 300, 1e-5, 8.32699)],
)
def test_replaced_units_cost_what_other_accountants_compute_without_a_proof(
    sigma: float, rate: float, steps: int, delta: float, published: float
) -> None:
    """dp-accounting 0.6.0, PLD with REPLACE_ONE and an interval of 1e-4."""
    loss = account(steps * SampledGaussian(sigma, rate), adjacency=Adjacency.REPLACE)
    found = loss.interval(delta)
    assert found.lower <= published * (1 + 2e-5)
    assert published * (1 - 2e-5) <= found.upper <= 1.0001 * found.lower
    assert found.upper < account(steps * Sampled(Gaussian(sigma / 2), rate), adjacency="replace").epsilon(delta)


@pytest.mark.parametrize("method", ["pld", "rdp", "basic"])
def test_a_unit_added_or_removed_costs_as_in_a_sampled_gaussian_release(method: str) -> None:
    loss = account(50 * SampledGaussian(2, 0.1), method)
    other = account(50 * Sampled(Gaussian(2 if method != "basic" else 1), 0.1), method)
    assert loss.epsilon(1e-6) == other.epsilon(1e-6)


def test_everybody_in_the_sample_is_a_gaussian_release_at_twice_the_sensitivity() -> None:
    for method in ("pld", "rdp", "zcdp", "basic"):
        sampled = account(9 * SampledGaussian(4, 1), method, Adjacency.REPLACE).epsilon(1e-6)
        assert sampled == pytest.approx(account(9 * Gaussian(2), method, Adjacency.REPLACE).epsilon(1e-6), rel=1e-9)


@pytest.mark.parametrize("method", ["pld", "rdp", "zcdp", "basic"])
@pytest.mark.parametrize("out", [Fraction(1, 2**53), Fraction(1, 10**20), Fraction(1, 10**30)])
def test_a_rate_that_no_float_below_one_reaches_is_never_rounded_down(out: Fraction, method: str) -> None:
    """Delta by the places where the loss exceeds epsilon, with 60 digits; with little noise 1e-30 and 1e-16 differ."""
    mu = 20
    epsilon = account(SampledGaussian(Fraction(1, mu), 1 - out), method, Adjacency.REPLACE).epsilon(1e-3)
    with mp.workdps(60):
        outside = mp.mpf(out.numerator) / out.denominator
        inside, e = 1 - outside, mp.mpf(epsilon)
        x = (e / 2 + mp.asinh(outside / inside * mp.exp(mp.mpf(mu) ** 2 / 2) * mp.sinh(e / 2))) / mu
        with_one, with_other = (outside * mp.ncdf(-x) + inside * mp.ncdf(centre - x) for centre in (mu, -mu))
        assert with_one - mp.exp(e) * with_other <= 1e-3
