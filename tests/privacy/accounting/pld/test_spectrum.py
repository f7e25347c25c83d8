"""Tail sums from Fourier coefficients: the exact convolution lies within the error returned, on both paths."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import rfft
from tests.privacy.accounting.pld import oracles
from tests.privacy.accounting.pld.cases import CASES, Case
from tests.privacy.accounting.pld.oracles import Real

from defocus.privacy.accounting.pld import loss, spectrum
from defocus.privacy.accounting.pld import spectrum as dots
from defocus.privacy.accounting.pld.profiles import Floats, GaussianProfile, LaplaceProfile, U
from defocus.privacy.accounting.pld.sampling import Reversed, SampledProfile
from defocus.privacy.accounting.pld.spectrum import (
    Dots,
    Spectrum,
    connect,
    cumulant,
    lattice,
    moments,
    saddle_at,
    saddle_for,
    window,
)

STEP = 0.125


def part(masses: dict[int, float], times: int, shortfall: float = 0.0) -> Dots:
    places = sorted(masses)
    log_p = np.log([masses[k] for k in places])
    return Dots(np.array(places) * STEP, log_p, 0.0, shortfall, times, np.full(len(places), STEP))


def convolved(parts: list[Dots]) -> dict[int, Real]:
    """The whole composition on the lattice, from the logarithms as stored."""
    law = {0: mp.mpf(1)}
    for one in parts:
        masses = [
            (round(l / STEP), mp.exp(mp.mpf(p))) for l, p in zip(one.losses.tolist(), one.log_p.tolist(), strict=True)
        ]
        for _ in range(one.times):
            grown: dict[int, Real] = {}
            for k, a in law.items():
                for j, b in masses:
                    grown[k + j] = grown.get(k + j, mp.mpf(0)) + a * b
            law = grown
    return law


def exact_tail(
    parts: list[Dots], theta: float, size: int, *, first: int, last: int, rate: float, reference: int
) -> Real:
    """What ``tail`` computes: the tilted law, scaled to one, wrapped onto the window, weighted and summed."""
    law = {k: p * mp.exp(mp.mpf(theta) * STEP * k) for k, p in convolved(parts).items()}
    total = mp.fsum(law.values())
    found = mp.mpf(0)
    for k, p in law.items():
        place = first + (k - first) % size
        if place <= last:
            found += p * mp.exp(-mp.mpf(rate) * STEP * (place - reference))
    return found / total


masses = st.dictionaries(st.integers(-6, 8), st.floats(1e-6, 1.0), min_size=1, max_size=6)


@pytest.mark.parametrize("many", [0, 10**9], ids=["inverse transform", "frequencies"])
@settings(max_examples=40)
@given(
    parts=st.lists(st.tuples(masses, st.integers(1, 6)), min_size=1, max_size=2),
    theta=st.floats(0.05, 4),
    size=st.sampled_from([40, 64, 81, 97, 250, 1024]),
    start=st.integers(-30, 30),
    count=st.floats(0.02, 1.0),
    steeper=st.sampled_from([0.0, 1.0]),
)
def test_the_exact_convolution_lies_within_the_error(
    *,
    many: int,
    parts: list[tuple[dict[int, float], int]],
    theta: float,
    size: int,
    start: int,
    count: float,
    steeper: float,
) -> None:
    made = [part(m, times) for m, times in parts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spectrum, "_MANY", many)
        view = Spectrum(made, STEP, theta, size)
    assert (view._law is None) == (len(view._index) <= many)
    last, rate = start + max(1, int(count * size)) - 1, theta + steeper
    computed = view.tail(start, last, rate, start + 2)
    exact = exact_tail(made, theta, size, first=start, last=last, rate=rate, reference=start + 2)
    weights = exact * math.expm1(view.slack)
    assert abs(computed.value - exact) <= computed.error + weights
    assert computed.error <= 1e-9 * (1 + math.exp(2 * rate * STEP))


@pytest.mark.parametrize("many", [0, 10**9], ids=["inverse transform", "frequencies"])
@pytest.mark.parametrize("times", [30, 200])
def test_long_compositions_of_a_coin_match_the_binomial(many: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectrum, "_MANY", many)
    p, theta, size = 0.25, 1.2, 512
    made = [part({-1: 1 - p, 1: p}, times)]
    view = Spectrum(made, STEP, theta, size)
    first, last = 10, 10 + size // 2
    computed = view.tail(first, last, theta, first)
    # The stored logarithms are the masses, not p itself.
    log_p = [mp.mpf(x) for x in made[0].log_p.tolist()]
    law = {
        2 * k - times: mp.binomial(times, k)
        * mp.exp(k * log_p[1] + (times - k) * log_p[0] + theta * STEP * (2 * k - times))
        for k in range(times + 1)
    }
    total = mp.fsum(law.values())
    exact = mp.fsum(
        w * mp.exp(-theta * STEP * ((k - first) % size)) for k, w in law.items() if (k - first) % size <= last - first
    )
    assert abs(computed.value - exact / total) <= computed.error + math.expm1(view.slack) * exact / total
    assert abs(view.cumulant - mp.log(total)) <= view.slack


@given(size=st.integers(2, 3000), seed=st.integers(0, 99))
@settings(max_examples=60)
def test_the_transform_errs_by_less_than_its_bound(size: int, seed: int) -> None:
    """Against the transform in extended precision by direct summation at a few frequencies, scaled to all."""
    x = np.random.default_rng(seed).exponential(1, size)
    computed = rfft(x)
    picked = np.unique(np.linspace(0, size // 2, 12).astype(int))
    turns = np.outer(picked, np.arange(size)) % size
    angle = 2 * np.pi * turns.astype(np.longdouble) / size
    exact = (x * np.cos(angle)).sum(axis=1) - 1j * (x * np.sin(angle)).sum(axis=1)
    error = np.sqrt(float((np.abs(computed[picked] - exact) ** 2).sum()))
    assert error <= spectrum._transform_error(size) * math.sqrt(size) * math.sqrt(float(x @ x)) + 1e-15 * size


def test_both_paths_agree() -> None:
    made = [part({-3: 0.2, 0: 0.5, 5: 0.3}, 20), part({-1: 0.5, 1: 0.5}, 7)]
    found = []
    for many in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spectrum, "_MANY", many)
            view = Spectrum(made, STEP, 0.7, 600)
        found.append([view.tail(first, 300, 1.7, 12) for first in (12, 13, 40, 80)])
    for one, other in zip(*found, strict=True):
        assert abs(one.value - other.value) <= one.error + other.error


def test_a_tail_that_starts_far_into_the_window_is_summed_all_the_same() -> None:
    """Weights from the window's start would have underflowed there."""
    made = [part({-3: 0.2, 0: 0.5, 5: 0.3}, 20)]
    for many in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spectrum, "_MANY", many)
            view = Spectrum(made, STEP, 4.0, 1200)
        far = view.tail(80, 99, 8.0, 80)
        exact = exact_tail(made, 4.0, 1200, first=80, last=99, rate=8.0, reference=80)
        assert abs(far.value - exact) <= far.error + exact * math.expm1(view.slack)
        late = view.tail(800, 1199, 8.0, 800)
        assert abs(late.value) <= late.error


def test_the_order_of_the_parts_changes_nothing() -> None:
    a, b = part({-3: 0.2, 5: 0.8}, 3), part({-1: 0.5, 1: 0.5}, 70)
    one, other = Spectrum([a, b], STEP, 0.7, 600), Spectrum([b, a], STEP, 0.7, 600)
    assert one.tail(3, 200, 0.7, 3) == other.tail(3, 200, 0.7, 3)
    assert one.cumulant == other.cumulant


def test_a_shortfall_is_paid_for_once_per_repetition() -> None:
    for shortfall in (1e-9, 1e-3, 0.75):
        plain, short = (Spectrum([part({0: 0.5, 1: 0.5}, 10, s)], STEP, 1.0, 64) for s in (0.0, shortfall))
        assert short.slack - plain.slack == pytest.approx(-10 * math.log1p(-shortfall), rel=1e-9, abs=1e-15)


def test_a_measure_that_falls_short_entirely_proves_nothing() -> None:
    assert Spectrum([part({0: 0.5, 1: 0.5}, 10, 1.0)], STEP, 1.0, 64).slack == math.inf


@pytest.mark.parametrize("exponent", [1, 2, 3, 17, 64, 1000, 99999])
def test_powers_are_right_to_four_units_per_factor(exponent: int) -> None:
    base = np.exp(1j * np.linspace(0, 3, 9)) * (1 - 1e-6)
    for computed, value in zip(spectrum._power(base, exponent).tolist(), base.tolist(), strict=True):
        exact = mp.mpc(value) ** exponent
        assert abs(computed - exact) <= (4 * exponent + 4) * U * abs(exact)


def test_the_error_grows_when_the_transform_is_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """The returned error really contains the transform's."""
    made = [part({-3: 0.2, 0: 0.5, 5: 0.3}, 20)]
    before = Spectrum(made, STEP, 0.7, 600).tail(12, 300, 0.7, 12).error
    honest = spectrum._transform_error
    monkeypatch.setattr(spectrum, "_transform_error", lambda size: 1e6 * honest(size))
    assert Spectrum(made, STEP, 0.7, 600).tail(12, 300, 0.7, 12).error > 1e4 * before


MU, TIMES = 0.1, 400
WHOLE = MU * math.sqrt(TIMES)


@pytest.fixture
def parts() -> list[Dots]:
    return [connect(GaussianProfile(MU), np.linspace(-1.5, 1.5, 3001), TIMES)]


@pytest.mark.parametrize("theta", [0.0, 0.5, 2.0, 5.0])
def test_cumulants_and_moments_are_those_of_the_normal_law(parts: list[Dots], theta: float) -> None:
    value, mean, variance = moments(parts, theta)
    assert value == pytest.approx(WHOLE**2 / 2 * theta * (1 + theta), abs=1e-3)
    assert value == cumulant(parts, theta)
    assert mean == pytest.approx(WHOLE**2 * (theta + 0.5), rel=1e-3)
    assert variance == pytest.approx(WHOLE**2, rel=1e-3)


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-30])
def test_the_tilt_for_a_delta_is_close_to_the_true_epsilon(parts: list[Dots], delta: float) -> None:
    found = saddle_for(parts, delta, tolerance=1e-3)
    true = float(oracles.gaussian_epsilon(WHOLE, delta))
    assert found.epsilon == pytest.approx(true, rel=0.01, abs=0.05)
    assert found.log_delta == pytest.approx(math.log(delta), abs=0.01)


@pytest.mark.parametrize("epsilon", [0.0, 3.0, 20.0])
def test_the_tilt_at_an_epsilon_estimates_its_delta(parts: list[Dots], epsilon: float) -> None:
    found = saddle_at(parts, epsilon)
    true = math.log(float(oracles.gaussian(WHOLE).excess(epsilon)))
    assert found.log_delta == pytest.approx(true, abs=0.5)


def test_a_law_of_one_atom_has_a_finite_tilt() -> None:
    one = [Dots(np.array([800.0]), np.array([0.0]), 0.0, 0.0, 3, np.array([1.0]))]
    found = saddle_for(one, 1e-5)
    assert found.epsilon == pytest.approx(2400)
    assert 0 < found.theta < 1e12


@pytest.mark.parametrize("delta", [0.5, 1e-5, 1e-50])
def test_the_window_is_wide_enough_for_what_wraps(parts: list[Dots], delta: float) -> None:
    found = saddle_for(parts, delta)
    chosen = window(parts, found, max(found.epsilon, 0.0), math.log(delta))
    assert 0 < chosen.theta <= 1.1 * found.theta
    assert chosen.theta * chosen.width >= -math.log(delta)
    top = max(found.epsilon, 0.0) + chosen.width
    beyond = min(value - steeper * top for steeper, value in chosen.cumulants)
    assert beyond <= math.log(delta) - math.log(1e6)


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
    needed = excess + np.where(l < 0, -np.expm1(l), 0)
    honest = dots._shortfall(np.exp(l), width, q, lost, needed)
    # Never less than what evaluating it may itself have rounded.
    assert 8 * U <= honest < 1e-13
    if where == "everywhere":
        q, lost = q * (1 - cut), lost * (1 - cut)
        expected = cut
    elif where == "one atom":
        q[50] *= 1 - cut
        left = [(mp.mpf(float(x)), mp.mpf(float(y))) for x, y in zip(l, q * np.exp(l), strict=True)]
        expected = max(float(1 - height(left, lost, x) / float(y)) for (x, _), y in zip(left, needed, strict=True))
        assert expected > 1e-3 * cut
    else:
        lost *= 1 - cut
        expected = cut
    found = dots._shortfall(np.exp(l), width, q, lost, needed)
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
    needed = (curve.excess + curve.pad).astype(np.longdouble) + np.where(l < 0, -np.expm1(l), 0)
    found = dots._shortfall(np.exp(l), width, q, measure.lost, needed)
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
