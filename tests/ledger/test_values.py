from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.ledger.values import fingerprint, plain


@dataclass(frozen=True)
class Pair:
    left: int
    right: Any


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_equal_values_have_equal_digests_in_any_container(values: list[int]) -> None:
    assert fingerprint(values) == fingerprint(tuple(values)) == fingerprint(np.array(values, dtype=np.int64))


@given(st.integers(), st.integers())
def test_different_numbers_have_different_digests(a: int, b: int) -> None:
    assert (fingerprint(a) == fingerprint(b)) == (a == b)


def test_what_is_kept_is_json() -> None:
    kept = plain({"a": Pair(1, np.float64(0.5)), "b": (Fraction(1, 3), None, True, np.int32(4))})
    assert kept == {"a": {"left": 1, "right": 0.5}, "b": ["1/3", None, True, 4]}


ODD = [object(), {1: 2}, b"x", float("nan"), float("inf"), {1}]


@pytest.mark.parametrize(
    "value", [*ODD, pytest.param("x" * (1 << 21), id="2 MiB"), pytest.param(10**5000, id="5001 digits")]
)
def test_what_cannot_be_kept_is_refused_but_still_has_a_digest(value: Any) -> None:
    with pytest.raises(InvalidParameterError, match="keep=True"):
        plain(value)
    assert len(fingerprint(value)) == 64


def test_nesting_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidParameterError, match="nested"):
        plain(endless)
    assert len(fingerprint(endless)) == 64
