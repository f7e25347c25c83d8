import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.audit.outcomes import Column, lattice, read, views
from defocus.audit.runs import Raised

anything = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.lists(st.floats(), max_size=3),
    st.sets(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=3),
)


def column(columns: list[Column], name: str) -> Column:
    return next(c for c in columns if c.name == name)


def shown(columns: list[Column], name: str) -> list[str]:
    found = column(columns, name)
    assert found.labels is not None
    return [found.labels[code] for code in found.values]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_an_odd_multiple_of_its_lowest_set_bit(x: float) -> None:
    power = float(lattice([x])[0])
    if x == 0:
        assert power == 2048
    else:
        assert (Fraction(x) / Fraction(2) ** int(power)) % 2 == 1


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_integer_is_an_odd_multiple_of_its_lowest_set_bit(x: int) -> None:
    power = float(lattice(np.array([x]))[0])
    assert power == 2048 if x == 0 else (x // 2 ** int(power)) % 2 == 1


def test_what_is_not_finite_has_no_lattice() -> None:
    assert np.isnan(lattice([math.nan, math.inf, -math.inf])).all()


def test_the_kind_of_a_number_tells_nan_infinity_and_negative_zero_apart() -> None:
    outputs = np.array([1.0, math.nan, math.inf, -math.inf, -0.0, 0.0])
    expected = ["a number", "NaN", "inf", "-inf", "-0.0", "a number"]
    assert shown(read((outputs, outputs), 6), "kind of output") == expected * 2


def test_views_of_a_number_include_lattice_sign_fraction_and_residues() -> None:
    seen = {view.name: view.values for view in views(Column("x", np.array([1.5, -3.0, 10.0, math.nan])))}
    np.testing.assert_array_equal(seen["lowest set bit of x"], [-1, 0, 1, math.nan])
    np.testing.assert_array_equal(seen["sign of x"], [1, -1, 1, math.nan])
    np.testing.assert_array_equal(seen["fraction of x"], [0.5, 0, 0, math.nan])
    np.testing.assert_array_equal(seen["x mod 7"], [math.nan, 4, 3, math.nan])


def test_integers_keep_their_last_digit() -> None:
    big = np.array([2**62, 2**62 + 1])
    assert column(read((big, big), 2), "output").values.dtype == np.int64
    seen = {view.name: view.values for view in views(Column("x", big))}
    np.testing.assert_array_equal(seen["x mod 2"], [0, 1])


def test_exceptions_none_and_texts_are_outputs() -> None:
    first: list[Any] = [None, "yes", Raised("ValueError", "age 93"), 1.0]
    columns = read((first, first), 4)
    assert shown(columns, "kind of output")[:4] == ["NoneType", "str", "raised ValueError", "float"]
    assert shown(columns, "text of output")[1] == "yes"
    assert shown(columns, "text raised by output")[2] == "age 93"


def test_containers_are_taken_apart() -> None:
    outputs: list[Any] = [{"a": 1, "b": (2, "x")}, {"a": 3}]
    columns = read((outputs, outputs), 2)
    assert column(columns, "output['a']").values.tolist() == [1, 3, 1, 3]
    assert shown(columns, "keys of output")[:2] == ["'a', 'b'", "'a'"]
    assert column(columns, "length of output['b']").values[0] == 2
    assert shown(columns, "output['b'][1]")[0] == "x"
    assert shown(columns, "kind of output['b']")[:2] == ["tuple", "absent"]


def test_dataclasses_and_sets_are_taken_apart() -> None:
    @dataclass
    class Answer:
        value: int
        tags: frozenset[str]

    outputs = [Answer(1, frozenset("ab")), Answer(2, frozenset())]
    columns = read((outputs, outputs), 2)
    assert column(columns, "output['value']").values.tolist() == [1, 2, 1, 2]
    assert shown(columns, "keys of output['tags']")[:2] == ["'a', 'b'", "no keys"]


def test_vectors_of_one_shape_become_one_column_for_each_entry() -> None:
    rows = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
    assert [c.name for c in read((rows, rows), 2)] == ["output[0]", "output[1]"]
    matrices = np.zeros((3, 2, 2))
    assert [c.name for c in read((matrices, matrices), 3)][-1] == "output[1, 1]"


def test_vectors_of_several_lengths_are_taken_apart() -> None:
    columns = read(([np.array([1.0]), np.array([1.0, 2.0])], [np.array([]), np.array([1.0])]), 2)
    assert column(columns, "length of output").values.tolist() == [1, 2, 0, 1]


def test_numbers_of_several_types_are_told_apart() -> None:
    outputs: list[Any] = [1, 1.0, True, Fraction(1, 2), np.float32(2.0), 10**400, -(10**400)]
    columns = read((outputs, outputs), 7)
    assert shown(columns, "kind of output")[:4] == ["int", "float", "bool", "Fraction"]
    assert column(columns, "output").values[:7].tolist() == [1, 1, 1, 0.5, 2, math.inf, -math.inf]


def test_which_columns_exist_is_read_from_the_choosing_runs_only() -> None:
    outputs: list[Any] = [{"a": 1}, {"secret": 1}]
    assert not any("secret" in c.name for c in read((outputs, outputs), 1) if c.name.startswith("output["))


def test_what_varies_in_the_judging_runs_only_is_not_looked_at() -> None:
    outputs: list[Any] = ["a", "a", "b", None]
    assert read((outputs, outputs), 2) == []
    assert len(read((outputs, outputs), 3)) == 1
    assert [c.name for c in read((np.array([1.0, 2.0, math.nan]),) * 2, 2)] == ["output"]


@given(st.lists(anything, min_size=1, max_size=8))
def test_any_outputs_can_be_read(outputs: list[Any]) -> None:
    for one in read((outputs, outputs[::-1]), len(outputs)):
        assert len(one.values) == 2 * len(outputs)
        if one.numeric:
            assert all(len(view.values) == 2 * len(outputs) for view in views(one))


@pytest.mark.parametrize("row", [0, 3])
def test_an_entry_depends_on_its_own_output_only(row: int) -> None:
    outputs = [1.5, math.nan, -0.0, 7.0]
    changed = [999.0 if i != row else value for i, value in enumerate(outputs)]
    before = [view for c in read((outputs, outputs), 4) if c.numeric for view in views(c)]
    after = {view.name: view for c in read((changed, changed), 4) if c.numeric for view in views(c)}
    for view in before:
        if view.name in after:
            np.testing.assert_array_equal(view.values[row], after[view.name].values[row])
