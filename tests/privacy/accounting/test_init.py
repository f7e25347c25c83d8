"""One door to all accountants."""

import contextlib
import math
from fractions import Fraction
from typing import Any

import pytest

from defocus.errors import DefocusError, InvalidParameterError
from defocus.privacy.accounting import ACCOUNTANTS, account, tightest, tightest_at
from defocus.privacy.events import (
    NOTHING,
    Approximate,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Sampled,
    Selected,
    SelectedPoisson,
)
from defocus.privacy.units import Adjacency


@pytest.mark.parametrize("method", ACCOUNTANTS)
def test_every_accountant_answers_by_its_name(method: str) -> None:
    assert account(3 * Gaussian(4), method=method).accountant == method
    assert account(NOTHING, method=method).epsilon(1e-9) == 0


def test_tighter_accountants_give_less_and_none_less_than_the_truth() -> None:
    event = 50 * Gaussian(20)
    found = {method: account(event, method=method).epsilon(1e-6) for method in ACCOUNTANTS}
    assert found["gdp"] <= found["rdp"] <= found["zcdp"] * (1 + 1e-6)
    assert found["zcdp"] < found["advanced"] < found["basic"]
    assert found["pld"] == pytest.approx(found["gdp"], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("method", ACCOUNTANTS)
def test_every_loss_answers_every_question(method: str) -> None:
    loss = account(10 * Gaussian(10), method=method)
    exact = account(10 * Gaussian(10), method="gdp")
    assert exact.delta(1.0) * (1 - 1e-9) <= loss.delta(1.0) <= 1
    assert loss.epsilon(1e-3) <= loss.epsilon(1e-9)
    assert 0 <= loss.tradeoff(0.1) <= exact.tradeoff(0.1) * (1 + 1e-3) <= 0.9
    assert 0.5 <= loss.posterior(0.5, delta=1e-6) <= 1


def test_replacing_a_unit_may_cost_more_than_adding_one() -> None:
    event = 100 * Sampled(Gaussian(2), 0.1)
    assert account(event, "rdp", "replace").epsilon(1e-6) > account(event, "rdp", Adjacency.ADD_REMOVE).epsilon(1e-6)
    assert account(Laplace(3), "rdp", "replace").epsilon(1e-6) == account(Laplace(3), "rdp").epsilon(1e-6)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("PLD", "pld"), ("prv", "pld"), ("Rényi", "rdp"), ("RDP", "rdp"), ("GDP", "gdp"), ("zCDP", "zcdp")],
)
def test_accountants_answer_to_their_usual_names(name: str, meant: str) -> None:
    assert account(Gaussian(4), method=name).accountant == meant


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


_HUGE = 10**400
_ABSURD: tuple[Event, ...] = (
    _HUGE * Gaussian(1),
    _HUGE * Laplace(2),
    _HUGE * Pure(Fraction(1, _HUGE)),
    _HUGE * Approximate(0.1, 1e-9),
    _HUGE * Sampled(Pure(1), 0.1),
    Sampled(_HUGE * Gaussian(1), 0.1),
    Sampled(Gaussian(1), Fraction(1, _HUGE)),
    Gaussian(_HUGE),
    Gaussian(Fraction(1, _HUGE)),
    Laplace(Fraction(1, _HUGE)),
    DiscreteGaussian(1, _HUGE),
    DiscreteGaussian(_HUGE, _HUGE),
    DiscreteLaplace(Fraction(1, _HUGE)),
    Concentrated(1e30),
    Concentrated(_HUGE),
    Exponential(_HUGE),
    RandomizedResponse(_HUGE, 3),
    Selected(Gaussian(1), Fraction(1, _HUGE)),
    Selected(Pure(1), 0.1, _HUGE),
    SelectedPoisson(Gaussian(1), _HUGE),
)


@pytest.mark.parametrize("method", ACCOUNTANTS)
@pytest.mark.parametrize("event", _ABSURD, ids=range(len(_ABSURD)))
def test_absurd_numbers_get_an_answer_or_a_refusal_and_no_warning(method: str, event: Event) -> None:
    with contextlib.suppress(DefocusError):
        loss = account(event, method=method)
        for delta in (0, 1e-6, Fraction(1, _HUGE)):
            with contextlib.suppress(DefocusError):
                assert loss.epsilon(delta) >= 0
        for epsilon in (1e50, _HUGE):
            assert 0 <= loss.delta(epsilon) <= 1


@pytest.mark.parametrize("method", ["rdp", "zcdp", "advanced", "basic"])
def test_nothing_lost_however_often_is_nothing(method: str) -> None:
    assert account(_HUGE * Pure(0), method=method).epsilon(1e-6) == 0
    plain = account(Laplace(2), method=method).epsilon(1e-6)
    assert account(_HUGE * Pure(0) + Laplace(2), method=method).epsilon(1e-6) == pytest.approx(plain, rel=1e-9)
    assert account(_HUGE * Laplace(2), method=method).epsilon(1e-6) == math.inf


@pytest.mark.parametrize("rho", [1e26, 1e30, 1e100])
def test_a_loss_beyond_all_use_keeps_its_order_of_magnitude(rho: float) -> None:
    assert rho <= account(Concentrated(rho), method="zcdp").epsilon(1e-6) <= rho * (1 + 1e-9)


def test_a_very_large_epsilon_leaves_next_to_no_delta() -> None:
    for epsilon in (1e50, 1e200, _HUGE):
        assert account(Gaussian(1), method="gdp").delta(epsilon) == 5e-324
        assert account(Gaussian(1), method="zcdp").delta(epsilon) < 1e-300


def test_deltas_spent_outright_to_the_last_are_added_up_where_a_finer_account_has_no_room_left() -> None:
    event = 2 * Approximate(0.15, 4.999995e-7) + Laplace(2)
    assert tightest(event).epsilon(1e-6) == pytest.approx(0.8)
    assert tightest_at(event, 1e-6).epsilon(1e-6) == pytest.approx(0.8)
    many = 600 * Approximate(0.001, 1e-9) + Laplace(2)
    assert tightest(many).epsilon(6.1e-7) < tightest(many).epsilon(6e-7)
    assert tightest_at(many, 6.0001e-7, Adjacency.REPLACE).epsilon(6.0001e-7) <= 1.1 + 1e-9
    assert tightest_at(event, 1e-4).accountant == "pld"
    for other in (Gaussian(3), Laplace(2) + Gaussian(9), Selected(Gaussian(5), 0.1)):
        assert tightest_at(other, 1e-6).accountant == tightest(other).accountant
    odd = Selected(Gaussian(5), 0.1) + Approximate(0.1, 1e-9)
    with contextlib.suppress(DefocusError):
        assert tightest_at(odd, 1e-6).epsilon(1e-6) <= tightest(odd).epsilon(1e-6)


def test_the_textbook_conversion_is_asked_for_by_name() -> None:
    event = 1000 * Sampled(Gaussian(1.0), 0.01)
    tight, textbook = (account(event, "rdp", conversion=how) for how in ("tight", "textbook"))
    assert tight.epsilon(1e-5) == account(event, "rdp").epsilon(1e-5)
    assert textbook.epsilon(1e-5) > 1.1 * tight.epsilon(1e-5)
    # by hand, at order 2: R + ln(1/delta) over 1
    assert account(Gaussian(1.0), "moments", conversion="textbook").epsilon(math.exp(-1)) <= 2.0 + 1e-9
    with pytest.raises(InvalidParameterError, match="pld has none"):
        account(event, conversion="textbook")
    with pytest.raises(InvalidParameterError, match="'tight' or 'textbook'"):
        account(event, "rdp", conversion="loose")  # type: ignore[arg-type]  # on purpose
