"""Two who do the same at once: one of them does it, and the other is told so."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.server.making import COUNT, FILE, WORDS, approve, finished, hospital, person, working

from defocus.errors import ConflictError, DefocusError, SignInError
from defocus.server.requests import Desk
from defocus.server.roles import Role


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def desks(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Desk, Desk]]:
    """Two servers that share everything, as two processes do."""
    address = None if request.param == "sqlite" else str(request.getfixturevalue("database"))
    places = {} if address is None else {"records": address, "ledgers": address}
    made = hospital(tmp_path, **places), hospital(tmp_path, **places)
    yield made
    for each in made:
        each.close()


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What each call returned or was refused with, all of them having begun together."""
    begin, found = threading.Barrier(len(calls)), [None] * len(calls)

    def run(place: int) -> None:
        begin.wait()
        try:
            found[place] = calls[place]()
        except DefocusError as refusal:
            found[place] = refusal  # type: ignore[call-overload]

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def refused(found: list[Any]) -> list[type]:
    return [type(one) for one in found if isinstance(one, DefocusError)]


def test_two_officers_decide_at_once_and_one_decision_counts(desks: tuple[Desk, Desk]) -> None:
    desk, other = desks
    ana, omar, olga = person(desk, Role.ANALYST), person(desk, Role.OFFICER), person(desk, Role.OFFICER, "Olga")
    for decision in ("approve", "refuse"):
        id_ = desk.submit(ana, "visits", COUNT, "planning", "beds").id
        declared = desk.foresee(omar, id_).declared
        found = at_once(
            partial(desk.decide, omar, id_, "approve", "", declared),
            partial(other.decide, olga, id_, decision, "no", declared),
        )
        assert refused(found) == [ConflictError]
        made = [one["what"] for one in desk.decisions(ana, id_)]
        assert made in (["waiting", "approved"], ["waiting", "refused"])
        assert desk.request(ana, id_).state == made[-1]


def test_what_is_approved_while_it_is_declared_anew_is_not_charged(desks: tuple[Desk, Desk]) -> None:
    desk, other = desks
    ana, omar, sofia = (person(desk, role) for role in (Role.ANALYST, Role.OFFICER, Role.STEWARD))
    for days in (20, 25):
        id_ = desk.submit(ana, "visits", COUNT, "planning", "beds").id
        at_once(
            partial(approve, desk, omar, id_),
            partial(other.declare, sofia, FILE.replace("high = 30", f"high = {days}"), "shorter stays"),
        )
        with working(desk), working(other):
            while desk.request(ana, id_).state in {"approved", "running"}:
                time.sleep(0.01)
        settled = desk.request(ana, id_)
        looked_at = desk.foresee(omar, id_).declared
        assert settled.state == "waiting" or settled.declared == looked_at
        assert (desk.ledger(omar, "visits").paid(id_) is None) is (settled.state == "waiting")


def test_a_link_lets_one_in_however_many_use_it_at_once(desks: tuple[Desk, Desk]) -> None:
    desk, other = desks
    secret = desk.people.invite(person(desk, Role.STEWARD), Role.OFFICER, "Olga")
    found = at_once(*(partial(each.people.accept, secret, WORDS) for each in (desk, other, desk)))
    assert refused(found) == [SignInError, SignInError]
    (inside,) = (one for one in found if isinstance(one, str))
    assert desk.people.of_session(inside) == other.people.of_session(inside)
    assert [each["name"] for each in desk.people.everybody(person(desk, Role.STEWARD))].count("Olga") == 1


def test_a_budget_that_is_left_for_one_is_not_given_to_two(desks: tuple[Desk, Desk]) -> None:
    desk, other = desks
    ana, omar = person(desk, Role.ANALYST), person(desk, Role.OFFICER)
    question = {**COUNT, "epsilon": 6}
    ids = [desk.submit(ana, "visits", question, "planning", f"beds {n}").id for n in range(2)]  # each fits by itself
    for id_ in ids:
        approve(desk, omar, id_)
    with working(desk), working(other):
        states = sorted(finished(desk, ana, id_).state for id_ in ids)
    assert states == ["refused", "released"]
    assert desk.verify(omar, "visits").charges == 1
    assert not desk.preview(ana, "visits", question).answer.fits
