"""What every profile must satisfy, whatever its law: accuracy within its pad, and the laws of profiles."""

import math

import mpmath as mp
import numpy as np
import pytest
from tests.privacy.accounting.pld.cases import CASES, Case

from defocus.privacy.accounting.pld.profiles import Floats, Profile, U
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
