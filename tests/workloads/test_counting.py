import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.errors import UnfitDataError
from defocus.workloads import counting


@settings(max_examples=30)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 3), st.integers(0, 10**6))
def test_tables_of_records_are_those_of_their_histogram(sizes: list[int], order: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, n, 40) for n in sizes], axis=1)
    x = np.zeros(sizes, np.int64)
    np.add.at(x, tuple(codes.T), 1)
    highest = min(order, len(sizes))
    sets = [s for r in range(highest + 1) for s in itertools.combinations(range(len(sizes)), r)]
    counted = counting.tables(counting.records(codes), tuple(sizes), sets)
    summed = counting.tables(x, tuple(sizes), sets)
    for chosen, one, other in zip(sets, counted, summed, strict=True):
        away = tuple(i for i in range(len(sizes)) if i not in chosen)
        assert np.array_equal(one, x.sum(axis=away))
        assert np.array_equal(other, one)


def test_several_tables_are_counted_in_one_pass() -> None:
    tops = list(itertools.combinations(range(20), 3))
    passes = counting._passes(tops, (10,) * 20)
    assert sorted(chosen for _, inside in passes for chosen in inside) == tops
    assert len(passes) < len(tops) / 4
    assert all(10 ** len(block) <= counting._BLOCK for block, _ in passes)


def test_no_records_are_no_counts() -> None:
    empty = counting.records(np.zeros((0, 2), np.int64))
    assert [t.sum() for t in counting.tables(empty, (2, 3), [(), (0,), (1,), (0, 1)])] == [0, 0, 0, 0]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64])
def test_codes_of_any_integer_type_are_counted(dtype: type[np.integer[np.typing.NBitBase]]) -> None:
    made = counting.records(np.array([[0, 1], [1, 2], [1, 2]], dtype))
    assert counting.histogram(made, (2, 3)).tolist() == [0, 1, 0, 0, 0, 2]


def test_no_error_depends_on_what_a_record_holds() -> None:
    """Codes that no machine integer holds count as the nearest, like all others."""
    tame = counting.histogram(counting.records([[1, 0], [0, 2]]), (2, 3)).tolist()
    for wild in ([[2**70, -(2**70)], [0, 2**63]], [[2**63, -1], [0, 2]], np.array([[2**70, 0], [-5, 2**64]], object)):
        assert counting.histogram(counting.records(wild), (2, 3)).tolist() == tame


def test_an_empty_list_is_no_records_of_any_domain() -> None:
    none = counting.records([])
    counting.checked(none, (2, 3))
    assert counting.histogram(none, (2, 3)).tolist() == [0] * 6
    assert [int(t.sum()) for t in counting.tables(none, (2, 3), [(), (0,), (0, 1)])] == [0, 0, 0]
    frame = counting.records(np.zeros((0, 2), object))  # what a data frame without rows is
    assert counting.histogram(frame, (2, 3)).tolist() == [0] * 6


@pytest.mark.parametrize("codes", [[[1, 2], [3]], [[1.5, 2]], [[True, False]], [[None, 1]], [["a", 1]], [1, 2], [[]]])
def test_what_are_no_codes_is_refused(codes: object) -> None:
    with pytest.raises(UnfitDataError, match="two-dimensional"):
        counting.records(codes)
