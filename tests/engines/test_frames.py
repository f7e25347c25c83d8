from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather
from tests.tables.opening import column, rows

from defocus.engines.frames import _text, from_arrow, from_pandas, from_polars
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


class Ward(str, Enum):  # noqa: UP042 - of which str() is another text than its characters
    A = "A"
    B = "B"


class Renamed(str):
    """Text that says something else of itself."""

    __slots__ = ()

    def __str__(self) -> str:
        return "other"

    def __ne__(self, other: object) -> bool:
        return True

    def encode(self, encoding: str = "", errors: str = "") -> bytes:  # noqa: ARG002 - as str has it
        return b"other"


class Told:
    """An object that says of itself what it was told to, or fails as it was told to."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def __str__(self) -> str:
        if isinstance(self.said, type):
            raise self.said
        return self.said  # type: ignore[no-any-return]  # whatever it is


class Doubtful(Decimal):
    """A number that does not say whether it is one, which crashes Arrow's own check."""

    def is_nan(self) -> bool:
        raise RuntimeError("Ada has gout")


class Alike(float):
    """A float that equals itself, whatever it is."""

    def __ne__(self, other: object) -> bool:
        return False


objects = st.one_of(
    st.sampled_from([*Ward, Renamed("x"), Told(5), Told("y"), Told(Renamed("z")), Told(SystemExit), Told(MemoryError)]),
    st.sampled_from([Doubtful("nan"), Doubtful(1), Alike("nan"), complex("nan"), np.str_("a"), np.bytes_(b"a")]),
    st.binary(max_size=3).map(bytearray),
    st.binary(max_size=3).map(memoryview),  # type: ignore[arg-type]  # of bytes
    st.just(memoryview(b"abcd")[::2]),
    st.just("a\0b"),
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
    assert together.to_pylist() == [_text(value) for value in values]


ODD: list[Any] = [
    *(5, "\ud800", b"\xff", b"x", bytearray(b"\xff"), memoryview(b"\xff"), None, float("nan"), pd.NaT, pd.NA),
    *(Decimal("sNaN"), Doubtful("nan"), Alike("nan"), Hostile(), Told(5), Told(SystemExit), [1], {"a": 1}, 10**5000),
    *(object, np.array([1, 2]), np.datetime64("NaT"), pa.scalar("x"), Renamed("x"), (), 1j),
]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
@pytest.mark.parametrize("sort", ["pandas", "category", "polars"])
def test_one_object_more_rewrites_no_other_text(odd: Any, sort: str) -> None:
    others = [*[Ward.A, Ward.B] * 50, b"x", bytearray(b"y"), memoryview(b"z"), Renamed("w"), None, float("nan")]
    if sort == "category":
        hashable = [value for value in others if isinstance(value, str)]
        frames = [pd.Series(pd.Categorical(hashable))]
        try:
            frames.append(
                pd.Series(pd.Categorical.from_codes([*frames[0].cat.codes, 3], [*frames[0].cat.categories, odd]))
            )
        except (TypeError, ValueError, RuntimeError, ArithmeticError):
            return  # it can be no category
        before, after = (from_pandas(pd.DataFrame({"x": each})).column("x").to_pylist() for each in frames)
    elif sort == "polars":
        before, after = (
            from_polars(pl.DataFrame({"x": pl.Series(values, dtype=pl.Object)})).column("x").to_pylist()
            for values in (others, [*others, odd])
        )
    else:
        before, after = (from_pandas(of_objects(values)).column("x").to_pylist() for values in (others, [*others, odd]))
    assert after[:-1] == before
    assert before[:100] == ["A", "B"] * 50
    if sort != "category":
        assert before[100:] == ["x", "y", "z", "w", None, None]


def test_text_of_pandas_and_of_arrow_that_is_not_unicode_changes_no_other() -> None:
    frame = pd.DataFrame({"x": pd.array(["a", None, "\ud800"], dtype=pd.StringDtype("python"))})
    assert from_pandas(frame).column("x").to_pylist() == ["a", None, "?"]
    for kind in (pa.string(), pa.large_string()):
        bytes_ = pa.array([b"a", None, b"\xff"], pa.binary() if kind == pa.string() else pa.large_binary())
        broken = pa.Array.from_buffers(kind, 3, bytes_.buffers())
        for table in (pa.table({"x": broken}), pa.table({"x": pa.DictionaryArray.from_arrays([0, 1, 2], broken)})):
            assert column(source(table)) == ["a", None, None]
            assert column(source(pads.dataset(table))) == ["a", None, None]


SORTS = ["csv", "json", "feather", "union", "memory", "twice", "folders", "dictionaries", "filter", "types"]


@pytest.mark.parametrize("sort", SORTS)
def test_a_dataset_whose_types_or_rows_are_found_while_reading_is_refused(sort: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    (tmp_path / "t.json").write_text('{"x": 1}\n')
    feather.write_feather(pa.table({"x": [1]}), tmp_path / "t.feather")
    for key in (1, 2):
        (tmp_path / f"k={key}").mkdir()
        pq.write_table(pa.table({"x": [key]}), tmp_path / f"k={key}" / "t.parquet")
    pq.write_table(pa.table({"x": ["?"]}), tmp_path / "odd.parquet")
    files = [str(tmp_path / f"k={key}" / "t.parquet") for key in (1, 2)]
    plain = pads.dataset(files)
    named = pads.partitioning(pa.schema([("k", pa.string())]), flavor="hive")
    parts = pads.dataset([pads.dataset(one) for one in files])
    for fine in (plain, parts, pads.dataset(files, partitioning=named)):
        assert "x" in source(fine).schema
    csv = pads.dataset(tmp_path / "t.csv", format="csv")
    made: dict[str, Any] = {
        "csv": lambda: csv,
        "json": lambda: pads.dataset(tmp_path / "t.json", format="json"),
        "feather": lambda: pads.dataset(tmp_path / "t.feather", format="feather"),
        "union": lambda: pads.dataset([plain, csv]),
        "memory": lambda: pads.dataset([plain, pads.dataset(pa.table({"x": [1]}))]),
        "twice": lambda: pads.dataset([plain, pads.dataset(files[:1])]),
        "folders": lambda: pads.dataset(files, partitioning="hive"),
        "dictionaries": lambda: pads.dataset(
            files, partitioning=pads.HivePartitioning.discover(infer_dictionary=True), partition_base_dir=str(tmp_path)
        ),
        "filter": lambda: plain.filter(pc.field("x") > 1),
        "types": lambda: pads.dataset([*files, str(tmp_path / "odd.parquet")]),
    }
    with pytest.raises(SourceError, match="one row could decide about all") as caught:
        source(made[sort]())
    assert "types=" in caught.value.fix


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
