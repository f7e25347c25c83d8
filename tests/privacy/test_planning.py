"""The least parameter that a rule allows."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import CannotCalibrateError, InvalidParameterError, UnsupportedEventError
from defocus.privacy.events import Gaussian
from defocus.privacy.planning import least_allowed


def search(allows: Any, **options: Any) -> float:
    usual: dict[str, Any] = {"low": 1e-6, "high": 1e12, "precision": 1e-6}
    return least_allowed(allows, **usual | options, what="the rule")


@given(st.floats(1e-5, 1e11))
def test_the_answer_is_allowed_and_nearly_the_least(threshold: float) -> None:
    found = search(lambda x: x >= threshold)
    assert threshold <= found <= threshold * (1 + 4e-6)


def test_few_digits_are_given_where_they_are_enough() -> None:
    assert search(lambda x: x >= 10) == 10.0


def test_a_rule_that_allows_everything_gets_the_least_value_searched() -> None:
    assert search(lambda x: True) == pytest.approx(1e-6, rel=1e-6)  # noqa: ARG005 - allows all


def test_a_rule_that_nothing_meets_is_said_to_be_out_of_reach() -> None:
    with pytest.raises(CannotCalibrateError, match="No value up to 1e"):
        search(lambda x: False)  # noqa: ARG005 - allows none


def test_a_family_that_goes_the_other_way_is_refused() -> None:
    with pytest.raises(CannotCalibrateError, match="refused at"):
        search(lambda x: 0.5 < x < 1.2)


def test_what_cannot_be_expressed_is_refused_by_name_only_if_nothing_else_is_allowed() -> None:
    def narrow(x: float) -> bool:
        if x < 7:
            raise UnsupportedEventError(Gaussian(1), accountant="test", why="too narrow", fix="widen it.")
        return True

    def never(x: float) -> bool:
        return narrow(min(x, 1))

    assert search(narrow) == pytest.approx(7, rel=4e-6)
    with pytest.raises(UnsupportedEventError, match="too narrow"):
        search(never)


@pytest.mark.parametrize("options", [{"low": 0}, {"low": 2, "high": 1}, {"precision": 0}, {"high": math.inf}])
def test_a_range_that_is_none_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError):
        search(lambda x: x > 1, **options)
