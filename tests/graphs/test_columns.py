"""Weights, times and ends of every type: each value has an outcome of its own."""

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.graphs.conftest import NAMES, TABLE

from defocus import item, node, weight
from defocus.errors import InvalidParameterError
from defocus.graphs import Network

networkx = pytest.importorskip("networkx")


def test_weights_and_times_are_read_where_they_are_named(opened: Callable[..., Network], tmp_path: Path) -> None:
    more = TABLE.append_column("w", pa.array([1.5, None, 3.0, float("nan"), 2.0]))
    more = more.append_column("t", pa.array([10, 20, None, 40, 50], pa.timestamp("s")))
    for data in (more, more.to_pandas(), pl.from_arrow(more)):
        pairs = opened(data, weights="w", time="t").data.pairs
        assert pairs.weights is not None
        assert pairs.times is not None
        assert np.array_equal(pairs.weights, [1.5, np.nan, 3.0, np.nan, 2.0], equal_nan=True)
        assert pairs.times.tolist() == [10**7, 2 * 10**7, -(2**63), 4 * 10**7, 5 * 10**7]
    (tmp_path / "w.csv").write_text(
        "source,target,w,t\nada,bob,1.5,1970-01-01 00:00:10\nbob,cyd,much,then\n", encoding="utf-8"
    )
    pairs = opened(tmp_path / "w.csv", weights="w", time="t").data.pairs
    assert pairs.weights is not None
    assert pairs.times is not None
    assert np.array_equal(pairs.weights, [1.5, np.nan], equal_nan=True)
    assert pairs.times.tolist() == [10**7, -(2**63)]
    with_more = networkx.Graph()
    with_more.add_edge("ada", "bob", w=2, t=7)
    with_more.add_edge("bob", "cyd")
    pairs = opened(with_more, weights="w", time="t").data.pairs
    assert pairs.weights is not None
    assert pairs.times is not None
    assert np.array_equal(pairs.weights, [2.0, np.nan], equal_nan=True)
    assert pairs.times.tolist() == [7, -(2**63)]


@pytest.mark.parametrize("column", [["a", "b"], [True, False], [[1], [2]]])
def test_times_that_are_none_are_refused_by_their_type(opened: Callable[..., Network], column: Any) -> None:
    with pytest.raises(InvalidParameterError, match="neither dates nor whole numbers"):
        opened(pa.table({"u": ["ada", "bob"], "v": ["bob", "cyd"], "t": column}), time="t")


@pytest.mark.parametrize("column", [["a", "b"], [[1], [2]]])
def test_weights_that_are_none_are_refused_by_their_type(opened: Callable[..., Network], column: Any) -> None:
    with pytest.raises(InvalidParameterError, match="not numbers"):
        opened(pa.table({"u": ["ada", "bob"], "v": ["bob", "cyd"], "w": column}), weights="w")


def with_values(name: str, values: list[Any]) -> list[Any]:
    """The same column of values in frames of every sort that can hold them."""
    frame = pd.DataFrame({"u": ["ada"] * len(values), "v": ["bob"] * len(values)})
    made = [frame.assign(**{name: pd.Series(values, dtype=object)})]
    graph = networkx.MultiGraph()
    graph.add_nodes_from(NAMES)
    for value in values:
        graph.add_edge("ada", "bob", **{name: value})
    return [*made, graph]


ODD: list[Any] = [2**53 + 1, 10**400, -(10**400), 2**63, "x", b"x", None, True, math.nan, math.inf, Decimal("sNaN")]
ODD += [
    Decimal("1e999999"),
    Fraction(10**400, 3),
    (),
    object(),
    pd.NaT,
    pd.NA,
    dt.date(9999, 12, 31),
    np.datetime64("NaT"),
]
ODD += [np.datetime64("200000-01-01"), dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14))), "\ud800"]


@pytest.mark.parametrize("odd", ODD, ids=lambda value: type(value).__name__)
def test_every_weight_and_every_time_has_an_outcome(opened: Callable[..., Network], odd: Any) -> None:
    for data in with_values("w", [1, odd, 2.5]):
        weights = opened(data, weights="w", unit=weight(bound=2)).data.pairs.weights
        assert weights is not None
        assert weights[[0, 2]].tolist() == [1.0, 2.5]
    for data in with_values("t", [1, odd, 5]):
        times = opened(data, time="t", unit=item()).data.pairs.times
        assert times is not None
        assert times[[0, 2]].tolist() == [1, 5]


@pytest.mark.parametrize(
    "weights",
    [
        pa.array([1, 2**62 + 1, None]),
        pa.array([1, 2**64 - 1, None], pa.uint64()),
        pa.array([Decimal(1), Decimal(10**30), None]),
        pd.array([1, 2**62 + 1, None], dtype="Int64"),
    ],
    ids=lambda column: str(type(column)),
)
def test_weights_that_are_not_exact_as_floats_are_rounded(opened: Callable[..., Network], weights: Any) -> None:
    columns = {"u": ["ada"] * 3, "v": ["bob"] * 3, "w": weights}
    frame = pa.table(columns) if isinstance(weights, pa.Array) else pd.DataFrame(columns)
    found = opened(frame, weights="w", unit=weight(bound=2)).data.pairs.weights
    assert found is not None
    assert found[0] == 1
    assert found[1] > 2**61
    assert np.isnan(found[2])


def test_numbers_of_numpy_are_weights(opened: Callable[..., Network]) -> None:
    graph = networkx.Graph()
    graph.add_edge("ada", "bob", w=np.int64(2))
    graph.add_edge("bob", "cyd", w=np.float32(0.5))
    found = opened(graph, weights="w", unit=weight(bound=2)).data.pairs.weights
    assert found is not None
    assert found.tolist() == [2.0, 0.5]


@pytest.mark.parametrize(
    "times",
    [
        np.array([1, 2**63, 5], np.uint64),
        pa.array([1, 2**63, 5], pa.uint64()),
        pd.array([1, None, 5], dtype="UInt64"),
    ],
    ids=lambda column: str(type(column)),
)
def test_times_beyond_64_bits_are_missing(opened: Callable[..., Network], times: Any) -> None:
    columns = {"u": ["ada"] * 3, "v": ["bob"] * 3, "t": times}
    frame = pa.table(columns) if isinstance(times, pa.Array) else pd.DataFrame(columns)
    found = opened(frame, time="t", unit=item()).data.pairs.times
    assert found is not None
    assert found.tolist() == [1, -(2**63), 5]


@pytest.mark.parametrize(
    "ends",
    [
        pd.Series(pd.Categorical([1, None, 2], categories=[1, 2])),
        pd.Series([1, 2**63, "x"], dtype=object),
        pd.Series(["a", "\ud800", None], dtype=pd.StringDtype("python")),
        pd.Series([pd.Timestamp("2020-01-01"), pd.NaT, pd.Timestamp("2021-01-01")]),
        pa.array([0, 2**60, 5], pa.timestamp("us")),
        pa.array(["a", None, "b"]),
        np.array(["2020", "NaT", "2021"], "datetime64[Y]"),
    ],
    ids=lambda column: str(type(column)),
)
@pytest.mark.parametrize("rows_kept", [0, 1, 3])
def test_ends_of_every_type_open_and_answer_without_a_list_of_nodes(
    opened: Callable[..., Network], ends: Any, rows_kept: int
) -> None:
    part = ends[:rows_kept]
    others = [1] * rows_kept
    graphs = [(part, np.array(others, np.int64))]
    if isinstance(ends, pd.Series):
        graphs.append(pd.DataFrame({"u": part, "v": others}))
    for data in graphs:
        for unit in (node(), node(max_degree=3)):
            assert opened(data, unit=unit, nodes=None).edges(cap=2).release(epsilon=1).value is not None
            assert opened(data, unit=unit, nodes=[1, "x", 2**80]).edges(cap=2).release(epsilon=1).value is not None
