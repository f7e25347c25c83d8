"""Entries without a type: each is a number by itself."""

import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.errors import UnfitDataError
from defocus.workloads import record_counts
from defocus.workloads.record_counts import code, entries, entry


@settings(max_examples=30)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 3), st.integers(0, 10**6))
def test_tables_of_records_are_those_of_their_histogram(sizes: list[int], order: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, n, 40) for n in sizes], axis=1)
    x = np.zeros(sizes, np.int64)
    np.add.at(x, tuple(codes.T), 1)
    highest = min(order, len(sizes))
    sets = [s for r in range(highest + 1) for s in itertools.combinations(range(len(sizes)), r)]
    counted = record_counts.tables(record_counts.records(codes), tuple(sizes), sets)
    summed = record_counts.tables(x, tuple(sizes), sets)
    for chosen, one, other in zip(sets, counted, summed, strict=True):
        away = tuple(i for i in range(len(sizes)) if i not in chosen)
        assert np.array_equal(one, x.sum(axis=away))
        assert np.array_equal(other, one)


def test_several_tables_are_counted_in_one_pass() -> None:
    tops = list(itertools.combinations(range(20), 3))
    passes = record_counts.passes(tops, (10,) * 20)
    assert sorted(chosen for _, inside in passes for chosen in inside) == tops
    assert len(passes) < len(tops) / 4
    assert all(10 ** len(block) <= record_counts._BLOCK for block, _ in passes)


def test_no_records_are_no_counts() -> None:
    empty = record_counts.records(np.zeros((0, 2), np.int64))
    assert [t.sum() for t in record_counts.tables(empty, (2, 3), [(), (0,), (1,), (0, 1)])] == [0, 0, 0, 0]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64])
def test_codes_of_any_integer_type_are_counted(dtype: type[np.integer[np.typing.NBitBase]]) -> None:
    made = record_counts.records(np.array([[0, 1], [1, 2], [1, 2]], dtype))
    assert record_counts.histogram(made, (2, 3)).tolist() == [0, 1, 0, 0, 0, 2]


def test_no_error_depends_on_what_a_record_holds() -> None:
    """Codes that no machine integer holds count as the nearest, like all others."""
    tame = record_counts.histogram(record_counts.records([[1, 0], [0, 2]]), (2, 3)).tolist()
    for wild in ([[2**70, -(2**70)], [0, 2**63]], [[2**63, -1], [0, 2]], np.array([[2**70, 0], [-5, 2**64]], object)):
        assert record_counts.histogram(record_counts.records(wild), (2, 3)).tolist() == tame


def test_an_empty_list_is_no_records_of_any_domain() -> None:
    none = record_counts.records([])
    record_counts.checked(none, (2, 3))
    assert record_counts.histogram(none, (2, 3)).tolist() == [0] * 6
    assert [int(t.sum()) for t in record_counts.tables(none, (2, 3), [(), (0,), (0, 1)])] == [0, 0, 0]
    frame = record_counts.records(np.zeros((0, 2), object))  # what a data frame without rows is
    assert record_counts.histogram(frame, (2, 3)).tolist() == [0] * 6


@pytest.mark.parametrize(
    ("odd", "meant"),
    [
        ([1], (1, 0)), ([], (0, 0)), ([1, 2, 9], (1, 2)), ([1, None], (1, 0)), ([1, 1.5], (1, 0)), ([1, 2.0], (1, 2)),
        ([1, "2"], (1, 0)), ([True, 2], (1, 2)), ([float("inf"), 2], (0, 2)), ([1, [2]], (1, 0)), (None, (0, 0)),
        (1, (1, 0)), ("12", (0, 0)), ({1: 2}, (0, 0)), (np.array([1, 2]), (1, 2)), (np.zeros((2, 2)), (0, 0)),
        ([1, Decimal("1e999999")], (1, 0)), ([1, 1e300], (1, 2)), ((1, np.uint8(2)), (1, 2)), ([1, pd.NA], (1, 0)),
    ],
    ids=repr,
)  # fmt: skip
def test_one_record_is_in_one_cell_whatever_it_is_and_changes_no_other(odd: Any, meant: tuple[int, int]) -> None:
    """Not in none: where a record is replaced by another, noise hides that one cell gains what another loses."""
    tame = [[0, 1], [1, 2], (1, 2)]
    expected = record_counts.histogram(record_counts.records([*tame, meant]), (2, 3)).tolist()
    for place in range(4):
        made = record_counts.records([*tame[:place], odd, *tame[place:]])
        record_counts.checked(made, (2, 3))
        assert record_counts.histogram(made, (2, 3)).tolist() == expected
    assert sum(expected) == 4


@pytest.mark.parametrize(
    "frame",
    [
        lambda codes: pd.DataFrame({"a": pd.array(codes, dtype="Int64"), "b": [1, 2, 2]}),
        lambda codes: pd.DataFrame({"a": pd.array(codes, dtype="uint8[pyarrow]"), "b": [1, 2, 2]}),
        lambda codes: pd.DataFrame({"a": pd.Series(codes, dtype=object), "b": [1, 2, 2]}),
        lambda codes: pl.DataFrame({"a": codes, "b": [1, 2, 2]}, schema={"a": pl.UInt64, "b": pl.Int8}),
        lambda codes: pa.table({"a": pa.array(codes, pa.int64()), "b": [1, 2, 2]}),
        lambda codes: np.array([codes, [1, 2, 2]], object).T,
        lambda codes: np.ma.array([[5 if c is None else c, b] for c, b in zip(codes, [1, 2, 2], strict=True)],
                                  mask=[[c is None, False] for c in codes]),
    ],
)  # fmt: skip
def test_a_missing_code_of_a_column_is_zero_and_changes_no_other(frame: Any) -> None:
    for codes in ([0, 1, 1], [None, 1, 1]):
        made = record_counts.records(frame(codes))
        record_counts.checked(made, (2, 3))
        assert record_counts.histogram(made, (2, 3)).tolist() == [0, 1, 0, 0, 0, 2]


@pytest.mark.parametrize(
    "codes",
    [
        np.zeros((2, 2)), np.array([[True]]), np.array([["a", "b"]]), np.array([1, 2]), np.zeros((2, 0), int), "12", 7,
        {"a": [1]}, pd.DataFrame({"a": [1.5], "b": [1]}), pd.DataFrame({"a": ["x"]}), pl.DataFrame({"a": [1.0, None]}),
    ],
)  # fmt: skip
def test_types_and_shapes_that_are_no_codes_are_refused(codes: object) -> None:
    with pytest.raises(UnfitDataError, match="two-dimensional"):
        record_counts.records(codes)


def test_what_a_record_has_beyond_the_attributes_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long one record is, reading it takes no longer, and its own way to iterate is not asked."""

    class Long(list[int]):
        def __iter__(self) -> Any:
            raise SystemExit

    read: list[Any] = []

    def noted(value: Any) -> int:
        read.append(value)
        return int(value)

    monkeypatch.setattr(record_counts, "code", noted)
    made = record_counts.records([[0, 1], (1, 1, *[9] * 1000), np.full(1000, 1), Long([1, 2, 9])])
    assert record_counts.histogram(made, (2, 3)).tolist() == [0, 1, 0, 0, 2, 1]
    assert len(read) == 8


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
