"""Dates and moments in columns: by the same rule as one by one, and none wraps around."""

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.graphs.data import MISSING_TIME
from defocus.graphs.edge_reader import times_of
from defocus.graphs.node_names import Names
from defocus.graphs.timestamps import dated, microseconds

WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)
ARROW = [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.date64()]
STEPS = [10**9, 10**6, 1000, 1, 10**6]
"""In nanoseconds."""


@given(st.lists(WHOLE | st.none(), max_size=5), st.integers(0, 4))
def test_counts_are_exact_or_missing(counts: list[int | None], which: int) -> None:
    column = pa.array(counts, pa.int64()).view(ARROW[which])
    exact = [None if count is None else count * STEPS[which] // 1000 for count in counts]
    want = [MISSING_TIME if each is None or not -(2**63) < each < 2**63 else each for each in exact]
    found = times_of(column)
    assert found is not None
    assert found.tolist() == want


@given(st.lists(WHOLE, max_size=5), st.sampled_from([("D", 86_400 * 10**9), ("s", 10**9), ("10s", 10**10), ("ns", 1)]))
def test_so_are_those_of_numpy(counts: list[int], unit: tuple[str, int]) -> None:
    column = np.array(counts, np.int64).view(f"datetime64[{unit[0]}]")
    exact = [count * unit[1] // 1000 for count in counts]
    found = times_of(column)
    assert found is not None
    assert found.tolist() == [each if -(2**63) < each < 2**63 else MISSING_TIME for each in exact]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 2**62, -(2**62), None], pa.int64()).view(pa.timestamp("s")),
        pa.array([0, 2**62, -(2**62), None], pa.int64()).view(pa.timestamp("ms")),
        pa.array([0, 2**62, -(2**62), None], pa.int64()).view(pa.date64()),
        pa.array([0, 2**31 - 1, -(2**31), None], pa.int32()).view(pa.date32()),
        np.array([0, 2**40, -(2**40), -(2**63)], np.int64).view("datetime64[D]"),
        np.array([0, 2**62, -(2**62), -(2**63)], np.int64).view("datetime64[s]"),
    ],
    ids=str,
)
def test_far_moments_name_nobody_and_have_no_time(column: Any) -> None:
    times = times_of(column)
    assert times is not None
    assert times.tolist() == [0, *[MISSING_TIME] * 3]
    start = (dated(column) or [])[0]
    assert start in {dt.date(1970, 1, 1), dt.datetime(1970, 1, 1)}  # noqa: DTZ001  # without a zone
    assert Names([start]).numbers(column).tolist() == [0, -1, -1, -1]


def test_other_columns_have_no_moments() -> None:
    for column in (pa.array([1]), pa.array(["x"]), np.array([1]), np.array(["2020"], "datetime64[Y]")):
        assert microseconds(column) is None
        assert dated(column) is None
