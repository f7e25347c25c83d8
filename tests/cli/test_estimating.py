"""Counting and estimating reports from a terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from defocus.local import Mean, Oracle, mean, oracle, write_parquet
from defocus.local.reports import Reports
from defocus.noise.testing import seeded

COLOURS, HOURS = oracle("k-rr", ["red", "\x1b[2Jblue", "=green"], 3), mean("hybrid", 0, 24, 1)
REPORTS = COLOURS.encode(["red"] * 300 + ["=green"] * 100, seeded(1))


def laid(folder: Path, asked: Oracle | Mean, reports: Reports) -> tuple[Path, Path]:
    """The description and two files of reports in a folder."""
    (folder / "oracle.json").write_text(asked.to_json())
    half = len(reports) // 2
    write_parquet(Reports(reports.design, reports.payload[:half]), folder / "a.parquet")
    write_parquet(Reports(reports.design, reports.payload[half:]), folder / "b.parquet")
    return folder / "oracle.json", folder


def test_counts_are_those_of_a_server(defocus: Callable[..., Any], tmp_path: Path) -> None:
    description, folder = laid(tmp_path, COLOURS, REPORTS)
    expected = COLOURS.estimate(REPORTS)
    found = defocus("estimate", description, folder / "a.parquet", folder / "b.parquet", "--json")
    assert found.code == 0
    assert [row["count"] for row in found.json["rows"]] == expected.counts.tolist()
    assert found.json["reports"] == 400
    shown = defocus("estimate", description, f"{folder}/*.parquet", "--explain")
    assert "95 % interval" in shown.out
    assert "standard error" in shown.out
    assert "\x1b" not in shown.out


def test_means_are_estimated_too_and_processings_are_for_counts(defocus: Callable[..., Any], tmp_path: Path) -> None:
    reports = HOURS.encode(np.full(500, 7.5), seeded(1))
    description, folder = laid(tmp_path, HOURS, reports)
    found = defocus("estimate", description, folder / "*.parquet", "--json")
    assert found.json["rows"][0]["mean"] == pytest.approx(HOURS.estimate(reports).mean)
    refused = defocus("estimate", description, folder / "*.parquet", "--processing", "simplex")
    assert refused.code == 2
    assert "leave --processing out" in refused.err


def test_answers_are_processed_written_and_drawn(defocus: Callable[..., Any], tmp_path: Path) -> None:
    description, folder = laid(tmp_path, COLOURS, REPORTS)
    words = ("--processing", "norm-sub", "--out", tmp_path / "x.csv", "--plot", tmp_path / "x.png")
    found = defocus("estimate", description, folder / "*.parquet", *words)
    assert found.code == 0
    assert "biased" in found.out
    assert (tmp_path / "x.csv").read_text().startswith('"category","count"')
    assert (tmp_path / "x.png").stat().st_size > 1000


def test_what_cannot_be_read_is_refused_in_words(defocus: Callable[..., Any], tmp_path: Path) -> None:
    description, folder = laid(tmp_path, COLOURS, REPORTS)
    other = tmp_path / "other.json"
    other.write_text(oracle("k-rr", 3, 1).to_json())
    (tmp_path / "bad.json").write_text("{}")
    good = folder / "a.parquet"
    for words in (
        (description, tmp_path / "gone.parquet"),
        (tmp_path / "gone.json", good),
        (tmp_path / "bad.json", good),
        (other, good),
        (description, good, "--out", tmp_path / "x.exe"),
        (description, good, "--engine", "mainframe"),
    ):
        found = defocus("estimate", *words)
        assert found.code != 0
        assert "To fix" in found.err
        assert "Traceback" not in found.err
