"""Estimates as tables, files and pictures."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from defocus.local import Estimate, oracle, process
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
    low, high = estimate.intervals()
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
