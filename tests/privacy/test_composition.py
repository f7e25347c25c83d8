"""The bound for fixed sequences, with its label."""

import math

import pytest

from defocus.errors import InvalidParameterError
from defocus.privacy.accounting import account
from defocus.privacy.composition import Comparison, Cost, Remaining, fixed_sequence_bound
from defocus.privacy.events import Gaussian, Laplace, Selected


def test_costs_add_up_and_are_never_rounded_down() -> None:
    total = Cost([0.0])
    for _ in range(10):
        total += Cost([0.1])
    assert total.amounts[0] >= 1
    assert (Cost([1.0, 2.0]) + Cost([0.0, None])).amounts == (1.0, math.inf)


@pytest.mark.parametrize("bad", [[], [-1.0], [math.nan]])
def test_what_is_no_cost_is_refused(bad: list[float]) -> None:
    with pytest.raises(InvalidParameterError, match=r"filter\.cost"):
        Cost(bad)


def test_a_comparison_says_how_much_is_missing() -> None:
    assert Comparison(requested=0.5, remaining=0.2, measure="epsilon").difference == pytest.approx(0.3)


def test_nothing_left_is_called_nothing() -> None:
    assert str(Remaining(epsilon=0.0, ratio=math.inf, delta=0.0)) == "nothing"
    assert str(Remaining(epsilon=6.3e-9, ratio=math.inf, delta=0.0)) == "next to nothing"
    assert str(Remaining(epsilon=0.0, ratio=1e6, delta=0.0)) == "Gaussian noise of 1000000 times the sensitivity"


def test_the_bound_is_the_tightest_and_says_when_it_holds() -> None:
    found = fixed_sequence_bound(30 * Gaussian(20), 1e-6)
    assert found.epsilon == pytest.approx(account(30 * Gaussian(20), "gdp").epsilon(1e-6), rel=1e-3)
    assert "valid only if the sequence of privacy parameters was fixed in advance" in str(found)
    assert found.accountant == "pld"


def test_what_the_tightest_cannot_express_goes_to_the_next() -> None:
    found = fixed_sequence_bound(Selected(Gaussian(5), 0.1), 1e-6)
    assert found.accountant == "rdp"
    assert found.epsilon > account(Gaussian(5), "rdp").epsilon(1e-6)


def test_the_bound_is_labelled_in_json_and_has_no_infinity() -> None:
    found = fixed_sequence_bound(100 * Laplace(10), 1e-6).to_dict()
    assert found["epsilon"] < 8
    assert "only if" in found["valid"]
    assert fixed_sequence_bound(Gaussian(1), 0).to_dict()["epsilon"] is None
