from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import NotExactError, UnfitDataError
from defocus.mechanisms.values import LARGEST, SMALLEST, add, integers, rationals, saturate

int64 = st.integers(SMALLEST, LARGEST)


@given(st.lists(st.tuples(int64, int64), min_size=1))
def test_sums_are_those_of_unbounded_integers_cut_to_64_bits(rows: list[tuple[int, int]]) -> None:
    a, b = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    assert add(a, b).tolist() == [max(SMALLEST, min(LARGEST, x + y)) for x, y in rows]


@given(st.integers(), st.integers())
def test_cutting_moves_neighbours_no_further_apart(x: int, y: int) -> None:
    assert abs(saturate(x) - saturate(y)) <= abs(x - y)
    assert SMALLEST <= saturate(x) <= LARGEST


@given(st.lists(int64, min_size=1))
def test_integers_come_through_unchanged_from_every_container(items: list[int]) -> None:
    for value in (items, tuple(items), np.array(items, dtype=np.int64), np.array(items, dtype=object)):
        vector, single = integers(value)
        assert vector.dtype == np.int64
        assert vector.tolist() == items
        assert not single


@pytest.mark.parametrize("value", [7, np.int64(7), np.uint8(7), np.array(7)])
def test_a_number_is_remembered_as_a_number(value: Any) -> None:
    vector, single = integers(value)
    assert vector.tolist() == [7]
    assert single


def test_the_data_given_is_not_written_to() -> None:
    data = np.array([1, 2, 3])
    vector, _ = integers(data)
    vector += 1
    assert data.tolist() == [1, 2, 3]


@pytest.mark.parametrize("value", [1.5, Fraction(3, 2), Decimal("1.5"), np.float32(1.5), [1, 1.5], [Fraction(1, 2)]])
def test_fractional_data_is_sent_to_the_grid_and_not_quoted(value: Any) -> None:
    with pytest.raises(NotExactError) as refusal:
        integers(value)
    assert "Grid" in refusal.value.fix
    assert "1.5" not in str(refusal.value)


def test_another_length_than_declared_is_refused_with_both_lengths() -> None:
    with pytest.raises(UnfitDataError, match="3 entries, but this mechanism was made for 2"):
        integers([1, 2, 3], length=2)
    with pytest.raises(UnfitDataError, match="3 utilities, but this mechanism was made for 2"):
        rationals([1, 2, 3], length=2)


def test_utilities_may_be_fractions_and_integers_of_any_size() -> None:
    assert rationals([10**30, Fraction(1, 3), np.int8(-2)], length=3) == [10**30, Fraction(1, 3), -2]
