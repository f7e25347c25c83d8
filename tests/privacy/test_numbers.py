"""Floats err on the side asked for."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import CannotCalibrateError, InvalidParameterError, UnsupportedEventError
from defocus.privacy.events import Gaussian
from defocus.privacy.numbers import (
    above,
    at_least,
    at_most,
    below,
    bisect,
    least,
    least_allowed,
    product_up,
    root_up,
    roughly,
    sum_up,
    times_up,
)


@given(st.fractions())
def test_a_number_lies_between_its_two_neighbouring_floats(value: Fraction) -> None:
    low, high = below(value), above(value)
    assert low <= value <= high
    assert high <= math.nextafter(low, math.inf)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_left_as_it_is(value: float) -> None:
    assert above(value) == below(value) == value


def test_numbers_beyond_the_range_of_floats_stay_on_their_side() -> None:
    assert above(10**400) == math.inf
    assert below(10**400) == 1.7976931348623157e308
    assert above(-(10**400)) == -1.7976931348623157e308
    assert below(Fraction(1, 10**400)) == 0.0
    assert above(Fraction(1, 10**400)) == 5e-324


@given(st.integers(0, 10**400), st.floats(0, 1e300))
def test_amounts_taken_many_times_are_never_less_and_never_undefined(times: int, amount: float) -> None:
    found = times_up(times, amount)
    assert found == 0 if not amount else found >= 0
    assert found * (1 + 2**-52) + 5e-324 >= times * Fraction(amount)


@given(st.integers(1, 10**30), st.floats(0, 1e200), st.floats(0, 1e200))
def test_sums_and_products_are_never_less_than_exact_ones(times: int, a: float, b: float) -> None:
    assert sum_up(a, b) >= Fraction(a) + Fraction(b)
    assert product_up(times, a) >= times * Fraction(a)
    assert product_up(times, 0.0) > 0


@given(st.fractions(min_value=0))
def test_a_root_is_never_too_small_and_hardly_too_large(square: Fraction) -> None:
    root = root_up(square)
    assert square <= Fraction(root) ** 2 <= square * (1 + Fraction(1, 2**50)) + Fraction(1, 10**300)


def test_a_root_beyond_floats_is_infinite() -> None:
    assert root_up(Fraction(10**700)) == math.inf


@given(st.floats(-100, 100), st.booleans())
def test_a_turn_is_found_to_the_last_bit_from_either_side(threshold: float, rising: bool) -> None:
    def holds(x: float) -> bool:
        return x >= threshold if rising else x <= threshold

    found = bisect(holds, *((-101.0, 101.0) if rising else (101.0, -101.0)))
    assert holds(found.yes)
    assert not holds(found.no)
    assert found.yes == threshold
    assert abs(found.yes - found.no) <= math.ulp(threshold)


def test_a_turn_is_searched_no_further_than_asked() -> None:
    asked: list[float] = []

    def holds(x: float) -> bool:
        asked.append(x)
        return x >= 1 / 3

    assert bisect(holds, 0.0, 1.0, steps=3) == (0.25, 0.375)
    assert asked == [0.5, 0.25, 0.375]
    wide = bisect(holds, 0.0, 1.0, width=0.1)
    assert wide.yes - wide.no == 0.0625
    near = bisect(holds, 0.0, 1.0, relative=0.1)
    assert 0 < near.yes - near.no <= 0.1 * near.yes


@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_the_least_value_of_a_bowl_is_found(centre: float, steepness: float) -> None:
    found = least(lambda x: steepness * (x - centre) ** 2, -4, 4)
    assert 0 <= found <= 1e-9


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3))
def test_the_least_value_was_really_seen(shape: list[float]) -> None:
    a, b, c = shape
    seen: list[float] = []

    def function(x: float) -> float:
        seen.append(a * math.sin(5 * x) + b * x + c * x * x)
        return seen[-1]

    assert least(function, -2, 2) == min(seen)


def test_the_ends_belong_to_the_search() -> None:
    assert least(lambda x: x, 1, 2) == 1
    assert least(lambda x: -x, 1, 2) == -2


def test_where_there_is_no_number_there_is_no_bound() -> None:
    assert least(lambda _: math.nan, 0, 1) == math.inf
    assert least(lambda x: math.nan if x < 0.5 else x, 0, 1) == pytest.approx(0.5, abs=0.01)
    assert least(lambda _: math.inf, 0, 1) == math.inf


@given(st.floats(min_value=1e-300, max_value=1e300), st.integers(1, 12))
def test_the_text_is_on_the_safe_side_and_close(value: float, digits: int) -> None:
    low, high = float(at_most(value, digits)), float(at_least(value, digits))
    assert low <= value <= high
    assert high - low <= 2 * 10.0 ** (1 - digits) * value


def test_short_numbers_stay_as_they_are() -> None:
    for number, text in ((0.25, "0.25"), (1.0, "1"), (20.0, "20"), (1e-9, "1e-9"), (0.1, "0.1"), (0.0, "0")):
        assert at_least(number) == at_most(number) == text


def test_an_infinite_number_is_said_to_be_infinite() -> None:
    assert at_least(math.inf) == at_most(math.inf) == "inf"


def test_the_last_bits_are_forgiven_only_on_request() -> None:
    assert at_least(0.1 + 0.2) == "0.300001"
    assert at_least(0.1 + 0.2, forgiving=2**-46) == "0.3"
    assert at_most(0.7 + 0.1) == "0.799999"
    assert at_most(0.7 + 0.1, forgiving=2**-46) == "0.8"


def test_an_estimate_is_rounded_to_the_nearest() -> None:
    assert roughly(2 / 3) == "0.6667"
    assert roughly(1e-6) == "0.000001"
    assert roughly(1e-9) == "1e-9"


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
