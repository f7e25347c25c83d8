"""Columns: their types are those that were declared, whichever cells are missing."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError, NotExactError, UnfitDataError
from defocus.mechanisms import Grid, Laplace
from defocus.mechanisms.grid import columns_of, declared, read_column
from defocus.noise.testing import seeded

any_float = st.floats(allow_nan=True, allow_infinity=True)
steps = st.fractions(Fraction(1, 1000), 10).filter(bool)


@given(steps, st.lists(any_float, max_size=20), any_float, st.data())
def test_one_record_more_or_less_moves_a_total_within_the_bound(
    step: Fraction, rest: list[float], record: float, data: st.DataObject
) -> None:
    low = data.draw(st.integers(-1000, 999))
    high = data.draw(st.integers(low + 1, 1000))
    grid = Grid(step)
    a, b = (grid.total(x, low=low, high=high) for x in (rest, [*rest, record]))
    assert abs(a - b) <= grid.bound(low=low, high=high)
    other = data.draw(any_float)
    c = grid.total([*rest, other], low=low, high=high)
    assert abs(b - c) <= grid.bound(low=low, high=high, replace=True)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.randoms())
def test_totals_do_not_depend_on_the_order_of_records(records: list[float], random: Any) -> None:
    shuffled = random.sample(records, len(records))
    grid = Grid("0.001")
    assert grid.total(records, low=-1e6, high=1e6) == grid.total(shuffled, low=-1e6, high=1e6)


@given(st.floats(-100, 100), steps)
def test_a_record_within_bounds_is_rounded_by_half_a_step(x: float, step: Fraction) -> None:
    (k,) = Grid(step).contributions([x], low=-200, high=200).tolist()
    assert abs(k * step - Fraction(x)) <= step / 2 * (1 + Fraction(1, 10**9))


@given(st.fractions(-(10**9), 10**9), st.fractions(-(10**9), 10**9), steps)
def test_rounding_afterwards_moves_a_statistic_by_its_sensitivity_rounded_up(
    x: Fraction, y: Fraction, step: Fraction
) -> None:
    grid = Grid(step)
    moved = abs(grid.nearest(x) - grid.nearest(y))
    assert x == y or moved <= grid.sensitivity(abs(x - y))


@given(st.lists(st.tuples(st.fractions(-50, 50), st.fractions(-2, 2)), min_size=1, max_size=6), steps)
def test_rounding_a_vector_afterwards_adds_at_most_one_step_for_each_further_entry(
    rows: list[tuple[Fraction, Fraction]], step: Fraction
) -> None:
    grid = Grid(step)
    before, after = [x for x, _ in rows], [x + d for x, d in rows]
    moved = int(np.abs(grid.nearest(before) - grid.nearest(after)).sum())
    real = sum((abs(d) for _, d in rows), Fraction(0))
    assert real == 0 or moved <= grid.sensitivity(real, entries=len(rows))


def test_halves_go_up_because_halves_to_even_would_move_too_far() -> None:
    grid = Grid(1)
    assert [grid.nearest(Fraction(n, 2)) for n in (-3, -1, 1, 3, 5)] == [-1, 0, 1, 2, 3]
    assert round(0.5) == 0, "Python rounds halves to even, so that 0.5 and 1.5 are two apart:"
    assert round(1.5) == 2
    assert grid.sensitivity(1) == 1


def test_published_bounds() -> None:
    """Specification 4: blood pressure in [80, 200], replace one: 120. Specification 1.2: stays up to 30 days: 30."""
    assert Grid(1).bound(low=80, high=200, replace=True) == 120
    assert Grid("0.1").bound(low=80, high=200, replace=True) == 1200
    assert Grid(1).bound(low=0, high=30) == 30
    assert Grid(1).bound(low=-40, high=30) == 40


def test_a_mean_of_floats_is_released_exactly_on_the_grid() -> None:
    values = np.linspace(90, 150, 1001)
    grid = Grid("0.01")
    m = Laplace.calibrated(epsilon=1, sensitivity=grid.bound(low=80, high=200, replace=True))
    mean = grid.decimal(m.sample(grid.total(values, low=80, high=200), seeded(1))) / len(values)
    assert mean == pytest.approx(120, abs=grid.decimal(m.interval(0.999)) / 1001 + 0.01)


def test_nan_infinity_none_and_giants_have_a_declared_outcome() -> None:
    odd = [math.nan, None, math.inf, -math.inf, 10**400, -(10**400), Fraction(10**400, 3), 1e308, Decimal("0.5")]
    assert Grid("0.1").contributions(odd, low=-1, high=2).tolist() == [0, 0, 20, -10, 20, -10, 20, 20, 5]
    assert Grid("0.1").contributions([math.nan], low=1, high=2).tolist() == [10]
    assert Grid("0.1").contributions([math.nan], low=1, high=2, missing=1.5).tolist() == [15]
    assert Grid(Fraction(1, 10**9)).contributions(np.array([1e308, np.nan]), low=0, high=1).tolist() == [10**9, 0]


@pytest.mark.parametrize("odd", [Decimal("NaN"), Decimal("sNaN"), Decimal("-sNaN")])
def test_a_decimal_that_is_not_a_number_is_missing_and_never_an_error(odd: Decimal) -> None:
    assert Grid(1).total([odd, 3], low=0, high=10, missing=2) == 5


def test_no_records_make_no_contributions() -> None:
    for nothing in (list[float](), np.array([])):
        found = Grid(1).contributions(nothing, low=0, high=1)
        assert found.tolist() == []
        assert found.dtype == np.int64


def test_no_records_make_a_total_of_zero() -> None:
    assert Grid(1).total([], low=0, high=1) == 0
    assert Grid(1).total(np.array([]), low=0, high=1) == 0


def test_large_totals_are_exact_and_cut_to_64_bits() -> None:
    widest = 2**53
    assert Grid(1).total(np.full(1000, 1e300), low=0, high=widest) == 1000 * widest
    assert Grid(1).total(np.full(2000, 1e300), low=0, high=widest) == 2**63 - 1
    assert Grid(1).total(np.full(2000, -1e300), low=-widest, high=0) == -(2**63)


@pytest.mark.parametrize(
    "step",
    [
        0,
        -1,
        math.nan,
        math.inf,
        True,
        "zero",
        "",
        "0",
        "-0.1",
        "1/0",
        None,
        10**400,
        "1e-400",
        [],
        "1e999999999",
        Decimal("sNaN"),
    ],
)
def test_steps_that_are_no_grid_are_refused(step: Any) -> None:
    with pytest.raises(InvalidParameterError, match="step"):
        Grid(step)


def test_steps_are_exact_however_they_are_written() -> None:
    assert Grid("0.1") == Grid(Decimal("0.1")) == Grid(Fraction(1, 10))
    assert Grid(0.1).step == Fraction(0.1) != Fraction(1, 10)


@pytest.mark.parametrize(
    ("low", "high"), [(1, 1), (2, 1), (math.nan, 1), (0, math.inf), (0, 2**60), ("0", 1), (False, 1)]
)
def test_bounds_must_be_finite_ordered_and_not_too_wide(low: Any, high: Any) -> None:
    with pytest.raises(InvalidParameterError):
        Grid(1).total([1.0], low=low, high=high)
    with pytest.raises(InvalidParameterError):
        Grid(1).total([], low=low, high=high)


@pytest.mark.parametrize("values", ["12", 5, None, np.zeros((2, 2)), {1.0: 2}])
def test_what_is_no_vector_of_records_is_refused(values: Any) -> None:
    with pytest.raises(UnfitDataError):
        Grid(1).contributions(values, low=0, high=1)


@pytest.mark.parametrize("odd", [True, "1", [1.0], 1j, b"1", None, math.nan, {}, Decimal("sNaN")], ids=repr)
def test_a_record_that_is_no_number_is_missing_and_changes_no_other(odd: Any) -> None:
    found = Grid(1).contributions([3, odd, 2], low=0, high=5, missing=1)
    assert np.asarray(found).tolist() == Grid(1).contributions([3, 1, 2], low=0, high=5).tolist()


@pytest.mark.parametrize("value", [0.5, math.nan, [0.5], Decimal("0.5"), True])
def test_rounding_afterwards_refuses_what_was_not_computed_exactly(value: Any) -> None:
    with pytest.raises(NotExactError):
        Grid(1).nearest(value)


def test_results_and_their_errors_are_scaled_back() -> None:
    grid = Grid(Fraction(1, 4))
    assert grid.decimal(7) == 1.75
    assert grid.decimal(np.array([1, -2])).tolist() == [0.25, -0.5]
    assert grid.decimal(2.5) == 0.625  # type: ignore[call-overload]
    with pytest.raises(InvalidParameterError, match="beyond the range of floats"):
        grid.decimal(10**400)


MAKERS = {
    "pandas Int8": lambda cells: pd.array(cells, dtype="Int8"),
    "pandas UInt64": lambda cells: pd.Series(cells, dtype="UInt64"),
    "pandas Float64": lambda cells: pd.Series(cells, dtype="Float64"),
    "pandas index": lambda cells: pd.Index(cells, dtype="Int64"),
    "pandas double on Arrow": lambda cells: pd.Series(cells, dtype="double[pyarrow]"),
    "pandas uint8 on Arrow": lambda cells: pd.Series(cells, dtype="uint8[pyarrow]"),
    "polars UInt8": lambda cells: pl.Series(cells, dtype=pl.UInt8),
    "polars Float32": lambda cells: pl.Series(cells, dtype=pl.Float32),
    "Arrow int16": lambda cells: pa.array(cells, pa.int16()),
    "Arrow halffloat": lambda cells: pa.array([None if c is None else np.float16(c) for c in cells], pa.float16()),
    "masked": lambda cells: np.ma.array([c or 0 for c in cells], mask=[c is None for c in cells]),
}


@pytest.mark.parametrize("made", MAKERS.values(), ids=MAKERS)
def test_a_missing_cell_changes_neither_the_type_nor_other_cells(made: Any) -> None:
    whole, everyone = read_column(made([1, 2, 3]))
    part, there = read_column(made([1, None, 3]))
    assert part.dtype == whole.dtype
    assert part[[0, 2]].tolist() == [1, 3]
    assert everyone is None or everyone.all()
    assert there.tolist() == [True, False, True] if there is not None else np.isnan(part[1])


def test_categories_have_the_type_of_all_of_them() -> None:
    column = pd.Series(pd.Categorical([2**60 + 1, None], categories=[2**60, 2**60 + 1]))
    found, there = read_column(column)
    assert found.tolist()[0] == 2**60 + 1
    assert there is not None
    assert there.tolist() == [True, False]
    assert declared(column) == np.int64
    assert read_column(pd.Categorical([None, None]))[0].tolist() == [None, None]


def test_frames_are_columns_with_names() -> None:
    for frame in (pd.DataFrame, pl.DataFrame, pa.table):
        columns = columns_of(frame({"a": [1], "b": [2]}))
        assert columns is not None
        assert [(name, read_column(column)[0].tolist()) for name, column in columns] == [("a", [1]), ("b", [2])]
    assert columns_of(np.zeros((2, 2))) is columns_of([[1, 2]]) is None
