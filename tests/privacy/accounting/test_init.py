"""One door to all accountants."""

from typing import Any

import pytest

from defocus.errors import InvalidParameterError
from defocus.privacy.accounting import ACCOUNTANTS, account
from defocus.privacy.events import NOTHING, Gaussian, Laplace, Sampled
from defocus.privacy.units import Adjacency


@pytest.mark.parametrize("by", ACCOUNTANTS)
def test_every_accountant_answers_by_its_name(by: str) -> None:
    assert account(3 * Gaussian(4), by=by).accountant == by
    assert account(NOTHING, by=by).epsilon(1e-9) == 0


def test_tighter_accountants_give_less_and_none_less_than_the_truth() -> None:
    event = 50 * Gaussian(20)
    found = {by: account(event, by=by).epsilon(1e-6) for by in ACCOUNTANTS}
    assert found["gdp"] <= found["rdp"] <= found["zcdp"] * (1 + 1e-6)
    assert found["zcdp"] < found["advanced"] < found["basic"]
    assert found["pld"] == pytest.approx(found["gdp"], rel=1e-3)


@pytest.mark.parametrize("by", ACCOUNTANTS)
def test_every_loss_answers_every_question(by: str) -> None:
    loss = account(10 * Gaussian(10), by=by)
    exact = account(10 * Gaussian(10), by="gdp")
    assert exact.delta(1.0) * (1 - 1e-9) <= loss.delta(1.0) <= 1
    assert loss.epsilon(1e-3) <= loss.epsilon(1e-9)
    assert 0 <= loss.tradeoff(0.1) <= exact.tradeoff(0.1) * (1 + 1e-3) <= 0.9
    assert 0.5 <= loss.posterior(0.5, delta=1e-6) <= 1


def test_replacing_a_unit_may_cost_more_than_adding_one() -> None:
    event = 100 * Sampled(Gaussian(2), 0.1)
    assert account(event, "rdp", "replace").epsilon(1e-6) > account(event, "rdp", Adjacency.ADD_REMOVE).epsilon(1e-6)
    assert account(Laplace(3), "rdp", "replace").epsilon(1e-6) == account(Laplace(3), "rdp").epsilon(1e-6)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InvalidParameterError, match="pld, rdp, zcdp, gdp, advanced, basic"):
        account(Gaussian(1), by="magic")
    with pytest.raises(InvalidParameterError, match="add_remove, replace"):
        account(Gaussian(1), adjacency="swap")


@pytest.mark.parametrize("bad", [None, 1, "gaussian(1)", [Gaussian(1)]])
def test_something_that_is_no_event_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match="needs an event"):
        account(bad)


def test_text_in_place_of_an_event_is_told_how_to_be_read() -> None:
    with pytest.raises(InvalidParameterError) as refusal:
        account("gaussian(1)")  # type: ignore[arg-type] # refused
    assert "account(parse(text))" in refusal.value.fix
    with pytest.raises(InvalidParameterError, match="got the class Gaussian"):
        account(Gaussian)  # type: ignore[arg-type] # refused
