"""A question within the budget is answered, or refused before any charge with what to ask instead."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.tables.test_query import opened

import defocus as dp
from defocus.errors import BudgetExceededError, InvalidParameterError, NotDeclaredError, UnsupportedEventError
from defocus.ledger import Ledger
from defocus.ledger.declarations import allowed, purposes_of
from defocus.ledger.entries import CHARGE
from defocus.privacy.accounting import tightest_at
from defocus.privacy.budgets import Budget
from defocus.privacy.events import NOTHING, Approximate, DiscreteGaussian, Event, Gaussian, Pure, Selected
from defocus.privacy.units import Adjacency
from defocus.release.charge import admitted, advice, charge, pair
from defocus.tables.query import Query
from defocus.tables.table import Table

WHOLE = Budget(1, 1e-6)
MANY = {f"m{i}": dp.mean(f"x + {i}", 0, 10 + i) for i in range(8)}
"""So many columns that Gaussian noise is best where there is a delta."""


def asked_of(table: Table, *, private: bool) -> Query:
    grouped = table.bound(rows=2).group_by("k") if private else table.bound(rows=2).group_by("k", keys=[0, 1, 2, 3])
    return grouped.agg(n=dp.count(), m=dp.mean("x", 0, 10), **MANY)


@pytest.mark.slow
@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("epsilon", [1, 0.5, 0.01])
@pytest.mark.parametrize("delta", [1e-6, 1e-7])
def test_a_newcomer_may_spend_everything_on_one_question(
    private: bool, epsilon: float, delta: float, tmp_path: Path
) -> None:
    with opened(tmp_path, budget=WHOLE) as table:
        query = asked_of(table, private=private)
        preview = query.preview(epsilon=epsilon, delta=delta)
        assert preview.fits
        answer = query.release(epsilon=epsilon, delta=delta)
        assert answer.event == preview.event
        assert table.remaining() == preview.after
        assert tightest_at(answer.event, delta).epsilon(delta) <= epsilon * (1 + 1e-9)
        promised = answer.promise()
        assert promised is not None
        assert promised.epsilon <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("private", [True, False])
def test_two_halves_of_everything_are_answered(private: bool, tmp_path: Path) -> None:
    with opened(tmp_path, budget=WHOLE) as table:
        asked_of(table, private=True).release(epsilon=0.5, delta=5e-7)
        asked_of(table, private=private).release(epsilon=0.5, delta=5e-7)
        assert table.remaining().epsilon < 0.2


def test_who_has_no_delta_left_to_find_keys_with_is_told_to_name_them(tmp_path: Path) -> None:
    with opened(tmp_path, budget=WHOLE) as table:
        table.ledger.charge(Approximate(0.1, 1e-6), purpose="before")
        with pytest.raises(BudgetExceededError) as refused:
            asked_of(table, private=True).release(epsilon=0.1, delta=1e-9)
        assert refused.value.fix.startswith("name the keys")
        asked_of(table, private=False).release(epsilon=0.1, delta=1e-9)
        table.ledger.charge(Pure(0.8), purpose="the rest")
        with pytest.raises(BudgetExceededError) as spent:
            asked_of(table, private=True).release(epsilon=0.1, delta=1e-9)
        assert spent.value.fix.startswith("read again")


def remedy(refused: BudgetExceededError) -> dict[str, Any]:
    """What a refusal tells to ask instead, as parameters."""
    found = re.search(r"ask with delta=([-+.e0-9]+):", refused.fix)
    if found is None:
        assert refused.fix.startswith("leave delta= out")
        return {}
    return {"delta": float(found[1])}


@pytest.mark.slow
@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("before", [Pure(0.1), Approximate(0.1, 1e-7), Approximate(0.1, 6e-7)])
def test_what_does_not_fit_is_refused_before_any_charge_with_a_delta_that_does(
    private: bool, before: Event, tmp_path: Path
) -> None:
    with opened(tmp_path, budget=WHOLE) as table:
        table.ledger.charge(before, purpose="before")
        query = asked_of(table, private=private)
        spent = table.ledger.spent()
        with pytest.raises(BudgetExceededError) as refused:
            query.release(epsilon=0.9, delta=1e-6)
        assert table.ledger.spent() == spent
        assert refused.value.fix.rstrip(".") in str(query.preview(epsilon=0.9, delta=1e-6))
        instead = remedy(refused.value)
        if private:
            with pytest.raises(BudgetExceededError):
                query.release(epsilon=0.9, delta=1.01 * instead["delta"])
        query.release(epsilon=0.9, **instead)


def test_where_nothing_would_fit_no_delta_is_promised(tmp_path: Path) -> None:
    with opened(tmp_path, budget=WHOLE) as table:
        table.ledger.charge(Pure(0.5), purpose="before")
        with pytest.raises(BudgetExceededError, match=r"epsilon 0\.5") as refused:
            asked_of(table, private=True).release(epsilon=0.9, delta=1e-6)
        assert "ask with" not in refused.value.fix


def test_who_forgets_a_delta_is_told_one_that_works(tmp_path: Path) -> None:
    with opened(tmp_path, budget=WHOLE) as table:
        query = asked_of(table, private=True)
        examples = []
        for _ in range(2):
            with pytest.raises(NotDeclaredError) as refused:
                query.preview(epsilon=0.1)
            found = re.search("pass delta=, for example (.+), or name the keys", refused.value.fix)
            assert found is not None
            examples.append(float(found[1]))
            query.release(epsilon=0.1, delta=examples[-1])
        assert examples == [1e-7, 4e-8]  # a tenth of what is left
        table.ledger.charge(Approximate(0.01, table.ledger.remaining().delta), purpose="the rest")
        with pytest.raises(NotDeclaredError, match="none is left"):
            query.release(epsilon=0.1)
    with opened(tmp_path, budget=Budget(1)) as table, pytest.raises(NotDeclaredError, match="name the keys"):
        asked_of(table, private=True).release(epsilon=0.1)


def test_a_question_paid_as_a_pair_is_recalled_for_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, budget=WHOLE) as table:
        query = asked_of(table, private=False)
        first = query.release(epsilon=1, delta=1e-6, request="all of it")
        assert first.event == Approximate(1, 1e-6)
        again = query.release(epsilon=1, delta=1e-6, request="all of it")
        assert str(again) == str(first)
        assert again.asked == first.asked == Budget(1, 1e-6)
        assert sum(entry.kind == CHARGE for entry in table.ledger.entries()) == 1


def test_a_release_is_charged_as_what_it_does_wherever_that_fits(tmp_path: Path) -> None:
    with opened(tmp_path, budget=WHOLE) as table:
        query = asked_of(table, private=False)
        assert query.release(epsilon=0.3, delta=1e-6).event == query.plan(epsilon=0.3, delta=1e-6).event


def test_a_pair_is_what_was_asked_for_and_only_where_an_accountant_vouches_for_it() -> None:
    add = Adjacency.ADD_REMOVE
    assert pair(Gaussian(10), Budget(1, 1e-6), add) == Approximate(1, 1e-6)
    assert pair(Gaussian(4), Budget(1, 1e-6), add) is None
    assert pair(Gaussian(10), Budget(1), add) is None
    assert pair(Gaussian(10), Budget(rho=1), add) is None
    assert pair(Selected(Approximate(1, 1e-9), 0.5), Budget(50, 1e-6), add) is None
    slightly = pair(Approximate(1 + 1e-10, 1e-6), Budget(1, 1e-6), add)
    assert isinstance(slightly, Approximate)
    assert slightly.epsilon >= 1 + 1e-10
    assert pair(Approximate(1 + 1e-8, 1e-6), Budget(1, 1e-6), add) is None


def test_budgets_of_other_kinds_and_releases_that_no_measure_knows_are_refused_as_before(tmp_path: Path) -> None:
    for name, budget in (("a", Budget(rho=0.01)), ("b", Budget(1)), ("c", Budget(mu=0.1))):
        with Ledger.open(tmp_path / name, budget=budget, unit=dp.rows(), dataset="d") as ledger:
            assert admitted(Approximate(0.01, 1e-9), Budget(0.01, 1e-9), ledger) is None
            assert advice(Budget(1), ledger, lambda _: NOTHING) == ""
            with pytest.raises(BudgetExceededError):
                charge(
                    Approximate(0.01, 1e-9),
                    ledger=ledger,
                    purpose="p",
                    asked=Budget(0.01, 1e-9),
                    replan=lambda _: Approximate(5, 1e-9),
                )


def test_noise_is_charged_as_a_pair_where_epsilons_and_deltas_are_added_up(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l", budget=WHOLE, unit=dp.rows(), dataset="d", filter="basic") as ledger:
        noise, asked = DiscreteGaussian(30, 1), Budget(0.25, 1e-7)
        assert admitted(noise, asked, ledger) == Approximate(0.25, 1e-7)
        with pytest.raises(UnsupportedEventError):
            charge(noise, ledger=ledger, purpose="p")
        receipt = charge(noise, ledger=ledger, purpose="p", asked=asked)
        assert receipt.event == Approximate(0.25, 1e-7)


def test_a_delta_is_refused_where_the_budget_has_none_and_nothing_is_charged(tmp_path: Path) -> None:
    with opened(tmp_path, budget=Budget(1)) as table:
        cube = table.declare(k=[0, 1, 2, 3]).bound(rows=2).cube("k")
        for query in (asked_of(table, private=False), cube):
            with pytest.raises(NotDeclaredError, match="no delta") as refused:
                query.release(epsilon=0.1, delta=1e-9)
            assert refused.value.fix.startswith("leave delta= out")
        assert len(table.ledger) == 1


def test_any_purpose_will_do_where_none_was_declared() -> None:
    assert purposes_of(None) is None
    assert allowed("report", None, "q") == "report"
    assert allowed(None, None, "q" * 300) == "q" * 200


def test_only_declared_purposes_are_allowed_and_the_nearest_is_named() -> None:
    purposes = purposes_of(["monthly report", "audit"])
    assert allowed("audit", purposes, "q") == "audit"
    with pytest.raises(InvalidParameterError, match="'monthly reprot' is none of them") as caught:
        allowed("monthly reprot", purposes, "q")
    assert caught.value.fix == "did you mean 'monthly report'? The purposes are monthly report; audit."
    with pytest.raises(InvalidParameterError, match="none was named"):
        allowed(None, purposes, "q")


@pytest.mark.parametrize("given", [[], 3, True, b"audit", ["a\nb"], [""], [7]])
def test_what_names_no_purpose_is_refused(given: Any) -> None:
    with pytest.raises(InvalidParameterError):
        purposes_of(given)
