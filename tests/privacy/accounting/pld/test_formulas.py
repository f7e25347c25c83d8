"""Laws that are formulas: their transforms lie within the error they state, and so do the compositions made of them."""

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import rfft
from tests.privacy.accounting.pld import oracles
from tests.privacy.accounting.pld.oracles import Real

from defocus.privacy.accounting.pld import account, bounds, spectrum
from defocus.privacy.accounting.pld.bounds import SmoothWindow, formula_epsilon
from defocus.privacy.accounting.pld.formulas import Formula, GaussianFormula, LaplaceFormula, formula_of
from defocus.privacy.accounting.pld.loss import epsilon_above, epsilon_below, plan_for
from defocus.privacy.accounting.pld.lowering import lower
from defocus.privacy.accounting.pld.profiles import BoundedRange, Floats, GaussianProfile, U
from defocus.privacy.accounting.pld.spectrum import Dots, Part, Saddle, Spectrum, Window, saddle_for, window
from defocus.privacy.events import Approximate, DiscreteGaussian, Gaussian, Laplace, RandomizedResponse, Sampled
from defocus.privacy.units import Adjacency


def generating(form: Formula, s: Any) -> Real:
    """E_P e^(sL) with 60 digits."""
    if isinstance(form, GaussianFormula):
        return mp.exp(mp.mpf(form.mu) ** 2 * s * (1 + s) / 2)
    e, u = mp.mpf(form.epsilon), s + mp.mpf(1) / 2
    return mp.exp(-e / 2) * (mp.cosh(u * e) + mp.sinh(u * e) / (2 * u))


forms = st.one_of(
    st.builds(LaplaceFormula, epsilon=st.floats(1e-6, 30), times=st.integers(1, 10**6)),
    st.builds(GaussianFormula, mu=st.floats(1e-6, 10), blur=st.just(0.0), times=st.integers(1, 100)),
)


@pytest.mark.parametrize("epsilon", [0.01, 0.7, 5.0])
@pytest.mark.parametrize("s", [0, 0.3, mp.mpc(2, 9)])
def test_the_formula_of_laplace_noise_is_that_of_its_atoms_and_density(epsilon: float, s: Any) -> None:
    e = mp.mpf(epsilon)
    found = mp.exp(s * e) / 2 + mp.exp(-e - s * e) / 2
    found += mp.quad(lambda l: mp.exp(s * l + (l - e) / 2) / 4, mp.linspace(-e, e, 9))
    assert abs(found - generating(LaplaceFormula(epsilon, 1), s)) < mp.mpf(10) ** -30


@settings(max_examples=200)
@given(form=forms, theta=st.floats(1e-3, 60), t=st.floats(1e-3, 1e5))
def test_a_transform_is_within_its_error_and_below_its_envelope(form: Formula, theta: float, t: float) -> None:
    values, error = form.transform(theta, np.array([t]))
    true = generating(form, mp.mpc(theta, t)) / generating(form, mp.mpf(theta))
    assert abs(mp.mpc(complex(values[0])) - true) <= error[0]
    assert abs(true) <= mp.exp(form.envelope(theta, t))
    assert form.envelope(theta, t) <= form.envelope(theta, t / 3)


@settings(max_examples=60)
@given(form=forms, theta=st.floats(1e-3, 60))
def test_moments_are_derivatives_of_the_cumulant(form: Formula, theta: float) -> None:
    value, mean, variance = form.moments(theta)
    first, second = (mp.diff(lambda s: mp.log(generating(form, s)), theta, n) for n in (1, 2))
    assert abs(value - mp.log(generating(form, mp.mpf(theta)))) <= form.slack(theta)
    assert math.isclose(mean, first, rel_tol=1e-6, abs_tol=1e-12)
    assert math.isclose(variance, second, rel_tol=1e-3, abs_tol=1e-9)
    assert form.rise(theta) == form.lost == 0
    assert form.top >= mean


def true_delta(mu: float, epsilon: float, at: float) -> Real:
    """Of a Gaussian and a Laplace release together: the Gaussian's profile, averaged over the other's loss."""
    law, e = oracles.gaussian(mu), mp.mpf(epsilon)

    def profile(l: Real) -> Real:
        return law.excess(l) + max(mp.mpf(0), -mp.expm1(l))

    ends = profile(at - e) / 2 + mp.exp(-e) * profile(at + e) / 2
    kinks = [-e, mp.mpf(at), e] if -e < at < e else [-e, e]
    return ends + mp.quad(lambda l: profile(at - l) * mp.exp((l - e) / 2) / 4, kinks)


PARTS: list[Part] = [GaussianFormula(0.8, 0.0, 1), LaplaceFormula(0.5, 1)]


def view(step: float = 0.05, parts: list[Part] = PARTS, delta: float = 1e-6) -> SmoothWindow:
    found = saddle_for(parts, delta)
    return SmoothWindow(parts, step, found, found.epsilon, math.log(delta))


@pytest.mark.parametrize("at", [3.6, 3.9, 4.3, 5.0])
def test_a_gaussian_and_a_laplace_release_lie_between_their_bounds(at: float) -> None:
    true = true_delta(0.8, 0.5, at)
    made = view()
    assert made.delta_below(at) <= true <= mp.exp(made.log_delta(at))
    assert mp.exp(made.log_delta(at)) <= true * (1 + 1e-5)
    assert made.delta_below(at) >= true * (1 - 1e-5)


@pytest.mark.parametrize("step", [0.3, 1.0, 2.0])
def test_frequencies_that_are_left_out_are_paid_for(step: float) -> None:
    true, made = true_delta(0.8, 0.5, 4.0), view(step)
    assert made.delta_below(4.0) <= true <= mp.exp(made.log_delta(4.0))


@pytest.mark.parametrize("width", [0.5, 2.0, 6.0])
def test_what_wraps_is_paid_for_on_both_sides(width: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def narrow(*given: Any) -> Window:
        return window(*given)._replace(width=width)

    monkeypatch.setattr(bounds, "window", narrow)
    true, made = true_delta(0.8, 0.5, 4.0), view()
    assert made.delta_below(4.0) <= true <= mp.exp(made.log_delta(4.0))


def test_a_blurred_gaussian_costs_what_blurring_can_do() -> None:
    blur = 1e-7
    made = view(parts=[GaussianFormula(0.8, blur, 1)])
    law, at = oracles.gaussian(0.8), made.low + 0.5
    worst = mp.exp(blur) * law.excess(float(mp.mpf(at) - 2 * blur))
    assert worst <= mp.exp(made.log_delta(at)) <= worst * (1 + 1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_a_formula_beside_a_grid_matches_the_sum_over_atoms(epsilon: float) -> None:
    event, delta = Gaussian(1.25) + RandomizedResponse(epsilon), 1e-7
    law, atoms = oracles.gaussian(0.8), oracles.response(epsilon)

    def true(at: Real) -> Real:
        return mp.fsum(p * law.excess(at - mp.log(p / q)) for p, q in atoms)

    found = account(event, tolerance=1e-8).epsilon(delta)
    exact = oracles.epsilon_of(true, delta, digits=30)
    assert exact <= found <= exact * (1 + 1e-6)


MANY = LaplaceFormula(1e-3, 10**6)
MANY_AT_7 = "5.122271118333909452515e-12"
"""Delta of these at 7, by the trapezoidal rule in 40 digits along two contours."""


def fine(monkeypatch: pytest.MonkeyPatch) -> SmoothWindow:
    """A window in which next to nothing wraps or is left out, so that only rounding is seen."""

    def wide(*given: Any) -> Window:
        found = window(*given)
        return found._replace(width=3 * found.width)

    monkeypatch.setattr(bounds, "window", wide)
    return view(math.pi / 8000, [MANY], float(mp.mpf(MANY_AT_7)))


@pytest.mark.parametrize("sign", [-1, 1])
def test_what_rounding_may_do_to_a_cumulant_is_paid_for_on_both_sides(
    sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cumulant, true = LaplaceFormula.cumulant, mp.mpf(MANY_AT_7)

    def off(form: LaplaceFormula, theta: float) -> float:
        return cumulant(form, theta) + sign * 0.9 * form.slack(theta)

    monkeypatch.setattr(LaplaceFormula, "cumulant", off)
    made = fine(monkeypatch)
    assert made.delta_below(7.0) <= true <= mp.exp(made.log_delta(7.0))


@pytest.mark.parametrize("turn", [1, -1, 1j])
def test_what_rounding_may_do_to_a_transform_is_in_the_error_of_the_sum(
    turn: complex, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean, transform = fine(monkeypatch)._spectrum.excess(7.0), LaplaceFormula.transform

    def off(form: LaplaceFormula, theta: float, t: Floats) -> tuple[Any, Floats]:
        values, error = transform(form, theta, t)
        return values * (1 + turn * error * (t > 0)), error

    monkeypatch.setattr(LaplaceFormula, "transform", off)
    moved = fine(monkeypatch)._spectrum.excess(7.0)
    assert 1e-10 * clean.value < abs(moved.value - clean.value) <= moved.error


def test_what_rounding_may_do_to_the_coefficients_of_dots_is_in_the_error_of_the_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts: list[Part] = [GaussianFormula(0.8, 0.0, 1), dots(1e-9)]
    clean = view(0.25, parts)._spectrum.excess(2.0)

    def off(wrapped: Floats) -> Any:
        size = len(wrapped)
        change = np.zeros(size // 2 + 1)
        change[1] = spectrum._transform_error(size) * math.sqrt(size / 2 * float(np.square(wrapped).sum()))
        return rfft(wrapped) + change

    monkeypatch.setattr(spectrum, "rfft", off)
    moved = view(0.25, parts)._spectrum.excess(2.0)
    assert 0 < abs(moved.value - clean.value) <= moved.error


def dots(shortfall: float) -> Dots:
    """Five releases, each of a loss of one or its opposite."""
    losses, gaps = np.array([-1.0, 1.0]), np.full(2, 0.25)
    return Dots(losses, np.log([0.3, 0.7]), 0.0, shortfall, 5, gaps)


def test_a_grid_that_falls_short_beside_a_formula_is_paid_for() -> None:
    full, short = (view(0.25, [GaussianFormula(0.8, 0.0, 1), dots(s)]).log_delta(6.0) for s in (0.0, 0.01))
    assert short >= full - 5 * math.log1p(-0.01) - 1e-12


def test_slack_and_the_error_of_the_sum_widen_both_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    made = view()
    above, below = made.log_delta(4.0), made.delta_below(4.0)
    made.slack += 0.1
    assert made.log_delta(4.0) >= above + 0.0999
    assert made.delta_below(4.0) <= below * math.exp(-0.0999)
    made.slack -= 0.1
    excess = Spectrum.excess
    monkeypatch.setattr(
        Spectrum, "excess", lambda *given: (found := excess(*given))._replace(error=found.error + 0.1 * found.value)
    )
    assert made.log_delta(4.0) >= above + math.log(1.0999)
    assert made.delta_below(4.0) <= below * 0.9001


def test_phases_of_large_losses_lose_digits_that_are_paid_for() -> None:
    made = view()._spectrum
    period, near = Fraction(made.step) * made.size, 4.0
    far = near + 2.0**40
    turned = float((Fraction(far) - Fraction(near)) % period) + near
    one, other = made.excess(far), made.excess(turned)
    assert 1e-9 * other.value < abs(one.value - other.value) <= one.error + other.error


def test_adding_up_many_cumulants_is_paid_for() -> None:
    many = [LaplaceFormula(0.3 + i / 1000, 1) for i in range(300)]
    made, theta = view(parts=list(many))._spectrum, view(parts=list(many))._spectrum.theta
    assert made.slack >= sum(form.slack(theta) for form in many) + len(many) * U * made.cumulant


@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_a_release_that_may_fail_beside_a_formula_costs_its_delta(delta: float) -> None:
    law, atoms = oracles.gaussian(0.8), oracles.response(0.5)
    loss = account(Gaussian(1.25) + Approximate(0.5, delta))
    for at in (1.0, 5.0, 7.0):
        true = delta + (1 - mp.mpf(delta)) * mp.fsum(p * law.excess(at - mp.log(p / q)) for p, q in atoms)
        assert true <= loss.delta(at) <= true * (1 + 1e-3)


EVENTS = [
    1000 * Laplace(10),
    10**6 * Laplace(1000),
    40 * Laplace(3) + 3 * Gaussian(2),
    7 * Laplace(1),  # whose transform falls too slowly
    200 * Gaussian(20) + 100 * Laplace(20) + 5000 * Sampled(Gaussian(1.0), 0.01),
    50 * DiscreteGaussian(20, 2) + 200 * Laplace(9),
    Gaussian(3) + 20 * Sampled(Laplace(2), 0.1),
]


@pytest.mark.parametrize("event", EVENTS, ids=str)
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-40])
def test_formulas_and_grids_agree(event: Any, delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    terms = lower(event, Adjacency.ADD_REMOVE)
    above, below = epsilon_above(terms, delta, 1e-5), epsilon_below(terms, delta, 1e-5)
    monkeypatch.setattr("defocus.privacy.accounting.pld.loss.formula_of", lambda *_: None)
    on_grid, under_grid = epsilon_above(terms, delta, 1e-5), epsilon_below(terms, delta, 1e-5)
    assert max(below, under_grid) <= min(above, on_grid)
    assert above <= on_grid * (1 + 1e-4)


@settings(max_examples=40)
@given(
    epsilon=st.floats(1e-3, 4),
    times=st.integers(2, 24),
    delta=st.floats(-60, -0.5).map(math.exp),
    part=st.floats(0.05, 0.95),
)
def test_releases_with_laplace_noise_lie_within_their_bounds(
    epsilon: float, times: int, delta: float, part: float
) -> None:
    loss = account(times * Laplace(1 / Fraction(epsilon)))
    found = loss.interval(delta)
    assert oracles.laplace_delta(epsilon, times, found.upper) <= delta
    assert found.lower == 0 or oracles.laplace_delta(epsilon, times, found.lower) >= delta
    assert found.upper - found.lower <= 1e-4 * found.upper
    at = part * times * epsilon
    true = oracles.laplace_delta(epsilon, times, at)
    assert true <= loss.delta(at) <= true * 1.01


def test_a_delta_below_all_numbers_is_not_none() -> None:
    loss = account(3 * Laplace(6) + Gaussian(14))
    assert 0 < loss.delta(3.5) < 1e-299


def test_formulas_that_need_too_many_frequencies_get_a_grid() -> None:
    plan = plan_for(lower(Laplace(2) + Gaussian(10**30), Adjacency.ADD_REMOVE), 1e-40, 1e-5, formulas=True)
    assert plan is not None
    assert plan.indices


@pytest.mark.parametrize("delta", [1e-20, 1e-40, 1e-267, 1e-305])
@pytest.mark.parametrize(
    ("event", "most"),
    [
        (40 * Laplace(3), 40 / 3),
        (5 * Laplace(2) + RandomizedResponse(1), 3.5),
        (4 * Sampled(Laplace(2), 0.25) + Laplace(4), 4 * math.log1p(0.25 * math.expm1(0.5)) + 0.25),
    ],
)
def test_losses_that_are_their_largest_bound_epsilon_from_below(event: Any, most: float, delta: float) -> None:
    found = account(event).interval(delta)
    assert most * (1 - 1e-8) <= found.lower <= most * (1 + 1e-12)
    assert found.lower <= found.upper <= most * (1 + 1e-12)


def test_noise_of_a_formula_needs_neither_grid_nor_tolerance() -> None:
    plan = plan_for(lower(1000 * Laplace(10), Adjacency.ADD_REMOVE), 1e-6, 1e-3, formulas=True)
    assert plan is not None
    assert not plan.indices
    interval = account(1000 * Laplace(10), tolerance=1e-9).interval(1e-6)
    assert 0 < interval.upper - interval.lower < 1e-6
    assert formula_epsilon(plan.parts, plan.step, Saddle(1.0, 1e-12, 1.0, -14.0), 1e-6, 1e-12) == 0


def test_only_gaussians_and_laplace_noise_are_formulas() -> None:
    assert formula_of(BoundedRange(0.1), 3) is None
    assert formula_of(GaussianProfile(1.0, 1e-3), 1) is None
