"""The budget that is offered keeps the risk, and hardly a larger one does."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from defocus.errors import InvalidParameterError
from defocus.privacy import Approximate, Gaussian, Pure, account
from defocus.privacy.budgets import Budget
from defocus.privacy.losses import Loss
from defocus.privacy.risk import Risk, budget_of, checked_kind, kind_of, size

KINDS = [("pure", 0.0), ("gaussian", 0.0), ("approximate", 1e-6)]
RARE = 1e-4


def loss(budget: Budget) -> Loss:
    """The worst release under a budget, by an accountant that knows nothing of risks."""
    if budget.mu is not None:
        return account(Gaussian(1 / budget.mu), method="gdp")
    assert budget.epsilon is not None
    return account(Approximate(budget.epsilon, budget.delta) if budget.delta else Pure(budget.epsilon))


def posterior(kind: str, prior: float, most: float) -> Risk:
    return Risk(posterior=(prior, most), exception=0 if kind == "pure" else RARE)


def larger(budget: Budget, by: float) -> Budget:
    return budget_of(kind_of(budget), size(budget) * by, budget.delta)


def law(epsilon: float, delta: float) -> tuple[list[float], list[float]]:
    """The worst pair of laws under (epsilon, delta): four outputs with the unit, and without it."""
    e = math.exp(epsilon)
    with_it = [delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0]
    return with_it, with_it[::-1]


def rates_of(p: list[float], q: list[float]) -> Any:
    """True- and false-positive rates of all tests on finitely many outputs that toss a coin at one of them at most."""
    outputs = range(len(p))
    for chosen in itertools.product([0, 1], repeat=len(p)):
        for tossed in outputs:
            for coin in np.linspace(0, 1, 101):
                weights = [coin if i == tossed else chosen[i] for i in outputs]
                yield (
                    sum(w * x for w, x in zip(weights, p, strict=True)),
                    sum(w * x for w, x in zip(weights, q, strict=True)),
                )


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 0.0), (1.0, 0.01), (3.0, 0.005)])
@pytest.mark.parametrize("alpha", [0.01, 0.2, 0.5])
def test_no_test_of_the_worst_pair_finds_more_and_one_finds_as_much(epsilon: float, delta: float, alpha: float) -> None:
    most = Risk(attack=(alpha, 0.999)).attack_at(Budget(epsilon, delta))
    found = [tpr for tpr, fpr in rates_of(*law(epsilon, delta)) if fpr <= alpha + 1e-12]
    assert max(found) <= most + 1e-9
    assert max(found) >= most - 0.02  # coins are tossed in steps of a hundredth


@pytest.mark.parametrize(("epsilon", "prior"), [(0.1, 0.5), (1.0, 0.01), (3.0, 0.9)])
def test_the_largest_belief_under_a_pure_budget_is_that_after_randomised_response(epsilon: float, prior: float) -> None:
    beliefs = [prior * p / (prior * p + (1 - prior) * q) for p, q in zip(*law(epsilon, 0), strict=True) if p + q]
    assert Risk(posterior=(prior, 0.999)).posterior_at(Budget(epsilon)) == pytest.approx(max(beliefs), rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta", "rare"), [(1.0, 0.01, 0.05), (0.3, 0.001, 0.4), (2.0, 0.009, 0.0901)])
def test_the_likeliest_set_of_outputs_above_a_belief_is_as_likely_as_the_exception(
    epsilon: float, delta: float, rare: float
) -> None:
    most = Risk(posterior=(0.5, 0.999), exception=rare).posterior_at(Budget(epsilon, delta))

    def likeliest(belief: float) -> float:
        return max(float(tpr) for tpr, fpr in rates_of(*law(epsilon, delta)) if tpr > belief * (tpr + fpr))

    assert likeliest(most + 1e-9) <= rare
    assert likeliest(most - 0.02) >= rare


@pytest.mark.parametrize(("mu", "rare"), [(0.5, 0.01), (1.0, 1e-6), (0.2, 0.3)])
def test_beliefs_under_gaussian_privacy_are_those_after_a_threshold(mu: float, rare: float) -> None:
    most = Risk(posterior=(0.3, 0.999999), exception=rare).posterior_at(Budget(mu=mu))
    for x in [rare, *np.linspace(rare, 0.999, 50)]:
        threshold = norm.isf(x, loc=mu)  # passed with probability x by whoever is there
        belief = 0.3 * x / (0.3 * x + 0.7 * norm.sf(threshold))
        assert belief <= most + 1e-9
    threshold = norm.isf(rare * 0.9, loc=mu)
    assert 0.3 * rare * 0.9 / (0.3 * rare * 0.9 + 0.7 * norm.sf(threshold)) > most


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "delta"), KINDS)
@settings(max_examples=20, deadline=None)
@given(prior=st.floats(1e-3, 0.9), part=st.floats(0.1, 0.99))
def test_the_budget_keeps_the_largest_belief_and_one_percent_more_does_not(
    kind: str, delta: float, prior: float, part: float
) -> None:
    most = prior + part * (1 - prior)
    risk = posterior(kind, prior, most)
    found = risk.largest(kind, delta)
    assert risk.posterior_at(found) <= most < risk.posterior_at(larger(found, 1.0001))
    rare = 0 if kind == "pure" else RARE
    odds = loss(found).posterior(prior, delta=rare)  # a search: its bound is not quite the least
    assert odds <= most * (1 + (0 if kind == "pure" else 2e-3))
    assert loss(larger(found, 1.01)).posterior(prior, delta=rare) > most


@pytest.mark.parametrize(("kind", "delta"), KINDS)
@settings(max_examples=20, deadline=None)
@given(alpha=st.floats(1e-3, 0.9), part=st.floats(0.1, 0.95))
def test_the_budget_keeps_the_attack_and_one_percent_more_does_not(
    kind: str, delta: float, alpha: float, part: float
) -> None:
    most = alpha + part * (1 - alpha)
    risk = Risk(attack=(alpha, most))
    found = risk.largest(kind, delta)
    assert risk.attack_at(found) <= most < risk.attack_at(larger(found, 1.0001))
    assert 1 - loss(found).tradeoff(alpha) <= most + 1e-6
    assert 1 - loss(larger(found, 1.01)).tradeoff(alpha) > most


@pytest.mark.parametrize(("kind", "delta"), KINDS)
def test_a_larger_risk_allows_a_larger_budget(kind: str, delta: float) -> None:
    beliefs = [size(posterior(kind, 0.1, most).largest(kind, delta)) for most in (0.11, 0.2, 0.5, 0.9, 0.999)]
    assert beliefs == sorted(set(beliefs))
    priors = [size(posterior(kind, prior, 0.8).largest(kind, delta)) for prior in (0.7, 0.5, 0.1, 0.01)]
    assert priors == sorted(set(priors))
    rates = [size(Risk(attack=(0.05, most)).largest(kind, delta)) for most in (0.06, 0.2, 0.5, 0.9)]
    assert rates == sorted(set(rates))


@pytest.mark.parametrize(("kind", "delta"), KINDS)
def test_of_two_risks_the_stricter_one_decides(kind: str, delta: float) -> None:
    belief, attack = posterior(kind, 0.5, 0.75), Risk(attack=(0.01, 0.5))
    both = Risk(belief.posterior, attack.attack, belief.exception)
    assert size(both.largest(kind, delta)) == min(size(one.largest(kind, delta)) for one in (belief, attack))


def test_closed_forms() -> None:
    assert Risk(posterior=(Fraction(1, 2), Fraction(3, 4))).largest("pure") == Budget(1.09861)  # log 3
    assert Risk(attack=(0.01, 0.05)).largest("pure") == Budget(1.60943)  # log 5
    assert Risk(attack=(0.5, 0.95)).largest("pure") == Budget(2.30258)  # log 10, by the other side of the curve
    assert Risk(attack=(0.05, 0.5)).largest("mu") == Budget(mu=1.64485)


def test_numbers_far_from_one_keep_their_digits() -> None:
    tiny = Risk(posterior=(1e-12, 1.001e-12)).largest("pure")
    assert size(tiny) == pytest.approx(math.log(1.001), rel=1e-5)
    far = Risk(posterior=(1e-300, 1 - 2**-53), exception=1e-9)
    assert 0 < size(far.largest("gaussian")) < math.inf


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, math.nan, math.inf, "x", None, True])
def test_what_is_no_probability_is_refused(bad: Any) -> None:
    for given_pair in ((bad, 0.9), (0.1, bad)):
        with pytest.raises(InvalidParameterError, match=r"posterior: the .*\nTo fix: "):
            Risk(posterior=given_pair)
        with pytest.raises(InvalidParameterError, match=r"attack: the .*\nTo fix: "):
            Risk(attack=given_pair)


@pytest.mark.parametrize("pair", [(0.5, 0.5), (0.75, 0.5), 0.5, (0.5,), (0.1, 0.2, 0.3)])
def test_what_is_no_pair_or_goes_down_is_refused(pair: Any) -> None:
    with pytest.raises(InvalidParameterError, match="posterior"):
        Risk(posterior=pair)
    with pytest.raises(InvalidParameterError, match="attack"):
        Risk(attack=pair)


@pytest.mark.parametrize(
    ("risk", "kind", "delta", "why"),
    [
        ({"posterior": (0.5, 0.75)}, "gaussian", 0, "exception=1e-06"),
        ({"posterior": (0.5, 0.75)}, "approximate", 1e-6, "exception=1e-05"),
        ({"posterior": (0.5, 0.75), "exception": 1e-6}, "approximate", 1e-6, "everything"),
        ({"posterior": (0.5, 0.75), "exception": 1.1e-6}, "approximate", 1e-6, "takes all of the risk"),
        ({"attack": (0.01, 0.015)}, "approximate", 0.005, "takes all of the risk"),
        ({"posterior": (0.5, 0.75), "exception": 1e-6}, "pure", 0, "leave exception out"),
        ({"attack": (0.1, 0.75), "exception": 1e-6}, "gaussian", 0, "leave exception out"),
        ({"posterior": (0.5, 0.75)}, "pure", 1e-6, "has no delta"),
        ({"attack": (0.5, 0.75)}, "approximate", 0, "none was given"),
        ({"attack": (0.5, 0.75)}, "approximate", 0.2, "well below one over"),
        ({"attack": (0.5, 0.75)}, "tight", 0, "kind of budget"),
        ({"attack": (0.5, 0.5 + 2**-52)}, "gaussian", 0, "close to none"),
        ({"posterior": (0.5, 0.75), "exception": 0.6}, "gaussian", 0, "would be the rule"),
        ({}, "pure", 0, "No risk was given"),
    ],
)
def test_what_does_not_fit_together_is_refused(risk: dict[str, Any], kind: str, delta: float, why: str) -> None:
    with pytest.raises(InvalidParameterError, match=why):
        Risk(**risk).largest(kind, delta)


def test_kinds_answer_to_other_names_and_rho_is_refused() -> None:
    assert checked_kind("Mu")[0] == "gaussian"
    with pytest.raises(InvalidParameterError, match="rho"):
        kind_of(Budget(rho=1))
    with pytest.raises(InvalidParameterError, match="No prior"):
        Risk(attack=(0.1, 0.2)).posterior_at(Budget(1))
    with pytest.raises(InvalidParameterError, match="No false-positive"):
        Risk(posterior=(0.1, 0.2)).attack_at(Budget(1))
