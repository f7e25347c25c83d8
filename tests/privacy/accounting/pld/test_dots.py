"""Connect the dots: the measure as stored dominates the profile everywhere, whatever rounding did to it."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.accounting.pld.cases import CASES, Case
from tests.privacy.accounting.pld.oracles import Real

from defocus.privacy.accounting.pld import dots, loss
from defocus.privacy.accounting.pld.dots import Dots, connect, lattice
from defocus.privacy.accounting.pld.profiles import Floats, GaussianProfile, LaplaceProfile, U
from defocus.privacy.accounting.pld.sampling import Reversed, SampledProfile

SMALL = [case for case in CASES if case.profile.top > 1e-4]


def stored(measure: Dots) -> list[tuple[Real, Real]]:
    """Losses and masses exactly as stored."""
    return [
        (mp.mpf(l), mp.exp(mp.mpf(p))) for l, p in zip(measure.losses.tolist(), measure.log_p.tolist(), strict=True)
    ]


def height(measure: list[tuple[Real, Real]], lost: float, l: Real) -> Real:
    """The profile of a measure at a loss."""
    return mp.fsum(p * -mp.expm1(l - place) for place, p in measure if place > l) + lost


def truth(case: Case, l: float) -> Real:
    return case.excess(l) + max(mp.mpf(0), -mp.expm1(mp.mpf(l)))


def dominates(case: Case, measure: Dots, places: Floats) -> None:
    exact = stored(measure)
    # Logarithms are stored, whose rounding is accounted for with the weights, not with the shortfall.
    logs = 1 + U * (float(np.abs(measure.log_p).max()) + 1)
    for l in places.tolist():
        assert height(exact, measure.lost, mp.mpf(l)) * logs >= (1 - measure.shortfall) * truth(case, l), l


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("resolution", [0.7, 0.15])
def test_the_stored_measure_dominates_at_the_nodes_between_and_beyond(case: Case, resolution: float) -> None:
    span = max(min(case.profile.top, 8.0), 1e-9)
    step = 2.0 ** np.floor(np.log2(span / 300))
    losses = lattice(case.profile, step, resolution, -40.0) * step
    measure = connect(case.profile, losses, 1)
    assert 0 <= measure.shortfall < 1e-11
    nodes = losses[np.linspace(0, len(losses) - 1, 14).astype(int)]
    between = nodes[:-1] + np.diff(nodes) * np.random.default_rng(3).uniform(0.01, 0.99, len(nodes) - 1)
    beyond = np.array([losses[0] - 0.5, losses[0] * 1.01, losses[-1] * 1.01, losses[-1] + 0.5])
    beyond = beyond[np.abs(beyond) < 680]
    dominates(case, measure, np.concatenate((nodes[np.abs(nodes) < 680], between[np.abs(between) < 680], beyond)))


@settings(max_examples=60)
@given(
    case=st.sampled_from(SMALL),
    places=st.lists(st.floats(-6, 6), min_size=2, max_size=12, unique=True),
    ask=st.lists(st.floats(-7, 7), min_size=3, max_size=6),
)
def test_any_grid_at_all_gives_a_measure_that_dominates(case: Case, places: list[float], ask: list[float]) -> None:
    losses = np.unique(np.round(np.array(places), 4))
    if len(losses) < 2:
        return
    measure = connect(case.profile, losses, 1)
    assert measure.shortfall < 1e-9
    dominates(case, measure, np.concatenate((np.array(ask), losses)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_mass_is_kept_and_none_is_negative(case: Case) -> None:
    measure = connect(case.profile, loss._thinned(case.profile.grid(0.1, -40.0)), 3)
    total = mp.fsum(p for _, p in stored(measure)) + measure.lost
    assert 1 - measure.shortfall - 1e-12 <= total <= 1 + 1e-9
    assert measure.times == 3
    assert len(measure.losses) == len(measure.log_p) == len(measure.gaps)
    assert np.all(np.diff(measure.losses) > 0)
    assert measure.lost > 0


def test_a_fine_grid_is_tight() -> None:
    """Domination alone would allow putting everything at infinity."""
    profile = GaussianProfile(1.0)
    measure = connect(profile, np.asarray(lattice(profile, 2.0**-8, 0.01, -40.0) * 2.0**-8), 1)
    l = np.linspace(-2, 4, 25)
    curve = profile.curve(l)
    exact = stored(measure)
    for place, value in zip(l.tolist(), curve.excess.tolist(), strict=True):
        true = value + max(0.0, 1 - np.exp(place))
        assert height(exact, measure.lost, mp.mpf(place)) == pytest.approx(true, rel=5e-4)


@pytest.mark.parametrize("cut", [1e-9, 1e-6, 0.3])
@pytest.mark.parametrize("where", ["everywhere", "one atom", "at infinity"])
def test_corrupted_masses_show_in_the_shortfall(cut: float, where: str) -> None:
    profile = GaussianProfile(1.0)
    losses = np.linspace(-3, 3, 61)
    curve = profile.curve(losses)
    excess = (curve.excess + curve.pad).astype(np.longdouble)
    l = losses.astype(np.longdouble)
    width = np.exp(l[:-1]) * np.expm1(np.diff(l))
    measure = connect(profile, losses, 1)
    q = np.exp(measure.log_p.astype(np.longdouble) - l)
    lost = measure.lost
    honest = dots._shortfall(l, width, q, lost, excess)
    # Never less than what evaluating it may itself have rounded.
    assert 8 * U <= honest < 1e-13
    if where == "everywhere":
        q, lost = q * (1 - cut), lost * (1 - cut)
        expected = cut
    elif where == "one atom":
        q[50] *= 1 - cut
        left = [(mp.mpf(float(x)), mp.mpf(float(y))) for x, y in zip(l, q * np.exp(l), strict=True)]
        needed = excess + np.where(l < 0, -np.expm1(l), 0)
        expected = max(float(1 - height(left, lost, x) / float(y)) for (x, _), y in zip(left, needed, strict=True))
        assert expected > 1e-3 * cut
    else:
        lost *= 1 - cut
        expected = cut
    found = dots._shortfall(l, width, q, lost, excess)
    assert expected * (1 - 1e-3) - 1e-12 <= found <= expected * (1 + 1e-3) + 1e-12


def test_mass_missing_below_the_grid_shows_in_the_shortfall() -> None:
    profile = LaplaceProfile(1.0)
    losses = np.linspace(-1, 1, 21)
    l = losses.astype(np.longdouble)
    measure = connect(profile, losses, 1)
    q = np.zeros(len(l), dtype=np.longdouble)
    q[np.searchsorted(losses, measure.losses)] = np.exp(measure.log_p - measure.losses)
    curve = profile.curve(losses)
    q[0] *= 0.5
    width = np.exp(l[:-1]) * np.expm1(np.diff(l))
    found = dots._shortfall(l, width, q, measure.lost, (curve.excess + curve.pad).astype(np.longdouble))
    assert found == pytest.approx(0.5 * np.exp(measure.log_p[0]), rel=1e-6)


def test_atoms_on_the_grid_are_kept_exactly() -> None:
    case = next(case for case in CASES if case.name == "response 3.0 of 5")
    measure = connect(case.profile, np.array([-3.0, 0.0, 3.0]), 1)
    atoms = case.profile.atoms()
    assert atoms is not None
    assert np.exp(measure.log_p).tolist() == pytest.approx(list(atoms.p), rel=1e-12)


def test_tilted_weights_sum_to_one_and_their_cumulant_is_right() -> None:
    measure = connect(GaussianProfile(0.5), np.linspace(-4, 4, 300), 1)
    for theta in (-3.0, 0.0, 0.5, 40.0):
        weights, cumulant = measure.tilted(theta)
        exact = mp.log(mp.fsum(p * mp.exp(theta * l) for l, p in stored(measure)))
        assert weights.sum() == pytest.approx(1, abs=1e-14)
        assert abs(cumulant - exact) <= measure.digits(theta) * U


def test_digits_cover_the_error_of_every_tilted_weight() -> None:
    measure = connect(GaussianProfile(2.0), np.linspace(-30, 34, 400), 1)
    for theta in (0.3, 5.0, 30.0):
        weights, _ = measure.tilted(theta)
        exact = [p * mp.exp(mp.mpf(theta) * l) for l, p in stored(measure)]
        total = mp.fsum(exact)
        for computed, value in zip(weights.tolist(), exact, strict=True):
            assert abs(computed - value / total) <= measure.digits(theta) * U * value / total + mp.mpf(10) ** -307


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_lattice_holds_whole_multiples_and_brackets_ends_within_reach(case: Case) -> None:
    step = 2.0 ** np.floor(np.log2(max(min(case.profile.top, 8.0), 1e-9) / 100))
    indices = lattice(case.profile, step, 0.2, -30.0)
    assert indices.dtype == np.int64
    assert np.all(np.diff(indices) > 0)
    grid = case.profile.grid(0.2, -30.0)
    near = 600.0 if case.profile.atomic else 1e-3 * float(grid[-1] - grid[0])
    if case.profile.top < 600 and case.profile.top - grid[-1] <= near:
        assert indices[-1] * step >= case.profile.top > (indices[-1] - 1) * step
    if case.profile.bottom > -600 and grid[0] - case.profile.bottom <= near:
        assert indices[0] * step <= case.profile.bottom < (indices[0] + 1) * step


def test_losses_beyond_what_can_be_held_are_lost_not_forgotten() -> None:
    huge = connect(LaplaceProfile(20000.0), np.array([-20000.0, 0.0, 20000.0]), 1)
    assert huge.lost == pytest.approx(1.0)
    reversed_huge = connect(Reversed(SampledProfile(GaussianProfile(200.0), 0.5)), np.array([-2e4, 0.0, 2e4]), 1)
    assert huge.lost + float(np.exp(huge.log_p).sum()) >= 1 - 1e-12
    assert reversed_huge.lost + float(np.exp(reversed_huge.log_p).sum()) >= 1 - 1e-12


def test_a_grid_that_sees_nothing_of_the_law_says_that_all_is_lost() -> None:
    measure = connect(GaussianProfile(40.0), np.array([0.0, 1.0]), 1)
    assert measure.lost == pytest.approx(1.0)
    assert measure.tilted(1.0)[0].tolist() == [1.0]
