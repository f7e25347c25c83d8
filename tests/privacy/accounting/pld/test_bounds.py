"""Bounds on a lattice: the truth lies between them, for random Gaussians in 60 digits and for a peer's settings."""

import math
import random

import dp_accounting
import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as peer
from tests.privacy.accounting.pld import oracles
from tests.privacy.accounting.pld.cases import atoms_of

from defocus.privacy.accounting.pld import account, bounds
from defocus.privacy.accounting.pld.bounds import UpperWindow, enumerated, lower_epsilon, upper_epsilon
from defocus.privacy.accounting.pld.loss import PldLoss, plan_for
from defocus.privacy.accounting.pld.lowering import Term
from defocus.privacy.accounting.pld.profiles import Atoms, GaussianProfile, LaplaceProfile, Profile
from defocus.privacy.accounting.pld.sampling import SampledProfile
from defocus.privacy.accounting.pld.spectrum import Dots, Spectrum, TailSum, Window, cumulant
from defocus.privacy.events import Approximate, DiscreteLaplace, Gaussian, Pure, RandomizedResponse, Sampled


def gaussians(mu: float, times: int, tolerance: float = 5e-6) -> PldLoss:
    """T Gaussians left apart, which the accountant itself would merge: they must go over the lattice."""
    profile = GaussianProfile(mu)
    return PldLoss((Term(profile, times, profile, None),), tolerance)


def drawn(seed: int) -> tuple[int, float, float]:
    rng = random.Random(seed)
    times = int(10 ** rng.uniform(0.31, 5))
    mu = 10 ** rng.uniform(-3, 0.8) / math.sqrt(times) * rng.choice([1, 3])
    return times, mu, 10 ** rng.uniform(-60, -2)


def holds(seed: int) -> None:
    times, mu, delta = drawn(seed)
    loss = gaussians(mu, times)
    whole = mp.mpf(mu) * mp.sqrt(times)
    true = oracles.gaussian_epsilon(whole, delta)
    found = loss.interval(delta)
    assert found.lower <= true <= found.upper
    if true > 0:
        assert found.upper <= true * (1 + 2e-4)
        assert found.lower >= true * (1 - 3e-3)
        exact = oracles.gaussian(whole).excess(float(true))
        assert exact <= loss.delta(float(true)) <= exact * (1 + 1e-2)


@pytest.mark.parametrize("seed", range(40))
def test_random_gaussians_lie_inside_their_interval(seed: int) -> None:
    holds(seed)


@pytest.mark.long
def test_many_more_random_gaussians_lie_inside_their_interval() -> None:
    for seed in range(1000, 1100):
        holds(seed)


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-40])
def test_delta_is_bounded_at_every_epsilon_of_the_view(delta: float) -> None:
    times, mu = 500, 0.05
    terms = gaussians(mu, times).terms
    plan = plan_for(terms, delta, 5e-6)
    assert plan is not None
    view = UpperWindow(plan.dots, plan.step, plan.found, plan.found.epsilon, math.log(delta))
    law = oracles.gaussian(mp.mpf(mu) * mp.sqrt(times))
    for epsilon in np.linspace(max(view.low, 0.0), plan.found.epsilon + plan.found.spread, 25).tolist():
        exact = float(mp.log(law.excess(epsilon)))
        assert exact <= view.log_delta(epsilon)
        if epsilon < plan.found.epsilon:
            assert view.log_delta(epsilon) <= exact + 1e-3


def test_delta_off_the_lattice_is_bounded_too() -> None:
    terms = gaussians(0.3, 20).terms
    plan = plan_for(terms, 1e-6, 1e-4)
    assert plan is not None
    view = UpperWindow(plan.dots, plan.step, plan.found, plan.found.epsilon, math.log(1e-6))
    law = oracles.gaussian(mp.mpf(0.3) * mp.sqrt(20))
    at = math.floor(plan.found.epsilon / plan.step)
    for share in (0.0, 1e-12, 0.3, 0.5, 0.999999):
        epsilon = (at + share) * plan.step
        assert law.excess(epsilon) <= math.exp(view.log_delta(epsilon))


def test_mass_at_infinity_and_shortfall_are_both_paid_for() -> None:
    plan = plan_for(gaussians(0.1, 100).terms, 1e-6, 1e-5)
    assert plan is not None
    (honest,) = plan.dots
    centre, log_delta = plan.found.epsilon, math.log(1e-6)

    def at(dots: Dots) -> float:
        return math.exp(UpperWindow([dots], plan.step, plan.found, centre, log_delta).log_delta(centre))

    base = at(honest)
    fields = (honest.losses, honest.log_p)
    lossy = Dots(*fields, 1e-8, honest.shortfall, 100, honest.gaps)
    short = Dots(*fields, honest.lost, 1e-3, 100, honest.gaps)
    hopeless = Dots(*fields, honest.lost, 1.0, 100, honest.gaps)
    assert at(lossy) == pytest.approx(base + 1e-6, rel=1e-3)
    assert at(short) == pytest.approx(base * 0.999**-100, rel=1e-3)
    # The shortfall of the other steps also enlarges what one step puts at infinity.
    mostly = Dots(*fields, 1e-5, 1e-3, 100, honest.gaps)
    assert at(mostly) >= (base + 100 * 1e-5) * 0.999**-100 * (1 - 1e-3)
    assert UpperWindow([hopeless], plan.step, plan.found, centre, log_delta).log_delta(centre) == math.inf
    assert upper_epsilon([lossy], plan.step, plan.found, 1e-6, 1e-6) == math.inf
    assert upper_epsilon([hopeless], plan.step, plan.found, 1e-6, 1e-6) == math.inf


def test_what_lies_beyond_the_window_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window far too small wraps and cuts off, and the bound must still hold."""
    times, mu, delta = 400, 0.05, 1e-5
    plan = plan_for(gaussians(mu, times).terms, delta, 1e-5)
    assert plan is not None
    law = oracles.gaussian(mp.mpf(mu) * mp.sqrt(times))
    for size in (64, 256, 1024):
        monkeypatch.setattr(bounds, "_LARGEST_WINDOW", size)
        view = UpperWindow(plan.dots, plan.step, plan.found, plan.found.epsilon, math.log(delta))
        for epsilon in (plan.found.epsilon, (view.low + view.high) / 2, view.high):
            assert view.log_delta(epsilon) >= mp.log(law.excess(epsilon))


def test_a_small_window_never_makes_the_lower_bound_too_high(monkeypatch: pytest.MonkeyPatch) -> None:
    times, mu, delta = 400, 0.05, 1e-5
    terms = gaussians(mu, times).terms
    plan = plan_for(terms, delta, 1e-5)
    assert plan is not None
    true = oracles.gaussian_epsilon(mp.mpf(mu) * mp.sqrt(times), delta)
    bins = [(terms[0].profile, times, plan.indices[0])]
    found = []
    for size in (64, 1024, 2**13, 2**14, 2**23):
        monkeypatch.setattr(bounds, "_LARGEST_WINDOW", size)
        found.append(lower_epsilon(bins, plan.step, plan.found, delta, float(true)))
        assert found[-1] <= true
    # What may have wrapped is taken off, so that a window far too small shows nothing at all.
    assert found[0] == 0.0
    assert found[-1] >= 0.999 * true


def test_both_ways_of_wrapping_are_taken_off_the_power(monkeypatch: pytest.MonkeyPatch) -> None:
    times, mu, delta = 400, 0.05, 1e-5
    terms = gaussians(mu, times).terms
    plan = plan_for(terms, delta, 1e-5)
    assert plan is not None
    question = ([(terms[0].profile, times, plan.indices[0])], plan.step, plan.found, delta, plan.found.epsilon)
    assert lower_epsilon(*question) > 0
    monkeypatch.setattr(bounds, "_from_above", lambda *_: 1.0)
    assert lower_epsilon(*question) == 0
    monkeypatch.setattr(bounds, "_from_above", lambda *_: 0.0)
    assert lower_epsilon(*question) > 0
    # A window over which the tilt only falls by e^8: far more wraps from below than delta.
    monkeypatch.setattr(bounds, "_LARGEST_WINDOW", round(8 / (plan.found.theta * plan.step)))
    assert lower_epsilon(*question) == 0


def test_rounding_is_taken_off_the_power_and_added_to_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    times, mu, delta = 400, 0.05, 1e-5
    terms = gaussians(mu, times).terms
    plan = plan_for(terms, delta, 1e-5)
    assert plan is not None
    question = ([(terms[0].profile, times, plan.indices[0])], plan.step, plan.found, delta, plan.found.epsilon)
    before = lower_epsilon(*question)
    honest = Spectrum.tail

    def rough(self: Spectrum, first: int, last: int, rate: float, reference: int) -> TailSum:
        value = honest(self, first, last, rate, reference).value
        return TailSum(value, 0.05 * value)

    monkeypatch.setattr(Spectrum, "tail", rough)
    assert 0 < lower_epsilon(*question) < before + math.log(0.95 / 1.05) / 2


@pytest.mark.slow
@pytest.mark.parametrize("delta", [5.5e-4, 1e-3, 1e-2])
def test_open_failures_too_many_to_enumerate_lie_inside_their_interval(delta: float) -> None:
    """5000 mechanisms of (.01, 1e-7): with probability near 5e-4 one fails, and the rest is a binomial."""
    times, epsilon, failing = 5000, 0.01, mp.mpf(1e-7)
    p, q = oracles.response(epsilon)[0]
    kept = (1 - failing) ** times
    ways = [mp.binomial(times, k) for k in range(times + 1)]
    pairs = [
        (kept * w * p**k * q ** (times - k), kept * w * q**k * p ** (times - k)) for k, w in enumerate(ways) if k > 2300
    ]
    true = oracles.epsilon_of(lambda e: 1 - kept + oracles.delta_of(pairs, e), delta, digits=40)
    found = account(times * Approximate(epsilon, 1e-7)).interval(delta)
    assert found.lower <= true <= found.upper
    assert found.upper - found.lower <= 2e-3 * true


def test_bins_are_rounded_to_the_side_they_are_asked_for() -> None:
    profile, law = GaussianProfile(1.0), oracles.gaussian(1.0)
    # Bins so narrow that the difference of two tails keeps few digits.
    l = np.concatenate((np.linspace(-30, 30, 301), 1 + 1e-12 * np.arange(40), -2 - 1e-13 * np.arange(40)))
    l = np.unique(l)
    tails = profile.tails(l)
    low = bounds._bins(tails.p_above, tails.p_below, tails.error, -1.0)
    high = bounds._bins(tails.p_above, tails.p_below, tails.error, 1.0)
    ends = [-mp.inf, *(mp.mpf(x) for x in l.tolist()), mp.inf]
    for i, (least, most) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        if i == 0:
            exact = law.p_below(ends[1])
        elif i == len(l):
            exact = law.p_above(ends[-2])
        elif ends[i] > 0:
            exact = law.p_above(ends[i]) - law.p_above(ends[i + 1])
        else:
            exact = law.p_below(ends[i + 1]) - law.p_below(ends[i])
        assert least <= exact * (1 + mp.mpf(10) ** -40) + 1e-300
        assert exact <= most * (1 + mp.mpf(10) ** -40) + 1e-300


def test_what_may_wrap_from_above_is_bounded_by_what_lies_there() -> None:
    """A coin of losses ±1: all that lies a turn or more above the start, weighted as wrapping weighs it."""
    coin = [Dots(np.array([-1.0, 1.0]), np.log([0.5, 0.5]), 0.0, 0.0, 30, np.ones(2))]
    theta, width, start = 0.2, 12.0, 4.0
    chosen = Window(theta, width, tuple((s, cumulant(coin, s)) for s in (0.3, 0.5, 0.8, 1.2)))
    exact = mp.mpf(0)
    for k in range(31):
        place = 2 * k - 30
        turns = math.floor((place - start) / width)
        if turns >= 1:
            exact += mp.binomial(30, k) / mp.mpf(2) ** 30 * mp.exp(theta * turns * width)
    assert 0 < exact <= bounds._from_above(chosen, start, width) <= 100 * exact


def test_a_tilt_and_a_start_far_from_the_best_cost_tightness_only() -> None:
    times, mu, delta = 300, 0.1, 1e-6
    terms = gaussians(mu, times).terms
    plan = plan_for(terms, delta, 1e-4)
    assert plan is not None
    true = oracles.gaussian_epsilon(mp.mpf(mu) * mp.sqrt(times), delta)
    bins = [(terms[0].profile, times, plan.indices[0])]
    for theta in (0.3, 0.7, 1.5, 4.0):
        for shift in (0.5, 1.0, 2.0):
            found = plan.found._replace(theta=plan.found.theta * theta, epsilon=plan.found.epsilon * shift)
            assert upper_epsilon(plan.dots, plan.step, found, delta, 1e-5) >= true
            assert lower_epsilon(bins, plan.step, found, delta, float(true)) <= true


def agree(seed: int, interval: float) -> None:
    rng = random.Random(seed)
    sigma, rate = 10 ** rng.uniform(-0.25, 1), 10 ** rng.uniform(-3, -0.3)
    times, delta = int(10 ** rng.uniform(0.5, 3.5)), 10 ** rng.uniform(-8, -3)
    single = peer.from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=interval, use_connect_dots=True
    )
    theirs = single.self_compose(times).get_epsilon_for_delta(delta)
    ours = account(times * Sampled(Gaussian(sigma), rate)).interval(delta)
    assert ours.lower <= theirs * (1 + 1e-9) + 1e-9
    # Theirs is an upper bound, loose by its discretisation; ours lies below it unless both are negligible.
    assert ours.upper <= theirs * (1 + 1e-3) + 10 * interval
    assert dp_accounting is not None


@pytest.mark.parametrize("seed", range(12))
def test_random_training_runs_do_not_contradict_the_peer(seed: int) -> None:
    """dp_accounting 0.6.0, pessimistic, where delta is large enough for its rounding."""
    agree(seed, 1e-3)


@pytest.mark.long
def test_many_random_training_runs_do_not_contradict_the_peer() -> None:
    for seed in range(100, 124):
        agree(seed, 2e-4)


@pytest.mark.parametrize(
    ("sigma", "rate", "times", "delta"),
    [
        (1.0, 0.01, 1000, 1e-5),
        (1.0, 0.01, 1000, 1e-20),
        (1.0, 0.01, 1000, 1e-60),
        (1.0, 0.01, 1000, 1e-100),
        (0.7, 0.001, 5000, 1e-30),
        (2.0, 0.2, 100, 1e-15),
        (5.0, 0.5, 300, 1e-40),
        (1.1, 256 / 60000, 14063, 1e-12),
    ],
)
def test_sampled_gaussians_at_tiny_delta_match_inversion_along_a_contour(
    sigma: float, rate: float, times: int, delta: float
) -> None:
    true = oracles.sampled_gaussian_epsilon(sigma, rate, times, delta)
    found = account(times * Sampled(Gaussian(sigma), rate)).interval(delta)
    assert found.lower <= true * (1 + 1e-8)
    assert true * (1 - 1e-8) <= found.upper <= true * (1 + 1e-4)
    assert found.lower >= true * (1 - 5e-3)


def within(made: Atoms | None, pairs: oracles.Pairs, places: list[float]) -> None:
    assert made is not None
    curve = made.curve(np.array(places))
    for l, value, pad in zip(places, curve.excess.tolist(), curve.pad.tolist(), strict=True):
        assert abs(value - oracles.delta_of(pairs, l)) <= pad, l
        assert pad <= 1e-9


@pytest.mark.parametrize("epsilon", [1e-4, 0.3, 3.0, 40.0, 800.0])
@pytest.mark.parametrize("times", [2, 10, 60])
def test_repeated_coins_are_within_their_pad(epsilon: float, times: int) -> None:
    made = enumerated([(atoms_of(RandomizedResponse(epsilon)), times)])
    pairs = oracles.repeated(oracles.response(epsilon), times)
    within(made, pairs, [0.0, 0.3 * epsilon, epsilon, 0.31 * times * epsilon, 0.9 * times * epsilon])


def test_a_thousand_coins_match_the_binomial() -> None:
    made = enumerated([(atoms_of(Pure(0.1)), 1000)])
    p, q = oracles.response(0.1)[0]
    pairs = [
        (mp.binomial(1000, k) * p**k * q ** (1000 - k), mp.binomial(1000, k) * q**k * p ** (1000 - k))
        for k in range(1001)
    ]
    within(made, pairs, [0.0, 1.0, 10.0, 19.0, 40.0])


def test_many_categories_and_mixtures_are_within_their_pad() -> None:
    five, coin = oracles.response(1.0, 5), oracles.response(0.5)
    made = enumerated([(atoms_of(RandomizedResponse(1.0, 5)), 4), (atoms_of(RandomizedResponse(0.5)), 3)])
    within(made, oracles.both(oracles.repeated(five, 4), oracles.repeated(coin, 3)), [0.0, 0.7, 1.5, 3.0, 5.4])


def test_sampled_coins_and_discrete_laplace_are_within_their_pad() -> None:
    sampled = SampledProfile(atoms_of(RandomizedResponse(2.0)), 0.1)
    laplace = atoms_of(DiscreteLaplace(2.5, 3))
    made = enumerated([(sampled, 5), (laplace, 2)])
    exact = oracles.both(
        oracles.repeated(oracles.sampled(oracles.response(2.0), 0.1), 5),
        oracles.repeated(oracles.discrete_laplace(2.5, 3), 2),
    )
    within(made, exact, [0.0, 0.4, 1.0, 2.0, 3.5])


@pytest.mark.parametrize("failing", [1e-30, 1e-20, 1e-16, 1e-9, 0.3])
@pytest.mark.parametrize("times", [2, 7, 900])
def test_open_failures_add_up_however_small(failing: float, times: int) -> None:
    made = enumerated([(atoms_of(Approximate(1e-3, failing)), times)])
    assert made is not None
    lost = -mp.expm1(times * mp.log1p(-mp.mpf(failing)))
    beyond = made.curve(np.array([times * 1e-3 + 1.0]))
    assert abs(float(beyond.excess[0]) - lost) <= beyond.pad[0]
    assert float(beyond.excess[0] + beyond.pad[0]) >= lost
    assert float(beyond.pad[0]) <= 1e-9 * lost + 1e-299


def test_failures_without_any_other_loss_are_enumerated_too() -> None:
    made = enumerated([(atoms_of(Approximate(0, 0.01)), 5)])
    assert made is not None
    assert made.losses == (0.0,)
    assert made.at_infinity == pytest.approx(1 - 0.99**5, rel=1e-12)


def test_coins_whose_masses_underflow_are_still_seen() -> None:
    made = enumerated([(atoms_of(Pure(800)), 2)])
    assert made is not None
    assert not np.any(np.isnan(made.p))
    assert made.losses == (-1600.0, 0.0, 1600.0)
    assert made.p == pytest.approx((0.0, 0.0, 1.0))
    assert float(made.curve(np.array([1000.0])).excess[0]) == pytest.approx(1.0)


def test_what_cannot_be_enumerated_is_left_to_the_lattice() -> None:
    coin = atoms_of(RandomizedResponse(1.0))
    continuous: Profile = LaplaceProfile(1.0)
    assert enumerated([(continuous, 2)]) is None
    assert enumerated([(coin, 3), (continuous, 1)]) is None
    assert enumerated([(coin, 3999)]) is not None
    assert enumerated([(coin, 4000)]) is None
    assert enumerated([(coin, 63), (atoms_of(RandomizedResponse(0.5)), 62)]) is None


def test_nothing_is_one_atom_at_zero() -> None:
    made = enumerated([])
    assert made is not None
    assert (made.losses, made.p, made.at_infinity) == ((0.0,), (1.0,), 0.0)
    assert math.isclose(float(made.curve(np.array([0.0])).excess[0]), 0.0)
