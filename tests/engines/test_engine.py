from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.engines import integers
from defocus.errors import EngineError

longs = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(longs, max_size=20))
def test_integers_arrive_exactly_whatever_type_the_engine_sums_in(values: list[int]) -> None:
    assert integers(pa.chunked_array([pa.array(values, pa.int64())])).tolist() == values
    wide = pa.array([Decimal(value) for value in values], pa.decimal128(38, 0))
    assert integers(pa.chunked_array([wide])).tolist() == values


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0]),
        pa.array([None], pa.int64()),
        pa.array([Decimal(2**63)], pa.decimal128(38, 0)),
        pa.array([Decimal("1.5")], pa.decimal128(38, 1)),
        pa.array(["1"]),
        pa.array([2**63], pa.uint64()),
    ],
)
def test_what_is_not_exact_is_refused_without_quoting_it(column: Any) -> None:
    with pytest.raises(EngineError, match="exact integers were due") as caught:
        integers(pa.chunked_array([column]))
    assert str(2**63) not in str(caught.value)
    assert caught.value.__context__ is None
