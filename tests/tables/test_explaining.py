from pathlib import Path

import numpy as np
import pytest
from tests.tables.answering import answered, charged, column

from defocus.privacy.accounting import account
from defocus.privacy.budgets import Budget
from defocus.privacy.events import DiscreteGaussian, DiscreteLaplace, compose
from defocus.privacy.units import rows, user
from defocus.tables.answers import Answer
from defocus.tables.explaining import cost, exactness, odds, one, owed


def test_the_whole_story_is_told(tmp_path: Path) -> None:
    text = answered(tmp_path).explain()
    for words in (
        "count and mean stay by ward",
        "3 groups with visits, stay",
        "everything about one patient_id, added or removed, in ward <visits>",
        "almost as often with or without it",
        "by at most 1.649",
        "at most 62.2 % sure afterwards",
        "who was 1 % sure at most 1.64 %",
        "a patient counts with at most 5 visits",
        "stays are clipped to [0, 30]",
        "visits: noise of visits",
        "stay: standard error of the noise 0.30 to 3.0",
        "in 1 of 3 it is more than 10 % of the value",
        "epsilon 0.5 for this answer alone",
        "as an event: discrete_laplace(10, sensitivity=5)",
        "for one patient_id:",
        "their odds about one patient_id",
        "entry 1: visits by ward (Ada",
        "after this answer: one release of epsilon 2.5",
        "the whole budget is Budget(epsilon=3, delta=1e-06)",
    ):
        assert words in text, words


def test_what_is_left_counts_earlier_charges_too(tmp_path: Path) -> None:
    charged(tmp_path, purpose="before")
    assert "after this answer: one release of epsilon 2," in answered(tmp_path).explain()


def test_the_page_says_the_same_escaped(tmp_path: Path) -> None:
    page = answered(tmp_path).explain(html=True)
    assert page.startswith("<table>")
    assert "ward &lt;visits&gt;" in page
    assert "by at most 1.649" in page


def test_odds_of_a_pure_release_are_e_to_the_epsilon_and_move_a_rare_belief_as_bayes_says(tmp_path: Path) -> None:
    promised = answered(tmp_path).promise()
    assert promised is not None
    general, example = odds(promised, user("patient_id"))
    ratio = np.exp(0.5)
    assert f"{ratio:.4g}" in general
    assert f"{100 * ratio * 0.01 / (0.99 + ratio * 0.01):.3g} %" in example


def test_a_gaussian_answer_names_the_chance_of_exception(tmp_path: Path) -> None:
    receipt = charged(tmp_path, DiscreteGaussian(10, 1, 2))
    made = answered(tmp_path)
    answer = Answer(made.keys, made.columns, "q", receipt)
    assert "except with probability 1e-06" in answer.explain()


def test_an_answer_is_explained_at_the_delta_that_was_asked_for(tmp_path: Path) -> None:
    receipt = charged(tmp_path, DiscreteGaussian(10, 1, 2))
    made = answered(tmp_path)
    answer = Answer(made.keys, made.columns, "q", receipt, asked=Budget(1, 1e-9))
    text = answer.explain()
    assert "except with probability 1e-09" in text
    assert "for this answer alone; asked for were epsilon 1 at delta 1e-09" in text
    promised = answer.promise()
    assert promised is not None
    assert promised.epsilon == pytest.approx(account(receipt.event).epsilon(1e-9), rel=1e-3)
    pure = Answer(made.keys, made.columns, "q", made.receipt, asked=Budget(0.5))
    assert "asked for were epsilon 0.5\n" in pure.explain() + "\n"


def test_an_answer_says_what_it_takes_from_the_ledger(tmp_path: Path) -> None:
    charged(tmp_path)
    made = answered(tmp_path)
    assert "it takes 16.7 % of the budget of the ledger, of which 33.3 % is used with it" in made.explain()


def test_a_composition_is_explained_by_its_composed_loss(tmp_path: Path) -> None:
    event = compose([DiscreteLaplace(10, 1), DiscreteLaplace(5, 1)])
    made = answered(tmp_path)
    answer = Answer(made.keys, made.columns, "q", charged(tmp_path, event))
    promised = answer.promise()
    assert promised is not None
    assert promised.epsilon == pytest.approx(account(event).epsilon(0), rel=0.02)
    assert len(owed(compose([k * DiscreteLaplace(k, 1) for k in range(1, 99)]))) <= 320


def test_exactness_names_the_range_of_errors_and_what_is_unknown() -> None:
    assert (
        exactness(column(values=[1000.0], errors=3), 0.1) == "visits: standard error of the noise 3.0, 95 % within 6.0"
    )
    assert exactness(column(errors=np.nan), 0.1) == "visits: how far off it is in value is not known"
    assert "14" in exactness(column(), 0.1)


def test_nothing_bounded_and_no_accountant_are_said_too(tmp_path: Path) -> None:
    made = answered(tmp_path)
    assert "nothing was bounded" in Answer(made.keys, made.columns, "q", made.receipt).explain()
    assert "no accountant" in odds(None, rows())[0]
    assert "not known" in cost(None)
    assert one(rows()) == "row"
