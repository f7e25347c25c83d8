"""Races, forks, crashes and full disks, in real processes on both kinds of place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.forking import found_by

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(where: str, tmp_path: Path) -> Run:
    """Runs an experiment of ``processes.py`` and returns what it found."""
    home = tmp_path / "home"
    home.mkdir()

    def runner(experiment: str, *numbers: int) -> dict[str, Any]:
        place = where if "://" in where else str(home / "visits.ledger")
        return found_by("tests.ledger.processes", experiment, place, home, *numbers)

    return runner


@pytest.mark.slow
def test_eight_processes_race_for_the_last_slices_and_exactly_the_right_number_win(run: Run) -> None:
    found = run("race")
    assert found["codes"] == [0] * 8
    assert found["won"] == found["charges"] == 16
    assert found["refused"] == 16
    assert found["all there"]
    assert found["problems"] == []
    assert not found["room left"]


@pytest.mark.slow
def test_a_forked_child_and_its_parent_go_on_with_one_ledger(run: Run) -> None:
    found = run("fork_in_use")
    assert found["codes"] == [0, 0]
    assert found["charges"] == 61
    assert found["problems"] == []


@pytest.mark.slow
def test_killed_at_any_step_no_value_is_shown_without_its_charge(run: Run) -> None:
    found = run("kill_steps", 12)
    assert found["killed"] == found["tried"] >= 8
    assert found["wrong"] == []


@pytest.mark.long
def test_killed_at_a_hundred_steps_no_value_is_shown_without_its_charge(run: Run) -> None:
    found = run("kill_steps", 140)
    assert found["killed"] == found["tried"] >= 100
    assert found["wrong"] == []


@pytest.mark.slow
@pytest.mark.parametrize("times", [15, pytest.param(50, marks=pytest.mark.long)])
def test_killed_at_random_moments_no_value_is_shown_without_its_charge(run: Run, times: int) -> None:
    found = run("kill_randomly", times)
    assert found["killed"] == times
    assert found["shown"]
    assert found["wrong"] == []


@pytest.mark.slow
def test_killed_while_it_is_made_a_ledger_can_be_made_again(run: Run) -> None:
    found = run("kill_making", 12)
    assert found["killed"] == found["tried"] >= 8
    assert found["wrong"] == []


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_a_disk_that_fills_up_at_any_place_loses_no_charge(run: Run) -> None:
    found = run("full_disk")
    assert found["wrong"] == []
    assert found["charges"] >= found["receipts"]
    assert set(found["refusals"]) == {"LedgerUnavailableError"}
    assert found["refusals"]["LedgerUnavailableError"] > 10


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_a_directory_that_cannot_be_written_to_is_refused_but_can_be_read(run: Run) -> None:
    found = run("as_nobody")
    assert "LedgerUnavailableError" in found["charge"]
    assert "LedgerUnavailableError" in found["create"]
    assert "writable" in found["charge"]
    assert "no problem found" in found["verify"]
    assert found["entries"] == 2
