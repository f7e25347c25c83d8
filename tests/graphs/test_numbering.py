"""Ends of edges as numbers: no value raises, only types are refused."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import UnfitDataError
from defocus.graphs.numbering import node_numbers, whole_numbers

ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=3), st.fractions()
)


@given(st.lists(ANYTHING, max_size=30))
def test_no_list_of_values_can_fail(values: list[Any]) -> None:
    numbers, whole = whole_numbers(values)
    assert len(numbers) == len(whole) == len(values)
    for value, number, fine in zip(values, numbers.tolist(), whole.tolist(), strict=True):
        if fine:
            assert number == value
        elif isinstance(value, int) and not isinstance(value, bool):
            assert not -(2**63) <= value < 2**63


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([True, False], [-1, -1]),
        ([2**63, -(2**63) - 1, 2**200], [-1, -1, -1]),
        ([np.int32(4), np.float32(5), np.float64("nan"), np.bool_(True)], [4, 5, -1, -1]),
        ([float("inf"), -float("inf"), 1e300, 0.5, -0.0], [-1, -1, -1, -1, 0]),
        (["3", b"3", None, (1, 2), Decimal(3), Fraction(3)], [-1] * 6),
        (np.array([0, 2**64 - 1, 5], np.uint64), [0, -1, 5]),
        (np.array([1.0, np.nan, np.inf, 2.5, 2**62]), [1, -1, -1, -1, -1]),
        (np.array([7, 8], np.int8), [7, 8]),
        ([], []),
    ],
)
def test_what_is_no_whole_number_is_nobody(given: Any, expected: list[int]) -> None:
    assert node_numbers(given).tolist() == expected


@pytest.mark.parametrize(
    "column", [np.array(["3"]), np.array([True]), np.zeros((2, 2), int), np.array(["2020-01-01"], "datetime64[D]")]
)
def test_a_column_of_another_type_is_refused_by_its_type(column: Any) -> None:
    with pytest.raises(UnfitDataError, match="column of whole numbers") as caught:
        node_numbers(column)
    assert "nodes=names" in caught.value.fix


@pytest.mark.parametrize("column", ["012", b"012", 3, None, iter([1])])
def test_what_is_no_list_is_refused(column: Any) -> None:
    with pytest.raises(UnfitDataError, match="a list of nodes"):
        node_numbers(column)
