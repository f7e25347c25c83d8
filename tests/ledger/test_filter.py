from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError, LedgerUnavailableError
from defocus.ledger.filter import Guard
from defocus.ledger.parts import Parts
from defocus.ledger.terms import Terms
from defocus.privacy.budgets import Budget
from defocus.privacy.events import (
    NOTHING,
    Approximate,
    Event,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Shuffled,
)
from defocus.privacy.units import rows


def terms(budget: Budget) -> Terms:
    return Terms.new(dataset="d", unit=rows(), budget=budget, filter_version=Guard.definition(budget))


GUARD = Guard.of(terms(Budget(2, 1e-6)))
events = st.sampled_from([NOTHING, Pure(Fraction(1, 10)), Laplace(3), Gaussian(5), 3 * Gaussian(20) + Pure(0.01)])


@given(st.lists(events, max_size=5))
def test_sums_only_grow_and_depend_on_costs_only(steps: list[Event]) -> None:
    guard = GUARD
    spent = guard.start
    for step in steps:
        more = guard.add(spent, guard.cost(step))
        assert all(after >= before for before, after in zip(spent, more, strict=True))
        spent = more


def test_a_ledger_of_another_rule_is_refused() -> None:
    with pytest.raises(LedgerUnavailableError, match="union/0"):
        Guard.of(replace(terms(Budget(1)), filter="union/0"))


@pytest.mark.parametrize("budget", [Budget(1, 1e-6), Budget(rho=0.1), Budget(mu=0.5)])
def test_a_refusal_is_larger_than_what_is_left_in_every_vocabulary(budget: Budget) -> None:
    guard = Guard.of(terms(budget))
    refused = guard.refusal(guard.start, Gaussian(Fraction(1, 10)))
    assert refused.requested > refused.remaining > 0
    assert refused.difference == pytest.approx(refused.requested - refused.remaining)
    assert refused.requested_epsilon > refused.remaining_epsilon > 0


def test_a_refusal_says_at_which_delta_the_release_has_its_epsilon() -> None:
    guard = Guard.of(terms(Budget(0.05, 1e-6)))
    assert "requested   epsilon 0.0999" in str(guard.refusal(guard.start, Laplace(10)))
    assert " at delta 1e-06\n" in str(guard.refusal(guard.start, Laplace(10)))
    pure = Guard.of(terms(Budget(0.05)))
    assert "requested   epsilon 0.1\n" in str(pure.refusal(pure.start, Pure(Fraction(1, 10))))


def test_the_remedy_for_a_spent_budget_does_not_offer_what_would_be_refused() -> None:
    guard = Guard.of(terms(Budget(1)))
    spent = guard.start
    for step in (Pure(0.4), Pure(0.4), Pure(0.2)):
        spent = guard.add(spent, guard.cost(step))
    refusal = guard.refusal(spent, Pure(1e-3))
    assert refusal.remaining == 0
    assert "read again what was already released" in refusal.fix


def test_a_ledger_made_under_the_union_keeps_it() -> None:
    old = Guard.of(replace(terms(Budget(1, 1e-6, direct=Fraction(1, 8))), filter="union/1"))
    assert not old.admits(old.start, Approximate(1, 1e-6))
    new = Guard.of(terms(Budget(1, 1e-6)))
    assert new.filter.definition == "first/2:1/2"
    assert new.admits(new.start, Approximate(1, 1e-6))
    for budget in (Budget(1), Budget(rho=1), Budget(mu=1), Budget(1, Fraction(1, 10**400))):
        assert Guard.of(terms(budget)).filter.definition == "union/1"


def test_many_sums_and_one_price_are_decided_like_one_release() -> None:
    guard = Guard.of(terms(Budget(1, 1e-6)))
    large = Approximate(0.1, 5e-7)
    for spent in (guard.start, guard.cost(Pure(0.1)), guard.cost(large), guard.cost(Gaussian(50))):
        assert guard.covers(spent, guard.cost(large)) == guard.admits(spent, large)


def test_the_first_release_decides_nothing_where_the_data_has_parts() -> None:
    divided = Parts("day", "date", "rows")
    assert Guard.definition(Budget(1, 1e-6), divided=True) == "union/2:1/2"
    assert Guard.definition(Budget(1, 1e-6), "basic", divided=True) == "basic/1"
    with pytest.raises(InvalidParameterError, match="where the data has parts"):
        Guard.definition(Budget(1, 1e-6), "first", divided=True)
    with pytest.raises(LedgerUnavailableError, match="first/2:1/2"):
        Guard.of(replace(terms(Budget(1, 1e-6)), parts=divided))


def test_a_filter_that_nobody_knows_is_refused_when_a_ledger_is_made() -> None:
    with pytest.raises(InvalidParameterError, match=r"no filter for .* named 'hope'"):
        Guard.definition(Budget(1, 1e-6), "hope")


def test_a_shuffled_release_is_made_to_fit_by_more_users_and_not_by_noise() -> None:
    crowd = replace(terms(Budget(0.1, 1e-6)), unit=rows(replace=True))
    guard = Guard.of(crowd)
    shuffled = Shuffled(RandomizedResponse(3), 1000)
    for event in (shuffled, 2 * shuffled + Pure(0.01)):
        refusal = str(guard.refusal(guard.start, event))
        assert "more users, or let each report have a smaller local epsilon, until it fits in what is left" in refusal
        assert "add noise" not in refusal
    assert "add noise" in str(guard.refusal(guard.start, Pure(3)))


def test_a_pair_is_told_with_its_own_epsilon_where_it_takes_all_of_delta() -> None:
    guard = Guard.of(terms(Budget(3, 1e-5)))
    pair = Approximate(3, 1e-5)
    refusal = str(guard.refusal(guard.add(guard.start, guard.cost(pair)), pair))
    assert "requested   epsilon 3 at delta 1e-05" in refusal
    assert "requested   no epsilon at the delta" in str(guard.refusal(guard.start, Approximate(3, 1e-4)))
