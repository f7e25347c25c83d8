import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError, LedgerDamagedError, LedgerMismatchError
from defocus.ledger.filter import Guard
from defocus.ledger.terms import Terms
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Unit, edge, item, node, rows, user, weight

numbers = st.fractions(min_value=Fraction(1, 1000), max_value=100) | st.floats(0.001, 100) | st.integers(1, 100)
budgets = (
    st.builds(Budget, numbers, st.floats(0, 0.5))
    | st.builds(lambda rho: Budget(rho=rho), numbers)
    | st.builds(lambda mu: Budget(mu=mu), numbers)
)
units = st.sampled_from(
    [rows(), rows(replace=True), user("patient"), edge(), node(max_degree=7), item(), weight(bound=Fraction(1, 3))]
)


@given(budgets, units)
def test_terms_survive_json(budget: Budget, unit: Unit) -> None:
    terms = Terms.new(dataset="visits", unit=unit, budget=budget, filter_version=Guard.definition(budget))
    again = Terms.read(json.loads(json.dumps(terms.to_dict())))
    assert again == terms
    again.hold(dataset="visits", unit=unit, budget=budget)
    again.hold(dataset=None, unit=None, budget=None)


def test_each_ledger_has_an_identity_of_its_own() -> None:
    made = {Terms.new(dataset="d", unit=rows(), budget=Budget(1), filter_version="x").id for _ in range(20)}
    assert len(made) == 20


def test_all_differences_are_named_at_once() -> None:
    terms = Terms.new(dataset="visits", unit=rows(), budget=Budget(1), filter_version="x")
    with pytest.raises(LedgerMismatchError) as refused:
        terms.hold(dataset="claims", unit=edge(), budget=Budget(rho=1))
    for words in ("visits", "claims", "one row", "one edge", "Budget(epsilon=1)", "Budget(rho=1)"):
        assert words in refused.value.what


def test_a_hostile_column_name_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="control character"):
        Terms.new(dataset="d", unit=user("a\x1b[0m"), budget=Budget(1), filter_version="x")


@pytest.mark.parametrize("part", ["9/8", "-1", "1/0", "1e400", "5e-1", "0.5", " 1/2", "", f"{'9' * 5000}/{'9' * 5001}"])
def test_a_part_for_direct_spending_is_a_fraction_as_it_is_written_and_no_other_text(part: str) -> None:
    written = Terms.new(dataset="d", unit=rows(), budget=Budget(1, 1e-6), filter_version="first/2:1/2").to_dict()
    with pytest.raises(LedgerDamagedError, match="what the ledger is for"):
        Terms.read(written | {"filter": f"first/2:{part}"})


@pytest.mark.parametrize("direct", [0, 0.1, Fraction(1, 8), Fraction(2**4095 - 1, 2**4095)])
def test_every_part_for_direct_spending_can_be_read_again(direct: Any) -> None:
    budget = Budget(1, 1e-6, direct=direct)
    terms = Terms.new(dataset="d", unit=rows(), budget=budget, filter_version=Guard.definition(budget))
    assert Terms.read(terms.to_dict()) == terms
    assert Guard.of(terms).filter.definition == terms.filter


@pytest.mark.parametrize("data", [None, {}, [], "x", {"unit": 3}, {"unit": {}, "dataset": "d"}])
def test_malformed_terms_are_refused(data: Any) -> None:
    with pytest.raises(LedgerDamagedError, match="what the ledger is for"):
        Terms.read(data)


@pytest.mark.parametrize(
    "change", [{"budget": {"epsilon": -1}}, {"budget": {"epsilon": "1/0"}}, {"unit": {"kind": "rows"}}]
)
def test_terms_with_a_malformed_part_are_refused(change: dict[str, Any]) -> None:
    terms = Terms.new(dataset="d", unit=rows(), budget=Budget(1), filter_version="x").to_dict()
    with pytest.raises(LedgerDamagedError):
        Terms.read(terms | change)
