"""Entries without a type: each is a number by itself."""

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import UnfitDataError
from defocus.workloads.entries import code, entries, entry


class Unruly(int):
    """Fails where it can."""

    def __floor__(self) -> int:
        message = "secret"
        raise RuntimeError(message)

    __mod__ = __ge__ = __le__ = __eq__ = __floor__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class Textual(float):
    """Rounds to what is no number."""

    def __floor__(self) -> Any:
        return "secret"


class Exits:
    """Ends the process when it is asked what it is."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise SystemExit


@given(st.one_of(st.floats(), st.integers(), st.decimals(), st.complex_numbers(), st.text(), st.none(), st.binary()))
def test_every_value_is_an_integer_of_64_bits_and_a_code(value: Any) -> None:
    for found in (entry(value), code(value)):
        assert type(found) is int
        assert -(2**63) <= found < 2**63


def test_no_value_fails_whatever_it_does() -> None:
    """A class of its own changes nothing about a number, and what exits is no number."""
    assert entry(Unruly(3)) == code(Unruly(3)) == 3
    assert entry(Textual(2.5)) == 2
    assert code(Textual(2)) == 2
    assert entry(Exits()) == code(Exits()) == 0
    assert entry(Decimal("1e999999999")) == 2**63 - 1


@given(st.fractions(-1000, 1000), st.fractions(-5, 5))
def test_rounding_down_moves_numbers_no_further_apart_than_the_whole_number_above(x: Any, by: Any) -> None:
    assert abs(entry(x + by) - entry(x)) <= -(-abs(by) // 1)


@pytest.mark.parametrize("values", [np.array([1.5]), np.array(["a"]), np.zeros((2, 2), int), "12", {1: 2}, {1}, []])
def test_other_types_and_containers_are_refused(values: Any) -> None:
    with pytest.raises(UnfitDataError):
        entries(values)


def test_a_missing_count_of_a_column_is_zero() -> None:
    assert entries(pd.array([1, None], dtype="Int64")).tolist() == [1, 0]
    assert entries(np.array([2**64 - 1], np.uint64)).tolist() == [2**63 - 1]
