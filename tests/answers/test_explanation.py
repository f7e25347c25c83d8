"""What a release promises, in words."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.answers.making import column

from defocus.answers.columns import noisy
from defocus.answers.explanation import (
    afterwards,
    alone,
    cost,
    entered,
    exactness,
    odds,
    one,
    owed,
    protection,
    taken,
    told,
)
from defocus.ledger import Ledger
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Approximate, DiscreteGaussian, DiscreteLaplace, Gaussian, Pure, compose
from defocus.privacy.units import Adjacency, edge, rows, user
from defocus.release import promise


def test_exactness_names_the_range_of_errors_and_what_is_unknown() -> None:
    assert (
        exactness(column(values=[1000.0], errors=3), 0.1) == "visits: standard error of the noise 3.0, 95 % within 6.0"
    )
    assert exactness(column(errors=np.nan), 0.1) == "visits: how far off it is in value is not known"
    assert "14" in exactness(column(), 0.1)


def test_expected_absolute_errors_are_called_so() -> None:
    one = noisy("edges", [41.0], error=1.9, half=6, how="Laplace")
    assert exactness(one) == "edges: off by 1.9 on average, 95 % within 6.0"
    two = noisy("degree", [41.0, 3.0], error=np.array([1.9, 30.0]), half=6, how="Laplace")
    assert exactness(two, thing="entry") == "degree: off by 1.9 to 30 on average, 95 % within 6.0 for the median entry"


def test_topics_without_a_sentence_are_not_told() -> None:
    said = {"question": ["<q>"], "found": ()}
    assert "found" not in told(said, html=False)
    assert "&lt;q&gt;" in told(said, html=True)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 2), 3])
def test_a_pure_release_moves_even_odds_by_e_to_the_epsilon(epsilon: Fraction | int) -> None:
    made = promise(Pure(epsilon), Budget(5, 1e-6), Adjacency.ADD_REMOVE)
    assert made.delta == 0
    assert made.epsilon == pytest.approx(float(epsilon))
    assert made.odds == pytest.approx(math.exp(epsilon))
    assert str(made) == f"epsilon {float(epsilon):.4g}"


@pytest.mark.parametrize(("budget", "delta"), [(Budget(1, 1e-9), 1e-9), (Budget(rho=1), 1e-6), (Budget(mu=1), 1e-6)])
def test_a_gaussian_release_is_stated_at_the_delta_of_the_budget_or_the_customary_one(
    budget: Budget, delta: float
) -> None:
    made = promise(Gaussian(5), budget, Adjacency.ADD_REMOVE)
    assert made.delta == delta
    assert math.isfinite(made.epsilon)
    assert f"{delta:.3g}" in str(made)


def test_a_gaussian_release_without_a_delta_promises_nothing_and_does_not_break() -> None:
    made = promise(Gaussian(5), Budget(1), Adjacency.ADD_REMOVE)
    assert made.epsilon == math.inf
    assert made.posterior == 1


def test_an_event_that_is_an_epsilon_and_a_delta_has_odds_that_are_numbers() -> None:
    made = promise(Approximate(3, Fraction(1, 10**5)), Budget(3, 1e-5), Adjacency.ADD_REMOVE)
    assert made.delta == 1e-5
    assert made.beyond == 2e-5
    assert made.odds == pytest.approx(2 * math.exp(3), rel=0.01)  # half of what is beyond is delta itself
    said = " ".join(odds(made, user("patient_id")))
    assert "except with probability 2e-05" in said
    assert "inf" not in said
    assert "nan" not in " ".join(odds(promise(Gaussian(5), Budget(1), Adjacency.ADD_REMOVE), user("patient_id")))


def test_odds_of_a_pure_release_are_e_to_the_epsilon_and_move_a_rare_belief_as_bayes_says(ledger: Ledger) -> None:
    promised = alone(DiscreteLaplace(10, 5), ledger.terms)
    general, example = odds(promised, user("patient_id"))
    ratio = np.exp(0.5)
    assert f"{ratio:.4g}" in general
    assert "about one patient_id" in general
    assert f"{100 * ratio * 0.01 / (0.99 + ratio * 0.01):.3g} %" in example


def test_a_release_is_spoken_about_at_the_delta_that_was_asked_for(ledger: Ledger) -> None:
    event = DiscreteGaussian(20, 1)
    at_ledger, at_asked = alone(event, ledger.terms), alone(event, ledger.terms, Budget(1, 1e-9))
    assert at_ledger is not None
    assert at_asked is not None
    assert (at_ledger.delta, at_asked.delta) == (1e-6, 1e-9)
    assert at_asked.epsilon > at_ledger.epsilon
    assert "except with probability 1e-09" in odds(at_asked, rows())[0]
    assert cost(at_asked, Budget(1, 1e-9)).endswith("for this answer alone; asked for were epsilon 1 at delta 1e-09")


def test_no_accountant_is_said_too() -> None:
    assert "no accountant" in odds(None, rows())[0]
    assert "not known" in cost(None)
    assert [one(rows()), one(edge()), one(user("id"))] == ["row", "edge", "id"]


@pytest.mark.parametrize(("replace", "words"), [(False, "with or without it"), (True, "with another in its place")])
def test_protection_names_the_neighbours(replace: bool, words: str) -> None:
    assert words in protection(rows(replace=replace), "visits")


def test_a_charge_is_told_with_its_share_and_what_it_leaves(ledger: Ledger) -> None:
    receipt = ledger.charge(DiscreteLaplace(10, 5), purpose="visits", who="Ada")
    assert taken(receipt) == "it takes 16.7 % of epsilon of the ledger's budget; used with it: 16.7 % of epsilon"
    assert entered(receipt).startswith("charged beforehand as entry 1: visits (Ada, 20")
    assert afterwards(receipt).startswith("after this answer: one release of epsilon 2.5")


def test_long_events_are_cut() -> None:
    assert len(owed(compose([k * DiscreteLaplace(k, 1) for k in range(1, 99)]))) <= 320
