import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from defocus.audit.events import Event, Split, atoms, choose, coarse, joint, ranges, ratios
from defocus.audit.outcomes import Column, read
from defocus.audit.runs import Raised

N = 20_000
SPLIT = Split(n=N, learn=N // 4, train=N // 2)
Draw = Callable[[np.random.Generator], NDArray[Any]]


def chosen(first: Draw, second: Draw, delta: float = 0.0) -> Event:
    rng = np.random.default_rng(3)
    return choose(read((first(rng), second(rng)), SPLIT.train), SPLIT, alpha=1e-3, delta=delta)


def rates(event: Event) -> tuple[float, float]:
    first, second = SPLIT.of(event.holds, "judge")
    return float(first.mean()), float(second.mean())


def test_a_shift_is_told_by_a_threshold() -> None:
    event = chosen(lambda r: np.round(r.laplace(0, 1, N), 3), lambda r: np.round(r.laplace(1, 1, N), 3))
    assert event.words.startswith("output is ")
    p, q = rates(event)[event.likelier], rates(event)[1 - event.likelier]
    assert np.log(p / q) == pytest.approx(1, abs=0.1)


def test_a_change_of_spread_is_told_by_two_ranges() -> None:
    event = chosen(lambda r: np.round(r.normal(0, 1, N), 2), lambda r: np.round(r.normal(0, 3, N), 2))
    assert event.likelier == 1
    assert " or " in event.words
    assert rates(event)[1] > 50 * rates(event)[0]


def test_parity_is_told_by_a_residue() -> None:
    event = chosen(
        lambda r: 2.0 * r.integers(0, 10**6, N), lambda r: 2.0 * r.integers(0, 10**6, N) + r.integers(0, 2, N)
    )
    assert "mod" in event.words or "lowest set bit" in event.words
    assert min(rates(event)) == 0


def test_the_grid_of_floats_is_told_by_the_lowest_set_bit() -> None:
    event = chosen(lambda r: r.integers(0, 2**20, N) * 2.0**-20, lambda r: r.integers(0, 2**24, N) * 2.0**-24)
    assert "lowest set bit" in event.words
    assert event.likelier == 1
    assert rates(event)[1] > 0.9
    assert rates(event)[0] == 0


def test_two_columns_together_tell_what_neither_tells_alone() -> None:
    def correlated(sign: int) -> Draw:
        def draw(rng: np.random.Generator) -> NDArray[np.float64]:
            x = rng.choice([-1.0, 1.0], N)
            return np.column_stack([x, sign * x])

        return draw

    event = chosen(correlated(1), correlated(-1))
    assert "together with" in event.words
    assert sorted(rates(event)) == [0.0, 1.0]


def test_many_weak_entries_are_told_by_a_learned_score() -> None:
    event = chosen(lambda r: np.round(r.normal(0, 1, (N, 30)), 2), lambda r: np.round(r.normal(0.4, 1, (N, 30)), 2))
    assert "of all entries" in event.words
    assert max(rates(event)) > 50 * min(rates(event))


def test_a_strong_entry_among_hundreds_is_found() -> None:
    def draw(rng: np.random.Generator, at: float) -> NDArray[np.float64]:
        rows = rng.normal(0, 1, (N, 100)).round(2)
        rows[:, 70] += at
        return rows

    event = chosen(lambda r: draw(r, 0), lambda r: draw(r, 9))
    assert max(rates(event)) > 0.9
    assert min(rates(event)) < 1e-3


def test_an_event_is_not_changed_by_the_judging_runs() -> None:
    rng = np.random.default_rng(8)
    first, second = rng.normal(0, 1, N), rng.normal(1, 1, N)
    before = choose(read((first, second), SPLIT.train), SPLIT, alpha=1e-3, delta=0.0)
    first[SPLIT.train :] = 77
    second[SPLIT.train :] = -77
    after = choose(read((first, second), SPLIT.train), SPLIT, alpha=1e-3, delta=0.0)
    assert (before.words, before.likelier, before.promise) == (after.words, after.likelier, after.promise)


@pytest.mark.parametrize(
    "late",
    [math.nan, math.inf, -0.0, 0.5, 10**30, None, "text", (1, 2), {"a": 1}, Raised("ValueError", "late"), np.zeros(3)],
)
@pytest.mark.parametrize("early", [float, int, lambda x: {"a": float(x)}, lambda x: [x, x]])
def test_nothing_the_judging_runs_show_changes_the_event(early: Callable[[float], Any], late: Any) -> None:
    split = Split(n=400, learn=100, train=200)
    rng = np.random.default_rng(8)
    sides = [[early(x) for x in rng.normal(at, 3, 400).round(1).tolist()] for at in (0, 2)]
    before = choose(read((sides[0], sides[1]), split.train), split, alpha=1e-3, delta=0.0)
    for side in sides:
        side[split.train :] = [late] * 200
    after = choose(read((sides[0], sides[1]), split.train), split, alpha=1e-3, delta=0.0)
    assert (before.words, before.likelier, before.promise) == (after.words, after.likelier, after.promise)
    for one, other in zip(split.of(before.holds, "choose"), split.of(after.holds, "choose"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_same_output_always_gives_an_event_without_promise() -> None:
    event = chosen(lambda _: np.zeros(N), lambda _: np.zeros(N))
    assert event.promise <= 0


@pytest.mark.filterwarnings("error")
def test_hostile_numbers_raise_no_warning() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 0.0])
    rows = np.random.default_rng(1).choice(values, (2, N, 3))
    choose(read((rows[0], rows[1]), SPLIT.train), SPLIT, alpha=1e-3, delta=0.0)


SHORT = Split(n=8, learn=2, train=4)


def mask(size: int, *chosen: int) -> NDArray[np.bool_]:
    return np.isin(np.arange(size), chosen)


def test_the_jobs_share_no_run_and_leave_none_out() -> None:
    rows = np.arange(16)
    parts = [SHORT.of(rows, job) for job in ("learn", "choose", "judge")]
    assert [part.tolist() for part in parts[0]] == [[0, 1], [8, 9]]
    assert sorted(np.concatenate([side for part in parts for side in part]).tolist()) == rows.tolist()


@given(st.lists(st.floats(allow_infinity=True, allow_nan=True), min_size=16, max_size=16))
def test_ranges_keep_the_order_and_put_nan_last(values: list[float]) -> None:
    column = Column("x", np.array(values))
    coding = ranges(column, SHORT)
    assert (coding.codes < coding.size).all()
    known = ~np.isnan(column.values)
    assert (coding.codes[~known] == coding.size - 1).all()
    assert (coding.codes[known] < coding.size - 1).all()
    order = np.argsort(column.values[known], kind="stable")
    assert (np.diff(coding.codes[known][order]) >= 0).all()


def test_ranges_are_learned_from_the_learning_runs_only() -> None:
    first = np.arange(16.0)
    other = first.copy()
    other[4:8] += 1000
    other[12:] -= 1000
    np.testing.assert_array_equal(
        ranges(Column("x", first), SHORT).codes[[0, 1, 8, 9]], ranges(Column("x", other), SHORT).codes[[0, 1, 8, 9]]
    )


def test_many_values_get_quantiles_with_fine_tails() -> None:
    x = np.random.default_rng(1).normal(size=40_000)
    split = Split(n=20_000, learn=10_000, train=15_000)
    coding = ranges(Column("x", x), split)
    counts = np.bincount(coding.codes, minlength=coding.size)
    assert 200 < coding.size < 300
    assert counts[:-1].max() < 0.02 * len(x)
    assert 0 < counts[1] < 10


def test_ranges_are_told_as_intervals() -> None:
    coding = ranges(Column("x", np.array([1, 2, 3, 4] * 4)), Split(n=8, learn=4, train=6))
    assert coding.tell(mask(coding.size, 0, 1)) == "x is < 2"
    assert coding.tell(mask(coding.size, 2, 4)) == "x is in [2, 3) or >= 4"
    assert coding.tell(mask(coding.size, 5)) == "x is not a number"
    assert coding.tell(mask(coding.size, 0, 1, 2, 3, 4)) == "x is any number"


def test_atoms_are_exact_values_seen_often_enough() -> None:
    x = np.array([0.5] * 6 + [0.1, 0.2] + [0.5] * 2 + [0.25] * 6)
    coding = atoms(Column("x", x), Split(n=8, learn=6, train=7))
    assert coding.size == 3
    assert coding.codes.tolist() == [1] * 6 + [2, 2] + [1] * 2 + [0] * 6
    assert coding.tell(mask(3, 0)) == "x is exactly 0.25"
    assert coding.tell(mask(3, 0, 1)) == "x is one of 0.25, 0.5"
    assert coding.tell(mask(3, 0, 2)) == "x is not 0.5"
    assert coding.tell(mask(3, 2)) == "x is none of 0.25, 0.5"
    assert coding.tell(mask(3, 0, 1, 2)) == "x is anything"


def test_long_labels_and_long_lists_are_shortened() -> None:
    labels = tuple(f"{i}" + "k" * 200 for i in range(8))
    coding = atoms(Column("x", np.tile(np.arange(8), 16), labels), Split(n=64, learn=64, train=64))
    words = coding.tell(mask(coding.size, *range(8)))
    assert "and 3 more" in words
    assert len(words) < 400


def test_continuous_values_have_no_atoms() -> None:
    x = np.random.default_rng(1).normal(size=400)
    assert atoms(Column("x", x), Split(n=200, learn=100, train=150)).size == 1


def test_coarse_merges_neighbours_and_keeps_them_balanced() -> None:
    x = np.random.default_rng(1).normal(size=40_000)
    split = Split(n=20_000, learn=10_000, train=15_000)
    fine = ranges(Column("x", x), split)
    merged = coarse(fine, split, 8)
    assert np.bincount(merged.codes, minlength=8).min() > 0.08 * len(x)
    pairs = np.unique(np.column_stack([fine.codes, merged.codes]), axis=0)
    assert (np.diff(pairs[pairs[:, 0].argsort(), 1]) >= 0).all()
    assert coarse(merged, split, 8) is merged


def test_joint_has_a_cell_for_each_pair_of_classes() -> None:
    split = Split(n=8, learn=4, train=6)
    one = ranges(Column("x", np.array([0, 0, 1, 1] * 4)), split)
    other = ranges(Column("y", np.array([0, 1, 0, 1] * 4)), split)
    both = joint(one, other)
    assert len(np.unique(both.codes)) == 4
    assert both.codes.max() < both.size
    assert both.name == "x together with y"


def test_ratios_point_to_the_likelier_side_and_shrink_where_nothing_was_seen() -> None:
    x = np.array([1] * 90 + [2] * 10 + [1] * 10 + [2] * 90)
    coding = ranges(Column("x", x), Split(n=100, learn=100, train=100))
    log_ratios = ratios(coding, Split(n=100, learn=100, train=100))
    assert log_ratios[1] > 2
    assert log_ratios[2] < -2
    assert log_ratios[0] == 0
