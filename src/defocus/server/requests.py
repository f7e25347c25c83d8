"""The desk: what people do here, one method each. The API and the pages both call it; it knows nothing of HTTP.

Every method takes the acting person first and asks the table of roles. A request goes from ``waiting`` (perhaps
``asked back``) to ``approved``, ``running`` and ``released``; or it is ``refused``, ``cancelled`` or ``failed``.
"""

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, final

from sqlalchemy import Connection, insert, select, update

from defocus import answers
from defocus.answers import Released
from defocus.audit import History, history
from defocus.errors import (
    ConflictError,
    DefocusError,
    InvalidParameterError,
    LedgerBusyError,
    LedgerUnavailableError,
    NotFinishedError,
    NotFoundError,
    NotRecordedError,
)
from defocus.ledger import Bundle, Head, Ledger, Verification
from defocus.ledger.display import Prices
from defocus.ledger.entries import CHARGE
from defocus.ledger.heads import SigningKey
from defocus.server.datasets import Datasets, Described, identity_of
from defocus.server.operations import Settings
from defocus.server.people import People, one_line
from defocus.server.policy import Policy, Similar, Verdict, alike, attack_rate
from defocus.server.questions import KINDS, Asked, Kind, Question, Source
from defocus.server.records import DATASETS, DECISIONS, PUBLISHED, REQUESTS, Records, now, token
from defocus.server.roles import Action, Person, Role, allowed, demand

__all__ = ["Desk", "Preview", "Request", "State"]

State = str
"""waiting, asked back, approved, running, released, failed, refused or cancelled."""
_OPEN = ("waiting", "asked back")
_MOST_LOOKED = 500


@final
@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asked for, and what became of it."""

    id: str
    name: str
    asker: str
    asker_name: str
    dataset: str
    question: dict[str, Any]
    words: str
    epsilon: float
    delta: float
    purpose: str
    reason: str
    state: State
    why: str
    time: str
    changed: str
    approver: str | None
    approver_name: str | None
    progress: float
    charge: int | None
    declared: str = ""
    """The identity of the declaration under which it was asked or, once an officer approved it, approved."""
    published: bool = False

    @property
    def kind(self) -> Kind:
        """Which kind of question it is."""
        return KINDS[self.question.get("kind", "table")]

    @property
    def done(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in {"released", "failed", "refused", "cancelled"}


@final
@dataclass(frozen=True, slots=True)
class Preview:
    """What a request would get: errors and cost, the risk, what the policy says, and earlier ones that may be seen."""

    answer: answers.Preview
    attack_rate: float | None
    """The largest true-positive rate of any test for one person, at 1 % false positives."""
    verdict: Verdict
    similar: tuple[Similar, ...]
    declared: str
    """The identity of the declaration that it rests on: who approves it, approves it for this one only."""

    def to_dict(self) -> dict[str, Any]:
        """The preview with JSON types only."""
        alike = [
            {name: getattr(one, name) for name in ("request", "words", "state", "only_here", "only_there", "epsilon")}
            for one in self.similar
        ]
        verdict = {"state": self.verdict.state, "why": self.verdict.why}
        told = {"text": str(self.answer), "explanation": self.answer.explain()}
        more = {"attack_rate": self.attack_rate, "verdict": verdict, "similar": alike, "declared": self.declared}
        return {**self.answer.to_dict(), **told, **more}


@final
@dataclass(frozen=True)
class Desk:
    """Everything that people do on a server, over its records, data sets and ledgers.

    >>> import tempfile
    >>> from pathlib import Path
    >>> home = tempfile.TemporaryDirectory()
    >>> desk = Desk(Settings(home=Path(home.name)))
    >>> owner = desk.people.of_session(desk.people.accept(desk.people.first_link(), "a few words to remember"))
    >>> desk.invite(owner, "analyst", "Ada").startswith("http://127.0.0.1:8042/invitation/")
    True
    >>> desk.close(); home.cleanup()
    """

    settings: Settings
    records: Records = field(init=False)
    people: People = field(init=False)
    datasets: Datasets = field(init=False)
    policy: Policy = field(init=False)
    wake: Callable[[], None] = field(default=lambda: None)
    """Called when a request was approved, so that a worker looks."""
    _looked: dict[tuple[Any, ...], Asked] = field(default_factory=dict, init=False)
    """Questions that were put to a data set to be previewed, which other prices are asked of again."""

    def __post_init__(self) -> None:
        self.settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        records = Records(self.settings.records_place, self.settings.home)
        for name, value in {
            "records": records,
            "people": People(records),
            "datasets": Datasets(records, self.settings),
            "policy": Policy(records),
        }.items():
            object.__setattr__(self, name, value)

    def close(self) -> None:
        """Close tables, ledgers and the records."""
        self.datasets.close()
        self.records.close()

    # What there is.

    def list_datasets(self, person: Person) -> list[Described]:
        """All data sets."""
        demand(person, Action.SEE_DATASETS)
        return self.datasets.all()

    def table(self, person: Person, dataset: str) -> Any:
        """The table of a data set, to see its declared columns, purposes, unit and what is left."""
        demand(person, Action.SEE_DATASETS)
        return self.datasets.table(dataset)

    def burn_down(self, person: Person, dataset: str) -> list[dict[str, Any]]:
        """What was used of the budget after each charge: time, and shares of epsilon (or rho, or mu) and of delta."""
        demand(person, Action.SEE_DATASETS)
        ledger = self.datasets.table(dataset).ledger
        charges = [entry for entry in ledger.entries() if entry.kind == CHARGE]
        rule = Prices.of(ledger.terms, ())
        return [{"time": entry.time, **rule.used(entry.spent).to_dict()} for entry in charges]

    # Asking.

    def preview(self, person: Person, dataset: str, question: Any, purpose: str | None = None) -> Preview:
        """What a question would cost, how exact it would be and what the policy would say. Free."""
        demand(person, Action.PREVIEW)
        asked = Question.read(question)
        with self.records.read() as session:
            declared = self.datasets.described(dataset, session)
            put = self._looked_at(declared, asked, purpose)
            seen = put.preview(**asked.price)
            rules: dict[str, Any] = {"rules": declared.policy, "fits": bool(seen.fits)}
            similar = self.policy.similar(session, dataset, asked)
            verdict = self.policy.verdict(session, person, dataset, purpose or "", asked, **rules, similar=similar)
        shown = tuple(one for one in similar if allowed(person, Action.SEE_REQUEST, one))
        return Preview(seen, attack_rate(seen.event, put.ledger), verdict, shown, declared.identity)

    def submit(  # noqa: PLR0917  # who, of what, what, why
        self, person: Person, dataset: str, question: Any, purpose: str, reason: str, request: str | None = None
    ) -> Request:
        """Ask. The policy answers at once: approved, waiting for an officer, or refused.

        ``request`` is a name: who asks again under the same name gets the same request, and its answer, for ever.
        """
        demand(person, Action.ASK)
        why, said = one_line("purpose", purpose), one_line("reason", reason, longest=2000)
        title = token() if request is None else one_line("request", request)
        asked = Question.read(question)
        known = self._named(person, dataset, title)
        if known is not None:
            return _same(known, asked, why)
        declared = self.datasets.described(dataset)
        put = self._looked_at(declared, asked, why)
        put.ledger.purpose_of(why, "")
        seen = put.preview(**asked.price)
        rules: dict[str, Any] = {"rules": declared.policy, "fits": bool(seen.fits)}
        id_ = token()
        row = {
            "id": id_,
            "name": title,
            "asker": person.id,
            "dataset": dataset,
            "question": dict(asked.said),
            "alike": alike(asked),
            "words": " ".join(seen.question.split())[:2000],
            "epsilon": float(asked.epsilon),
            "delta": float(asked.delta or 0),
            "purpose": why,
            "reason": said,
            "time": now(),
            "changed": now(),
            "declared": declared.identity,
        }
        with self.records.write() as session:
            there = select(REQUESTS.c.id).where(
                REQUESTS.c.asker == person.id, REQUESTS.c.dataset == dataset, REQUESTS.c.name == title
            )
            same = session.execute(there).scalar()
            if same is None:
                similar = self.policy.similar(session, dataset, asked)  # here, so that two at once see each other
                verdict = self.policy.verdict(session, person, dataset, why, asked, **rules, similar=similar)
                session.execute(insert(REQUESTS), [{**row, "state": verdict.state, "why": verdict.why}])
                _decided(session, id_, "", verdict.state, verdict.why)
        if same is not None:
            return _same(self._request(same), asked, why)
        self.wake()
        return self._request(id_)

    def resubmit(self, person: Person, id_: str, reason: str) -> Request:
        """Answer an officer who asked back."""
        found = self.request(person, id_)
        demand(person, Action.CANCEL, found)
        said = one_line("reason", reason, longest=2000)
        with self.records.write() as session:
            _moved(session, id_, ("asked back",), state="waiting", why="asked again", reason=said)
            _decided(session, id_, person.id, "asked again", said)
        return self._request(id_)

    def cancel(self, person: Person, id_: str) -> Request:
        """Take a request back, as long as it was not charged: also one that runs, until :meth:`run` charges it."""
        found = self.request(person, id_)
        demand(person, Action.CANCEL, found)
        with self.records.write() as session:
            if session.execute(select(REQUESTS.c.charging).where(REQUESTS.c.id == id_)).scalar():
                raise ConflictError(
                    f"The request is {found.state}, and was charged or is about to be.", fix="wait for its answer."
                )
            states = (*_OPEN, "approved", "running")
            _moved(session, id_, states, state="cancelled", why="taken back by whoever asked", runner=None)
            _decided(session, id_, person.id, "cancelled", "")
        return self._request(id_)

    # Seeing.

    def request(self, person: Person, id_: str) -> Request:
        """One request. Who may not see it is not told whether there is one."""
        demand(person, Action.SEE_REQUEST)
        found = self._request(id_)
        try:
            demand(person, Action.SEE_REQUEST, found)
        except DefocusError:
            raise _absent() from None
        return found

    def history(self, person: Person, dataset: str | None = None, *, most: int = 200) -> list[Request]:
        """Requests, newest first: one's own for an analyst, else all."""
        demand(person, Action.SEE_REQUEST)
        wanted = [REQUESTS.c.dataset == dataset] if dataset is not None else []
        wanted += [REQUESTS.c.asker == person.id] if person.role is Role.ANALYST else []
        return self._requests(*wanted, most=most)

    def waiting_for(self, person: Person) -> list[Request]:
        """What waits for somebody: decisions for an officer, questions back for whoever asked."""
        demand(person, Action.SEE_DATASETS)
        found = []
        if person.role is Role.OFFICER:
            found = [one for one in self._requests(REQUESTS.c.state == "waiting") if one.asker != person.id]
        return found + self._requests(REQUESTS.c.state == "asked back", REQUESTS.c.asker == person.id)

    def queue(self, person: Person) -> list[Request]:
        """Everything that waits for a decision."""
        demand(person, Action.SEE_QUEUE)
        return self._requests(REQUESTS.c.state.in_(_OPEN))

    def foresee(self, person: Person, id_: str) -> Preview:
        """The preview of a request that waits, for who decides about it."""
        demand(person, Action.SEE_QUEUE)
        found = self._request(id_)
        declared = self.datasets.described(found.dataset)
        asked = Question.read(found.question)
        put = self._looked_at(declared, asked, found.purpose)
        seen = put.preview(**asked.price)
        with self.records.read() as session:
            similar = tuple(self.policy.similar(session, found.dataset, asked, leaving_out=id_))
        verdict = Verdict(found.state, found.why)
        return Preview(seen, attack_rate(seen.event, put.ledger), verdict, similar, declared.identity)

    def decisions(self, person: Person, id_: str) -> list[dict[str, Any]]:
        """What was decided about a request and what became of it, by whom and in which words."""
        self.request(person, id_)
        names = self.people.names()
        with self.records.read() as session:
            rows = session.execute(select(DECISIONS).where(DECISIONS.c.request == id_).order_by(DECISIONS.c.number))
            found = [dict(row) for row in rows.mappings()]
        for place, row in enumerate(found):
            row["by"] = names.get(row["by"], "the server" if place else "the policy")
        return found

    def answer(self, person: Person, id_: str) -> Released:
        """What was released for a request, as a table. It was paid for, so it is free, and the same for ever."""
        found = self.request(person, id_)
        return found.kind.shown(self._result(found))

    def result(self, person: Person, id_: str) -> Any:
        """What was released, as its kind has it: an answer, a generator of synthetic rows, or a model."""
        return self._result(self.request(person, id_))

    def _result(self, found: Request) -> Any:
        if found.state != "released":
            raise ConflictError(f"There is no answer: the request is {found.state}.", fix=f"{found.why}.")
        with self.records.read() as session:
            record = session.execute(select(REQUESTS.c.answer).where(REQUESTS.c.id == found.id)).scalar()
        receipt = self._ledger(found).paid(found.id)
        if record is None or receipt is None:
            raise NotFoundError("The answer is not in the records.", fix="restore a backup.")
        return found.kind.read(record, receipt)

    def record(self, person: Person, id_: str) -> dict[str, Any]:
        """An answer as the records keep it, with the receipt of its charge: for programs that show it themselves."""
        found = self.request(person, id_)
        made = self._result(found)
        return {"answer": found.kind.written(made), "receipt": made.receipt.to_dict()}

    # Deciding.

    def decide(self, person: Person, id_: str, decision: str, words: str = "", declared: str | None = None) -> Request:
        """Approve, refuse or ask back. Nobody decides about their own request.

        Who approves says for which declaration of the data set: that of the preview that :meth:`foresee` gave. Where
        it was declared anew since, unit, bounds or columns may be others than those that were looked at.
        """
        demand(person, Action.DECIDE)
        found = self._request(id_)
        demand(person, Action.DECIDE, found)
        states = {"approve": "approved", "refuse": "refused", "ask_back": "asked back"}
        if decision not in states:
            raise InvalidParameterError(
                f"There is no decision {decision!r:.40}.", fix="write approve, refuse or ask_back."
            )
        said = one_line("words", words, longest=2000) if words or decision != "approve" else ""
        state = states[decision]
        with self.records.write() as session:
            values = {"approver": person.id, "declared": declared or ""} if state == "approved" else {}
            why = said or f"approved by {person.name}"
            _moved(session, id_, _OPEN if state != "asked back" else ("waiting",), state=state, why=why, **values)
            if state == "approved" and declared != _declared(session, found.dataset):
                what = (
                    "It is not said which declaration" if declared is None else "Another declaration than the present"
                )
                raise ConflictError(
                    f"{what} of the data set was looked at.", fix="look at the preview again, then approve that one."
                )
            _decided(session, id_, person.id, state, said)
        if state == "approved":
            self.wake()
        return self._request(id_)

    # Running; called by jobs.

    def claim(self) -> Request | None:
        """The oldest approved request, which is running from now on, here and nowhere else."""
        with self.records.read() as session:  # most of the time there is none
            if session.execute(select(REQUESTS.c.id).where(REQUESTS.c.state == "approved").limit(1)).first() is None:
                return None
        with self.records.write() as session:
            oldest = select(REQUESTS.c.id).where(REQUESTS.c.state == "approved").order_by(REQUESTS.c.time).limit(1)
            id_ = session.execute(oldest).scalar()
            if id_ is None:
                return None
            values = {"runner": self.records.runner, "changed": now(), "why": "it is being computed"}
            session.execute(update(REQUESTS).where(REQUESTS.c.id == id_).values(state="running", **values))
        return self._request(id_)

    def run(self, request: Request, progress: Callable[[float], None] | None = None) -> Request:
        """Charge, compute, add noise and keep the answer of a request that was claimed, and not cancelled since."""
        try:
            declared = self.datasets.described(request.dataset)  # once: what is compared is what is opened
            source = replace(self._source(declared, request.purpose), approver=request.approver_name)
            asked = Question.read(request.question)
            put = asked.of(source)
            settled = self._unfit(request, put.ledger, declared.identity)
            if settled is not None:
                return settled
            made = self._released(put, asked, request, progress)
        except (LedgerBusyError, LedgerUnavailableError) as problem:
            return self._settle(request, "approved", f"it is tried again: {problem.what}")
        except DefocusError as problem:
            return self._failed(request, problem)
        except Exception:  # noqa: BLE001  # whatever it is, it may hold private values
            return self._failed(request, None)
        record, paid = asked.kind.written(made), made.receipt.sequence
        with self.records.read() as session:
            same = _declared(session, request.dataset) == declared.identity
        why = "released" if same else "released as it was approved: the data set was declared anew meanwhile"
        return self._settle(request, "released", why, answer=record, charge=paid)

    def _unfit(self, request: Request, ledger: Ledger, identity: str) -> Request | None:
        """What becomes of a request that cannot be charged now: charged before, declared anew or cancelled."""
        if ledger.paid(request.id) is not None:
            if ledger.recall(request.id) is None:  # the ledger was lost after it had written the charge
                return self._failed(request, DefocusError("the ledger could not be reached", fix="ask again."))
        elif request.declared != identity:
            why = "the data set was declared anew since it was approved"
            return self._settle(request, "waiting", why, approver=None, charging=0)
        return None if self._charging(request) else self._request(request.id)

    def _charging(self, request: Request) -> bool:
        """Note that a request is about to be charged, after which nobody cancels it; false where somebody has."""
        mine = (REQUESTS.c.id == request.id, REQUESTS.c.state == "running", REQUESTS.c.runner == self.records.runner)
        with self.records.write() as session:
            return bool(session.execute(update(REQUESTS).where(*mine).values(charging=1)).rowcount)

    def _released(self, put: Asked, asked: Question, request: Request, progress: Callable[[float], None] | None) -> Any:
        how = {"purpose": request.purpose, "who": request.asker_name, "request": request.id}
        try:
            return put.release(**asked.price, **how, progress=progress or (lambda _percent: None))
        except NotRecordedError as problem:  # it is paid for, so it is kept
            return problem.release
        except NotFinishedError as problem:  # likewise
            return problem.answer

    def _failed(self, request: Request, problem: DefocusError | None) -> Request:
        """Note that there is no answer; whether it was charged, the ledger says."""
        try:
            paid = self._ledger(request).paid(request.id)
        except (LedgerBusyError, LedgerUnavailableError) as away:
            return self._settle(request, "approved", f"it is tried again: {away.what}")
        what = "it failed" if problem is None else problem.what.split("\n")[0]
        state = "failed" if paid is not None else "refused"
        kept = (
            f"; it was charged (entry {paid.sequence}), and that stays" if paid is not None else "; nothing was charged"
        )
        return self._settle(request, state, f"{what.rstrip('.')}{kept}", charge=paid and paid.sequence)

    def recover(self) -> list[Request]:
        """Finish what processes left behind that were killed: no request stays running.

        An answer that the ledger recorded is released; what was charged without an answer has failed, and the charge
        stays; what was not charged is approved again.
        """
        with self.records.read() as session:
            left = session.execute(select(REQUESTS.c.id, REQUESTS.c.runner).where(REQUESTS.c.state == "running")).all()
        found = []
        for id_, runner in left:
            if runner == self.records.runner or self.records.is_alive(runner):
                continue
            with self.records.write() as session:
                taken = session.execute(
                    update(REQUESTS)
                    .where(REQUESTS.c.id == id_, REQUESTS.c.state == "running", REQUESTS.c.runner == runner)
                    .values(runner=self.records.runner)
                ).rowcount
            if taken:
                found.append(self.finish(self._request(id_)))
        return found

    def finish(self, request: Request) -> Request:
        """End a request that is running and that nothing runs any more, as :meth:`recover` says."""
        try:
            ledger = self._ledger(request)
            if ledger.recall(request.id) is not None:
                return self.run(request)  # which recalls it, free
            if ledger.paid(request.id) is None:
                why = "it is run again after a restart; nothing had been charged"
                return self._settle(request, "approved", why, charging=0)
        except DefocusError as problem:
            return self._settle(request, "approved", f"it is tried again: {problem.what}")
        return self._failed(request, DefocusError("the server stopped while it computed", fix="ask again."))

    def _settle(self, request: Request, state: State, why: str, **values: Any) -> Request:
        with self.records.write() as session:
            mine = (REQUESTS.c.id == request.id, REQUESTS.c.state == "running")
            done = {"state": state, "why": why[:2000], "changed": now(), "runner": None, **values}
            done["progress"] = 100.0 if state == "released" else 0.0
            own = update(REQUESTS).where(*mine, REQUESTS.c.runner == self.records.runner)
            if session.execute(own.values(**done)).rowcount:
                _decided(session, request.id, "", state, why[:2000])
        return self._request(request.id)

    def note_progress(self, id_: str, percent: float) -> None:
        """How far a running request is."""
        with contextlib.suppress(DefocusError), self.records.write() as session:
            session.execute(update(REQUESTS).where(REQUESTS.c.id == id_).values(progress=float(percent)))

    # Showing to others.

    def bundle(self, person: Person, id_: str) -> Bundle:
        """A release as a signed file that proves itself."""
        return self._bundle(self.request(person, id_))

    def _bundle(self, found: Request) -> Bundle:
        if found.state != "released":
            raise ConflictError(f"There is nothing to sign: the request is {found.state}.", fix=f"{found.why}.")
        return self._ledger(found).bundle(found.id, key=self.settings.key_file)

    def publish(self, person: Person, id_: str) -> Bundle:
        """Show a release with its bundle to everybody."""
        demand(person, Action.PUBLISH)
        made = self._bundle(self._request(id_))
        with self.records.write() as session:
            if session.execute(select(PUBLISHED.c.bundle).where(PUBLISHED.c.request == id_)).scalar() is None:
                row = {"request": id_, "by": person.id, "time": now(), "bundle": made.text}
                session.execute(insert(PUBLISHED), [row])
                _decided(session, id_, person.id, "published", "")
        return made

    def register(self, person: Person) -> list[Request]:
        """What was published, newest first."""
        demand(person, Action.READ_REGISTER)
        return self._requests(PUBLISHED.c.request.is_not(None))

    def published(self, person: Person, id_: str) -> tuple[Request, Any, Bundle]:
        """A published release, what was released, and its bundle."""
        demand(person, Action.READ_REGISTER)
        with self.records.read() as session:
            text = session.execute(select(PUBLISHED.c.bundle).where(PUBLISHED.c.request == id_)).scalar()
        if text is None:
            raise _absent()
        found = self._request(id_)
        return found, self._result(found), Bundle.parse(text)

    # The ledger.

    def ledger(self, person: Person, dataset: str) -> Ledger:
        """The ledger of a data set, to read."""
        demand(person, Action.READ_LEDGER)
        found: Ledger = self.datasets.table(dataset).ledger
        return found

    def exposure(self, person: Person, dataset: str) -> History:
        """What all answers of a data set together give away at most, from its ledger alone."""
        return history(self.ledger(person, dataset))

    def verify(self, person: Person, dataset: str) -> Verification:
        """Whether the whole ledger is as it was written."""
        return self.ledger(person, dataset).verify()

    def head(self, person: Person, dataset: str) -> Head:
        """The signed head of a ledger, for others to keep and co-sign."""
        return self.ledger(person, dataset).head(self.settings.key_file)

    def key(self, person: Person) -> str:
        """The public key that bundles of this server are signed with."""
        demand(person, Action.READ_REGISTER)
        return SigningKey.open(self.settings.key_file).public

    # The steward's work.

    def declare(self, person: Person, text: str, why: str) -> str:
        """Declare a data set, or change what is declared."""
        return self.datasets.declare(person, text, why)

    def invite(self, person: Person, role: Role | str, name: str) -> str:
        """The address of a one-time link for somebody."""
        return f"{self.settings.address}/invitation/{self.people.invite(person, role, name)}"

    def set_allowance(self, person: Person, dataset: str, **limits: Any) -> str:
        """Limit what a person or everybody may ask for in a period."""
        self.datasets.described(dataset)
        return self.policy.set_allowance(person, dataset, **limits)

    def note_tuning(self, person: Person, dataset: str, what: str, why: str) -> int:
        """Record in the ledger what was chosen by looking at raw data; the number of the entry is returned."""
        demand(person, Action.DECLARE)
        ledger: Ledger = self.datasets.table(dataset).ledger
        return ledger.note_tuning(what, why=why, who=person.name).sequence

    def record_consent(self, person: Person, dataset: str, write: Callable[[Any], int]) -> None:
        """Replace the table of who consents to which purpose; it counts from the next release on.

        ``write`` is called with an open file for rows of CSV or Parquet, as the data set declares it.
        """
        demand(person, Action.DECLARE)
        self.datasets.record_consent(person, dataset, write)

    # Rows of requests.

    def _source(self, declared: Described, purpose: str | None) -> Source:
        """What to ask, restricted to those who consent where consent is declared.

        A preview depends on no row, so without a purpose it is that of any purpose.
        """
        source = self.datasets.source(declared)
        if source.table.consent is None:
            return source
        why = purpose or next(iter(source.table.ledger.purposes or ()), "any purpose")
        return replace(source, table=source.table.for_purpose(why))

    def _looked_at(self, declared: Described, asked: Question, purpose: str | None) -> Asked:
        """A question that is put to a data set to be previewed. With another price, it is not read again."""
        key = (declared.name, declared.version, purpose, asked.text)
        put = self._looked.get(key)
        if put is None:
            put = asked.of(self._source(declared, purpose))
            if len(self._looked) >= _MOST_LOOKED:
                self._looked.clear()
            self._looked[key] = put
        return put

    def _ledger(self, request: Request) -> Ledger:
        """The ledger of a request: that of the table, or of the graph, that it is about."""
        ledger: Ledger = self.datasets.table(request.dataset).ledger
        graph = request.question.get("graph")
        return ledger if graph is None else ledger.data(str(graph), declare=False)

    def _request(self, id_: str) -> Request:
        found = self._requests(REQUESTS.c.id == id_)
        if not found:
            raise _absent()
        return found[0]

    def _named(self, person: Person, dataset: str, name: str) -> Request | None:
        wanted = (REQUESTS.c.asker == person.id, REQUESTS.c.dataset == dataset, REQUESTS.c.name == name)
        return next(iter(self._requests(*wanted)), None)

    def _requests(self, *wanted: Any, most: int = 500) -> list[Request]:
        columns = [column for column in REQUESTS.c if column.name not in {"runner", "answer", "charging", "alike"}]
        joined = REQUESTS.outerjoin(PUBLISHED, PUBLISHED.c.request == REQUESTS.c.id)
        query = select(*columns, PUBLISHED.c.request.label("shown")).select_from(joined).where(*wanted)
        with self.records.read() as session:
            rows = session.execute(query.order_by(REQUESTS.c.time.desc()).limit(most)).mappings().all()
        names = self.people.names() if rows else {}
        return [_of_row(row, names) for row in rows]


def _of_row(row: Any, names: dict[str, str]) -> Request:
    fields = {name: row[name] for name in row if name != "shown"}
    if isinstance(fields["question"], str):
        fields["question"] = json.loads(fields["question"])
    approver = fields["approver"]
    return Request(
        **fields,
        asker_name=names.get(fields["asker"], "somebody"),
        approver_name=None if approver is None else names.get(approver, "somebody"),
        published=row["shown"] is not None,
    )


def _same(known: Request, asked: Question, purpose: str) -> Request:
    if known.question != dict(asked.said) or known.purpose != purpose:
        raise ConflictError(
            "You asked another question under this name before.", fix="give the new request another name."
        )
    return known


def _moved(session: Connection, id_: str, states: tuple[str, ...], **values: Any) -> None:
    """Change a request that is in one of these states, or refuse."""
    here = (REQUESTS.c.id == id_, REQUESTS.c.state.in_(states))
    if not session.execute(update(REQUESTS).where(*here).values(changed=now(), **values)).rowcount:
        state = session.execute(select(REQUESTS.c.state).where(REQUESTS.c.id == id_)).scalar()
        if state is None:
            raise _absent()
        raise ConflictError(f"The request is {state}, so this cannot be done any more.", fix="look at it again.")


def _declared(session: Connection, dataset: str) -> str:
    """The identity of the present declaration of a data set."""
    return identity_of(session.execute(select(DATASETS.c.text).where(DATASETS.c.name == dataset)).scalar() or "")


def _decided(session: Connection, id_: str, by: str, what: str, words: str) -> None:
    session.execute(insert(DECISIONS), [{"request": id_, "by": by, "what": what[:16], "words": words, "time": now()}])


def _absent() -> NotFoundError:
    return NotFoundError("There is no such request.", fix="look at the list of your requests.")
