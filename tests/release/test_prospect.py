"""What a charge would do to a ledger, foretold for nothing."""

import json
import math

import pytest

from defocus.answers.export import json_value
from defocus.answers.preview import Prospect
from defocus.ledger import Ledger
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Approximate, Event, Laplace
from defocus.release.preview import prospect as prospect_of


def foreseen(ledger: Ledger, event: Event, asked: Budget | None = None) -> Prospect:
    given = Budget(0.5) if asked is None else asked
    return prospect_of(event, asked=given, replan=lambda delta: Approximate(0.1, delta or 0), ledger=ledger)


def test_what_is_foretold_to_be_left_is_left_and_looking_charges_nothing(ledger: Ledger) -> None:
    prospect = foreseen(ledger, Laplace(2))
    assert len(ledger) == 1
    assert prospect.fits
    assert "covers it; left now: one release of epsilon 3" in prospect.budget()
    assert "used now: 0 % of epsilon; used afterwards: 16.7 % of epsilon" in prospect.budget()
    ledger.charge(Laplace(2), purpose="so")
    assert ledger.remaining() == prospect.after


def test_where_it_does_not_fit_it_says_what_would(ledger: Ledger) -> None:
    ledger.charge(Laplace(2), purpose="before")
    prospect = foreseen(ledger, Approximate(0.5, 1e-6), Budget(0.5, 1e-6))
    assert not prospect.fits
    assert prospect.after is None
    assert prospect.remedy.startswith("ask with delta=")
    assert prospect.remedy.rstrip(".") in prospect.budget()
    assert prospect.to_dict()["instead"] == prospect.remedy


def test_words_and_json_agree(ledger: Ledger) -> None:
    prospect = foreseen(ledger, Laplace(2))
    content = json.loads(json.dumps(prospect.to_dict(), allow_nan=False))
    assert content["fits"] is True
    assert content["epsilon"] == pytest.approx(0.5)
    assert content["used_after"] == pytest.approx({"epsilon": 1 / 6, "delta": 0})


@pytest.mark.parametrize("number", [math.nan, math.inf, None])
def test_what_json_has_no_number_for_is_null(number: float | None) -> None:
    assert json_value(number) is None
    assert json_value(0.5) == 0.5
