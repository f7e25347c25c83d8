"""The API for programs: REST under ``/api/v1``, described by OpenAPI; refusals are problem-details documents.

Programs send a personal token, ``Authorization: Bearer …``. Every route says which action it is for.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, StreamingResponse

from defocus.answers.export import json_value
from defocus.server.access import COOKIE, address_of, desk_of, doing
from defocus.server.requests import Request as Asked
from defocus.server.roles import Action, Person

__all__ = ["router", "set_session"]


class Problem(BaseModel):
    """What was refused, why, and how to mend it (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    fix: str


_PROBLEM: dict[str, Any] = {"model": Problem, "content": {"application/problem+json": {}}, "description": "refused"}
router = APIRouter(prefix="/api/v1", responses=dict.fromkeys(("4XX", "5XX", 422), _PROBLEM))

Text = Annotated[str, Field(min_length=1, max_length=2000)]
Name = Annotated[str, Path(min_length=1, max_length=200)]
Amount = Annotated[float, Field(ge=0, lt=1e6)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class SignIn(_Strict):
    """A name and its password."""

    name: Text
    password: Text


class Password(_Strict):
    """A new password."""

    password: Text


class Invitation(_Strict):
    """Whom to invite, and as what."""

    name: Text
    role: Text


class Named(_Strict):
    """What something is to be called."""

    name: Text


class Declaration(_Strict):
    """A dataset file, and why it is declared or changed."""

    text: Annotated[str, Field(min_length=1, max_length=500_000)]
    why: Text


class File(_Strict):
    """A dataset file to check."""

    text: Annotated[str, Field(min_length=1, max_length=500_000)]


class Rules(_Strict):
    """Up to which epsilon and delta a request is approved at once, and above which it is refused."""

    automatic: Amount
    automatic_delta: Amount = 0.0
    most: Amount | None = None
    most_delta: Amount | None = None
    why: Text


class Limit(_Strict):
    """An allowance: for a person or everybody, a purpose or all, in a period."""

    epsilon: Amount
    delta: Amount | None = None
    period: str = "ever"
    person: str | None = None
    purpose: str | None = None


class Tuning(_Strict):
    """What was chosen by looking at raw data, and why."""

    what: Text
    why: Text


Price = Annotated[float, Field(gt=0)] | Annotated[str, Field(pattern=r"^[0-9]{1,30}/[1-9][0-9]{0,29}$")]
Texts = str | list[str]
Setting = bool | int | float | str


class _Priced(_Strict):
    """What every question has: what it may cost."""

    epsilon: Price
    delta: Annotated[float, Field(ge=0, lt=1)] | str | None = None


class _OfTable(_Priced):
    """What comes before a question to a table: which rows, and what one person may contribute."""

    part: Any = None
    rows: int | str | None = None
    groups: int | None = None
    filter: Texts | None = None
    steps: list[list[Any]] | None = None


class SqlQuestion(_OfTable):
    """A SELECT."""

    kind: Literal["table"] = "table"
    sql: Annotated[str, Field(min_length=1)]
    dialect: str | None = None
    bounds: str | None = None
    at_most: int | None = None
    intervals: bool = False
    keys: Any = None


class TableQuestion(_OfTable):
    """Statistics by group."""

    kind: Literal["table"] = "table"
    aggregates: dict[str, Any] | list[dict[str, Any]]
    group_by: Texts | None = None
    keys: Any = None


class GraphQuestion(_Priced):
    """A statistic of a graph about the same people."""

    kind: Literal["graph"]
    graph: str
    statistic: str
    settings: dict[str, Setting] | None = None
    method: str | None = None


class SynthesisQuestion(_OfTable):
    """Synthetic rows."""

    kind: Literal["synthesis"]
    only: list[str] | None = None
    columns: dict[str, dict[str, list[Any]] | None] | None = None
    constraints: list[str] | None = None
    computed: dict[str, str] | None = None
    records: Annotated[int, Field(ge=1)] | None = None
    focus: list[Texts] | None = None
    method: str | None = None


class ModelQuestion(_OfTable):
    """A model to fit."""

    kind: Literal["model"]
    model: str
    inputs: Texts
    target: str | None = None
    settings: dict[str, Setting] | None = None


Question = SqlQuestion | TableQuestion | GraphQuestion | SynthesisQuestion | ModelQuestion


class Looked(_Strict):
    """A question to preview, perhaps for a purpose."""

    question: Question
    purpose: str | None = None


class Submission(_Strict):
    """A question, why it is asked, and perhaps a name under which the same request is found again."""

    question: Question
    purpose: Text
    reason: Text
    request: str | None = None


class Decision(_Strict):
    """``approve``, ``refuse`` or ``ask_back``, with words; who approves names the ``declared`` of the preview."""

    decision: Text
    declared: str | None = None
    words: Annotated[str, Field(max_length=2000)] = ""


class Reply(_Strict):
    """An answer to an officer who asked back."""

    reason: Text


Json = dict[str, Any]


def set_session(request: Request, response: Response, secret: str) -> None:
    """Give the browser a session: not for scripts, not for other sites, and by HTTPS only where there is HTTPS."""
    secure = desk_of(request).settings.secure
    response.set_cookie(COOKIE, secret, max_age=12 * 3600, httponly=True, samesite="lax", secure=secure)


@router.get("/me")
def me(person: Person = doing(Action.OWN_ACCOUNT)) -> Json:
    """Who you are."""
    return {"id": person.id, "name": person.name, "role": person.role}


@router.post("/session", status_code=204)
def sign_in(request: Request, response: Response, body: SignIn, _: Person = doing(Action.SIGN_IN)) -> None:
    """Sign in with a name and a password; a session cookie is set."""
    secret = desk_of(request).people.sign_in(body.name, body.password, address_of(request))
    set_session(request, response, secret)


@router.delete("/session", status_code=204)
def sign_out(request: Request, response: Response, _: Person = doing(Action.SIGN_IN)) -> None:
    """Sign out."""
    desk_of(request).people.sign_out(request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE)


@router.get("/invitations/{secret}")
def invitation(request: Request, secret: Name, _: Person = doing(Action.SIGN_IN)) -> Json:
    """For whom a link is."""
    name, role = desk_of(request).people.invitation(secret)
    return {"name": name, "role": role}


@router.post("/invitations/{secret}", status_code=204)
def accept(
    request: Request, response: Response, secret: Name, body: Password, _: Person = doing(Action.SIGN_IN)
) -> None:
    """Use a link: choose a password, and be signed in."""
    set_session(request, response, desk_of(request).people.accept(secret, body.password))


@router.get("/tokens")
def tokens(request: Request, person: Person = doing(Action.OWN_ACCOUNT)) -> list[Json]:
    """Your tokens, without their secrets."""
    return desk_of(request).people.tokens(person)


@router.post("/tokens", status_code=201)
def new_token(request: Request, body: Named, person: Person = doing(Action.OWN_ACCOUNT)) -> Json:
    """A new token; its secret is shown this once."""
    return {"token": desk_of(request).people.new_token(person, body.name)}


@router.delete("/tokens/{id_}", status_code=204)
def revoke(request: Request, id_: Name, person: Person = doing(Action.OWN_ACCOUNT)) -> None:
    """End one of your tokens."""
    desk_of(request).people.revoke(person, id_)


@router.get("/people")
def people(request: Request, person: Person = doing(Action.MANAGE_PEOPLE)) -> list[Json]:
    """Everybody, and who was invited."""
    return desk_of(request).people.everybody(person)


@router.post("/people", status_code=201)
def invite(request: Request, body: Invitation, person: Person = doing(Action.MANAGE_PEOPLE)) -> Json:
    """A one-time link for somebody; it is shown this once."""
    return {"link": desk_of(request).invite(person, body.role, body.name)}


@router.delete("/people/{id_}", status_code=204)
def end(request: Request, id_: Name, person: Person = doing(Action.MANAGE_PEOPLE)) -> None:
    """End somebody's access."""
    desk_of(request).people.end(person, id_)


@router.get("/datasets")
def datasets(request: Request, person: Person = doing(Action.SEE_DATASETS)) -> list[Json]:
    """All data sets."""
    return [{"name": one.name, "version": one.version} for one in desk_of(request).list_datasets(person)]


@router.post("/datasets", status_code=201)
def declare(request: Request, body: Declaration, person: Person = doing(Action.DECLARE)) -> Json:
    """Declare a data set, or change what is declared."""
    return {"name": desk_of(request).declare(person, body.text, body.why)}


@router.post("/datasets/check")
def check(request: Request, body: File, person: Person = doing(Action.DECLARE)) -> Json:
    """What is wrong with a dataset file; no row is looked at."""
    problems, notes = desk_of(request).datasets.check(person, body.text)
    return {"problems": problems, "notes": notes}


@router.get("/datasets/{name}")
def dataset(request: Request, name: Name, person: Person = doing(Action.SEE_DATASETS)) -> Json:
    """What is declared about a data set, and what is left of its budget."""
    desk = desk_of(request)
    declared, table = desk.datasets.described(name), desk.table(person, name)
    columns = [
        {
            "name": column.name,
            "kind": str(column.kind),
            "low": json_value(column.low),
            "high": json_value(column.high),
            "values": None if column.values is None else [str(value) for value in column.values],
        }
        for column in table.schema
    ]
    left = table.remaining()
    return {
        "name": name,
        "version": declared.version,
        "protects": str(table.ledger.unit),
        "budget": str(table.ledger.budget),
        "left": {"epsilon": json_value(left.certain), "delta": json_value(left.delta), "words": str(left)},
        "purposes": None if table.ledger.purposes is None else list(table.ledger.purposes),
        "policy": declared.policy,
        "columns": columns,
        "private": list(table.others),
        "graphs": desk.datasets.graphs(name),
        "public": list(table.public),
    }


@router.put("/datasets/{name}/policy", status_code=204)
def set_policy(request: Request, name: Name, body: Rules, person: Person = doing(Action.DECLARE)) -> None:
    """What needs an officer, and what is refused."""
    desk_of(request).datasets.set_policy(person, name, **body.model_dump())


@router.put("/datasets/{name}/files/{filename}", status_code=201)
async def upload(request: Request, name: Name, filename: Name, person: Person = doing(Action.DECLARE)) -> Json:
    """Keep a Parquet or CSV file in the folder of a data set."""
    body = await request.body()
    datasets = desk_of(request).datasets
    return {"file": await run_in_threadpool(datasets.upload, person, name, filename, lambda file: file.write(body))}


@router.get("/datasets/{name}/burn-down")
def burn_down(request: Request, name: Name, person: Person = doing(Action.SEE_DATASETS)) -> list[Json]:
    """Which shares of the budget were used after each charge."""
    return desk_of(request).burn_down(person, name)


@router.get("/datasets/{name}/ledger")
def ledger(
    request: Request,
    name: Name,
    after: Annotated[int, Query(ge=-1, lt=2**53)] = -1,
    most: Annotated[int, Query(ge=1, le=1000)] = 100,
    person: Person = doing(Action.READ_LEDGER),
) -> list[Json]:
    """Entries of the ledger, those with a number larger than ``after``."""
    book = desk_of(request).ledger(person, name)
    found = (entry.to_dict() for entry in book.entries() if entry.sequence > after)
    return [entry for entry, _ in zip(found, range(most), strict=False)]


@router.get("/datasets/{name}/exposure")
def exposure(request: Request, name: Name, person: Person = doing(Action.READ_LEDGER)) -> Json:
    """What an attacker with all answers of the data set can do at most."""
    return desk_of(request).exposure(person, name).to_json()


@router.get("/datasets/{name}/verification")
def verify(request: Request, name: Name, person: Person = doing(Action.READ_LEDGER)) -> Json:
    """Whether the whole ledger is as it was written."""
    return desk_of(request).verify(person, name).to_dict()


@router.get("/datasets/{name}/head")
def head(request: Request, name: Name, person: Person = doing(Action.READ_LEDGER)) -> Json:
    """The signed head of the ledger."""
    return desk_of(request).head(person, name).to_dict()


@router.post("/datasets/{name}/tuning", status_code=201)
def note_tuning(request: Request, name: Name, body: Tuning, person: Person = doing(Action.DECLARE)) -> Json:
    """Record what was chosen by looking at raw data."""
    return {"entry": desk_of(request).note_tuning(person, name, body.what, body.why)}


@router.put("/datasets/{name}/consent", status_code=204)
async def record_consent(request: Request, name: Name, person: Person = doing(Action.DECLARE)) -> None:
    """Replace the table of who consents to which purpose, in the format that the data set declares."""
    body = await request.body()
    await run_in_threadpool(desk_of(request).record_consent, person, name, lambda file: file.write(body))


@router.get("/datasets/{name}/allowances")
def allowances(request: Request, name: Name, person: Person = doing(Action.SEE_DATASETS)) -> list[Json]:
    """Allowances, and what is used of them."""
    shown = ("id", "person", "purpose", "period", "epsilon", "used", "left", "delta", "used_delta", "left_delta")
    found = desk_of(request).policy.allowances(person, name)
    return [{key: getattr(one, key) for key in shown} for one in found]


@router.post("/datasets/{name}/allowances", status_code=201)
def set_allowance(request: Request, name: Name, body: Limit, person: Person = doing(Action.MANAGE_PEOPLE)) -> Json:
    """Limit what a person or everybody may ask for in a period."""
    limits = body.model_dump()
    return {"id": desk_of(request).set_allowance(person, name, for_person=limits.pop("person"), **limits)}


@router.delete("/allowances/{id_}", status_code=204)
def remove_allowance(request: Request, id_: Name, person: Person = doing(Action.MANAGE_PEOPLE)) -> None:
    """Let an allowance limit nobody any more."""
    desk_of(request).policy.remove_allowance(person, id_)


@router.post("/datasets/{name}/preview")
def preview(request: Request, name: Name, body: Looked, person: Person = doing(Action.PREVIEW)) -> Json:
    """What a question would cost, how exact it would be, and what the policy would say. Free."""
    question = body.question.model_dump(exclude_unset=True)
    return desk_of(request).preview(person, name, question, body.purpose).to_dict()


@router.post("/datasets/{name}/requests", status_code=201)
def submit(request: Request, name: Name, body: Submission, person: Person = doing(Action.ASK)) -> Json:
    """Ask; the policy answers at once. The same name returns the same request for ever."""
    question = body.question.model_dump(exclude_unset=True)
    return shown(desk_of(request).submit(person, name, question, body.purpose, body.reason, body.request))


@router.get("/requests")
def requests(
    request: Request,
    dataset: str | None = None,
    most: Annotated[int, Query(ge=1, le=500)] = 100,
    person: Person = doing(Action.SEE_REQUEST),
) -> list[Json]:
    """Requests, newest first: your own if you are an analyst, else all."""
    return [shown(one) for one in desk_of(request).history(person, dataset, most=most)]


@router.get("/waiting")
def waiting(request: Request, person: Person = doing(Action.SEE_DATASETS)) -> list[Json]:
    """What waits for you."""
    return [shown(one) for one in desk_of(request).waiting_for(person)]


@router.get("/queue")
def queue(request: Request, person: Person = doing(Action.SEE_QUEUE)) -> list[Json]:
    """What waits for a decision."""
    return [shown(one) for one in desk_of(request).queue(person)]


@router.get("/requests/{id_}")
def one_request(request: Request, id_: Name, person: Person = doing(Action.SEE_REQUEST)) -> Json:
    """One request, with what was decided."""
    desk = desk_of(request)
    return {**shown(desk.request(person, id_)), "decisions": desk.decisions(person, id_)}


@router.get("/requests/{id_}/preview")
def foresee(request: Request, id_: Name, person: Person = doing(Action.SEE_QUEUE)) -> Json:
    """The preview of a request that waits, for who decides about it."""
    return desk_of(request).foresee(person, id_).to_dict()


@router.post("/requests/{id_}/decision")
def decide(request: Request, id_: Name, body: Decision, person: Person = doing(Action.DECIDE)) -> Json:
    """Approve, refuse or ask back. Nobody decides about their own request."""
    return shown(desk_of(request).decide(person, id_, **body.model_dump()))


@router.post("/requests/{id_}/reply")
def reply(request: Request, id_: Name, body: Reply, person: Person = doing(Action.CANCEL)) -> Json:
    """Answer an officer who asked back."""
    return shown(desk_of(request).resubmit(person, id_, body.reason))


@router.post("/requests/{id_}/cancel")
def cancel(request: Request, id_: Name, person: Person = doing(Action.CANCEL)) -> Json:
    """Take a request back, as long as it was not charged; also one that runs."""
    return shown(desk_of(request).cancel(person, id_))


@router.get("/requests/{id_}/answer")
def answer(request: Request, id_: Name, person: Person = doing(Action.SEE_REQUEST)) -> Json:
    """What was released, with errors and intervals."""
    return desk_of(request).answer(person, id_).to_dict()


@router.get("/requests/{id_}/record")
def record(request: Request, id_: Name, person: Person = doing(Action.SEE_REQUEST)) -> Json:
    """What was released as the ledger keeps it, with the receipt: for clients that show it themselves."""
    return desk_of(request).record(person, id_)


@router.get("/requests/{id_}/answer.csv", response_class=PlainTextResponse)
def answer_csv(request: Request, id_: Name, person: Person = doing(Action.SEE_REQUEST)) -> PlainTextResponse:
    """What was released, as CSV."""
    return PlainTextResponse(desk_of(request).answer(person, id_).to_csv(), media_type="text/csv")


@router.get("/requests/{id_}/bundle", response_class=PlainTextResponse)
def bundle(request: Request, id_: Name, person: Person = doing(Action.SEE_REQUEST)) -> PlainTextResponse:
    """A release as a signed file that proves itself."""
    return PlainTextResponse(desk_of(request).bundle(person, id_).text, media_type="application/json")


@router.post("/requests/{id_}/publication", status_code=204)
def publish(request: Request, id_: Name, person: Person = doing(Action.PUBLISH)) -> None:
    """Show a release to everybody."""
    desk_of(request).publish(person, id_)


_LOOK, _LONGEST = 0.5, 600.0


@router.get("/requests/{id_}/events", response_class=StreamingResponse)
async def events(request: Request, id_: Name, person: Person = doing(Action.SEE_REQUEST)) -> StreamingResponse:
    """State and progress of a request as server-sent events, until nothing more will happen to it."""
    desk = desk_of(request)
    first = await run_in_threadpool(desk.request, person, id_)

    async def told() -> AsyncIterator[str]:
        found, last, started = first, None, time.monotonic()
        while True:
            now = {"state": found.state, "why": found.why, "progress": found.progress}
            if now != last:
                yield f"event: state\ndata: {json.dumps(now)}\n\n"
                last = now
            if found.done or time.monotonic() > started + _LONGEST or await request.is_disconnected():
                return
            await asyncio.sleep(_LOOK)
            found = await run_in_threadpool(desk.request, person, id_)

    return StreamingResponse(told(), media_type="text/event-stream")


@router.get("/register")
def register(request: Request, person: Person = doing(Action.READ_REGISTER)) -> list[Json]:
    """What was published."""
    return [_public(one) for one in desk_of(request).register(person)]


@router.get("/register/{id_}")
def published(request: Request, id_: Name, person: Person = doing(Action.READ_REGISTER)) -> Json:
    """A published release."""
    found, made, _ = desk_of(request).published(person, id_)
    return {**_public(found), "answer": found.kind.shown(made).to_dict()}


@router.get("/register/{id_}/bundle", response_class=PlainTextResponse)
def published_bundle(request: Request, id_: Name, person: Person = doing(Action.READ_REGISTER)) -> PlainTextResponse:
    """The bundle of a published release, to verify without the data."""
    return PlainTextResponse(desk_of(request).published(person, id_)[2].text, media_type="application/json")


@router.get("/key")
def key(request: Request, person: Person = doing(Action.READ_REGISTER)) -> Json:
    """The public key that bundles are signed with."""
    return {"key": desk_of(request).key(person)}


def shown(asked: Asked) -> Json:
    """A request with JSON types only."""
    left_out = {"asker", "approver"}
    names = [name for name in Asked.__dataclass_fields__ if name not in left_out]
    return {name: getattr(asked, name) for name in names}


def _public(asked: Asked) -> Json:
    names = ("id", "dataset", "words", "epsilon", "delta", "purpose", "time", "charge")
    return {name: getattr(asked, name) for name in names}
