"""Which delta to choose."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import check_budget, check_delta, delta_for, spoken_delta
from defocus.privacy.classical import classical_gaussian_sigma


@given(st.integers(2, 10**12))
def test_the_default_lies_below_one_over_n(n: int) -> None:
    assert 0 < delta_for(n) < 1 / n
    assert check_delta(delta_for(n), n) == delta_for(n)


def test_for_a_million_people_the_default_costs_four_point_eight_percent_more_noise() -> None:
    more = classical_gaussian_sigma(1, delta_for(10**6)) / classical_gaussian_sigma(1, 1e-6)
    assert more == pytest.approx(1.048, abs=0.0005)


def test_a_delta_that_allows_publishing_a_record_is_refused() -> None:
    for delta, n in ((1e-3, 1000), (0.5, 10), (1e-5, 10**6)):
        with pytest.raises(InvalidParameterError, match=r"publishing one random record[\s\S]*for example"):
            check_delta(delta, n)


@pytest.mark.parametrize("bad", [0, 1, -5, 1.5, float("nan"), True, "10", None, 2**70])
def test_a_number_of_people_that_makes_no_sense_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError):
        delta_for(bad)


@pytest.mark.parametrize("bad", [1, 0.5, -1, float("inf"), True])
def test_an_exponent_of_at_most_one_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError):
        delta_for(100, exponent=bad)


@pytest.mark.parametrize("budget", [Budget(1e-6, 0.9), Budget(1, 0.5), Budget(1, 0.02)])
def test_a_budget_that_may_be_broken_altogether_is_refused(budget: Budget) -> None:
    with pytest.raises(InvalidParameterError, match="may be broken altogether") as refusal:
        check_budget(budget)
    assert ("Budget(0.9, 1e-06)? Epsilon comes first" in refusal.value.fix) == (budget.delta == 0.9)


@pytest.mark.parametrize("budget", [Budget(1), Budget(1, 1e-6), Budget(1e-9, 1e-3), Budget(1, 0.01), Budget(rho=1)])
def test_other_budgets_may_be_promised(budget: Budget) -> None:
    assert check_budget(budget) is budget


def test_numbers_beyond_floats_are_answered_or_refused() -> None:
    assert delta_for(1000, exponent=10**400) == 0
    with pytest.raises(InvalidParameterError, match="altogether"):
        check_budget(Budget(10**400, 0.5))


def test_epsilons_are_told_at_the_delta_of_the_budget_or_the_customary_one() -> None:
    assert spoken_delta(Budget(1)) == 0
    assert spoken_delta(Budget(1, 1e-9)) == 1e-9
    assert spoken_delta(Budget(rho=1)) == spoken_delta(Budget(mu=1)) == 1e-6
