"""Several drivers share one ledger: what they get together is what the budget covers, whatever happens."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import postgresql
from tests.forking import found_by

pytestmark = pytest.mark.slow
Run = Callable[[str], dict[str, Any]]
DAYS = ("2026-11-14", "2026-11-15")


@pytest.fixture(params=["sqlite", "postgresql"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Runs an experiment of ``drivers.py`` and returns what it found."""

    def runner(experiment: str) -> dict[str, Any]:
        where = str(tmp_path / "visits.ledger")
        if request.param == "postgresql":
            where = f"{request.getfixturevalue('server')}&schema=drivers_{experiment}_{time.monotonic_ns()}"
        return found_by("tests.tables.drivers", experiment, where, tmp_path)

    return runner


def kept(found: dict[str, Any]) -> None:
    """The budget of both days is used to the last slice, and not by one slice more; every answer was paid for."""
    charges = found["charges"]
    assert [charges[day] + charges["everybody"] for day in DAYS] == [8, 8]
    assert all(1 <= spent < 1 + 1e-9 for spent in found["spent"].values())
    assert not any(found["left"].values())
    assert found["paid"]
    assert found["twice"] == 0
    assert found["problems"] == []


def test_drivers_race_for_the_last_of_two_days_and_exactly_the_right_number_win(run: Run) -> None:
    found = run("race")
    assert found["codes"] == [0] * 4
    kept(found)
    assert found["answered"] == sum(found["charges"].values())
    assert found["answered"] + found["refused"] == 44
    assert found["unavailable"] == 0


def test_a_driver_killed_between_charge_and_record_loses_its_slice_and_nobody_else_s(run: Run) -> None:
    found = run("killed")
    assert found["codes"] == [-9, -9, -9, 0]
    assert found["answered"] == sum(found["charges"].values()) - 3
    assert found["charges"]["2026-11-14"] >= 3
    assert found["problems"] == []
    assert found["paid"]
    assert all(spent < 1 + 1e-9 for spent in found["spent"].values())


@pytest.mark.parametrize("run", ["postgresql"], indirect=True)
def test_terminated_connections_waste_slices_at_most_and_never_give_one_twice(run: Run) -> None:
    found = run("terminated")
    assert found["codes"] == [0] * 4
    assert found["unavailable"] >= 4
    assert found["answered"] <= sum(found["charges"].values())
    assert found["paid"]
    assert found["twice"] == 0
    assert found["problems"] == []
    assert all(spent < 1 + 1e-9 for spent in found["spent"].values())


@pytest.fixture
def own_server() -> Iterator[tuple[str, Callable[[], None]]]:
    """A server for one test, and how to stop it without a goodbye and start it again."""
    with postgresql.running() as running:
        yield running


def test_a_server_that_is_stopped_at_once_and_started_again_forgets_no_charge(
    own_server: tuple[str, Callable[[], None]], tmp_path: Path
) -> None:
    where, restart = own_server
    done = threading.Event()

    def keep_restarting() -> None:
        while not (tmp_path / "shown").exists():
            if done.wait(0.05):
                return
        for _ in range(4):
            if done.wait(0.3) or (tmp_path / "driven").exists():
                return
            restart()
            (tmp_path / "restarted").touch()

    thread = threading.Thread(target=keep_restarting)
    thread.start()
    try:
        found = found_by("tests.tables.drivers", "restarted", f"{where}&schema=restarted", tmp_path)
    finally:
        done.set()
        thread.join()
    assert (tmp_path / "restarted").exists()  # whether a driver was at work just then is a matter of chance
    assert found["codes"] == [0] * 4
    assert found["paid"]
    assert found["twice"] == 0
    assert found["problems"] == []
    charges = found["charges"]
    assert [charges[day] + charges["everybody"] for day in DAYS] == [8, 8]
    assert found["answered"] <= sum(charges.values())
