"""Pages about questions: the first page, data sets, asking with a preview, requests, decisions and releases."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from defocus.answers import Released, plots
from defocus.answers.tables import plain
from defocus.errors import ConflictError, DefocusError, InvalidParameterError
from defocus.ledger import Ledger
from defocus.ledger.entries import CHARGE
from defocus.ledger.filter import Guard
from defocus.server.access import desk_of, doing, person_of
from defocus.server.pages.forms import AGGREGATES, OPERATORS, ROWS, asked, chosen, number_of
from defocus.server.pages.publishing import drawn, shown_answer
from defocus.server.pages.rendering import Form, page, seen, text_of
from defocus.server.questions import MODELS, Question, statistics
from defocus.server.requests import Desk, Preview
from defocus.server.roles import Action, Person

__all__ = [
    "ask",
    "burn_down",
    "cancel",
    "chart",
    "dataset",
    "decide",
    "home",
    "preview",
    "publish",
    "queue",
    "reply",
    "request_",
    "requests",
    "router",
    "submit",
]

router = APIRouter(include_in_schema=False)
_CLOSE = 0.02
"""The half-width that a preview finds the epsilon for, as a share of what is counted, or of the declared range."""
_FILLED = {"how": "build", "function0": "count", "epsilon": "0.3", "size": "1000"}
"""What a form says before anybody has filled it in."""


@router.get("/")
def home(request: Request, _: Person = doing(Action.READ_REGISTER)) -> Response:
    """Data sets, what is left of each, and what waits for whoever has signed in; else what there is for everybody."""
    person, desk = person_of(request), desk_of(request)
    if not person.signed_in:
        return page(request, "welcome.html", releases=desk.register(person)[:6])
    books = [(one, _budget(desk.table(person, one.name).ledger)) for one in desk.list_datasets(person)]
    context = {"books": books, "mine": desk.waiting_for(person), "recent": desk.history(person, most=8)}
    return page(request, "home.html", **context)


@router.get("/datasets/{name}")
def dataset(request: Request, name: str, person: Person = doing(Action.SEE_DATASETS)) -> Response:
    """What is declared about a data set, and where its budget went."""
    desk = desk_of(request)
    table = desk.table(person, name)
    context = {
        "declared": desk.datasets.described(name),
        "table": table,
        "budget": _budget(table.ledger),
        "charges": len(desk.burn_down(person, name)),
        "allowances": desk.policy.allowances(person, name),
        "names": desk.people.names(),
        "recent": desk.history(person, name, most=20),
    }
    return page(request, "dataset.html", **context)


@router.get("/datasets/{name}/burn-down.svg")
def burn_down(request: Request, name: str, person: Person = doing(Action.SEE_DATASETS)) -> Response:
    """What was left after each charge, as a picture."""
    ledger = desk_of(request).table(person, name).ledger
    guard = Guard.of(ledger.terms)
    charges = [entry for entry in ledger.entries() if entry.kind == CHARGE]
    left = [guard.remaining(guard.start), *(guard.remaining(entry.spent) for entry in charges)]
    labels = ["0", *(plain(entry.purpose, widest=18) for entry in charges)]
    return Response(_burnt(tuple(left), tuple(labels)), media_type="image/svg+xml")


@lru_cache(maxsize=64)
def _burnt(left: tuple[Any, ...], labels: tuple[str, ...]) -> str:
    return str(plots.burn_down(left, labels).svg())


def _budget(ledger: Ledger) -> dict[str, Any]:
    """What a meter shows: the budget in words, what is left, and which parts of epsilon and delta are used."""
    guard, spent = Guard.of(ledger.terms), ledger.spent()
    return {"words": ledger.budget, "left": guard.remaining(spent), "used": guard.used(spent), "unit": ledger.unit}


@router.get("/datasets/{name}/ask")
def ask(request: Request, name: str, person: Person = doing(Action.PREVIEW)) -> Response:
    """A form to build a question, with the free preview beside it."""
    form = request.query_params
    shown = _previewed(request, person, name, form) if form else {"seen": None, "problem": None}
    return _ask(request, person, name, form, **shown)


@router.get("/datasets/{name}/preview")
def preview(request: Request, name: str, person: Person = doing(Action.PREVIEW)) -> Response:
    """The preview alone, for the script that shows it while somebody types."""
    return page(request, "preview.html", **_previewed(request, person, name, request.query_params))


@router.post("/datasets/{name}/ask")
def submit(request: Request, name: str, *, person: Person = doing(Action.ASK), form: Form) -> Response:
    """Ask; the policy answers at once."""
    desk = desk_of(request)
    try:
        question = asked(form, desk.table(person, name).schema)
        found = desk.submit(person, name, question, text_of(form, "purpose"), text_of(form, "reason"))
    except DefocusError as problem:
        return _ask(request, person, name, form, 422, refused=problem)
    return seen(request, f"/requests/{found.id}")


def _ask(
    request: Request, person: Person, name: str, form: Mapping[str, Any], status: int = 200, /, **shown: Any
) -> Response:
    table = desk_of(request).table(person, name)
    columns = [column for column in table.schema if column.name != table.rows.unit]
    filled = _FILLED | {key: str(value) for key, value in form.items()}
    ticked = {name: chosen(form, name) for name in ("only", "find_values", "inputs")}
    declared = [column.name for column in columns if column.values is not None or column.low is not None]
    context = {
        "name": name,
        "table": table,
        "columns": columns,
        "groupable": [column for column in columns if column.kind.countable],
        "numeric": [column for column in columns if column.kind.numeric],
        "rows": ROWS,
        "operators": OPERATORS,
        "aggregates": AGGREGATES,
        "filled": filled,
        "ticked": ticked if any(ticked.values()) else {"only": declared, "find_values": [], "inputs": []},
        "graphs": desk_of(request).datasets.graphs(name),
        "statistics": statistics(),
        "models": MODELS,
    }
    return page(request, "ask.html", status, **context | _empty() | shown)


def _empty() -> dict[str, Any]:
    return {"seen": None, "problem": None, "close": None, "size": 1000, "relative": [], "budget": None, "refused": None}


def _previewed(request: Request, person: Person, name: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """What a preview shows, or what is wrong with the question."""
    desk = desk_of(request)
    try:
        table = desk.table(person, name)
        question = asked(form, table.schema)
        found = desk.preview(person, name, question, text_of(form, "purpose") or None)
        size = max(1, min(10**9, int(number_of(form, "size", 1000))))
        counted = "kind" not in question
        close = _epsilon_for(Question.read(question), table, found, size) if counted else None
    except (DefocusError, OverflowError) as problem:
        known = problem if isinstance(problem, DefocusError) else InvalidParameterError("No number.", fix="write one.")
        return _empty() | {"problem": known}
    shown = _empty() | {"seen": found, "close": close, "size": size, **_foretold(found, table.ledger)}
    return shown if counted else shown | {"relative": []}


def _foretold(found: Preview, ledger: Ledger) -> dict[str, Any]:
    """Counts in groups of several sizes, as shares; and the meter of the budget."""
    sizes = (100, 1000, 10_000)
    relative = [
        (column.name, [(n, column.interval / n) for n in sizes])
        for column in found.answer.columns
        if column.interval is not None and column.rank is None and math.isfinite(column.interval)
    ]
    return {"relative": relative, "budget": _budget(ledger)}


def _epsilon_for(question: Question, table: Any, found: Preview, size: int) -> dict[str, Any] | None:
    """The epsilon at which the first column is within 2 %: of a group of this size, or of the declared range.

    Noise that is calibrated to a price falls about as one over epsilon, so it follows from the preview that is shown.
    """
    column = found.answer.columns[0]
    counted = column.interval is not None
    width = column.interval if counted else next((w for n, _, w in reversed(column.by_size) if n <= size), None)
    scale = float(size) if counted else _range(question, table)
    if scale is None or width is None or not 0 < width < 1e300:
        return None
    epsilon = min(1e4, max(1e-6, float(question.epsilon) * width / (_CLOSE * scale)))
    return {"epsilon": epsilon, "name": column.name, "counted": counted, "fits": epsilon <= table.remaining().epsilon}


def _range(question: Question, table: Any) -> float | None:
    """The declared range of the column that the first statistic is about."""
    first: Mapping[str, Any] = next(iter(question.said.get("aggregates", {}).values()), {})
    name = str(first.get("column", "")).strip('"')
    if name not in table.schema or table.schema[name].low is None or not table.schema[name].kind.numeric:
        return None
    column = table.schema[name]
    return float(column.high) - float(column.low)


@router.get("/requests")
def requests(request: Request, person: Person = doing(Action.SEE_REQUEST)) -> Response:
    """Requests: one's own for an analyst, else all."""
    return page(request, "requests.html", found=desk_of(request).history(person))


@router.get("/queue")
def queue(request: Request, person: Person = doing(Action.SEE_QUEUE)) -> Response:
    """What waits for a decision."""
    desk = desk_of(request)
    found = [(one, _risk(desk, person, one.id)) for one in desk.queue(person)]
    return page(request, "queue.html", found=found)


def _risk(desk: Desk, person: Person, id_: str) -> Preview | None:
    """What to expect of a request; None where it cannot be asked any more."""
    try:
        return desk.foresee(person, id_)
    except DefocusError:
        return None


@router.get("/requests/{id_}")
def request_(request: Request, id_: str, person: Person = doing(Action.SEE_REQUEST)) -> Response:
    """A request: where it stands, who decides, and what was released."""
    return _request(request, person, id_)


def _request(request: Request, person: Person, id_: str, status: int = 200, problem: Any = None) -> Response:
    desk = desk_of(request)
    found = desk.request(person, id_)
    table = desk.table(person, found.dataset)
    open_ = found.state in {"waiting", "asked back"}
    foretold = _risk(desk, person, id_) if open_ and person.role in {"officer", "steward", "auditor"} else None
    answer: Released | None = desk.answer(person, id_) if found.state == "released" else None
    context = {
        "found": found,
        "unit": table.ledger.unit,
        "budget": _budget(table.ledger),
        "decisions": desk.decisions(person, id_),
        "seen": foretold,
        "problem": problem,
        "close": None,
        "size": 1000,
        "relative": [] if foretold is None else _foretold(foretold, table.ledger)["relative"],
        "running": found.state in {"approved", "running"},
        **shown_answer(desk, found, answer, public=False),
    }
    return page(request, "request.html", status, **context)


@router.get("/requests/{id_}/chart.svg")
def chart(request: Request, id_: str, narrow: bool = False, person: Person = doing(Action.SEE_REQUEST)) -> Response:
    """The plot of a release."""
    return drawn(desk_of(request).answer(person, id_), id_, narrow=narrow)


@router.post("/requests/{id_}/decision")
def decide(request: Request, id_: str, *, person: Person = doing(Action.DECIDE), form: Form) -> Response:
    """Approve, refuse or ask back."""
    try:
        said = {name: text_of(form, name) for name in ("decision", "words")}
        desk_of(request).decide(person, id_, **said, declared=text_of(form, "declared") or None)
    except (InvalidParameterError, ConflictError) as problem:
        return _request(request, person, id_, 422, problem)
    return seen(request, f"/requests/{id_}")


@router.post("/requests/{id_}/reply")
def reply(request: Request, id_: str, *, person: Person = doing(Action.CANCEL), form: Form) -> Response:
    """Answer an officer who asked back."""
    try:
        desk_of(request).resubmit(person, id_, text_of(form, "reason"))
    except InvalidParameterError as problem:
        return _request(request, person, id_, 422, problem)
    return seen(request, f"/requests/{id_}")


@router.post("/requests/{id_}/cancel")
def cancel(request: Request, id_: str, person: Person = doing(Action.CANCEL)) -> Response:
    """Take a request back."""
    desk_of(request).cancel(person, id_)
    return seen(request, f"/requests/{id_}")


@router.post("/requests/{id_}/publish")
def publish(request: Request, id_: str, person: Person = doing(Action.PUBLISH)) -> Response:
    """Show a release to everybody."""
    desk_of(request).publish(person, id_)
    return seen(request, f"/register/{id_}")
