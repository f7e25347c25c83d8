import math

import pytest

from defocus.errors import InvalidParameterError
from defocus.privacy.costs import Comparison, Cost, Remaining


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


def test_costs_of_different_filters_do_not_add_up() -> None:
    with pytest.raises(InvalidParameterError, match="different filters"):
        Cost([0.0]) + Cost([0.0, 1.0])


def test_a_comparison_says_how_much_is_missing() -> None:
    assert Comparison(requested=0.5, remaining=0.2, measure="epsilon").difference == pytest.approx(0.3)


def test_nothing_left_is_called_nothing() -> None:
    assert str(Remaining(epsilon=0.0, ratio=math.inf, delta=0.0)) == "nothing"
    assert str(Remaining(epsilon=6.3e-9, ratio=math.inf, delta=0.0)) == "next to nothing"
    assert str(Remaining(epsilon=0.0, ratio=1e6, delta=0.0)) == "Gaussian noise of 1000000 times the sensitivity"
