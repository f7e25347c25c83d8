"""What is approved at once, what needs an officer, and what is refused: allowances under the cap, and differencing.

An allowance limits what one person, one purpose or both may ask for in a period. It is a promise among people: what
protects those in the data is the budget of the ledger, which decides last. So allowances may add up to more than the
budget, and nobody gets more than is left of it, whoever works together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from typing import Any, final

from sqlalchemy import Connection, delete, func, insert, or_, select

from defocus.errors import DefocusError, InvalidParameterError, NotFoundError, UnsupportedEventError
from defocus.ledger import Ledger
from defocus.privacy.accounting import tightest_at
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import spoken_delta
from defocus.privacy.events import Event
from defocus.privacy.units import Adjacency
from defocus.server.people import amount, one_line
from defocus.server.questions import Question
from defocus.server.records import ALLOWANCES, PEOPLE, REQUESTS, Records, now, token
from defocus.server.roles import Action, Person, demand
from defocus.tables.table_questions import few_apart

__all__ = ["PERIODS", "Allowance", "Policy", "Similar", "Verdict", "alike", "attack_rate"]

PERIODS = {"day": 1, "week": 7, "month": 30, "year": 365, "ever": 0}
"""How many days a period has that an allowance is for; ever is without end."""
_COUNTING = ("waiting", "asked back", "approved", "running", "released", "failed")
"""Requests that use an allowance: a failed one may have been charged."""
_ROUNDING = 1e-9
_MOST_SIMILAR = 10
_MOST_READ = 20_000
_SPELLING = f"1:{version('sqlglot')}:"
"""Questions are compared as this spells them; what was spelt otherwise is spelt anew."""
_Conditions = tuple[frozenset[str], str]


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """What the policy says about a request: ``approved``, ``waiting`` for an officer, or ``refused``; and why."""

    state: str
    why: str


@final
@dataclass(frozen=True, slots=True)
class Allowance:
    """So much epsilon and delta for a person or for all, a purpose or all, in a period; and how much of it is used."""

    id: str
    dataset: str
    person: str | None
    purpose: str | None
    period: str
    epsilon: float
    delta: float | None = None
    """None where it limits epsilon only."""
    used: float = 0.0
    used_delta: float = 0.0

    @property
    def left(self) -> float:
        """How much epsilon is left of it now."""
        return max(0.0, self.epsilon - self.used)

    @property
    def left_delta(self) -> float | None:
        """Likewise of delta."""
        return None if self.delta is None else max(0.0, self.delta - self.used_delta)

    def lacks(self, epsilon: float, delta: float) -> str:
        """What it has too little of for a request; empty where it covers it."""
        if _beyond(self.used + epsilon, self.epsilon):
            return f"epsilon {self.left:.6g} is left, and it asks for {epsilon:g}"
        if self.delta is not None and _beyond(self.used_delta + delta, self.delta):
            return f"delta {self.left_delta:.6g} is left, and it asks for {delta:g}"
        return ""


@final
@dataclass(frozen=True, slots=True)
class Similar:
    """An earlier request whose people differ from those of another by few conditions, or by none."""

    request: str
    words: str
    state: str
    only_here: tuple[str, ...]
    only_there: tuple[str, ...]
    epsilon: float
    """What both cost together, added up."""
    asker: str
    """The id of the person who asked the earlier one."""


@final
@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a server, from its records."""

    records: Records
    _read: dict[str, _Conditions] = field(default_factory=dict)
    """The conditions of earlier requests by their id; a question never changes."""

    def set_allowance(
        self,
        person: Person,
        dataset: str,
        *,
        epsilon: float,
        delta: float | None = None,
        period: str = "ever",
        for_person: str | None = None,
        purpose: str | None = None,
    ) -> str:
        """Limit what a person, or everybody together, may ask for in a period; one that is there is replaced."""
        demand(person, Action.MANAGE_PEOPLE)
        if period not in PERIODS:
            raise InvalidParameterError(f"There is no period {period!r:.40}.", fix=f"choose {', '.join(PERIODS)}.")
        most = {"epsilon": amount("epsilon", epsilon), "delta": None if delta is None else amount("delta", delta)}
        row = {"dataset": dataset, "person": for_person, "period": period}
        row["purpose"] = None if purpose is None else one_line("purpose", purpose)
        with self.records.write() as session:
            known = select(func.count()).select_from(PEOPLE).where(PEOPLE.c.id == for_person)
            if for_person is not None and not session.execute(known).scalar():
                raise NotFoundError("There is no such person.", fix="look at the list of people.")
            same = (ALLOWANCES.c[name].is_not_distinct_from(value) for name, value in row.items())
            session.execute(delete(ALLOWANCES).where(*same))
            id_ = token()
            new = {"id": id_, **row, **most, "by": person.id, "time": now()}
            session.execute(insert(ALLOWANCES), [new])
        return id_

    def remove_allowance(self, person: Person, id_: str) -> None:
        """Let an allowance limit nobody any more."""
        demand(person, Action.MANAGE_PEOPLE)
        with self.records.write() as session:
            if not session.execute(delete(ALLOWANCES).where(ALLOWANCES.c.id == id_)).rowcount:
                raise NotFoundError("There is no such allowance.", fix="look at the list of allowances.")

    def allowances(self, person: Person, dataset: str) -> list[Allowance]:
        """The allowances of a data set with what is used of them: all for a steward, others see their own."""
        demand(person, Action.SEE_DATASETS)
        everything = person.role in {"steward", "officer", "auditor"}
        with self.records.read() as session:
            rows = session.execute(select(ALLOWANCES).where(ALLOWANCES.c.dataset == dataset)).mappings()
            found = [_allowance(session, row) for row in rows]
        return [one for one in found if everything or one.person in {None, person.id}]

    def verdict(
        self,
        session: Connection,
        person: Person,
        dataset: str,
        purpose: str,
        question: Question,
        *,
        rules: dict[str, Any],
        fits: bool,
        similar: Sequence[Similar] = (),
        own: str = "",
    ) -> Verdict:
        """What happens to a request now; ``own`` is its id, where it is counted already."""
        price = {"epsilon": float(question.epsilon), "delta": float(question.delta or 0)}
        if not fits:
            return Verdict("refused", "the budget of the data set does not cover it")
        for measure, key in (("epsilon", "most"), ("delta", "most_delta")):
            if rules[key] is not None and _beyond(price[measure], rules[key]):
                return Verdict("refused", f"one request may cost at most {measure} {rules[key]:g} here")
        rows = session.execute(select(ALLOWANCES).where(ALLOWANCES.c.dataset == dataset)).mappings()
        for row in rows:
            if row["person"] not in {None, person.id} or row["purpose"] not in {None, purpose}:
                continue
            one = _allowance(session, row, own)
            if lacking := one.lacks(**price):
                return Verdict("refused", f"of {_words(one)} {lacking}")
        for measure, key in (("epsilon", "automatic"), ("delta", "automatic_delta")):
            if _beyond(price[measure], rules[key]):
                return Verdict("waiting", f"an officer decides about requests of this {measure}")
        if any(one.only_here or one.only_there for one in similar):
            return Verdict("waiting", "an officer decides, since an earlier release is about nearly the same people")
        return Verdict("approved", "the policy of the data set allows it at once")

    def similar(self, session: Connection, dataset: str, question: Question, *, leaving_out: str = "") -> list[Similar]:
        """Earlier requests that ask the same of nearly the same people: their difference is about few.

        Those about other people come before those about the same ones, however often these were asked for.

        Guarantee:
            Compares questions, and looks at no row. The noise hides every person in the difference of two answers as
            the sum of both prices says.
        """
        own, rest = question.conditions
        likely = or_(
            REQUESTS.c.alike == alike(question),
            REQUESTS.c.alike.is_(None),
            REQUESTS.c.alike.not_like(f"{_SPELLING}%"),
        )
        wanted = (REQUESTS.c.dataset == dataset, REQUESTS.c.state.in_(_COUNTING), REQUESTS.c.id != leaving_out)
        ids = session.execute(select(REQUESTS.c.id).where(*wanted, likely).order_by(REQUESTS.c.time.desc())).scalars()
        earlier = self._conditions(session, list(ids))
        apart = {id_: few_apart((own, rest), held) for id_, held in earlier.items()}
        near = {id_: pair for id_, pair in apart.items() if pair is not None}
        nearest = sorted(near, key=lambda id_: near[id_] == (frozenset(), frozenset()))[:_MOST_SIMILAR]
        columns = [REQUESTS.c[name] for name in ("id", "words", "state", "epsilon", "asker")]
        rows = {row.id: row for row in session.execute(select(*columns).where(REQUESTS.c.id.in_(nearest)))}
        price = float(question.epsilon)
        return [
            Similar(id_, row.words, row.state, tuple(here), tuple(there), price + row.epsilon, row.asker)
            for id_, (here, there) in ((id_, near[id_]) for id_ in nearest)
            if (row := rows.get(id_)) is not None
        ]

    def _conditions(self, session: Connection, ids: Sequence[str]) -> dict[str, _Conditions]:
        """The conditions of these requests, each question being read once; without those of an earlier version."""
        if len(self._read) > _MOST_READ:
            self._read.clear()
        unread = [id_ for id_ in ids if id_ not in self._read]
        for start in range(0, len(unread), 500):
            some = REQUESTS.c.id.in_(unread[start : start + 500])
            for row in session.execute(select(REQUESTS.c.id, REQUESTS.c.question).where(some)):
                try:
                    self._read[row.id] = Question.read(row.question).conditions
                except DefocusError:
                    self._read[row.id] = frozenset(), ""
        return {id_: self._read[id_] for id_ in ids if id_ in self._read}


def alike(question: Question) -> str:
    """The same text for questions that differ in conditions on rows and in price alone.

    >>> few = {"sql": "SELECT COUNT(*) FROM visits WHERE age > 90", "epsilon": 1}
    >>> alike(Question.read(few)) == alike(Question.read({"sql": "select count(*) from visits", "epsilon": 2}))
    True
    """
    return _SPELLING + sha256(question.conditions[1].encode()).hexdigest()[:32]


def attack_rate(event: Event, ledger: Ledger, alpha: float = 0.01) -> float | None:
    """The largest true-positive rate of any test for one person at a false-positive rate of ``alpha``.

    None where no accountant can say.
    """
    return _attack_rate(event, ledger.budget, ledger.unit.adjacency, alpha)


@lru_cache(4096)
def _attack_rate(event: Event, budget: Budget, adjacency: Adjacency, alpha: float) -> float | None:
    try:
        return min(1.0, 1 - tightest_at(event, spoken_delta(budget), adjacency).tradeoff(alpha))
    except (UnsupportedEventError, DefocusError):
        return None


def _allowance(session: Connection, row: Any, own: str = "") -> Allowance:
    days = PERIODS[row["period"]]
    since = (datetime.now(UTC) - timedelta(days=days)).isoformat() if days else ""
    wanted = [REQUESTS.c.dataset == row["dataset"], REQUESTS.c.state.in_(_COUNTING), REQUESTS.c.time >= since]
    wanted += [REQUESTS.c.asker == row["person"]] if row["person"] is not None else []
    wanted += [REQUESTS.c.purpose == row["purpose"]] if row["purpose"] is not None else []
    sums = select(func.sum(REQUESTS.c.epsilon), func.sum(REQUESTS.c.delta))
    used, used_delta = session.execute(sums.where(*wanted, REQUESTS.c.id != own)).one()
    named = {name: row[name] for name in ("id", "dataset", "person", "purpose", "period", "epsilon", "delta")}
    return Allowance(**named, used=float(used or 0.0), used_delta=float(used_delta or 0.0))


def _beyond(amount: float, limit: float) -> bool:
    """Whether an amount is above a limit, by more than sums of decimals round."""
    return amount > limit * (1 + _ROUNDING)


def _words(one: Allowance) -> str:
    whose = "everybody's allowance" if one.person is None else "your allowance"
    what = "" if one.purpose is None else f" for {one.purpose}"
    when = "" if one.period == "ever" else f" in a {one.period}"
    return f"{whose}{what}{when}"
