"""Bounds say what one person weighs at most, exactly."""

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import DefocusError, InvalidParameterError
from defocus.tables.bounding import DEFAULT_ROWS, Bound, fitting, root_above

limit = st.integers(1, 6)


@given(limit, st.none() | limit, st.none() | limit)
def test_the_norms_are_the_largest_that_whole_rows_reach(rows: int, groups: int | None, per_group: int | None) -> None:
    bound = Bound(rows=rows, groups=groups, per_group=per_group)
    most = per_group or rows
    ways = [way for way in itertools.product(range(most + 1), repeat=4) if sum(way) <= bound.total]
    squares = max(sum(n * n for n in way) for way in ways)
    if bound.total <= 4 * most:
        assert bound.l2() ** 2 >= squares
        assert float(bound.l2()) ** 2 == pytest.approx(squares)
    assert max(map(sum, ways)) <= bound.total


@given(st.integers(0, 10**30))
def test_roots_are_rounded_up_by_less_than_a_part_in_a_billion(square: int) -> None:
    root = root_above(square)
    assert root * root >= square
    assert (root - Fraction(1, 2**31)) ** 2 <= square or root < Fraction(1, 2**31)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "3", None, float("nan"), 2**20 + 1, 10**30])
def test_wrong_numbers_of_rows_are_refused(wrong: Any) -> None:
    with pytest.raises(DefocusError):
        Bound(rows=wrong)


def test_a_bound_must_limit_what_one_person_contributes() -> None:
    unlimited: list[dict[str, Any]] = [{"groups": 2}, {"per_group": 2}, {}]
    for limits in unlimited:
        with pytest.raises(InvalidParameterError, match="does not limit"):
            Bound(**limits)
    with pytest.raises(InvalidParameterError, match="by weights or by sampling"):
        Bound(rows=1, by="magic")
    with pytest.raises(InvalidParameterError, match="to be found"):
        Bound(rows=3, find=True)


def test_people_are_counted_in_as_many_groups_as_they_may_have_rows_in() -> None:
    assert Bound(rows=5).people_in == 5
    assert Bound(rows=5, groups=2).people_in == 2
    assert str(Bound(rows=1, groups=1)) == "1 row and 1 group"


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ({}, Bound(rows=DEFAULT_ROWS)),
        ({"rows": 2}, Bound(rows=2)),
        ({"groups": 3}, Bound(rows=5, groups=3)),
        ({"groups": 9}, Bound(rows=9, groups=9)),
        ({"per_group": 7}, Bound(rows=7, per_group=7)),
        ({"groups": 3, "per_group": 2}, Bound(groups=3, per_group=2)),
        ({"rows": "find", "groups": 2}, Bound(find=True, groups=2)),
    ],
)
def test_rows_are_filled_in_where_they_are_needed(asked: dict[str, Any], meant: Bound) -> None:
    assert Bound.of(**asked) == meant


@pytest.mark.parametrize("value", [0, -1, 1.5, True, math.nan, math.inf, "5", 2**70, [1]])
@pytest.mark.parametrize("name", ["rows", "groups", "per_group"])
def test_what_is_no_number_of_rows_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        Bound.of(**{name: value})
    assert caught.value.fix


def test_a_bound_needs_people() -> None:
    assert fitting(None, people=False) is None
    assert fitting(Bound(rows=2), people=True) == Bound(rows=2)
    with pytest.raises(InvalidParameterError, match="protected alone"):
        fitting(Bound(rows=2), people=False)
    with pytest.raises(InvalidParameterError, match=r"Bound\(rows=5\)"):
        fitting(5, people=True)
