"""Running: what a killed process leaves behind, and several processes with one queue."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from tests.forking import found_by
from tests.server.making import COUNT, finished, hospital, person, working

from defocus.errors import LedgerBusyError, RecordsError
from defocus.server.records import REQUESTS
from defocus.server.requests import Desk
from defocus.server.roles import Person, Role

KILLING = "tests.server.killing"


@pytest.mark.slow
def test_no_charge_and_no_answer_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    assert found_by(KILLING, tmp_path, 5, 18)["asked"] > 0


@pytest.mark.long
def test_no_charge_and_no_answer_is_lost_when_the_server_is_killed_200_times(tmp_path: Path) -> None:
    assert found_by(KILLING, tmp_path, 200, 18, timeout=1800)["asked"] > 200


def approved(desk: Desk) -> tuple[Person, str]:
    ana = person(desk, Role.ANALYST)
    desk.datasets.set_policy(person(desk, Role.STEWARD), "visits", automatic=1, most=None, why="a test")
    return ana, desk.submit(ana, "visits", COUNT, "planning", "beds").id


def abandon(desk: Desk, id_: str) -> None:
    """As if a process that ran the request were gone."""
    with desk.records.write() as session:
        session.execute(update(REQUESTS).where(REQUESTS.c.id == id_).values(state="running", runner="gone"))


def test_what_was_not_charged_is_run_again(desk: Desk) -> None:
    ana, id_ = approved(desk)
    abandon(desk, id_)
    (found,) = desk.recover()
    assert (found.state, "nothing had been charged" in found.why) == ("approved", True)
    with working(desk):
        assert finished(desk, ana, id_).state == "released"
    assert len(desk.burn_down(ana, "visits")) == 1


def test_what_was_charged_without_an_answer_has_failed_and_keeps_its_charge(desk: Desk) -> None:
    from defocus.privacy.events import Laplace  # noqa: PLC0415

    ana, id_ = approved(desk)
    desk.datasets.table("visits").ledger.charge(Laplace(2), purpose="planning", request=id_)
    abandon(desk, id_)
    (found,) = desk.recover()
    assert found.state == "failed"
    assert "it was charged (entry 1), and that stays" in found.why
    assert desk.request(ana, id_).charge == 1


def test_an_answer_that_the_ledger_has_is_released_again_free(desk: Desk) -> None:
    ana, id_ = approved(desk)
    with working(desk):
        finished(desk, ana, id_)
    before = desk.answer(ana, id_).to_csv()
    with desk.records.write() as session:
        session.execute(update(REQUESTS).where(REQUESTS.c.id == id_).values(answer=None, charge=None))
    abandon(desk, id_)
    (found,) = desk.recover()
    assert (found.state, found.charge) == ("released", 1)
    assert desk.answer(ana, id_).to_csv() == before
    assert len(desk.burn_down(ana, "visits")) == 1


def test_what_a_living_process_runs_is_left_alone(tmp_path: Path, desk: Desk) -> None:
    ana, id_ = approved(desk)
    other = hospital(tmp_path)
    other.records.be_alive()
    assert other.claim() is not None
    assert desk.claim() is None
    assert desk.recover() == []
    assert desk.request(ana, id_).state == "running"
    other.close()
    assert [one.state for one in desk.recover()] == ["approved"]


def test_a_busy_ledger_is_tried_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ana, id_ = approved(desk)
    tries: list[int] = []
    real = Desk._released

    def busy(self: Desk, *given: Any) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise LedgerBusyError("visits", seconds=10)
        return real(self, *given)

    monkeypatch.setattr(Desk, "_released", busy)
    with working(desk):
        assert finished(desk, ana, id_).state == "released"
    assert len(tries) == 3


@pytest.mark.parametrize("failures", [1, 3])
def test_a_release_that_could_not_be_written_down_does_not_stay_running(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    monkeypatch.setattr("defocus.server.jobs._RECOVER", 0.05)
    ana, id_ = approved(desk)
    real, tries = Desk._settle, []

    def away(self: Desk, *given: Any, **values: Any) -> Any:
        tries.append(given[1])
        if len(tries) <= failures:
            raise RecordsError("The server's database cannot be used now.", fix="try again.")
        return real(self, *given, **values)

    monkeypatch.setattr(Desk, "_settle", away)
    with working(desk):
        assert finished(desk, ana, id_).state == "released"
    assert tries[0] == tries[-1] == "released"
    assert len(desk.burn_down(ana, "visits")) == 1


def test_two_processes_run_each_request_once(tmp_path: Path, desk: Desk) -> None:
    ana, first = approved(desk)
    other = hospital(tmp_path)
    ids = [first, *(desk.submit(ana, "visits", {**COUNT, "epsilon": 0.1}, "planning", "beds").id for _ in range(9))]
    with working(desk), working(other):
        assert {finished(desk, ana, id_).state for id_ in ids} == {"released"}
    charges = [
        entry.content["request"] for entry in desk.datasets.table("visits").ledger.entries() if entry.kind == "charge"
    ]
    assert sorted(charges) == sorted(ids)
    other.close()
