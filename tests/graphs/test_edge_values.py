"""Weights and times as numbers: no value can make it fail, and none changes what becomes of another."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from defocus.graphs.data import MISSING_TIME
from defocus.graphs.edge_reader import source, times_of, weights_of
from defocus.graphs.node_names import node_numbers


def _raises(*_: Any) -> Any:
    raise RuntimeError


class _Liar:
    __class__ = property(_raises)


class _Scalar(float):
    __float__ = _raises


class _Whole(int):
    __float__ = __gt__ = __int__ = __index__ = _raises


class _Pair(list[Any]):
    __iter__ = __len__ = __getitem__ = _raises


_META = type("_Meta", (type,), {"__hash__": _raises, "__instancecheck__": _raises})
ODD = {
    "liar": _Liar(),
    "of a class that raises": _META("_Odd", (), {})(),
    "float that raises": _Scalar(1),
    "whole number that raises": _Whole(10**400),
    "far moment": np.datetime64(2**62, "D"),
    "no duration": np.timedelta64("NaT"),
    "pair that raises": _Pair([1, 2]),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_value_that_refuses_to_be_read_is_missing_and_changes_no_other(odd: str) -> None:
    column = np.empty(3, object)
    column[0], column[1], column[2] = 1, ODD[odd], 7
    weights, times = weights_of(column), times_of(column)
    assert weights is not None
    assert times is not None
    assert weights.tolist()[::2] == [1.0, 7.0]
    assert math.isnan(weights[1]) or odd == "whole number that raises"
    assert times.tolist()[::2] == [1, 7]
    assert node_numbers(column).tolist()[::2] == [1, 7]
    ends = source([("a", "b"), ODD[odd], ("b", "c")]).read()
    assert [ends.left[0], ends.left[2]] == ["a", "b"]
    assert [ends.right[0], ends.right[2]] == ["b", "c"]


@pytest.mark.parametrize("column", [np.array([1.0, math.nan, 2.5, 1e300]), pa.array([1.0, None, 2.5, 1e300])])
def test_times_that_became_floats_because_one_is_missing_are_still_times(column: Any) -> None:
    times = times_of(column)
    assert times is not None
    assert times.tolist() == [1, MISSING_TIME, MISSING_TIME, MISSING_TIME]
