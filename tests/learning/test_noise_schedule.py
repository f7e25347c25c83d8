"""Schedules and correlated noise."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from defocus.errors import InvalidParameterError
from defocus.learning.noise_schedule import Banded, BufferedToeplitz, Schedule, strategy


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


def buffered(how: Any, steps: int) -> Any:
    """The matrix of a buffered strategy, entry by entry."""
    below = [sum(w * d ** (k - 1) for w, d in zip(how.weights, how.decays, strict=True)) for k in range(1, steps)]
    column = np.array([1.0, *below])
    return np.array([[column[t - s] if t >= s else 0.0 for s in range(steps)] for t in range(steps)])


@pytest.mark.parametrize(("buffers", "steps", "groups"), [(1, 12, 4), (2, 30, 7), (3, 24, 24), (4, 40, 3), (2, 9, 1)])
def test_no_unit_moves_a_buffered_strategy_by_more_than_is_charged(buffers: int, steps: int, groups: int) -> None:
    how = strategy(BufferedToeplitz(buffers), steps=steps, groups=groups)
    assert how == strategy(BufferedToeplitz(buffers), steps=steps, groups=groups)  # in every process of a run
    matrix = buffered(how, steps)
    assert (matrix >= 0).all()
    drawn = np.random.default_rng(7)
    largest = 0.0
    for first, end in itertools.product(range(groups), range(1, steps + 1)):
        met = matrix[:end, first:end:groups]  # of a run that ends early, too
        turns = -(-end // groups)  # what is charged for it
        for passed in (0, 1, 2):  # rows and columns of steps that were passed over
            left = np.ones(end, dtype=bool)
            left[drawn.integers(0, end, passed)] = False
            columns = met[left][:, left[first:end:groups]]
            gradients = drawn.standard_normal((columns.shape[1], 3))
            gradients /= np.linalg.norm(gradients, axis=1, keepdims=True)
            assert np.linalg.norm(columns @ gradients) <= math.sqrt(turns) * how.norm
            alike = float(np.linalg.norm(columns.sum(axis=1)))
            assert alike <= math.sqrt(turns) * how.norm
            largest = max(largest, alike / math.sqrt(turns))
    assert largest > how.norm * (1 - 1e-6)  # and no more than that


@pytest.mark.parametrize(("steps", "groups"), [(1024, 1024), (1024, 128), (2000, 100)])
def test_a_few_buffers_err_about_as_little_as_hundreds_of_bands(steps: int, groups: int) -> None:
    turns, first = -(-steps // groups), np.zeros(steps)
    first[0] = 1.0

    def mean_error(how: Any, column: Any) -> float:
        sums = np.cumsum(lfilter([1.0], column, first))  # of the first column of the inverse
        return float(turns * how.norm**2 * np.cumsum(sums**2).mean())

    bands = strategy(Banded(), steps=steps, groups=groups)
    few = strategy(BufferedToeplitz(), steps=steps, groups=groups)
    powers = np.array(few.decays)[:, None] ** np.arange(steps - 1)
    column = np.concatenate([[1.0], np.array(few.weights) @ powers])
    assert len(bands.column) >= 100
    assert mean_error(few, column) < 1.04 * mean_error(bands, np.array(bands.column))


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
    with pytest.raises(InvalidParameterError):
        BufferedToeplitz(bad)
    with pytest.raises(InvalidParameterError):
        BufferedToeplitz(2, bad)


def test_more_buffers_than_help_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="at most 8 buffers"):
        BufferedToeplitz(9)
