"""Names of nodes of any type, and ends that name none."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError, UnfitDataError
from defocus.graphs.node_names import Names, as_column, listed_in, node_numbers, whole_numbers, written_key

WORDS = ["ada", "bob", None, "eve", "ada"]


def repr_short(value: Any) -> str:
    return f"{type(value).__name__} {hex(value) if isinstance(value, int) else ascii(value)}"[:30]


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
            Names(names).check(as_column(part))
        assert "nodes=[…]" in caught.value.fix


@pytest.mark.parametrize("column", ["ada", b"ada", {"a": 1}, 3, None, np.zeros((2, 2))])
def test_what_is_no_column_is_refused(column: Any) -> None:
    with pytest.raises(InvalidParameterError, match="column"):
        as_column(column)


def test_text_is_read_as_numbers_only_where_it_is_written_as_one() -> None:
    texts = ["0", "7", "-7", "007", "1.0", "1e3", " 1", "", None, "9" * 18, "9" * 19, "٣", "--1", "-0"]
    expected = [0, 7, -7, "007", "1.0", "1e3", " 1", None, None, 10**18 - 1, 10**19 - 1, "٣", "--1", "-0"]
    assert [written_key(text) for text in texts] == expected
    for column in (pa.array(texts), texts):
        names = Names([name for name in expected if name is not None], written=True)
        found = [names.labels[i] if i >= 0 else None for i in names.numbers(as_column(column)).tolist()]
        assert found == expected


STRANGE: list[Any] = [10**30, -(10**30), 10**5000, 2**63, 2**64 - 1, 1e300, 2.5, math.inf, Decimal(4), Decimal("4.5")]
STRANGE += [
    Fraction(1, 3),
    "x",
    "\ud800",
    "",
    b"\xff",
    (1, None),
    dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    dt.date(1, 1, 1),
    UUID(int=7),
]


@pytest.mark.parametrize("odd", STRANGE, ids=repr_short)
@pytest.mark.parametrize("written", [False, True])
def test_no_name_changes_what_the_others_are_called_or_their_order(odd: Any, written: bool) -> None:
    usual = [3, 1, 2] if not written else ["3", "1", "2"]
    for ends in ([1, 2, 3, 2], ["1", "x", "3"], np.array([1, 2, 3]), pa.array(["1", "2", "b"]), pa.array([1.0, 2.5])):
        column = as_column(ends)
        plain = Names(usual, written=written, ordered=True)
        for position in range(4):
            more = Names([*usual[:position], odd, *usual[position:]], written=written, ordered=True)
            before = [plain.labels[i] for i in plain.numbers(column) if i >= 0]
            after = [more.labels[i] for i in more.numbers(column) if i >= 0]
            assert [label for label in after if label in before] == before
            assert [label for label in more.labels if label in usual] == list(plain.labels)


@pytest.mark.parametrize("odd", STRANGE, ids=repr_short)
def test_every_sort_of_name_is_found_among_others(odd: Any) -> None:
    names = Names([5, "five", odd], ordered=True)
    assert names.labels[names.numbers(as_column([odd]))[0]] == odd
    assert names.numbers(as_column([5, "five"])).min() >= 0
    assert len(names.digest()) == 16


def test_one_number_is_one_name_whatever_holds_it() -> None:
    names = Names([4, 2**70])
    for four in (4, 4.0, np.int8(4), np.float32(4), Decimal(4), Fraction(4)):
        assert names.numbers(as_column([four, "4", True])).tolist() == [0, -1, -1]
    for typed in (np.array([4.0, 2.0**70]), pa.array([4.0, 2.0**70]), pa.array([Decimal(4), Decimal(2**70)])):
        assert names.numbers(as_column(typed)).tolist() == [0, 1]
    big = Names([2**64 - 1])
    assert big.numbers(as_column(np.array([1, 2**64 - 1], np.uint64))).tolist() == [-1, 0]


def test_types_that_python_cannot_hold_have_an_outcome_for_every_value() -> None:
    far = pa.array([0, 2**60, None], pa.timestamp("us"))
    broken = pa.array([b"ok", b"\xff\xfe", None], pa.binary()).view(pa.string())
    years = np.array(["2020", "NaT"], "datetime64[Y]")
    seconds = pa.array([0, 2**60, None], pa.timestamp("s"))
    dates = pa.array([0, 2**30, None], pa.int32()).view(pa.date32())
    for column in (far, broken, seconds, dates, pa.array([[1], [2], None]), years, years.astype("datetime64[ns]")):
        listed = listed_in(as_column(column))
        assert Names(listed, ordered=True).numbers(as_column(column)).max() <= len(listed)
    names = Names(listed_in(broken))
    assert names.numbers(broken).tolist().count(-1) == 1


@pytest.mark.parametrize("other", [3, "x", 2.5, 1j, None, b"x", dt.date(2024, 1, 1), pd.Timestamp("2024"), (1, 2)])
def test_no_category_decides_how_another_is_read(other: Any) -> None:
    column = as_column(pd.Series(pd.Categorical([0, 7, other])))
    assert Names(8).numbers(column).tolist()[:2] == [0, 7]
    assert column.dtype == as_column(pd.Series(pd.Categorical([0, 7]))).dtype
    Names(8).check(column[:0])
    words = as_column(pd.Series(pd.Categorical(["a", other])))
    assert Names(["b", "a"]).numbers(words)[0] == 1
    moments = as_column(pd.Series(pd.Categorical([pd.Timestamp("1970-01-02"), other])))
    assert Names([dt.datetime(1970, 1, 2)]).numbers(moments)[0] == 0  # noqa: DTZ001  # without a zone


def test_categories_and_texts_of_pandas_are_read_by_type() -> None:
    missing = pd.Series([3, None, 4], dtype="Int64").astype("category")
    assert Names([4, 3]).numbers(as_column(missing)).tolist() == [1, -1, 0]
    numbers = pd.Series(pd.Categorical([3, None, 4], categories=[3, 4]))
    assert Names([4, 3]).numbers(as_column(numbers)).tolist() == [1, -1, 0]
    mixed = pd.Series(pd.Categorical([3, None, "a"]))
    assert Names(["a", 3]).numbers(as_column(mixed)).tolist() == [1, -1, 0]
    halves = pd.Series(["a", "\ud800", None], dtype=pd.StringDtype("python"))
    assert Names(["\ud800", "a"]).numbers(as_column(halves)).tolist() == [1, 0, -1]


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
