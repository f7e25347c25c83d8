"""The parts of a weight are whole, not negative, and add up to it, whatever floats do."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp
from tests.tables.reference import share

from defocus.tables.splits import PRESENCE, Argument, Split

shares = st.floats(0, 1) | st.sampled_from([0.0, 5e-324, 2.0**-53, 1 - 2.0**-53, 0.5, 1 / 3, 1.0])
DEGREES = [(0,), (1,), (2,), (1, 1), (2, 1), (2, 2)]


@given(st.sampled_from(DEGREES), shares, shares, st.integers(0, 1 << 30))
@example((2, 2), 0.5, 0.5, 1 << 24)
@example((2, 2), 1 - 2.0**-53, 2.0**-53, (1 << 30) - 1)
def test_parts_never_exceed_their_weight_together(degrees: tuple[int, ...], x: float, z: float, w: int) -> None:
    ways = list(itertools.product(*(range(degree + 1) for degree in degrees)))[1:]
    parts = [share((x, z)[: len(degrees)], degrees, way, w) for way in ways]
    assert min(parts, default=0) >= 0
    assert sum(parts) <= w


@given(st.sampled_from(DEGREES), st.fractions(0, 1, max_denominator=50), st.fractions(0, 1, max_denominator=50))
def test_moments_are_those_of_the_values(degrees: tuple[int, ...], x: Fraction, z: Fraction) -> None:
    values = (x, z)[: len(degrees)]
    split = Split(tuple(Argument(str(i), 0, 1) for i in range(len(degrees))), degrees)
    cells = [
        math.prod(math.comb(d, j) * v**j * (1 - v) ** (d - j) for v, d, j in zip(values, degrees, way, strict=True))
        for way in itertools.product(*(range(degree + 1) for degree in degrees))
    ]
    exact = np.array([*map(float, cells), 0.0])
    for powers in itertools.product(*(range(degree + 1) for degree in degrees)):
        wanted = math.prod(float(v) ** p for v, p in zip(values, powers, strict=True))
        assert float(split.moment(powers) @ exact) == pytest.approx(wanted)
    assert float(split.everyone @ exact) == pytest.approx(1)


def test_the_statement_of_a_split_stays_short() -> None:
    split = Split((Argument("x", 0, 1), Argument("z", 0, 1)), (2, 2))
    parts = split.parts(exp.column("w"), [exp.column("x"), exp.column("z")])
    assert len(parts) == split.cells - 1 == 9
    assert sum(len(part.sql("duckdb")) for part in parts) < 3000


def test_a_value_that_stands_for_missing_ones_leaves_no_cell_for_them() -> None:
    assert Split((Argument("x", 0, 1),), (1,)).cells == 3
    assert Split((Argument("x", 0, 1, missing=0),), (1,)).cells == 2
    assert PRESENCE.cells == 1
    assert not PRESENCE.optional


def test_bounds_that_were_found_are_filled_in() -> None:
    found = Split((Argument("x", find=True), Argument("z", 0, 1)), (1, 1)).found({"x": (-4.0, 8.0)})
    assert found.values == (Argument("x", -4.0, 8.0), Argument("z", 0, 1))
    assert (found.values[0].bottom, found.values[0].width) == (-4.0, 12.0)


@pytest.mark.parametrize("degrees", [(0, 1), (2, 0), (0, 0)])
def test_of_several_values_none_is_left_out_of_the_shares(degrees: tuple[int, int]) -> None:
    """A row that lacks it would have its own cell and the cells of the other value: more than its weight."""
    with pytest.raises(AssertionError):
        Split((Argument("x", 0, 1), Argument("z", 0, 1)), degrees)


def test_scaling_takes_away_no_zero_and_divides_by_no_one() -> None:
    number = exp.column("v", quoted=True)
    written = [Argument("v", low, high).scaled(number).sql("duckdb") for low, high in ((0, 1), (0, 4), (2, 3), (2, 6))]
    assert [("-" in sql, "/" in sql) for sql in written] == [(False, False), (False, True), (True, False), (True, True)]
