"""Schedules and correlated noise."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.learning.noise_schedule import Banded, Schedule, strategy


@given(factors=st.lists(st.floats(0.1, 10), min_size=1, max_size=9), steps=st.integers(1, 200))
def test_a_schedule_has_one_factor_for_each_step_in_its_order(factors: list[float], steps: int) -> None:
    at = Schedule(factors).at(steps)
    assert len(at) == steps
    if steps >= len(factors):
        assert [at[i] for i in range(steps) if i == 0 or at[i] != at[i - 1]] == [
            factor for i, factor in enumerate(factors) if i == 0 or factor != factors[i - 1]
        ]


def test_schedules_have_the_ends_they_were_given() -> None:
    assert Schedule.linear(2, 1, levels=3).factors == (2.0, 1.5, 1.0)
    assert Schedule.geometric(4, 1, levels=3).factors == pytest.approx((4.0, 2.0, 1.0))
    assert Schedule.of(lambda t: 2 - t, levels=2).factors == (1.75, 1.25)


def test_a_schedule_of_many_levels_keeps_its_shape_in_sixteen() -> None:
    wanted = [2 - step / 300 for step in range(300)]
    found = Schedule(wanted).at(300)
    assert len(set(found)) <= 16
    assert max(abs(math.log(a / b)) for a, b in zip(found, wanted, strict=True)) <= math.log(2) / 30 + 1e-9
    assert list(found) == sorted(found, reverse=True)


@pytest.mark.parametrize("bad", [[], [0], [1, -1], [math.nan], ["1"], [1e7, 1]])
def test_schedules_that_are_none_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError):
        Schedule(bad)


@given(bands=st.integers(1, 12), extra=st.integers(0, 8), turns=st.integers(1, 4))
def test_no_unit_meets_more_than_the_norm_in_each_turn(bands: int, extra: int, turns: int) -> None:
    groups = bands + extra
    steps = groups * turns
    how = strategy(Banded(bands, groups), steps=steps, groups=groups)
    matrix = np.zeros((steps, steps))
    for t in range(steps):
        matrix[t : t + len(how.column), t] = how.column[: steps - t]
    assert matrix[0, 0] == 1.0
    for first in range(groups):
        met = matrix[:, first::groups].sum(axis=1)
        assert met @ met <= turns * how.norm**2 * (1 + 1e-12)
    assert np.linalg.norm(matrix[:, 0]) <= how.norm


def test_correlated_noise_leaves_less_in_the_sum() -> None:
    """Over a single epoch the sum of all noises has far less variance than with independent noise of the same cost."""
    steps = 256
    how = strategy(Banded(), steps=steps, groups=steps)
    matrix = np.zeros((steps, steps))
    for t in range(steps):
        matrix[t : t + len(how.column), t] = how.column[: steps - t]
    last = np.linalg.solve(matrix.T, np.ones(steps))  # the row of A C^-1 for the sum of all steps
    assert how.norm**2 * (last @ last) < 0.1 * steps


def test_bands_wider_than_the_turns_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="needs as many groups"):
        Banded(5, 4)
    with pytest.raises(InvalidParameterError, match="wider than the 4 steps") as caught:
        strategy(Banded(5), steps=20, groups=4)
    assert "bands <= 4" in caught.value.fix


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "3"])
def test_bands_and_groups_are_whole_numbers(bad: Any) -> None:
    with pytest.raises(InvalidParameterError):
        Banded(bad)
    with pytest.raises(InvalidParameterError):
        Banded(None, bad)
