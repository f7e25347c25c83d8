from collections.abc import Callable

import pytest

from defocus.ledger import Ledger
from defocus.ledger.display import MOST_EVENTS, Prices
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Gaussian, Laplace

pytestmark = pytest.mark.parametrize("where", ["sqlite"], indirect=True)


def test_a_charge_is_priced_by_itself_and_beside_the_whole_budget(opened: Callable[..., Ledger]) -> None:
    ledger = opened(budget=Budget(1, 1e-6))
    ledger.charge(Gaussian(50), purpose="noisy")
    genesis, charge = ledger.entries()
    prices = Prices.of(ledger.terms, [genesis, charge])
    found = prices.to_dict(charge)
    assert (found["sequence"], found["what"], found["delta"]) == (1, "gaussian(50)", 1e-6)
    assert 0.05 < found["epsilon"] <= float(prices.epsilon(charge))
    assert found["used"] == prices.used(ledger.spent()).to_dict()
    assert 0 < found["used"]["epsilon"] < 1
    assert found["used"]["delta"] == 0
    assert (prices.epsilon(genesis), prices.shares(genesis)) == ("", ("", ""))
    assert [row["measure"] for row in prices.labelled(ledger.spent())][:2] == ["delta", "epsilon"]


def test_too_many_kinds_of_releases_are_not_asked_for(opened: Callable[..., Ledger]) -> None:
    ledger = opened()
    for number in range(MOST_EVENTS + 1):
        ledger.charge(Laplace(1000 + number), purpose="one of many")
    entries = list(ledger.entries())
    prices = Prices.of(ledger.terms, entries)
    assert prices.epsilon(entries[1]) == ""
    assert prices.to_dict(entries[1])["epsilon"] is None
    assert prices.shares(entries[1])[0] == "0.1 %"
