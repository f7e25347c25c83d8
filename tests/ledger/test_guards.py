from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import LedgerUnavailableError
from defocus.ledger.guards import Guard
from defocus.ledger.terms import Terms
from defocus.privacy.budgets import Budget
from defocus.privacy.events import NOTHING, Event, Gaussian, Laplace, Pure
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
    assert "by itself the release has epsilon 0.0999" in str(guard.refusal(guard.start, Laplace(10)))
    assert " at delta 1e-06)" in str(guard.refusal(guard.start, Laplace(10)))
    pure = Guard.of(terms(Budget(0.05)))
    assert "(by itself the release has epsilon 0.1)" in str(pure.refusal(pure.start, Pure(Fraction(1, 10))))


def test_the_remedy_for_a_spent_budget_does_not_offer_what_would_be_refused() -> None:
    guard = Guard.of(terms(Budget(1)))
    spent = guard.start
    for step in (Pure(0.4), Pure(0.4), Pure(0.2)):
        spent = guard.add(spent, guard.cost(step))
    refusal = guard.refusal(spent, Pure(1e-3))
    assert refusal.remaining == 0
    assert "read again what was already released" in refusal.fix
