"""One direction of an adjacency: which way is taken, and what every way guarantees."""

import math

import mpmath as mp
import numpy as np
import pytest
from tests.privacy.accounting.pld import oracles

from defocus.privacy.accounting.pld import direction
from defocus.privacy.accounting.pld.continuous import GaussianProfile, LaplaceProfile
from defocus.privacy.accounting.pld.direction import both_ways, delta_above, epsilon_above, epsilon_below, epsilon_near
from defocus.privacy.accounting.pld.lowering import Term, lower
from defocus.privacy.accounting.pld.profiles import Curve, Floats
from defocus.privacy.accounting.pld.sampling import Reversed
from defocus.privacy.events import Approximate, Event, Gaussian, Laplace, Pure, Sampled
from defocus.privacy.units import Adjacency


def terms_of(event: Event) -> list[Term]:
    return lower(event, Adjacency.ADD_REMOVE)


def test_symmetric_events_are_looked_at_from_one_side_only() -> None:
    assert len(both_ways(terms_of(3 * Laplace(1) + Gaussian(1)))) == 1
    there, back = both_ways(terms_of(3 * Sampled(Laplace(1), 0.1) + Gaussian(1)))
    assert [term.times for term in there] == [term.times for term in back]
    assert all(isinstance(term.profile, Reversed) for term in back)


@pytest.mark.parametrize("mu", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-100, 1e-280])
def test_a_single_release_is_bracketed_to_the_last_digits(mu: float, delta: float) -> None:
    term = [Term(GaussianProfile(mu), 1, GaussianProfile(mu), None)]
    true = oracles.gaussian_epsilon(mu, delta)
    low, high = epsilon_below(term, delta, 1e-5), epsilon_above(term, delta, 1e-5)
    assert low <= true <= high
    assert high - low <= 1e-9 * high + 1e-14


def test_a_profile_that_cannot_be_computed_is_never_taken_for_a_safe_one() -> None:
    """NaN compares as false, so each comparison must be one that fails towards refusing."""

    class Broken:
        at_infinity = 0.0
        symmetric = True
        atomic = False
        top = math.inf
        bottom = -math.inf

        def curve(self, l: Floats) -> Curve:
            return Curve(np.full_like(l, np.nan), np.full_like(l, np.nan), np.ones_like(l))

    assert direction._crossing(Broken(), 0.5, 1.0) == math.inf  # type: ignore[arg-type]  # only the curve is asked
    assert direction._crossing(Broken(), 0.5, -1.0) == 0.0  # type: ignore[arg-type]  # only the curve is asked


def test_unbounded_losses_that_stay_above_delta_have_no_epsilon() -> None:
    single = terms_of(Approximate(1, 1e-3))
    assert epsilon_above(single, 0.9e-3, 1e-5) == math.inf
    assert epsilon_above(single, 1.1e-3, 1e-5) <= 1.0
    assert delta_above(single, 50.0, 1e-5) == pytest.approx(1e-3)


@pytest.mark.parametrize("delta", [0.9, 0.3])
def test_where_delta_covers_everything_epsilon_is_zero(delta: float) -> None:
    terms = terms_of(10 * Laplace(10))
    assert epsilon_above(terms, delta, 1e-5) == 0.0
    assert epsilon_below(terms, delta, 1e-5) == 0.0


def test_counts_beyond_what_rounding_allows_are_given_up_not_guessed() -> None:
    terms = [Term(LaplaceProfile(1e-12), 2**60, LaplaceProfile(1e-12), None)]
    assert epsilon_above(terms, 1e-5, 1e-5) == math.inf
    assert epsilon_below(terms, 1e-5, 1e-5) == 0.0
    assert delta_above(terms, 1.0, 1e-5) == 1.0


def test_delta_at_an_epsilon_beyond_all_losses_is_next_to_nothing() -> None:
    terms = terms_of(10 * Sampled(Gaussian(1), 0.1))
    for epsilon in (1e3, 1e6, 1e18, 1e300):
        assert 0 <= delta_above(terms, epsilon, 1e-5) < 1e-200


@pytest.mark.parametrize("delta", [1e-3, 1e-8, 1e-30])
def test_estimates_are_close(delta: float) -> None:
    for event in (400 * Sampled(Gaussian(1), 0.02), 50 * Laplace(3), Gaussian(1), Pure(1)):
        terms = terms_of(event)
        sure = max(epsilon_above(way, delta, 1e-5) for way in both_ways(terms))
        assert epsilon_near(terms, delta) == pytest.approx(sure, rel=0.03)


def test_each_direction_of_a_sampled_gaussian_is_bounded_by_itself() -> None:
    for rate, sigma in ((0.3, 1.0), (0.01, 0.7)):
        law = oracles.sampled_law(oracles.gaussian(1 / sigma), rate)
        single = terms_of(Sampled(Gaussian(sigma), rate))
        removed, added = both_ways(single)
        for epsilon in (0.0, 0.01, 0.3):
            assert delta_above(removed, epsilon, 1e-5) == pytest.approx(float(law.excess(epsilon)), rel=1e-9)
            back = float(mp.exp(epsilon) * law.excess(-epsilon))
            assert delta_above(added, epsilon, 1e-5) == pytest.approx(back, rel=1e-9, abs=1e-14)
