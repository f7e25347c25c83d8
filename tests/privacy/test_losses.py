"""What a loss says about an attacker: trade-off curves and posteriors, against closed forms and brute force."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from defocus.errors import DefocusError, InvalidParameterError, Number
from defocus.privacy import (
    ACCOUNTANTS,
    NOTHING,
    Approximate,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Loss,
    Pure,
    RandomizedResponse,
    Sampled,
    account,
)
from defocus.privacy.accounting import zcdp
from defocus.privacy.events import DiscreteLaplace, Exponential
from defocus.privacy.losses import Bounded, checked_delta, checked_epsilon, largest_loss, least_delta, squared_mu

ALPHAS = [0.0, 1e-9, 1e-4, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-9, 1.0]


@final
class Told(Loss):
    """A loss that says what it is told: an epsilon, beyond which ``failing`` is left of delta."""

    __slots__ = ("_answer", "_failing")

    def __init__(self, answer: float, failing: float = 0.0) -> None:
        self._answer, self._failing = answer, failing

    @property
    def accountant(self) -> str:
        return "told"

    def epsilon(self, delta: Number = 0) -> float:
        return self._answer if delta >= self._failing else math.inf

    def delta(self, epsilon: Number) -> float:
        return self._failing if epsilon >= self._answer else 1.0


def gaussian_tradeoff(mu: float, alpha: float) -> float:
    """Dong, Roth, Su (2022), equation (6)."""
    return float(ndtr(ndtri(1 - alpha) - mu))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 3.0])
def test_the_tradeoff_of_gaussian_noise_is_the_published_curve(mu: float, alpha: float) -> None:
    found = account(Gaussian(1 / mu), method="gdp").tradeoff(alpha)
    truth = gaussian_tradeoff(mu, alpha)
    assert found <= truth
    assert found == pytest.approx(truth, abs=2e-4)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("epsilon", [0, 0.1, 1, 5])
def test_the_tradeoff_of_randomised_response_is_two_lines(epsilon: float, alpha: float) -> None:
    """Wasserman, Zhou (2010), Theorem 2.4."""
    found = account(RandomizedResponse(epsilon)).tradeoff(alpha)
    truth = max(0.0, 1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha))
    assert found <= truth
    assert found == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("event", [3 * Laplace(4), Sampled(Gaussian(1), 0.1), Approximate(1, 0.05)], ids=str)
def test_tradeoffs_fall_bend_one_way_and_stay_below_guessing(event: Any) -> None:
    loss = account(event)
    grid = np.linspace(0, 1, 9)
    curve = np.array([loss.tradeoff(float(alpha)) for alpha in grid])
    assert np.all(curve >= 0)
    assert np.all(curve <= 1 - grid)
    assert np.all(np.diff(curve) <= 1e-9)
    assert np.all(np.diff(curve, 2) >= -2e-4)  # the best epsilon is found to within a little


@settings(max_examples=30, deadline=None)
@given(st.floats(0.05, 3), st.floats(0, 0.5), st.floats(0, 1))
def test_a_tradeoff_holds_against_every_test_of_an_open_failure(epsilon: float, delta: float, alpha: float) -> None:
    """Kairouz, Oh, Viswanath (2015): the worst mechanism shows the secret with probability delta, else responds."""
    found = account(Approximate(epsilon, delta)).tradeoff(alpha)
    truth = max(0.0, 1 - delta - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - delta - alpha))
    assert found <= truth + 1e-15
    assert found == pytest.approx(truth, abs=1e-6)


@given(st.floats(0.01, 0.99), st.floats(0, 1e-9))
def test_a_tradeoff_is_not_above_the_truth_where_digits_cancel(failing: float, left: float) -> None:
    alpha = max(0.0, 1 - failing - left)
    assert Told(0.0, failing).tradeoff(alpha) <= max(Fraction(0), 1 - Fraction(failing) - Fraction(alpha))


@given(st.floats(0, 20), st.floats(1e-12, 1 - 1e-12))
def test_pure_privacy_multiplies_odds_by_at_most_its_exponential(epsilon: float, prior: float) -> None:
    found = account(Pure(epsilon), method="basic").posterior(prior)
    odds = Fraction(prior) / (1 - Fraction(prior)) * Fraction(math.exp(epsilon))
    truth = odds / (1 + odds)
    assert found >= truth * (1 - Fraction(1, 10**15))
    assert found == pytest.approx(float(truth), rel=1e-9)


@pytest.mark.parametrize("method", ACCOUNTANTS)
def test_a_prior_that_is_certain_stays_and_nothing_teaches_nothing(method: str) -> None:
    loss = account(NOTHING, method=method)
    assert loss.posterior(0) == 0
    assert loss.posterior(1) == 1
    for prior in (5e-324, 1e-300, 0.1, 0.3, 0.5, 0.9, 1 - 2**-53):
        assert prior <= loss.posterior(prior) <= min(1, prior * (1 + 1e-9) + 1e-320)


def test_priors_too_small_for_floats_are_rounded_up() -> None:
    loss = account(Pure(Fraction(1, 2)))
    assert loss.posterior(Fraction(1, 10**400)) > 0
    assert loss.posterior(1 - Fraction(1, 10**400)) == 1
    assert loss.posterior(1e-310) == pytest.approx(1e-310 * math.exp(0.5), rel=1e-9)


def test_an_unbounded_loss_can_tell_everything() -> None:
    loss = account(Gaussian(1))
    assert loss.epsilon(0) == math.inf
    assert loss.posterior(1e-9) == 1
    assert 0.5 < loss.posterior(0.5, delta=1e-6) < 1
    assert account(Pure(1e6)).posterior(1e-300) == 1


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01, 0.3])
@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_the_posterior_after_gaussian_noise_exceeds_its_bound_as_rarely_as_promised(mu: float, delta: float) -> None:
    """The loss is normal with mean mu²/2 and variance mu²: Dwork, Rothblum (2016)."""
    bound = account(Gaussian(1 / mu), method="gdp").posterior(0.2, delta=delta)
    reached = math.log(bound / (1 - bound)) - math.log(0.2 / 0.8)
    beyond = float(ndtr((mu * mu / 2 - reached) / mu))
    assert beyond <= delta
    assert beyond >= delta / 30 or bound == pytest.approx(0.2, rel=1e-3)


def beyond_bound(p: Any, q: Any, prior: float, bound: float) -> float:
    """How often the posterior of p against q exceeds the bound: the worse of both truths."""
    posterior = prior * p / (prior * p + (1 - prior) * q)
    return float(max(p[posterior > bound].sum(), q[posterior > bound].sum()))


@pytest.mark.parametrize("prior", [1e-6, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("delta", [1e-8, 1e-3, 0.1])
@pytest.mark.parametrize("times", [1, 5, 40])
def test_posteriors_after_randomised_responses_by_brute_force(times: int, delta: float, prior: float) -> None:
    epsilon = 0.4
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    said = np.arange(times + 1)
    ways = np.array([math.comb(times, int(k)) for k in said], dtype=float)
    p, q = ways * truth**said * (1 - truth) ** (times - said), ways * (1 - truth) ** said * truth ** (times - said)
    for method in ("pld", "rdp", "basic"):
        loss = account(times * RandomizedResponse(epsilon), method=method)
        assert beyond_bound(p, q, prior, loss.posterior(prior, delta=delta)) <= delta
        assert beyond_bound(p, q, prior, loss.posterior(prior) * (1 + 1e-9)) == 0
    # The bound is not vacuous: a little below what pure privacy reaches, it would be broken.
    pure = account(times * RandomizedResponse(epsilon)).posterior(prior)
    odds = math.exp(-0.1) * pure / (1 - pure)
    assert beyond_bound(p, q, prior, odds / (1 + odds)) > 0


@pytest.mark.parametrize("delta", [1e-7, 1e-3, 0.05])
@pytest.mark.parametrize("sigma", [0.8, 4.0])
def test_posteriors_after_a_discrete_gaussian_by_brute_force(sigma: float, delta: float) -> None:
    x = np.arange(-400, 401)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    p, q = (np.roll(weights, 1) / weights.sum()), weights / weights.sum()
    for prior in (0.01, 0.5):
        bound = account(DiscreteGaussian(sigma)).posterior(prior, delta=delta)
        with np.errstate(invalid="ignore"):
            assert beyond_bound(p, q, prior, bound) <= delta
        assert prior < bound < 1


def test_more_doubt_or_more_delta_never_teaches_more() -> None:
    loss = account(3 * Laplace(5))
    by_delta = [loss.posterior(0.3, delta=delta) for delta in (0, 1e-12, 1e-6, 1e-2, 0.2)]
    assert by_delta[1:] == sorted(by_delta[1:], reverse=True)
    by_prior = [loss.posterior(prior, delta=1e-6) for prior in (0.01, 0.1, 0.5, 0.9)]
    assert by_prior == sorted(by_prior)


BAD = [math.nan, math.inf, -0.1, True, "0.5", None, 1j]


@pytest.mark.parametrize("bad", [*BAD, 1.1, 10**400], ids=repr)
def test_what_is_no_probability_is_refused(bad: Any) -> None:
    loss = Told(1.0)
    for ask, name in ((loss.tradeoff, "alpha"), (loss.posterior, "prior")):
        with pytest.raises(InvalidParameterError, match=rf"(?s){name} must .*To fix"):
            ask(bad)
    with pytest.raises(InvalidParameterError, match=r"(?s)delta must .*To fix"):
        loss.posterior(0.5, delta=bad)
    with pytest.raises(InvalidParameterError, match=r"(?s)delta must .*To fix"):
        checked_delta(bad)


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_what_is_no_epsilon_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)epsilon must .*To fix"):
        checked_epsilon(bad)


@given(st.fractions(0, Fraction(999, 1000)))
def test_questions_are_rounded_to_the_costly_side(value: Fraction) -> None:
    for rounded in (checked_delta(value), checked_epsilon(value)):
        assert rounded <= value
        assert math.nextafter(rounded, 2) > value
    assert checked_epsilon(10**400) == 1.7976931348623157e308
    assert checked_delta(Fraction(1, 10**400)) == 0


@pytest.mark.parametrize(
    ("ask", "name"), [(Loss.rho, "zcdp"), (Loss.mu, "gdp"), (lambda loss: loss.interval(1e-6), "pld")]
)
def test_what_an_accountant_does_not_know_it_says_and_names_one_that_does(
    ask: Callable[[Loss], Any], name: str
) -> None:
    with pytest.raises(
        DefocusError, match=rf"(?s)The told accountant does not give .*To fix: use account\(event, method=\"{name}\""
    ):
        ask(Told(1.0))


@pytest.mark.parametrize("rho", [1e25, 1e33, 1e60, 1e300])
def test_an_enormous_loss_is_never_reported_as_none(rho: float) -> None:
    """Orders that round to one have no divergence; once that was read as epsilon zero."""
    assert zcdp.epsilon_from_rho(rho, 1e-5) >= rho


@given(st.floats(0.01, 700))
def test_the_delta_found_is_enough_and_hardly_more(epsilon: float) -> None:
    found = least_delta(lambda delta: -math.log(delta), epsilon)
    assert -math.log(found) <= epsilon
    assert abs(-math.log(found) - epsilon) <= 1e-9


def test_where_none_is_enough_the_answer_is_one() -> None:
    assert least_delta(lambda _: 2.0, 1.0) == 1.0
    assert least_delta(lambda _: 0.0, 1.0) <= 1e-300


@pytest.mark.parametrize(
    "event",
    [Laplace(Fraction(7, 3)), DiscreteLaplace(2, 5), Pure(0.1), Exponential(Fraction(1, 3)), RandomizedResponse(2, 4)],
)
def test_the_largest_loss_is_the_pure_epsilon(event: Bounded) -> None:
    assert largest_loss(event) <= Fraction(account(event, "basic").epsilon(0))
    assert account(event, "basic").epsilon(0) == pytest.approx(float(largest_loss(event)), rel=1e-15)
    assert account(event, "pld").epsilon(0) == account(event, "basic").epsilon(0)


@pytest.mark.parametrize("event", [Gaussian(Fraction(7, 3)), DiscreteGaussian(9, Fraction(3, 2), 4)])
def test_half_the_squared_mu_is_rho(event: Gaussian | DiscreteGaussian) -> None:
    assert 2 * account(event, "zcdp").rho() == pytest.approx(float(squared_mu(event)), rel=1e-15)
