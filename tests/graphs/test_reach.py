"""Exact sensitivities: integers in, bounds out that are never too small."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.graphs import Reach

SIZES = st.integers(1, 10**12)


@given(SIZES, st.integers(1, 10**24))
def test_the_l2_norm_is_never_below_its_square_and_hardly_above(l1: int, square: int) -> None:
    root = Fraction(Reach(l1, square).l2)
    assert root * root >= square
    assert root * root <= square * (1 + Fraction(1, 10**14))


@given(SIZES, SIZES, SIZES, SIZES)
def test_reaches_add_up(a: int, b: int, c: int, d: int) -> None:
    both = Reach(a, b) + Reach(c, d)
    assert (both.l1, both.l2_squared) == (a + c, b + d)


@given(SIZES, SIZES, st.integers(1, 5))
def test_several_changes_reach_so_many_times_as_far(l1: int, square: int, times: int) -> None:
    many = Reach(l1, square).times(times)
    assert (many.l1, many.l2_squared) == (times * l1, times**2 * square)


@pytest.mark.parametrize("l1", [0, -1, True, 1.5, "2", None, 2**63, float("nan")])
def test_a_reach_that_is_no_count_is_refused(l1: Any) -> None:
    with pytest.raises(InvalidParameterError, match="l1"):
        Reach(l1, 1)
