"""The demo: a private report of a made-up hospital."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from defocus.ledger import Ledger
from defocus.ledger import verify as examine

EXAMPLE = Path(__file__).parents[2] / "examples" / "report.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def test_the_report_runs_until_it_is_refused(
    example: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    example["main"](tmp_path / "demo")
    out = capsys.readouterr().out
    for text in (
        "Stays by department",
        "Mean length of stay",
        "Most common diagnosis",
        "refused",
        "remaining",
        "To fix",
    ):
        assert text in out
    with Ledger.open(tmp_path / "demo" / "stays.sqlite", read_only=True) as ledger:
        assert len(ledger) >= 8
        assert not ledger.admits(ledger.events())
    assert examine(tmp_path / "demo" / "stays.sqlite").ok


def test_it_can_be_run_again_because_the_hospital_is_new_each_time(example: dict[str, Any], tmp_path: Path) -> None:
    for _ in range(2):
        example["main"](tmp_path / "demo")


def test_what_lies_in_the_folder_already_is_left_alone(example: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "thesis.txt").write_text("the only copy", encoding="utf-8")
    example["main"](tmp_path / "demo")
    assert (tmp_path / "demo" / "thesis.txt").read_text(encoding="utf-8") == "the only copy"


def test_the_command_it_recommends_can_be_typed(
    example: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "defocus").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", str(tools / "python"))
    monkeypatch.setenv("PATH", "")
    assert example["command"]() == ".venv/bin/defocus"
    monkeypatch.setenv("PATH", str(tools))
    assert example["command"]() == "defocus"


def test_nobody_counts_more_often_than_declared(example: dict[str, Any]) -> None:
    stays = example["generate"](500, seed=7)
    kept = stays.bounded()
    most = example["STAYS_EACH"]
    assert np.bincount(kept.patient).max() == most < np.bincount(stays.patient).max()
    assert len(kept.patient) == np.minimum(np.bincount(stays.patient), most).sum()


def test_removing_a_patient_removes_only_their_rows(example: dict[str, Any]) -> None:
    """So the declared sensitivities hold: 2 stays in the counts, 2 * 30 days in the total."""
    stays = example["generate"](60, seed=7)
    whole = stays.bounded()
    departments = example["DEPARTMENTS"]
    counts = example["counts"](whole.department, departments)
    for person in range(60):
        there = stays.patient != person
        columns = (stays.patient, stays.department, stays.diagnosis, stays.days)
        without = example["Stays"](*(column[there] for column in columns)).bounded()
        assert np.array_equal(without.days, whole.days[whole.patient != person])
        assert np.abs(counts - example["counts"](without.department, departments)).sum() <= example["STAYS_EACH"]


def test_an_empty_hospital_is_a_hospital(example: dict[str, Any]) -> None:
    assert len(example["generate"](0, seed=7).bounded().days) == 0
