"""Pages of the steward: declaring data sets by form or by file, uploads, policies, allowances and what was tuned."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile
from starlette.responses import Response

from defocus.engines.schema import Kind, Schema
from defocus.engines.sources import source
from defocus.errors import DefocusError, InvalidParameterError, NotFoundError
from defocus.server.access import desk_of, doing
from defocus.server.datasets import POLICY
from defocus.server.pages.forms import dataset_text, fields_of, number_of
from defocus.server.pages.rendering import Form, page, seen, text_of
from defocus.server.policy import PERIODS
from defocus.server.roles import Action, Person
from defocus.tables import dataset_file

__all__ = [
    "allow",
    "begin",
    "begun",
    "change",
    "consent",
    "declare",
    "disallow",
    "policy",
    "replace",
    "router",
    "steward",
    "tuning",
]

router = APIRouter(include_in_schema=False)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_KINDS = [kind for kind in Kind if kind is not Kind.OTHER]


@router.get("/declare")
def begin(request: Request, person: Person = doing(Action.DECLARE)) -> Response:
    """Begin with a name and a file, or an address."""
    del person
    return page(request, "begin.html", problem=None, name="", sources=desk_of(request).settings.sources)


@router.post("/declare/files/new")
def begun(request: Request, *, person: Person = doing(Action.DECLARE), form: Form) -> Response:
    """Keep the file, and go on to what is to be declared about it."""
    desk, name, sent = desk_of(request), text_of(form, "name"), form.get("file")
    try:
        if not _NAME.fullmatch(name):
            raise InvalidParameterError("The name of a data set is letters, digits, - and _.", fix="choose another.")
        if isinstance(sent, UploadFile) and sent.filename:
            content = sent.file
            data = desk.datasets.upload(person, name, sent.filename, lambda place: _copied(content, place))
        elif text_of(form, "data"):
            data = text_of(form, "data")
        else:
            raise InvalidParameterError("There is no data yet.", fix="choose a file, or write where the data is.")
    except DefocusError as problem:
        sources = desk.settings.sources
        return page(request, "begin.html", 422, problem=problem, name=name, sources=sources)
    return _declared(request, person, {"name": name, "data": data} | _columns(_schema(desk, name, data)))


def _copied(content: Any, place: Any) -> int:
    size = 0
    while part := content.read(1 << 20):
        size += place.write(part)
    return size


@router.get("/datasets/{name}/declare")
def change(request: Request, name: str, person: Person = doing(Action.DECLARE)) -> Response:
    """What is declared, to be changed."""
    desk = desk_of(request)
    known = desk.datasets.described(name)
    declared = dataset_file.parsed(known.text)
    schema = _schema(desk, name, ", ".join(declared.data), declared.table)
    plain = not (declared.public or declared.private or declared.parts or declared.consent)
    return _declared(request, person, fields_of(declared, schema), text=known.text, plain=plain)


@router.post("/declare")
def declare(request: Request, *, person: Person = doing(Action.DECLARE), form: Form) -> Response:
    """Check what is declared, or declare it."""
    desk = desk_of(request)
    written = text_of(form, "how") == "text"
    text = text_of(form, "text") + "\n" if written else dataset_text(form)
    problems, notes = desk.datasets.check(person, text)
    fields = {key: str(value) for key, value in form.items()}
    if not problems and text_of(form, "do") == "declare":
        try:
            return seen(request, f"/datasets/{desk.declare(person, text, text_of(form, 'why'))}/steward")
        except DefocusError as problem:
            problems = [f"{problem.what} {problem.fix}"]
    shown = {"text": text, "problems": problems, "notes": notes, "checked": not problems, "plain": not written}
    return _declared(request, person, fields, status=422 if problems else 200, **shown)


def _declared(request: Request, person: Person, fields: Mapping[str, str], status: int = 200, **more: Any) -> Response:
    del person
    number = next(i for i in range(1001) if f"c{i}_name" not in fields or i == 1000)
    names = [fields[f"c{i}_name"] for i in range(number)]
    context = {"fields": fields, "columns": range(number), "names": names, "kinds": _KINDS, "text": "", "plain": True}
    filled = {"problems": [], "notes": [], "checked": False, **more}
    return page(request, "declare.html", status, **context | filled)


def _schema(desk: Any, name: str, data: str, table: str | None = None) -> Schema | None:
    """The columns of data by name and type; None where it cannot be opened. No row is looked at."""
    place = data if "://" in data else str(desk.settings.folder(name) / data)
    if not desk.settings.reaches(place, name) or ("://" not in data and not Path(place).exists()):
        return None
    try:
        opened = source(place, table=table)
    except DefocusError:
        return None
    opened.engine.close()
    return opened.schema


def _columns(schema: Schema | None) -> dict[str, str]:
    fields: dict[str, str] = {}
    for i, column in enumerate(schema or ()):
        fields |= {f"c{i}_name": column.name, f"c{i}_kind": str(column.kind)}
        fields |= {f"c{i}_{part}": "" for part in ("type", "low", "high", "values")}
    return fields


@router.get("/datasets/{name}/steward")
def steward(request: Request, name: str, person: Person = doing(Action.DECLARE)) -> Response:
    """Policy, allowances, uploads and notes of a data set."""
    return _steward(request, person, name)


def _steward(request: Request, person: Person, name: str, status: int = 200, problem: Any = None) -> Response:
    desk = desk_of(request)
    everybody = [one for one in desk.people.everybody(person) if one["id"] and not one.get("ended")]
    context = {
        "declared": desk.datasets.described(name),
        "table": desk.table(person, name),
        "allowances": desk.policy.allowances(person, name),
        "names": desk.people.names(),
        "everybody": [one for one in everybody if one["role"] in {"analyst", "officer"}],
        "periods": list(PERIODS),
        "said": desk.datasets.notes(name),
        "consent": dataset_file.parsed(desk.datasets.described(name).text).consent,
        "problem": problem,
    }
    return page(request, "steward.html", status, **context)


@router.post("/datasets/{name}/policy")
def policy(request: Request, name: str, *, person: Person = doing(Action.DECLARE), form: Form) -> Response:
    """What needs an officer, and what is refused."""
    try:
        limits = {key: number_of(form, key) if text_of(form, key) else usual for key, usual in POLICY.items()}
        desk_of(request).datasets.set_policy(person, name, why=text_of(form, "why"), **limits)
    except InvalidParameterError as problem:
        return _steward(request, person, name, 422, problem)
    return seen(request, f"/datasets/{name}/steward")


@router.post("/datasets/{name}/allowances")
def allow(request: Request, name: str, *, person: Person = doing(Action.MANAGE_PEOPLE), form: Form) -> Response:
    """Limit what a person or everybody may ask for in a period."""
    limits = {"period": text_of(form, "period"), "purpose": text_of(form, "purpose") or None}
    limits["for_person"] = text_of(form, "person") or None
    try:
        most = {
            "epsilon": number_of(form, "epsilon"),
            "delta": number_of(form, "delta") if text_of(form, "delta") else None,
        }
        desk_of(request).set_allowance(person, name, **most, **limits)
    except (InvalidParameterError, NotFoundError) as problem:
        return _steward(request, person, name, 422, problem)
    return seen(request, f"/datasets/{name}/steward")


@router.post("/datasets/{name}/allowances/{id_}/remove")
def disallow(request: Request, name: str, id_: str, person: Person = doing(Action.MANAGE_PEOPLE)) -> Response:
    """Let an allowance limit nobody any more."""
    desk_of(request).policy.remove_allowance(person, id_)
    return seen(request, f"/datasets/{name}/steward")


@router.post("/datasets/{name}/tuning")
def tuning(request: Request, name: str, *, person: Person = doing(Action.DECLARE), form: Form) -> Response:
    """Record what was chosen by looking at raw data."""
    try:
        desk_of(request).note_tuning(person, name, text_of(form, "what"), text_of(form, "why"))
    except InvalidParameterError as problem:
        return _steward(request, person, name, 422, problem)
    return seen(request, f"/datasets/{name}/steward")


@router.post("/datasets/{name}/files/replace")
def replace(request: Request, name: str, *, person: Person = doing(Action.DECLARE), form: Form) -> Response:
    """Upload a file to the folder of a data set."""
    try:
        sent = _sent(form)
        desk_of(request).datasets.upload(person, name, str(sent.filename), lambda place: _copied(sent.file, place))
    except InvalidParameterError as problem:
        return _steward(request, person, name, 422, problem)
    return seen(request, f"/datasets/{name}/steward")


@router.post("/datasets/{name}/consent")
def consent(request: Request, name: str, *, person: Person = doing(Action.DECLARE), form: Form) -> Response:
    """Replace the table of who consents to which purpose."""
    try:
        sent = _sent(form)
        desk_of(request).record_consent(person, name, lambda place: _copied(sent.file, place))
    except InvalidParameterError as problem:
        return _steward(request, person, name, 422, problem)
    return seen(request, f"/datasets/{name}/steward")


def _sent(form: Mapping[str, Any]) -> UploadFile:
    """The file in a form."""
    found = form.get("file")
    if not isinstance(found, UploadFile) or not found.filename:
        raise InvalidParameterError("No file was chosen.", fix="choose a Parquet or CSV file.")
    return found
