"""What every profile must satisfy, whatever its law: accuracy within its pad, and the laws of profiles."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erfcx, ndtr
from tests.privacy.accounting.pld import oracles
from tests.privacy.accounting.pld.cases import CASES, Case

from defocus.privacy.accounting.pld.profiles import (
    Atoms,
    BoundedRange,
    Floats,
    GaussianProfile,
    LaplaceProfile,
    Profile,
    U,
)
from defocus.privacy.accounting.pld.sampling import Reversed


def losses_for(profile: Profile, count: int = 24) -> Floats:
    """Losses where the law lives, between its places and beyond them, on both sides of zero."""
    grid = profile.grid(0.3, -80.0)
    picked = grid[np.linspace(0, len(grid) - 1, min(len(grid), count)).astype(int)]
    between = picked + np.random.default_rng(5).uniform(0, 1, len(picked)) * np.append(np.diff(picked), 0.1)
    ends = [x for x in (profile.top, profile.bottom, profile.top * 1.01, profile.bottom * 1.01) if math.isfinite(x)]
    found = np.concatenate((picked, between, -between[::2], ends, [0.0, 1e-9, -1e-9, 0.5, -0.5, 25.0, -25.0]))
    return np.unique(found[np.abs(found) < 680])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_excess_is_right_to_within_its_pad(case: Case) -> None:
    l = losses_for(case.profile)
    curve = case.profile.curve(l)
    for place, value, pad in zip(l.tolist(), curve.excess.tolist(), curve.pad.tolist(), strict=True):
        assert abs(mp.mpf(value) - case.excess(place)) <= pad, place


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pads_are_small_beside_what_they_pad(case: Case) -> None:
    """A pad that were always large would pass every other test and give useless bounds."""
    l = losses_for(case.profile)
    curve = case.profile.curve(l)
    tallest = np.exp(np.minimum(l, 0.0))
    assert np.all(curve.pad <= 1e-11 * tallest + 1e-299)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_slope_is_within_its_bound(case: Case) -> None:
    """Between two close losses the excess changes by no more than the steeper of their bounds allows."""
    l = losses_for(case.profile, 12)
    gap = 1e-7 * max(min(1.0, float(np.abs(l).max()) / 100), 1e-9)
    before, after = case.profile.curve(l - gap), case.profile.curve(l + gap)
    for i, place in enumerate(l.tolist()):
        if abs(place) > gap:  # the floor bends at zero
            low, high = place - gap, place + gap
            change = abs(case.excess(high) - case.excess(low))
            steep = max(before.steep[i], after.steep[i])
            assert change <= (high - low) * steep * (1 + 1e-3) + before.pad[i] + after.pad[i], place


@pytest.mark.parametrize("case", [case for case in CASES if case.law is not None], ids=str)
def test_tails_are_right_to_within_their_error(case: Case) -> None:
    l = losses_for(case.profile, 20)
    l = l[(l > case.profile.bottom) & (l < case.profile.top)]
    tails = case.profile.tails(l)
    assert case.law is not None
    laws = (case.law.p_above, case.law.p_below, case.law.q_above, case.law.q_below)
    for side, (computed, law) in enumerate(zip(tails[:4], laws, strict=True)):
        for place, value, error in zip(l.tolist(), computed.tolist(), tails.error.tolist(), strict=True):
            # The threshold itself may be off by its rounding, for both laws alike.
            moved = mp.mpf(2) ** -49 * (1 + abs(place))
            ends = [law(mp.mpf(place) + way * moved) for way in ((1, -1) if side % 2 == 0 else (-1, 1))]
            assert ends[0] * (1 - error) - 1e-300 <= value <= ends[1] * (1 + error) + 1e-300, place


@pytest.mark.parametrize("case", [case for case in CASES if case.law is not None], ids=str)
def test_tails_and_curve_describe_one_pair(case: Case) -> None:
    l = losses_for(case.profile)
    l = l[(l > case.profile.bottom) & (l < case.profile.top)]
    curve, tails = case.profile.curve(l), case.profile.tails(l)
    up = tails.p_above - np.exp(np.maximum(l, 0.0)) * tails.q_above
    down = np.exp(np.minimum(l, 0.0)) * tails.q_below - tails.p_below
    large = tails.p_above + np.exp(np.maximum(l, 0.0)) * tails.q_above
    small = np.exp(np.minimum(l, 0.0)) * tails.q_below + tails.p_below
    room = np.where(l >= 0, large, small) * (tails.error + 1e-14 * (1 + np.abs(l))) + curve.pad
    assert np.all(np.abs(np.where(l >= 0, up, down) - curve.excess) <= room)


@pytest.mark.parametrize("case", [case for case in CASES if case.profile.symmetric], ids=str)
def test_a_symmetric_profile_equals_its_exchange(case: Case) -> None:
    l = losses_for(case.profile)
    here, there = case.profile.curve(l), case.profile.curve(-l)
    scale = np.exp(l)
    room = here.pad + scale * there.pad + 4 * U * (1 + np.abs(l)) * here.excess
    assert np.all(np.abs(here.excess - scale * there.excess) <= room)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_profile_falls_and_is_convex_in_the_odds(case: Case) -> None:
    l = losses_for(case.profile)
    curve = case.profile.curve(l)
    r = [mp.exp(x) for x in l.tolist()]
    height = [mp.mpf(x) + max(mp.mpf(0), 1 - y) for x, y in zip(curve.excess.tolist(), r, strict=True)]
    pad = [mp.mpf(x) for x in curve.pad.tolist()]
    for i in range(1, len(l) - 1):
        share = (r[i + 1] - r[i]) / (r[i + 1] - r[i - 1])
        chord = share * (height[i - 1] + pad[i - 1]) + (1 - share) * (height[i + 1] + pad[i + 1])
        assert height[i] - pad[i] <= chord + mp.mpf(10) ** -50
        assert height[i] - pad[i] <= height[i - 1] + pad[i - 1]


@pytest.mark.parametrize("case", [case for case in CASES if case.profile.top < 600], ids=str)
def test_beyond_the_largest_loss_only_the_mass_at_infinity_is_left(case: Case) -> None:
    top = case.profile.top
    curve = case.profile.curve(np.array([top, top + 1e-6 * abs(top), top + 3.0]))
    # A reversed pair reports no infinite loss of its own, but its curve must show it.
    assert curve.excess == pytest.approx(case.profile.at_infinity, rel=1e-12, abs=1e-13 * (1 + top))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_excess_lies_between_nothing_and_the_floor_below_one(case: Case) -> None:
    l = losses_for(case.profile)
    curve = case.profile.curve(l)
    assert np.all(curve.excess >= 0)
    assert np.all(curve.excess <= np.exp(np.minimum(l, 0.0)) * (1 + 1e-12))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("step", [0.5, 0.03])
def test_grids_increase_and_leave_out_little(case: Case, step: float) -> None:
    grid = case.profile.grid(step, -30.0)
    assert np.all(np.diff(grid) > 0) or len(grid) == 1
    # Finite ends of the support are always bracketed as well, whatever the grid.
    ends = np.array([min(grid[0], max(case.profile.bottom, -600.0)), max(grid[-1], min(case.profile.top, 600.0))])
    ends = np.where(np.isfinite([case.profile.bottom, case.profile.top]), ends, grid[[0, -1]])
    # What one law puts where the other has none shows at both ends; a reversed pair says so only in its curve.
    own = case.profile.inner if isinstance(case.profile, Reversed) else case.profile
    assert np.all(case.profile.curve(ends).excess <= own.at_infinity * 1.01 + math.exp(-29.0))


coins = st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)), min_size=2, max_size=5)


def profile_of(weights: list[tuple[float, float]], lost: float = 0.0) -> tuple[Atoms, oracles.Pairs]:
    """Any pair of laws on a few outcomes; each puts ``lost`` where the other has none."""
    p_total, q_total = (mp.fsum(pair[side] for pair in weights) for side in (0, 1))
    kept = 1 - mp.mpf(lost)
    pairs = [(kept * a / p_total, kept * b / q_total) for a, b in weights]
    pairs.sort(key=lambda pair: pair[0] / pair[1])
    losses = tuple(float(mp.log(a / b)) for a, b in pairs)
    made = Atoms(losses, tuple(float(a) for a, _ in pairs), tuple(float(b) for _, b in pairs), lost, symmetric=False)
    return made, pairs + ([(mp.mpf(lost), mp.mpf(0)), (mp.mpf(0), mp.mpf(lost))] if lost else [])


@given(weights=coins, lost=st.sampled_from([0.0, 1e-40, 1e-9, 0.3]), l=st.floats(-6, 6))
def test_any_pair_of_laws_on_a_few_outcomes_is_within_its_pad(
    weights: list[tuple[float, float]], lost: float, l: float
) -> None:
    profile, pairs = profile_of(weights, lost)
    curve = profile.curve(np.array([l]))
    assert abs(float(curve.excess[0]) - oracles.finite(pairs).excess(l)) <= curve.pad[0]


@given(weights=coins, l=st.floats(-5, 5))
def test_tails_sum_to_one_and_split_at_the_threshold(weights: list[tuple[float, float]], l: float) -> None:
    profile, _ = profile_of(weights, 0.1)
    tails = profile.tails(np.array([l]))
    assert tails.p_above + tails.p_below == pytest.approx(1, abs=1e-12)
    assert tails.q_above + tails.q_below == pytest.approx(1, abs=1e-12)
    assert float(tails.p_above[0]) >= 0.1
    assert float(tails.q_below[0]) >= 0.1


def test_masses_too_small_for_a_float_do_not_hide_the_other_law() -> None:
    """At a loss of -800 P's mass underflows to zero, and Q's is nearly one."""
    profile = Atoms((-800.0, 800.0), (0.0, 1.0), (1.0, 0.0))
    l = np.array([-700.0, -10.0, -1.0, 1.0, 799.0])
    expected = [math.exp(-700), math.exp(-10), math.exp(-1), 1.0, -math.expm1(-1)]
    assert profile.curve(l).excess.tolist() == pytest.approx(expected, rel=1e-12)


def test_the_ends_are_the_outermost_atoms_unless_mass_lies_beyond() -> None:
    profile, _ = profile_of([(1, 2), (2, 1)])
    assert profile.top == profile.losses[-1] == pytest.approx(math.log(2))
    assert profile.bottom == profile.losses[0]
    assert profile_of([(1, 2), (2, 1)], 0.1)[0].bottom == -math.inf
    assert profile.atoms() is profile
    assert profile.grid(0.1, -5).tolist() == list(profile.losses)
    assert profile.atomic


def test_a_pad_covers_the_error_its_masses_declare() -> None:
    sure, unsure = (Atoms((-1.0, 1.0), (0.3, 0.7), (0.7, 0.3), error=error) for error in (0.0, 1e-6))
    l = np.array([0.0, 0.5])
    gap = unsure.curve(l).pad - sure.curve(l).pad
    assert gap == pytest.approx(1e-6 * sure.curve(l).excess, rel=1e-6)
    assert unsure.tails(l).error == pytest.approx(1e-6, rel=1e-6)
    assert np.all(sure.curve(l).pad < 200 * U)


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
