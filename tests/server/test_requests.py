"""The desk: a request from question to bundle, policy and allowances, and what nobody may do."""

import math
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.server.making import COUNT, FILE, SECRET, approve, finished, hospital, person, working

from defocus.errors import (
    ConflictError,
    DatasetFileError,
    DefocusError,
    ForbiddenError,
    InvalidParameterError,
    LedgerUnavailableError,
    NotFoundError,
    SourceError,
)
from defocus.ledger import Bundle, Ledger
from defocus.privacy import Laplace
from defocus.server.datasets import Datasets, Described
from defocus.server.operations import Settings
from defocus.server.records import Records
from defocus.server.requests import Desk
from defocus.server.roles import PUBLIC, Person, Role

Everybody = dict[Role, Person]


def ask(desk: Desk, who: Person, question: Any = COUNT, **more: Any) -> Any:
    given = {"purpose": "planning", "reason": "we need beds", **more}
    return desk.submit(who, "visits", question, **given)


def automatic(desk: Desk, epsilon: float = 1.0, most: float | None = None) -> None:
    desk.datasets.set_policy(person(desk, Role.STEWARD), "visits", automatic=epsilon, most=most, why="a test")


def test_a_request_goes_from_question_to_a_bundle_that_everybody_can_verify(desk: Desk, people: Everybody) -> None:
    ana, omar = people[Role.ANALYST], people[Role.OFFICER]
    with working(desk):
        asked = ask(desk, ana)
        assert (asked.state, asked.asker_name) == ("waiting", "Ana")
        assert desk.waiting_for(omar) == desk.queue(people[Role.AUDITOR]) == [asked]
        with pytest.raises(ConflictError, match="There is no answer"):
            desk.answer(ana, asked.id)
        approved = approve(desk, omar, asked.id, "fine")
        assert approved.approver_name == "Omar"
        done = finished(desk, ana, asked.id)
    assert done.state == "released", done.why
    answer = desk.answer(ana, asked.id)
    assert abs(answer["n"].values.sum() - 400) < 60
    (charge,) = [one for one in desk.ledger(people[Role.AUDITOR], "visits").entries() if one.kind == "charge"]
    assert (charge.who, charge.content["approved_by"], charge.content["request"]) == ("Ana", "Omar", asked.id)
    evidence = desk.bundle(ana, asked.id).verify(key=desk.key(PUBLIC))
    assert evidence.ok
    assert evidence.facts["approved by"] == "Omar"
    assert desk.register(PUBLIC) == []
    with pytest.raises(NotFoundError):
        desk.published(PUBLIC, asked.id)
    desk.publish(omar, asked.id)
    shown, released, bundle = desk.published(PUBLIC, asked.id)
    assert (shown.published, released.names) == (True, ["ward", "n"])
    assert Bundle.parse(bundle.text).verify(key=desk.key(PUBLIC)).ok
    assert [one["what"] for one in desk.decisions(ana, asked.id)] == ["waiting", "approved", "released", "published"]
    assert desk.verify(people[Role.AUDITOR], "visits").ok
    assert len(desk.burn_down(ana, "visits")) == 1


def test_nobody_decides_about_their_own_request(desk: Desk, people: Everybody) -> None:
    omar = people[Role.OFFICER]
    own = ask(desk, omar)
    with pytest.raises(ForbiddenError, match="your own request"):
        desk.decide(omar, own.id, "approve")
    assert desk.waiting_for(omar) == []
    second = person(desk, Role.OFFICER, "Olga")
    assert approve(desk, second, own.id).state == "approved"


def test_an_officer_asks_back_and_refuses_with_words(desk: Desk, people: Everybody) -> None:
    ana, omar = people[Role.ANALYST], people[Role.OFFICER]
    asked = ask(desk, ana)
    with pytest.raises(InvalidParameterError, match="words must be text"):
        desk.decide(omar, asked.id, "refuse")
    assert desk.decide(omar, asked.id, "ask_back", "for which year?").state == "asked back"
    assert desk.waiting_for(ana)[0].why == "for which year?"
    assert desk.resubmit(ana, asked.id, "for 2027").reason == "for 2027"
    assert desk.decide(omar, asked.id, "refuse", "no").state == "refused"
    with pytest.raises(ConflictError, match="The request is refused"):
        desk.decide(omar, asked.id, "approve")
    with pytest.raises(ConflictError, match="The request is refused"):
        desk.cancel(ana, asked.id)
    with pytest.raises(InvalidParameterError, match="no decision"):
        desk.decide(omar, asked.id, "maybe")


def test_a_request_is_taken_back_before_it_is_charged_and_not_afterwards(desk: Desk, people: Everybody) -> None:
    ana = people[Role.ANALYST]
    automatic(desk)
    asked = ask(desk, ana)
    assert asked.state == "approved"
    assert desk.cancel(ana, asked.id).state == "cancelled"
    with working(desk):
        done = finished(desk, ana, ask(desk, ana).id)
    with pytest.raises(ConflictError):
        desk.cancel(ana, done.id)
    assert desk.ledger(people[Role.AUDITOR], "visits").paid(asked.id) is None


def test_a_request_that_runs_is_taken_back_until_it_is_charged(
    desk: Desk, people: Everybody, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = people[Role.ANALYST]
    automatic(desk)
    asked, claimed = ask(desk, ana), desk.claim()
    assert claimed is not None
    assert desk.request(ana, asked.id).state == "running"
    assert desk.cancel(ana, asked.id).state == "cancelled"
    assert desk.run(claimed).state == "cancelled"
    assert [one["what"] for one in desk.decisions(ana, asked.id)] == ["approved", "cancelled"]
    assert desk.ledger(people[Role.AUDITOR], "visits").paid(asked.id) is None
    release = Desk._released

    def late(self: Desk, *given: Any) -> Any:
        with pytest.raises(ConflictError, match="about to be"):
            self.cancel(ana, given[-2].id)
        return release(self, *given)

    monkeypatch.setattr(Desk, "_released", late)
    ask(desk, ana)
    claimed = desk.claim()
    assert claimed is not None
    assert desk.run(claimed).state == "released"


def test_an_officer_cannot_approve_a_preview_that_is_older_than_the_declaration(desk: Desk, people: Everybody) -> None:
    ana, omar = people[Role.ANALYST], people[Role.OFFICER]
    asked = ask(desk, ana)
    looked = desk.foresee(omar, asked.id).declared
    with pytest.raises(ConflictError, match="not said which declaration"):
        desk.decide(omar, asked.id, "approve")
    desk.declare(people[Role.STEWARD], FILE.replace("high = 30", "high = 3"), "other bounds")
    with pytest.raises(ConflictError, match="Another declaration than the present"):
        desk.decide(omar, asked.id, "approve", "", looked)
    assert desk.request(ana, asked.id).state == "waiting"
    assert desk.foresee(omar, asked.id).declared != looked
    assert approve(desk, omar, asked.id).declared == desk.datasets.described("visits").identity


def test_the_policy_and_allowances_bound_delta(desk: Desk, people: Everybody) -> None:
    ana, sofia = people[Role.ANALYST], people[Role.STEWARD]
    found = {"sql": "SELECT name, COUNT(*) AS n FROM visits GROUP BY name", "epsilon": 0.1}
    desk.datasets.set_policy(sofia, "visits", automatic=1, why="a test")
    assert ask(desk, ana, {**found, "delta": 1e-9}).why == "an officer decides about requests of this delta"
    limits = {"automatic": 1, "automatic_delta": 1e-8, "most_delta": 1e-7}
    desk.datasets.set_policy(sofia, "visits", why="a test", **limits)
    assert ask(desk, ana, {**found, "delta": 1e-8}).state == "approved"
    assert ask(desk, ana, {**found, "delta": 2e-8}).state == "waiting"
    assert ask(desk, ana, {**found, "delta": 2e-7}).why == "one request may cost at most delta 1e-07 here"
    desk.set_allowance(sofia, "visits", epsilon=5, delta=4e-8)
    assert "delta 9e-09 is left, and it asks for 1e-08" in ask(desk, ana, {**found, "delta": 1e-8}).why
    assert ask(desk, ana, {**found, "delta": 9e-9}).state == "approved"
    (one,) = desk.policy.allowances(sofia, "visits")
    assert one.left_delta == pytest.approx(0, abs=1e-20)
    with pytest.raises(InvalidParameterError, match="no 'largest'"):
        desk.datasets.set_policy(sofia, "visits", why="a test", largest=3)


def test_a_name_returns_the_same_request_for_ever_and_another_question_is_refused(
    desk: Desk, people: Everybody
) -> None:
    ana = people[Role.ANALYST]
    automatic(desk)
    with working(desk):
        first = finished(desk, ana, ask(desk, ana, request="May").id)
        again = ask(desk, ana, request="May")
        assert again == first
        assert desk.answer(ana, first.id).to_csv() == desk.answer(ana, again.id).to_csv()
        with pytest.raises(ConflictError, match="another question"):
            ask(desk, ana, {**COUNT, "epsilon": 0.6}, request="May")
        assert ask(desk, people[Role.OFFICER], request="May").id != first.id
    # What is declared may change, the answer stays.
    desk.declare(people[Role.STEWARD], FILE.replace("high = 30", "high = 31"), "longer stays")
    assert desk.answer(ana, first.id).names == ["ward", "n"]


def test_the_policy_approves_asks_and_refuses_at_once(desk: Desk, people: Everybody) -> None:
    ana = people[Role.ANALYST]
    automatic(desk, 0.5, 2.0)
    states = {epsilon: ask(desk, ana, {**COUNT, "epsilon": epsilon}).state for epsilon in (0.5, 0.6, 2.5)}
    assert states == {0.5: "approved", 0.6: "waiting", 2.5: "refused"}
    everything = ask(desk, ana, {**COUNT, "epsilon": 11})
    assert (everything.state, everything.why) == ("refused", "the budget of the data set does not cover it")
    seen = desk.preview(ana, "visits", {**COUNT, "epsilon": 2.5})
    assert seen.verdict.state == "refused"
    assert "at most epsilon 2" in seen.verdict.why


def test_bad_questions_are_refused_and_nothing_is_charged(desk: Desk, people: Everybody) -> None:
    ana = people[Role.ANALYST]
    for question in (
        None,
        {},
        {"sql": "SELECT * FROM visits", "epsilon": 1},
        {"sql": "SELECT COUNT(*) FROM visits"},
        {"sql": "SELECT COUNT(*) AS n FROM read_csv('/etc/passwd')", "epsilon": 1},
        {**COUNT, "epsilon": -1},
        {**COUNT, "epsilon": math.nan},
        {**COUNT, "steps": []},
        {"aggregates": {"n": {"function": "eval"}}, "epsilon": 1},
        {"aggregates": {"n": {"function": "mean", "colour": "x"}}, "epsilon": 1},
        {"aggregates": {"n": "count"}, "group_by": ["ward"], "keys": "/etc/passwd", "epsilon": 1},
        {"aggregates": {"n": "count"}, "steps": [["close"]], "epsilon": 1},
        {"aggregates": {"n": "count"}, "steps": [["join", "/etc/passwd", "patient"]], "epsilon": 1},
        {"aggregates": {"n": "count"}, "steps": [["where", 3]], "epsilon": 1},
    ):
        with pytest.raises(DefocusError):
            ask(desk, ana, question)
    with pytest.raises(InvalidParameterError, match="named purposes only"):
        ask(desk, ana, purpose="sale")
    with pytest.raises(InvalidParameterError):
        ask(desk, ana, reason=" ")
    assert len(desk.ledger(people[Role.AUDITOR], "visits")) == 1
    assert desk.history(ana) == []


def test_a_form_asks_the_same_as_a_program(desk: Desk, people: Everybody) -> None:
    form = {
        "filter": ["days > 2"],
        "group_by": ["ward"],
        "aggregates": [{"name": "stay", "function": "mean", "column": "days", "low": "0", "high": ""}],
        "epsilon": 0.5,
    }
    with pytest.raises(DefocusError):
        desk.preview(people[Role.ANALYST], "visits", form)
    form["aggregates"] = [{"name": "stay", "function": "mean", "column": "days"}]
    text = {"sql": "SELECT ward, AVG(days) AS stay FROM visits WHERE days > 2 GROUP BY ward", "epsilon": 0.5}
    one, other = (desk.preview(people[Role.ANALYST], "visits", each) for each in (form, text))
    assert one.answer.event == other.answer.event
    assert 0.01 < (one.attack_rate or 0) < 0.02


def test_allowances_hold_by_person_purpose_and_period(desk: Desk, people: Everybody) -> None:
    ana, sofia = people[Role.ANALYST], people[Role.STEWARD]
    bo = person(desk, Role.ANALYST, "Bo")
    automatic(desk, 5)
    desk.set_allowance(sofia, "visits", epsilon=1.0, period="month", for_person=ana.id)
    assert ask(desk, ana).state == "approved"
    assert ask(desk, ana).state == "approved"
    refused = ask(desk, ana)
    assert refused.state == "refused"
    assert "of your allowance in a month epsilon 0 is left" in refused.why
    assert ask(desk, bo).state == "approved"
    desk.set_allowance(sofia, "visits", epsilon=0.5, purpose="research")
    assert ask(desk, bo, purpose="research").state == "approved"
    assert ask(desk, people[Role.OFFICER], purpose="research").state == "refused"
    (own,) = [one for one in desk.policy.allowances(ana, "visits") if one.person == ana.id]
    assert (own.used, own.left) == (1.0, 0.0)
    assert all(one.person is None for one in desk.policy.allowances(bo, "visits"))
    desk.policy.remove_allowance(sofia, own.id)
    assert ask(desk, ana).state == "approved"
    for bad in ({"epsilon": -1}, {"epsilon": 1, "period": "hour"}, {"epsilon": True}):
        with pytest.raises(InvalidParameterError):
            desk.set_allowance(sofia, "visits", **bad)
    with pytest.raises(NotFoundError):
        desk.set_allowance(sofia, "visits", epsilon=1, for_person="nobody")


def test_people_who_work_together_get_no_more_than_the_budget(desk: Desk, people: Everybody) -> None:
    """Twelve allowances of 1 each, and a budget of 10: ten releases, whoever asks and at whatever moment."""
    automatic(desk, 1)
    everybody = [person(desk, Role.ANALYST, f"analyst {number}") for number in range(12)]
    for each in everybody:
        desk.set_allowance(people[Role.STEWARD], "visits", epsilon=1, for_person=each.id)
    found: list[Any] = []

    def asks(who: Person) -> None:
        found.append((who, ask(desk, who, {**COUNT, "epsilon": 1})))

    with working(desk):
        threads = [threading.Thread(target=asks, args=(each,)) for each in everybody]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        states = [finished(desk, who, one.id).state for who, one in found]
    assert states.count("released") == 10
    assert states.count("refused") == 2
    ledger = desk.ledger(people[Role.AUDITOR], "visits")
    assert ledger.verify().ok
    assert ledger.remaining().epsilon < 1e-6


def test_earlier_releases_about_nearly_the_same_people_are_shown_to_the_officer(desk: Desk, people: Everybody) -> None:
    ana = people[Role.ANALYST]
    automatic(desk, 1)
    where = "SELECT COUNT(*) AS n FROM visits WHERE days > 2"
    first = ask(desk, ana, {"sql": where, "epsilon": 0.5})
    assert first.state == "approved"
    nearly = {"sql": "select count(*) as n from visits where days > 2 and ward = 'A'", "epsilon": 0.25}
    (similar,) = desk.preview(ana, "visits", nearly).similar
    assert (similar.request, similar.only_here, similar.only_there) == (first.id, ("ward = 'A'",), ())
    assert similar.epsilon == 0.75
    second = ask(desk, ana, nearly)
    assert (second.state, "nearly the same people" in second.why) == ("waiting", True)
    assert desk.foresee(people[Role.OFFICER], second.id).similar[0].request == first.id
    other = {"sql": "SELECT AVG(days) AS n FROM visits WHERE days > 2", "epsilon": 0.25}
    assert desk.preview(ana, "visits", other).similar == ()


def test_officers_see_what_all_answers_together_give_away(desk: Desk, people: Everybody) -> None:
    ana, omar = people[Role.ANALYST], people[Role.OFFICER]
    with working(desk):
        for limit in (10, 11, 11):
            counted = {"filter": [f"days > {limit}"], "aggregates": {"n": {"function": "count"}}, "epsilon": 0.5}
            asked = ask(desk, ana, counted)
            approve(desk, omar, asked.id)
            assert finished(desk, ana, asked.id).state == "released"
    found = desk.exposure(omar, "visits")
    assert found.charges == 3
    assert {(pair.only_first, pair.only_second) for pair in found.twins} == {(("days > 10",), ("days > 11",))}
    assert [len(one.entries) for one in found.repeated] == [2]
    with pytest.raises(ForbiddenError):
        desk.exposure(ana, "visits")


def test_asking_the_same_again_and_again_hides_no_earlier_release_from_the_policy(
    desk: Desk, people: Everybody
) -> None:
    ana = people[Role.ANALYST]
    automatic(desk, 1)
    first = ask(desk, ana, {"sql": "SELECT COUNT(*) AS n FROM visits WHERE days > 2", "epsilon": 0.05})
    nearly = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE days > 2 AND ward = 'A'", "epsilon": 0.05}
    assert {ask(desk, ana, nearly).state for _ in range(12)} == {"waiting"}
    seen = desk.preview(ana, "visits", nearly)
    assert len(seen.similar) == 10
    assert seen.similar[0].request == first.id


def test_two_requests_about_nearly_the_same_people_at_once_are_not_both_approved(
    desk: Desk, people: Everybody, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second is written when the first was previewed, and waits for its turn to be written."""
    ana, bo = people[Role.ANALYST], person(desk, Role.ANALYST, "Bo")
    automatic(desk, 1)
    where = "SELECT COUNT(*) AS n FROM visits WHERE days > 2"
    real, between = Records.write, list[str]()

    def write(self: Records) -> Any:
        if not between:
            between.append("entered")
            between.append(ask(desk, bo, {"sql": f"{where} AND ward = 'A'", "epsilon": 0.25}).state)
        return real(self)

    monkeypatch.setattr(Records, "write", write)
    assert ask(desk, ana, {"sql": where, "epsilon": 0.25}).state == "waiting"
    assert between == ["entered", "approved"]


def test_a_preview_shows_an_analyst_no_request_of_somebody_else(desk: Desk, people: Everybody) -> None:
    ana, bo = people[Role.ANALYST], person(desk, Role.ANALYST, "Bo")
    automatic(desk, 1)
    ask(desk, ana, {"sql": "SELECT COUNT(*) AS n FROM visits WHERE days > 2 AND ward = 'B'", "epsilon": 0.5})
    nearly = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE days > 2", "epsilon": 0.25}
    seen = desk.preview(bo, "visits", nearly)
    assert seen.similar == ()
    assert "ward =" not in str(seen.to_dict())
    assert seen.verdict.state == ask(desk, bo, nearly).state == "waiting"
    assert len(desk.preview(people[Role.OFFICER], "visits", nearly).similar) == 2


@pytest.mark.parametrize("by", ["an officer", "the policy"])
def test_what_was_approved_does_not_run_on_a_data_set_that_was_declared_anew(
    desk: Desk, people: Everybody, by: str
) -> None:
    ana, omar = people[Role.ANALYST], people[Role.OFFICER]
    automatic(desk, 1 if by == "the policy" else 0)
    asked = ask(desk, ana, {"aggregates": {"m": {"function": "mean", "column": "days"}}, "epsilon": 0.5})
    if by == "an officer":
        approve(desk, omar, asked.id)
    desk.declare(people[Role.STEWARD], FILE.replace("high = 30", "high = 3"), "other bounds")
    claimed = desk.claim()
    assert claimed is not None
    again = desk.run(claimed)
    assert (again.state, again.approver, again.charge) == ("waiting", None, None)
    assert "declared anew" in again.why
    assert not [one for one in desk.ledger(people[Role.AUDITOR], "visits").entries() if one.kind == "charge"]
    approve(desk, omar, asked.id)
    with working(desk):
        assert finished(desk, ana, asked.id).state == "released"


@pytest.mark.parametrize("moment", [0, 1, 2])
def test_what_is_released_was_declared_as_it_was_approved_whenever_it_is_declared_anew(
    desk: Desk, people: Everybody, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    ana, described, read = people[Role.ANALYST], Datasets.described, 0
    automatic(desk)
    asked = ask(desk, ana, {"aggregates": {"m": {"function": "mean", "column": "days"}}, "epsilon": 0.5})
    claimed = desk.claim()
    assert claimed is not None

    def declared_anew(self: Datasets, name: str) -> Described:
        """As if a steward declared right after the declaration was read for the so-manieth time."""
        nonlocal read
        found, read = described(self, name), read + 1
        if read - 1 == moment:
            desk.declare(people[Role.STEWARD], FILE.replace("high = 30", "high = 3"), "other bounds")
        return found

    monkeypatch.setattr(Datasets, "described", declared_anew)
    done = desk.run(claimed)
    monkeypatch.undo()
    assert read > 0
    if done.state == "released":
        assert "[0, 30]" in desk.answer(ana, asked.id).explain()
        anew = "released as it was approved: the data set was declared anew meanwhile"
        assert done.why == ("released" if read <= moment else anew)
    else:
        assert (done.state, done.charge) == ("waiting", None)


def test_what_was_charged_is_not_cancelled_and_keeps_using_allowances(
    desk: Desk, people: Everybody, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = people[Role.ANALYST]
    automatic(desk, 1)
    release = Desk._released

    def lost(*given: Any) -> Any:
        release(*given)
        raise LedgerUnavailableError("The ledger cannot be reached.", fix="wait.")

    asked = ask(desk, ana)
    claimed = desk.claim()
    assert claimed is not None
    with monkeypatch.context() as patched:
        patched.setattr(Desk, "_released", lost)
        assert desk.run(claimed).state == "approved"
    with pytest.raises(ConflictError, match="was charged or is about to be"):
        desk.cancel(ana, asked.id)
    with working(desk):
        assert finished(desk, ana, asked.id).state == "released"
    charges = [one for one in desk.ledger(people[Role.AUDITOR], "visits").entries() if one.kind == "charge"]
    assert len(charges) == 1


def test_a_request_whose_charge_was_written_but_not_confirmed_is_not_charged_again(
    desk: Desk, people: Everybody, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = people[Role.ANALYST]
    automatic(desk, 1)

    def unconfirmed(_desk: Desk, table: Any, _asked: Any, request: Any, _progress: Any) -> Any:
        table.ledger.charge(Laplace(2), purpose=request.purpose, request=request.id)
        raise LedgerUnavailableError("The ledger cannot be reached.", fix="wait.")

    asked = ask(desk, ana)
    claimed = desk.claim()
    assert claimed is not None
    with monkeypatch.context() as patched:
        patched.setattr(Desk, "_released", unconfirmed)
        assert desk.run(claimed).state == "approved"
    with working(desk):
        done = finished(desk, ana, asked.id)
    charges = [one for one in desk.ledger(people[Role.AUDITOR], "visits").entries() if one.kind == "charge"]
    assert len(charges) == 1
    assert (done.state, done.charge) == ("failed", charges[0].sequence)


def test_a_request_that_fails_while_the_ledger_is_away_does_not_stay_running(
    desk: Desk, people: Everybody, monkeypatch: pytest.MonkeyPatch
) -> None:
    automatic(desk, 1)
    asked = ask(desk, people[Role.ANALYST])
    claimed = desk.claim()
    assert claimed is not None

    def away(*_: Any) -> Any:
        raise LedgerUnavailableError("The ledger cannot be reached.", fix="wait.")

    with monkeypatch.context() as patched:

        def broken(*_: Any) -> Any:
            patched.setattr(Ledger, "paid", away)
            raise InvalidParameterError("It cannot be asked.", fix="ask otherwise.")

        patched.setattr(Desk, "_released", broken)
        assert desk.run(claimed).state == "approved"
    with working(desk):
        assert finished(desk, people[Role.ANALYST], asked.id).state == "released"


def test_a_failure_after_the_charge_is_told_with_the_charge_and_without_a_reason(
    desk: Desk, people: Everybody, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = people[Role.ANALYST]
    automatic(desk)

    def fails(*_: Any, **__: Any) -> Any:
        raise ValueError(SECRET)

    monkeypatch.setattr("defocus.tables.execution.Run.answer", fails)
    with working(desk):
        done = finished(desk, ana, ask(desk, ana).id)
    assert done.state == "failed"
    assert "it was charged (entry 1), and that stays" in done.why
    assert SECRET not in repr(desk.decisions(ana, done.id)) + done.why
    assert desk.burn_down(ana, "visits")


def test_the_server_itself_decides_where_data_and_ledgers_are(desk: Desk, people: Everybody, tmp_path: Path) -> None:
    sofia = people[Role.STEWARD]
    for bad in (
        'data = "/etc/passwd"',
        'data = "../../server.db"',
        'data = "postgresql://localhost/x"\ntable = "t"',
        'data = "https://example.org/x.parquet"',
    ):
        with pytest.raises((SourceError, DatasetFileError)):
            desk.declare(sofia, FILE.replace('data = "visits.parquet"', bad), "a test")
    (tmp_path / "datasets" / "visits" / "link.parquet").symlink_to("/etc/passwd")
    with pytest.raises(SourceError, match="may not reach"):
        desk.declare(sofia, FILE.replace("visits.parquet", "link.parquet"), "a test")
    for key in ("ledger", "anchor_file"):
        with pytest.raises(DatasetFileError, match=f"decides about {key}"):
            desk.declare(sofia, f'{key} = "x"\n{FILE}', "a test")
    problems, _ = desk.datasets.check(sofia, FILE.replace("[columns.days]", "[columns.dayz]"))
    assert "dayz" in problems[0]
    for name in ("../x.parquet", "x.sh", "a/b.csv", ".csv", ""):
        with pytest.raises(InvalidParameterError, match="plain name"):
            desk.datasets.upload(sofia, "visits", name, lambda file: file.write(b""))
    with pytest.raises(InvalidParameterError, match="letters, digits"):
        desk.datasets.upload(sofia, "../x", "x.csv", lambda file: file.write(b""))


@pytest.mark.parametrize("source", ["postgresql://db:5432", "postgresql://db:5432/hospital"])
def test_an_address_that_begins_as_an_allowed_one_leads_nowhere_else(tmp_path: Path, source: str) -> None:
    settings = Settings(home=tmp_path, sources=(source,))
    assert settings.reaches(source, "visits")
    assert settings.reaches("postgresql://db:5432/hospital", "visits")
    for other in ("?host=elsewhere", "/?host=elsewhere", "/x@elsewhere/y", "/x#y", "/../x", "/%40elsewhere", ".org/x"):
        assert not settings.reaches(f"{source}{other}", "visits"), other


def test_a_data_set_keeps_its_unit_and_budget_and_changes_its_purposes_with_a_reason(
    desk: Desk, people: Everybody
) -> None:
    sofia = people[Role.STEWARD]
    with pytest.raises(DefocusError):
        desk.declare(sofia, FILE.replace("budget.epsilon = 10", "budget.epsilon = 20"), "more")
    assert desk.datasets.described("visits").version == 1
    desk.declare(sofia, FILE.replace('"research"', '"teaching"'), "research has ended")
    assert desk.table(sofia, "visits").ledger.purposes == ("planning", "teaching")
    with pytest.raises(InvalidParameterError, match="named purposes only"):
        ask(desk, people[Role.ANALYST], purpose="research")
    entries = list(desk.ledger(sofia, "visits").entries())
    assert (entries[-1].who, entries[-1].purpose) == ("Sofia", "research has ended")
    assert [one["what"] for one in desk.datasets.notes("visits")] == ["declaration", "declaration"]


def test_tuning_on_raw_data_becomes_an_entry(desk: Desk, people: Everybody) -> None:
    number = desk.note_tuning(people[Role.STEWARD], "visits", "days are cut at 30", "the 99th percentile")
    entry = list(desk.ledger(people[Role.AUDITOR], "visits").entries())[number]
    assert (entry.kind, entry.who, entry.content["tuning"]) == ("tuning", "Sofia", "days are cut at 30")
    assert desk.verify(people[Role.AUDITOR], "visits").ok


def test_releases_are_about_those_who_consent_when_they_are_released(tmp_path: Path) -> None:
    text = f'{FILE}\n[consent]\ndata = "consent.csv"\nunit = "patient"\ncolumns.patient.kind = "integer"\n'
    folder = tmp_path / "datasets" / "visits"
    folder.mkdir(parents=True)
    (folder / "consent.csv").write_text("patient,purpose\n" + "".join(f"{i},planning\n" for i in range(100)))
    desk = hospital(tmp_path, text.replace("budget.epsilon = 10", "budget.epsilon = 1000"))
    ana, sofia = person(desk, Role.ANALYST), person(desk, Role.STEWARD)
    automatic(desk, 1000)
    question = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 50}

    def counted(purpose: str) -> float:
        done = finished(desk, ana, ask(desk, ana, question, purpose=purpose).id)
        return float(desk.answer(ana, done.id).value)

    with working(desk):
        assert abs(counted("planning") - 200) < 5
        assert abs(counted("research")) < 5
        withdrawn = b"patient,purpose\n" + b"".join(f"{i},planning\n".encode() for i in range(10))
        desk.record_consent(sofia, "visits", lambda file: file.write(withdrawn))
        assert abs(counted("planning") - 20) < 5
    with pytest.raises(ForbiddenError):
        desk.record_consent(ana, "visits", lambda file: file.write(b""))
    desk.close()
