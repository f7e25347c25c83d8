"""The guide from a terminal."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.waiting import HANGS

from defocus.cli import collection
from defocus.local import Interval, Mean, Oracle, mean, oracle, write_parquet
from defocus.local.reports import Reports
from defocus.local.shuffling import Analyser, Key, MultiMessageSum, Round, acknowledge, fetch, protocol_to_json, send
from defocus.noise.testing import seeded


def test_the_options_are_listed_with_trust_and_a_recommendation(defocus: Callable[..., Any]) -> None:
    ran = defocus("choose", "count", "--users", 10_000, "--epsilon", 1)
    assert ran.code == 0
    for word in ("central", "shuffle", "local", "trusts nobody", "Recommended: shuffle"):
        assert word in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_json_holds_all_numbers(defocus: Callable[..., Any]) -> None:
    answer = defocus("choose", "mean", "--users", 1000, "--epsilon", 1, "--delta", "1e-6", "--json").json
    assert answer["recommended"]["model"] in {"central", "shuffle", "local"}
    assert {option["model"] for option in answer["options"]} == {"central", "shuffle", "local"}
    assert answer["delta"] == 1e-6


def test_an_error_that_is_acceptable_decides(defocus: Callable[..., Any]) -> None:
    words = ("choose", "count", "--users", 10_000, "--epsilon", 1, "--json")
    assert defocus(*words, "--error", 500).json["recommended"]["model"] == "local"
    assert defocus(*words, "--error", 1.5).json["recommended"]["model"] == "central"


def test_a_plot_shows_all_models(defocus: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_SIZES", (50, 100))
    where = tmp_path / "curve.svg"
    assert defocus("choose", "count", "--users", 100, "--epsilon", 1, "--delta", 1e-6, "--plot", where).code == 0
    assert where.stat().st_size > 1000


def test_bad_questions_are_refused(defocus: Callable[..., Any]) -> None:
    assert defocus("choose", "guess", "--users", 100, "--epsilon", 1).code == 2
    ran = defocus("choose", "count", "--users", 0, "--epsilon", 1)
    assert ran.code == 2
    assert "To fix" in ran.err
    assert defocus("choose", "count", "--users", 9, "--epsilon", 1, "--plot", "curve.txt").code == 2


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
    assert found.json["rows"][0]["mean"] == pytest.approx(HOURS.estimate(reports).value)
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
    (tmp_path / "taken.csv").mkdir()
    found = defocus("estimate", description, folder / "*.parquet", "--out", tmp_path / "taken.csv")
    assert found.code == 2
    assert "count" in found.out  # it is shown though it could not be written


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


@pytest.mark.parametrize("task", ["quantile", "training", "edges"])
def test_rooms_are_recommended_for_other_tasks_with_a_line(task: str, defocus: Callable[..., Any]) -> None:
    words = ("choose", task, "--users", 2000, "--epsilon", 1)
    ran = defocus(*words)
    assert ran.code == 0
    assert "Recommended: " in ran.out
    told = json.loads(defocus(*words, "--json").out)
    assert told["task"] == task
    assert told["ways"][0]["trust"] == "curator"
    alone = defocus(*words, "--trust", "nobody", "--law", "pure")
    assert alone.code == 0
    assert ("Nothing here does that" in alone.out) is (task != "quantile")


@pytest.mark.slow
def test_a_round_with_a_shuffler_in_another_process(tmp_path: Path) -> None:
    asked, reader = oracle("k-rr", 4, 3), Key.generate()
    description, where = tmp_path / "oracle.json", tmp_path / "round.json"
    description.write_text(asked.to_json())
    words = ("shuffler", description, "--users", 40, "--analyser", reader.public.hex(), "--out", where, "--batches", 1)
    running = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "defocus", *map(str, words)], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert running.stdout is not None
        address = running.stdout.readline().split()[2]
        described = Round.from_json(where.read_text())
        reports = asked.encode([2] * 40)
        assert send(address, described.envelopes(reports)) == {"accepted": 40, "rejected": 0}
        batch = fetch(address)
        assert batch is not None
        analyser = Analyser(described, reader)
        counted = asked.estimate(analyser.count(batch))
        assert running.poll() is None
        assert acknowledge(address, analyser.receipt())
        assert counted.counts.tolist() == asked.estimate(reports).counts.tolist()
        assert running.wait(timeout=HANGS) == 0
        assert "Stopped after 1 batches; 0 envelopes were rejected." in running.stdout.read()
    finally:
        running.kill()
        running.wait()
        if running.stdout is not None:
            running.stdout.close()


@pytest.mark.slow
def test_a_round_of_several_messages_with_a_shuffler_in_another_process(tmp_path: Path) -> None:
    asked, reader = MultiMessageSum(Interval(0, 10), users=50, epsilon=2, delta=0.01, levels=2), Key.generate()
    description, where = tmp_path / "sum.json", tmp_path / "round.json"
    description.write_text(protocol_to_json(asked))
    words = ("shuffler", description, "--users", 60, "--analyser", reader.public.hex(), "--out", where, "--batches", 1)
    running = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "defocus", *map(str, words)], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert running.stdout is not None
        address = running.stdout.readline().split()[2]
        described = Round.from_json(where.read_text())
        assert (described.design, described.honest) == (asked, 50)
        assert send(address, [described.report(5) for _ in range(60)]) == {"accepted": 60, "rejected": 0}
        batch, analyser = fetch(address), Analyser(described, reader)
        assert batch is not None
        assert abs(analyser.count(batch).mean() - 5) < 8 * asked.error / 60
        assert acknowledge(address, analyser.receipt())
        assert running.wait(timeout=HANGS) == 0
    finally:
        running.kill()
        running.wait()
        if running.stdout is not None:
            running.stdout.close()


def test_bad_words_are_refused_before_anything_listens(defocus: Callable[..., Any], tmp_path: Path) -> None:
    description = tmp_path / "oracle.json"
    description.write_text(oracle("k-rr", 4, 3).to_json())
    good = Key.generate().public.hex()
    bad = ((0, good, description), (9, "zz", description), (9, "00", description), (9, good, tmp_path))
    for users, key, file in bad:
        ran = defocus("shuffler", file, "--users", users, "--analyser", key, "--out", tmp_path / "round.json")
        assert ran.code != 0
        assert "To fix" in ran.err
    assert not (tmp_path / "round.json").exists()


def test_a_bad_description_and_a_bad_key_are_both_told(defocus: Callable[..., Any], tmp_path: Path) -> None:
    description = tmp_path / "bad.json"
    description.write_text("{}")
    words = ("--users", 9, "--out", tmp_path / "round.json")
    both = defocus("shuffler", description, "--analyser", "zz", *words).err
    assert "64 hexadecimal digits" in both
    assert "Key.public.hex()" in both
    assert "description of an oracle could not be read" in both
    one = defocus("shuffler", description, "--analyser", Key.generate().public.hex(), *words).err
    assert "hexadecimal" not in one
