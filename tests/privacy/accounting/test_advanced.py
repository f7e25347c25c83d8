"""Advanced composition, by name and within its range."""

import math
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from defocus.errors import FormulaOutOfRangeError, InvalidParameterError, UnsupportedEventError
from defocus.privacy.accounting import advanced, basic
from defocus.privacy.events import NOTHING, Approximate, Event, Gaussian, Laplace, Pure, Sampled, SelectedPoisson


@pytest.mark.parametrize(
    ("event", "delta", "published"),
    [(1000 * Laplace(10), 1e-6, 27.14), (1000 * Sampled(Gaussian(1.0), 0.01), 1e-5, 1259)],
)
def test_the_textbook_theorem_reaches_the_published_numbers(event: Event, delta: float, published: float) -> None:
    """Dwork, Roth (2014), Theorem 3.20."""
    assert advanced.account(event, theorem="textbook").epsilon(delta) == pytest.approx(published, rel=1e-3)


@settings(max_examples=80, deadline=None)
@given(st.floats(0.01, 2), st.integers(1, 400), st.floats(-12, -1))
def test_repeated_randomised_response_stays_within_the_theorem(epsilon: float, times: int, log_delta: float) -> None:
    """Against the binomial law of the number of true answers, in both theorems."""
    delta = 10**log_delta
    theorems: tuple[Literal["optimal", "textbook"], ...] = ("optimal", "textbook")
    for theorem in theorems:
        claimed = advanced.account(times * Pure(epsilon), theorem=theorem).epsilon(delta)
        exact = 0.0
        for k in range(times + 1):
            ways = float(gammaln(times + 1) - gammaln(k + 1) - gammaln(times - k + 1))
            log_p = ways + k * epsilon - times * math.log1p(math.exp(epsilon))
            loss = (2 * k - times) * epsilon
            if loss > claimed:
                exact += math.exp(log_p) * -math.expm1(claimed - loss)
        assert exact <= delta * (1 + 1e-9)


def test_the_optimal_theorem_is_the_better_one_and_never_worse_than_adding() -> None:
    for times in (1, 10, 1000):
        event = times * Laplace(10)
        best = advanced.account(event).epsilon(1e-6)
        assert best <= advanced.account(event, theorem="textbook").epsilon(1e-6)
        assert best <= basic.account(event).epsilon(0) * (1 + 1e-9)
    assert advanced.account(1000 * Laplace(10)).epsilon(1e-6) == pytest.approx(21.618, abs=1e-3)


def test_mixed_releases_use_their_own_epsilons_and_deltas() -> None:
    event = 50 * Pure(0.1) + 10 * Approximate(0.2, 1e-8)
    mean = 5 * math.tanh(0.05) + 2 * math.tanh(0.1)
    spread = math.sqrt(2 * math.log(1 / (1e-6 - 1e-7)) * (50 * 0.01 + 10 * 0.04))
    assert advanced.account(event).epsilon(1e-6) == pytest.approx(min(7, mean + spread), rel=1e-9)


def test_delta_inverts_epsilon() -> None:
    loss = advanced.account(1000 * Laplace(10) + Approximate(0.1, 1e-9))
    for delta in (1e-8, 1e-4):
        assert loss.delta(loss.epsilon(delta)) == pytest.approx(delta, rel=1e-6)
    assert advanced.account(Gaussian(1)).delta(0) <= 1


def test_outside_its_range_it_is_refused() -> None:
    for event, delta in ((Pure(1), 0), (2 * Approximate(1, 1e-6), 2e-6), (Approximate(1, 1e-6), 1e-7)):
        with pytest.raises(FormulaOutOfRangeError, match=r"needs a delta above[\s\S]*basic"):
            advanced.account(event).epsilon(delta)
    with pytest.raises(UnsupportedEventError, match="SelectedPoisson"):
        advanced.account(SelectedPoisson(Pure(1), 2))
    assert advanced.account(NOTHING).epsilon(0) == 0


def test_an_unknown_theorem_is_refused() -> None:
    wrong: Any = "folklore"
    with pytest.raises(InvalidParameterError, match="textbook"):
        advanced.account(Pure(1), theorem=wrong)
