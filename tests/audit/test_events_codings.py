import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from defocus.audit.events import Split, atoms, coarse, joint, ranges, ratios
from defocus.audit.outcomes import Column

SPLIT = Split(n=8, learn=2, train=4)


def mask(size: int, *chosen: int) -> NDArray[np.bool_]:
    return np.isin(np.arange(size), chosen)


def test_the_jobs_share_no_run_and_leave_none_out() -> None:
    rows = np.arange(16)
    parts = [SPLIT.of(rows, job) for job in ("learn", "choose", "judge")]
    assert [part.tolist() for part in parts[0]] == [[0, 1], [8, 9]]
    assert sorted(np.concatenate([side for part in parts for side in part]).tolist()) == rows.tolist()


@given(st.lists(st.floats(allow_infinity=True, allow_nan=True), min_size=16, max_size=16))
def test_ranges_keep_the_order_and_put_nan_last(values: list[float]) -> None:
    column = Column("x", np.array(values))
    coding = ranges(column, SPLIT)
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
        ranges(Column("x", first), SPLIT).codes[[0, 1, 8, 9]], ranges(Column("x", other), SPLIT).codes[[0, 1, 8, 9]]
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
