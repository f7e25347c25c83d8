"""Estimates as tables, files and pictures."""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.local import Estimate, oracle, process
from defocus.local.estimates import Process, empirical_bayes, isotonic, norm_sub, simplex
from defocus.noise.testing import seeded

HOSTILE = ["=1+1", "\x1b[2J", "<b>bold</b>", "\u202egnirts", "$x$"]


@pytest.fixture
def estimate() -> Estimate:
    asked = oracle("k-rr", HOSTILE, 3, outside="other")
    return asked.estimate(asked.encode([HOSTILE[0]] * 300 + ["elsewhere"] * 100, seeded(1)))


def test_frames_and_files_hold_the_counts_with_their_intervals(estimate: Estimate, tmp_path: Path) -> None:
    table = estimate.to_arrow()
    assert table.column_names == ["category", "count", "count_error", "count_low", "count_high"]
    assert table["category"].to_pylist() == [*HOSTILE, "other"]
    low, high = estimate.interval()
    assert np.array_equal(table["count_low"].to_numpy(), low)
    assert np.array_equal(table["count_high"].to_numpy(), high)
    assert estimate.to_pandas()["count"].tolist() == estimate.to_polars()["count"].to_list() == list(estimate.counts)
    estimate.to_parquet(tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").equals(table)
    assert estimate.to_csv(tmp_path / "a.csv") == (tmp_path / "a.csv").read_text(encoding="utf-8")


def test_hostile_labels_act_on_nothing(estimate: Estimate, tmp_path: Path) -> None:
    for text in (str(estimate), repr(estimate)):
        assert all(line.isprintable() for line in text.split("\n"))
    assert "<b>" not in estimate._repr_html_()
    assert estimate.to_csv().split("\n")[1].startswith('"\'=1+1"')
    estimate.plot().savefig(tmp_path / "a.png")


def test_a_table_shows_the_most_frequent_with_what_the_noise_leaves(estimate: Estimate) -> None:
    lines = str(estimate).split("\n")
    assert lines[2].startswith("=1+1")
    assert lines[-1] == "unbiased, from 400 reports"
    asked = oracle("oue", 99, 1)
    many = str(asked.estimate(asked.encode(range(100), seeded(1)))).split("\n")
    assert "100 categories, the 20 most frequent are shown" in many
    assert many[-1].endswith(" reports; category 99 is of all other values")
    assert len(many) == 24


def test_processed_counts_have_no_interval_of_their_own(estimate: Estimate) -> None:
    processed = process(estimate, "norm-sub")
    assert np.isnan(processed.to_arrow()["count_low"].to_numpy()).all()
    assert "biased" in str(processed)
    assert str(processed).split("\n")[2].endswith("–")


counts = st.lists(st.floats(-1000, 1000), min_size=1, max_size=30).map(np.array)


@pytest.mark.statistical
@pytest.mark.parametrize("shares", [1 / np.arange(1, 101) ** 1.3, np.ones(100)], ids=["skewed", "flat"])
def test_many_counts_are_closer_to_the_truth_when_they_learn_from_each_other(shares: Any) -> None:
    people, asked = 10_000, oracle("oue", 100, epsilon=2, outside="refuse")
    drawn = np.random.default_rng(5)
    errors, ways = np.zeros(2), get_args(Process)
    for seed in range(6):
        truth = drawn.multinomial(people, shares / shares.sum())
        estimate = asked.estimate(asked.encode(np.repeat(np.arange(100), truth), seeded(seed)))
        for place, how in enumerate((ways[0], ways[-1])):
            processed = process(estimate, how)
            assert processed.counts.min() >= 0
            assert processed.counts.sum() == pytest.approx(people)
            errors[place] += ((processed.counts - truth) ** 2).sum()
    assert errors[1] < 0.85 * errors[0]


@pytest.mark.statistical
def test_filters_are_decoded_nearer_to_the_truth_by_counts_that_are_not_negative() -> None:
    asked = oracle("rappor", 60, 2, width=32, cohorts=4, outside="refuse")
    errors = {"": 0.0, "norm-sub": 0.0, "non-negative": 0.0}
    shares = 1 / np.arange(1, 61) ** 1.2
    for seed in range(4):
        truth = np.random.default_rng(seed).multinomial(20_000, shares / shares.sum())
        estimate = asked.estimate(asked.encode(np.repeat(np.arange(60), truth), seeded(seed)))
        for how in errors:
            found = process(estimate, how) if how else estimate  # type: ignore[arg-type]  # one of them
            errors[how] += ((found.counts - truth) ** 2).sum()
            if how:
                assert found.counts.min() >= 0
                assert found.counts.sum() == pytest.approx(20_000)
    assert errors["non-negative"] < 0.9 * errors["norm-sub"]
    assert errors["non-negative"] < 0.4 * errors[""]


@pytest.mark.statistical
def test_more_candidates_than_bits_of_all_cohorts_are_told_apart() -> None:
    asked = oracle("rappor", 200, 4, width=16, cohorts=8, outside="refuse")
    truth = np.zeros(200, np.int64)
    truth[[3, 50, 120]] = 9000, 6000, 3000
    found = asked.estimate(asked.encode(np.repeat(np.arange(200), truth), seeded(1)))
    assert [label for label, _, _ in found.top(3)] == [3, 50, 120]
    assert np.abs(found.counts - truth).max() < 2500
    assert np.isnan(found.errors).all()
    assert "more candidates than bits" in str(found)
    with pytest.raises(InvalidParameterError, match="processed already"):
        process(found, "norm-sub")


def test_of_other_oracles_the_nearest_counts_are_those_on_the_simplex() -> None:
    asked = oracle("oue", 5, 1, outside="refuse")
    estimate = asked.estimate(asked.encode([1, 1, 2] * 50, seeded(1)))
    assert np.array_equal(process(estimate, "non-negative").counts, process(estimate, "simplex").counts)


@pytest.mark.parametrize(
    ("counts", "variances"),
    [
        (np.array([9.0, 5.0, -3.0]), np.ones(3)),  # few
        (np.full(30, -2.0), np.ones(30)),  # nothing stands out
        (np.linspace(-3, 40, 30), np.zeros(30)),
        (np.linspace(-3, 40, 30), np.full(30, np.nan)),
    ],
)
def test_where_nothing_is_learnt_from_others_counts_are_clipped_alone(counts: Any, variances: Any) -> None:
    assert np.array_equal(empirical_bayes(counts, 10.0, variances), norm_sub(counts, 10.0))


@given(counts, st.floats(1, 5000))
def test_norm_sub_is_the_projection_on_the_simplex(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], total: float
) -> None:
    one, other = norm_sub(values, total), simplex(values, total)
    assert one == pytest.approx(other, abs=1e-6 * (total + 1000))
    assert one.min() >= 0
    assert one.sum() == pytest.approx(total)


@given(counts)
def test_isotonic_counts_never_rise_and_keep_their_sum(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    made = isotonic(values, 0.0)
    assert (np.diff(made) <= 1e-9).all()
    assert made.sum() == pytest.approx(values.sum(), abs=1e-6)
    assert isotonic(made, 0.0) == pytest.approx(made)


@pytest.mark.statistical
def test_processing_brings_estimates_closer_and_says_that_it_is_biased() -> None:
    asked = oracle("oue", 200, 1, outside="refuse")
    people = np.minimum(np.arange(20_000) // 100, 199) // 4
    true = np.bincount(people, minlength=200)
    plain = asked.estimate(asked.encode(people, seeded(2)))
    for how in ("norm-sub", "simplex"):
        made = process(plain, how)
        assert ((made.counts - true) ** 2).sum() < 0.8 * ((plain.counts - true) ** 2).sum()
        assert not made.unbiased
        assert f"{how}: biased" in repr(made)
        with pytest.raises(InvalidParameterError, match="no interval"):
            made.interval()
        with pytest.raises(InvalidParameterError, match="processed already"):
            process(made, "isotonic")
    assert asked.estimate(asked.encode(people, seeded(2)), processing="norm-sub").counts.min() == 0


def test_a_processing_that_nothing_has_is_refused() -> None:
    asked = oracle("k-rr", 3, 1)
    with pytest.raises(InvalidParameterError, match="norm-sub, simplex, isotonic, non-negative, empirical-bayes"):
        asked.estimate(asked.encode([1]), processing="wishful")  # type: ignore[arg-type]
