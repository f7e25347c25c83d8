from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.opening import column, rows

from defocus.engines.frames import from_arrow, from_pandas, from_polars
from defocus.engines.sources import source
from defocus.errors import SourceError


class Hostile:
    """An object that fails at everything."""

    def __str__(self) -> str:
        raise RuntimeError("Ada has gout")

    def __repr__(self) -> str:
        raise RuntimeError("Ada has gout")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("Ada has gout")

    def __ne__(self, other: object) -> bool:
        raise RuntimeError("Ada has gout")

    __hash__ = None  # type: ignore[assignment]  # not even that


objects = st.one_of(
    st.none(),
    st.text(max_size=5),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.binary(max_size=4),
    st.just(Hostile()),
    st.just(10**5000),
    st.just("\ud800"),
    st.just(Decimal("NaN")),
    st.just(Decimal("sNaN")),
    st.just(pd.NaT),
    st.just(pd.NA),
    st.just(np.datetime64("NaT")),
    st.just([1]),
    st.just({"a": 1}),
    st.just(np.array([1, 2])),
    st.dates(),
)


def of_objects(values: list[Any]) -> Any:
    series = pd.Series(np.empty(len(values), dtype=object))
    for i, value in enumerate(values):
        series.array[i] = value
    return pd.DataFrame({"x": series})


@settings(max_examples=80, deadline=None)
@given(st.lists(objects, min_size=1, max_size=6))
def test_python_objects_are_text_and_each_is_read_alone(values: list[Any]) -> None:
    together = from_pandas(of_objects(values)).column("x")
    assert together.type == pa.large_string()
    assert together.to_pylist() == [from_pandas(of_objects([value])).column("x")[0].as_py() for value in values]


def test_one_object_more_does_not_change_the_type_of_a_column() -> None:
    for values in ([], [1, 2], [1, "a"], ["a"], [None], [1.5, None], [Hostile()]):
        assert str(source(of_objects(values)).schema["x"].kind) == "text"
    assert column(source(of_objects([1, "2", "x", None]), types={"x": "integer"})) == [1, 2, None, None]


def test_every_type_of_pandas_has_its_kind() -> None:
    frame = pd.DataFrame(
        {
            "boolean": [True, False],
            "integer": pd.array([1, None], dtype="Int64"),
            "small": np.array([1, 2], dtype="int8"),
            "number": [1.5, float("nan")],
            "float": pd.array([1.5, None], dtype="Float64"),
            "text": pd.array(["a", None], dtype="str"),
            "python text": pd.array(["a", None], dtype="string[python]"),
            "arrow": pd.array([1, None], dtype=pd.ArrowDtype(pa.int64())),
            "category": pd.Categorical(["a", None]),
            "numbered": pd.Categorical([7, None]),
            "moment": pd.to_datetime(["2020-01-01", None]),
            "zoned": pd.to_datetime(["2020-01-01", None], utc=True),
            "span": pd.to_timedelta([1, None]),
            "period": pd.period_range("2020", periods=2),
            "sparse": pd.arrays.SparseArray([0, 1]),
            "complex": [1j, 2j],
        }
    )
    opened = source(frame)
    kinds = [str(one.kind) for one in opened.schema]
    assert kinds[:6] == ["boolean", "integer", "integer", "number", "number", "text"]
    assert kinds[6:12] == ["text", "integer", "text", "integer", "timestamp", "timestamp"]
    assert kinds[12:] == ["other"] * 4
    assert [row["numbered"] for row in rows(opened)] == [7, None]
    assert [row["category"] for row in rows(opened)] == ["a", None]


def test_every_type_of_polars_has_its_kind() -> None:
    frame = pl.DataFrame(
        {
            "boolean": [True, None],
            "integer": pl.Series([1, None], dtype=pl.UInt8),
            "number": [1.5, None],
            "decimal": pl.Series([Decimal("1.5"), None], dtype=pl.Decimal(10, 2)),
            "text": ["a", None],
            "category": pl.Series(["a", None], dtype=pl.Categorical),
            "enum": pl.Series(["a", None], dtype=pl.Enum(["a", "b"])),
            "object": pl.Series([Hostile(), 1], dtype=pl.Object),
            "date": pl.Series([1, None], dtype=pl.Int32).cast(pl.Date),
            "moment": pl.Series([1, None], dtype=pl.Int64).cast(pl.Datetime("ms", "Asia/Tokyo")),
            "list": [[1], [2]],
            "nothing": [None, None],
        }
    )
    opened = source(frame)
    kinds = [str(one.kind) for one in opened.schema]
    assert kinds == [
        *(
            "boolean",
            "integer",
            "number",
            "number",
            "text",
            "text",
            "text",
            "text",
            "date",
            "timestamp",
            "other",
            "other",
        )
    ]
    assert [row["object"] for row in rows(opened)] == [None, "1"]


def test_every_type_of_arrow_is_read_or_set_aside() -> None:
    table = pa.table(
        {
            "half": pa.array(np.array([1.5], dtype=np.float16)),
            "wide": pa.array([Decimal(1)], pa.decimal256(70, 3)),
            "rounded": pa.array([Decimal(100)], pa.decimal128(10, -2)),
            "dictionary": pa.array(["a"]).dictionary_encode(),
            "lists": pa.array([[1]]),
            "bytes": pa.array([b"x"]),
            "none": pa.nulls(1),
            "view": pa.array(["a"], pa.string_view()),
            "union": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
        }
    )
    kinds = [str(one.kind) for one in source(table).schema]
    assert kinds == ["number", "number", "other", "text", "other", "other", "other", "text", "other"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (pl.DataFrame({"a": [1]}).lazy(), "LazyFrame"),
        (pd.Series([1]), "is not a table"),
        (pl.Series([1]), "polars Series"),
        (pa.table({"a": [1]}).to_reader(), "read only once"),
        (pd.DataFrame({1: [1]}), "not text"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "look the same"),
        (pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])), "not text"),
        (pa.table([[1], [2]], names=["a", "A"]), "look the same"),
        (pl.DataFrame({"": [1]}), "cannot be written"),
        (pl.DataFrame({"a\0b": [1]}), "cannot be written"),
        (pd.DataFrame(), "no column"),
    ],
)
def test_what_cannot_be_a_table_is_refused_with_help(data: Any, why: str) -> None:
    with pytest.raises(SourceError, match=why) as caught:
        source(data)
    assert caught.value.fix


def test_frames_without_rows_are_tables() -> None:
    for empty in (
        from_arrow(pa.table({"x": pa.array([], pa.int64())})),
        from_pandas(pd.DataFrame({"x": pd.Series([], dtype="int64")})),
        from_polars(pl.DataFrame({"x": pl.Series([], dtype=pl.Int64)})),
    ):
        assert empty.num_rows == 0
        assert rows(source(empty)) == []


def test_the_index_of_pandas_is_no_column() -> None:
    assert source(pd.DataFrame({"x": [1]}, index=["secret"])).schema.names == ["x"]
