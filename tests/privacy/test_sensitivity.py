"""Exact sensitivities: integers in, bounds out that are never too small."""

import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.privacy import Sensitivity

SIZES = st.integers(1, 10**12)


@given(SIZES, st.integers(1, 10**24))
def test_the_l2_norm_is_never_below_its_square_and_hardly_above(l1: int, square: int) -> None:
    root = Fraction(Sensitivity(l1, square).l2)
    assert root * root >= square
    assert root * root <= square * (1 + Fraction(1, 10**14))


@given(SIZES, SIZES, SIZES, SIZES)
def test_sensitivities_add_up(a: int, b: int, c: int, d: int) -> None:
    both = Sensitivity(a, b) + Sensitivity(c, d)
    assert (both.l1, both.l2_squared) == (a + c, b + d)


@given(SIZES, SIZES, st.integers(1, 5))
def test_several_changes_move_it_so_many_times_as_far(l1: int, square: int, times: int) -> None:
    many = Sensitivity(l1, square).times(times)
    assert (many.l1, many.l2_squared) == (times * l1, times**2 * square)


@given(st.fractions(Fraction(1, 10**6), 10**6))
def test_a_rational_norm_is_kept_exactly(l2: Fraction) -> None:
    sensitivity = Sensitivity(7, l2**2)
    assert sensitivity.l2 == l2
    assert pickle.loads(pickle.dumps(sensitivity)) == sensitivity  # noqa: S301  # our own bytes


def test_the_l2_norm_is_at_most_the_l1_norm_by_default() -> None:
    assert Sensitivity(3).l2 == 3
    assert repr(Sensitivity(3, Fraction(18, 2))) == "Sensitivity(l1=3, l2_squared=9)"


@given(SIZES)
def test_replacing_moves_what_can_only_rise_by_the_root_of_two(l1: int) -> None:
    replaced = Sensitivity(l1).replaced()
    assert replaced.l1 == 2 * l1
    assert 2 * l1**2 <= replaced.l2_squared <= 2 * l1**2 * (1 + Fraction(1, 10**14))


@pytest.mark.parametrize("l1", [0, -1, True, 1.5, "2", None, 2**63, float("nan")])
def test_an_l1_norm_that_is_no_count_is_refused(l1: Any) -> None:
    with pytest.raises(InvalidParameterError, match="l1"):
        Sensitivity(l1, 1)


@pytest.mark.parametrize("norm", [0, -1, True, "2", float("nan"), float("inf")])
def test_an_l2_norm_that_is_not_a_positive_number_is_refused(norm: Any) -> None:
    with pytest.raises(InvalidParameterError, match="l2_squared"):
        Sensitivity(1, norm)
