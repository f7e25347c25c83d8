"""Names of nodes of any type, and ends that name none."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.graphs.naming import Names, as_column, listed_in, read_numbers

WORDS = ["ada", "bob", None, "eve", "ada"]


class Grumpy:
    """Neither equal to anything nor to be looked up, and says so."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]  # on purpose


@pytest.mark.parametrize(
    "column",
    [
        WORDS,
        pa.array(WORDS),
        pa.chunked_array([WORDS[:2], WORDS[2:]]),
        pa.array(WORDS).dictionary_encode(),
        pa.array(WORDS, pa.large_string()),
        pd.Series(WORDS, dtype="string"),
        pd.Series(WORDS, dtype=object),
        pd.Series(WORDS, dtype="category"),
        pl.Series(WORDS),
        pl.Series(WORDS, dtype=pl.Categorical),
    ],
    ids=lambda column: type(column).__module__.partition(".")[0],
)
def test_texts_from_every_container(column: Any) -> None:
    assert Names(["eve", "ada"]).numbers(as_column(column)).tolist() == [1, -1, -1, 0, 1]
    assert list(Names(column).labels) == ["ada", "bob", "eve"]


@pytest.mark.parametrize(
    "column",
    [
        [30, 10, None, 99, 30],
        pa.array([30, 10, None, 99, 30]),
        pa.array([30, 10, None, 99, 30], pa.uint64()),
        pd.Series([30, 10, None, 99, 30]),
        pd.Series([30, 10, None, 99, 30], dtype="Int64"),
        pd.Series([30, 10, None, 99, 30], dtype="int64[pyarrow]"),
        pl.Series([30, 10, None, 99, 30]),
        np.array([30.0, 10.0, np.nan, 99.0, 30.0]),
    ],
    ids=lambda column: type(column).__module__.partition(".")[0],
)
def test_numbers_as_names_from_every_container(column: Any) -> None:
    for names in ([10, 20, 30], np.array([10, 20, 30]), pa.array([10, 20, 30]), pd.Series([10, 20, 30])):
        assert Names(names).numbers(as_column(column)).tolist() == [2, 0, -1, -1, 2]


def test_numbered_nodes_leave_out_everything_else() -> None:
    given = as_column([0, 4, 5, -1, 2**80, None, 3.5, "0", float("nan"), True])
    assert Names(5).numbers(given).tolist() == [0, 4, -1, -1, -1, -1, -1, -1, -1, -1]
    assert Names(0).numbers(as_column([0, 1])).tolist() == [-1, -1]
    assert Names([]).numbers(as_column(np.array([0, 1]))).tolist() == [-1, -1]


def test_negative_numbers_can_be_names_and_missing_ones_are_not_among_them() -> None:
    assert Names(np.array([-1, 0])).numbers(as_column(pa.array([-1, None, 0]))).tolist() == [0, -1, 1]


def test_names_may_be_of_several_types() -> None:
    names = Names([1, "1", dt.date(2020, 1, 1), (1, 2), None, float("nan"), True, Grumpy()])
    assert list(names.labels) == [1, "1", dt.date(2020, 1, 1), (1, 2)]
    ends: list[Any] = [(1, 2), "1", 1, Grumpy(), float("nan"), [1], dt.date(2020, 1, 1)]
    assert names.numbers(as_column(ends)).tolist() == [3, 1, 0, -1, -1, -1, 2]


@given(st.lists(st.one_of(st.integers(-5, 5), st.text(max_size=2), st.none(), st.floats()), max_size=20))
def test_every_name_that_is_listed_is_found(ends: list[Any]) -> None:
    names = Names(listed_in(as_column(ends)))
    found = names.numbers(as_column(ends))
    for end, number in zip(ends, found.tolist(), strict=True):
        assert (number == -1) == (end is None or end != end)  # noqa: PLR0124 - NaN
        assert number == -1 or names.labels[number] == end


def test_listed_nodes_are_in_order_whatever_the_order_of_edges_is() -> None:
    assert listed_in(as_column(np.array([3, 1])), as_column(np.array([2, 3]))).tolist() == [1, 2, 3]
    assert listed_in(as_column(["b", "a"]), as_column(["a", None])) == ["a", "b"]
    assert listed_in(as_column(["b", 1]), as_column([2, "a"])) == [1, 2, "a", "b"]


@pytest.mark.parametrize(
    ("names", "column"),
    [
        (5, pa.array(["0"])),
        (5, np.array(["0"])),
        (5, pa.array([dt.date(2020, 1, 1)])),
        ([1, 2], pa.array(["1"])),
        (np.array([1, 2]), pa.array(["1"])),
        (["a"], pa.array([1])),
        (["a"], np.array([1])),
    ],
)
def test_a_column_whose_type_names_no_node_is_refused_even_without_rows(names: Any, column: Any) -> None:
    if isinstance(names, list) and isinstance(names[0], int):
        names = np.array(names)
    for part in (column, column[:0]):
        with pytest.raises(InvalidParameterError, match="have the type") as caught:
            Names(names).numbers(as_column(part))
        assert "nodes=[…]" in caught.value.fix


@pytest.mark.parametrize("column", ["ada", b"ada", {"a": 1}, 3, None, np.zeros((2, 2))])
def test_what_is_no_column_is_refused(column: Any) -> None:
    with pytest.raises(InvalidParameterError, match="column"):
        as_column(column)


def test_text_is_read_as_numbers_only_where_it_is_written_as_one() -> None:
    texts = ["0", "7", "-7", "007", "1.0", "1e3", " 1", "", None, "9" * 18, "9" * 19, "٣", "--1", "-0"]
    expected = [0, 7, -7, None, None, None, None, None, None, 10**18 - 1, None, None, None, None]
    assert read_numbers(pa.array(texts)).to_pylist() == expected
