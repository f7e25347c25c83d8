from pathlib import Path

import pytest

from defocus import Budget, Ledger, user
from defocus.errors import BudgetExceededError, InvalidParameterError
from defocus.local import attributes, mean, oracle
from defocus.local.collecting import collect, collection_event
from defocus.local.hitters import Hitters
from defocus.privacy import account, events


def test_reports_of_one_person_add_up_on_the_ledger(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "l.db", budget=Budget(3), unit=user("phone"), dataset="phones")
    collect(oracle("oue", 10, 1), ledger=ledger, purpose="colours", reports=2)
    collect(mean("hybrid", 0, 24, 1), ledger=ledger, purpose="hours")
    with pytest.raises(BudgetExceededError):
        collect(attributes({"a": 2}, 1), ledger=ledger, purpose="once more")
    assert len(list(ledger.entries())) >= 2


def test_devices_that_remember_pay_for_values_and_not_for_reports() -> None:
    daily = mean("duchi", 0, 24, 1)
    assert account(collection_event(daily, reports=365), by="basic").epsilon(0) == pytest.approx(365)
    assert account(collection_event(daily, reports=365, values=2), by="basic").epsilon(0) == pytest.approx(2)
    assert collection_event(oracle("rappor", 5, 2), reports=10**6, values=1) == events.Pure(2)
    with pytest.raises(InvalidParameterError, match="add up"):
        collection_event(oracle("oue", 5, 2), reports=10, values=1)
    with pytest.raises(InvalidParameterError):
        collection_event(Hitters("ab", 3, 1), reports=10, values=1)


def test_every_kind_of_collection_has_an_event() -> None:
    for asked in (oracle("pgr", 50, 1), mean("laplace", 0, 1, 1), attributes({"a": 3, "b": 4}, 1), Hitters("ab", 3, 1)):
        assert account(collection_event(asked), by="basic").epsilon(0) == pytest.approx(1)
    with pytest.raises(InvalidParameterError):
        collection_event(oracle("pgr", 50, 1), reports=0)
