"""Pages about releases: the public register, every file that a release can be had as, verifying, and ledgers."""

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, final

from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile
from starlette.responses import Response

from defocus import publication
from defocus.answers import Released
from defocus.answers.tables import PAGE
from defocus.errors import DefocusError, InvalidParameterError, NotFoundError
from defocus.ledger import Bundle
from defocus.ledger.display import Prices
from defocus.ledger.entries import CHARGE
from defocus.server.access import desk_of, doing
from defocus.server.pages.rendering import Form, page
from defocus.server.requests import Desk
from defocus.server.requests import Request as Asked
from defocus.server.roles import Action, Person

__all__ = [
    "FILES",
    "drawn",
    "exposure",
    "file",
    "head",
    "ledger",
    "published",
    "published_chart",
    "published_file",
    "register",
    "router",
    "shown_answer",
    "verified",
    "verify",
]

router = APIRouter(include_in_schema=False)
_WIDE, _NARROW = 720, 380
"""How wide pictures are, in pixels: on most screens, and on narrow ones."""
_MOST = 200
"""So many entries of a ledger are on one page."""
FILES = {
    "answer.csv": "text/csv; charset=utf-8",
    "answer.parquet": "application/vnd.apache.parquet",
    "answer.json": "application/json",
    "release.bundle": "application/json",
    "report.html": "text/html; charset=utf-8",
    "report.pdf": "application/pdf",
    "registry.yaml": "application/yaml; charset=utf-8",
    "nist.html": "text/html; charset=utf-8",
}
"""The files of a release, each to be kept: a browser shows none of them as a page of this server."""


def shown_answer(desk: Desk, found: Asked, answer: Released | None, *, public: bool) -> dict[str, Any]:
    """What a page shows of an answer: its table, its promise in numbers, its words and how to cite it."""
    base = f"/{'register' if public else 'requests'}/{found.id}"
    if answer is None:
        return {"answer": None, "base": base}
    cells, notes = answer.cells_and_notes(PAGE)
    return {
        "answer": answer,
        "base": base,
        "cells": cells,
        "charted": any(column.error_of for column in answer.columns),
        "heads": len(answer.keys),
        "notes": [note for note in notes if note not in {answer.question, found.purpose}],
        "promise": answer.promise(),
        "sentences": answer.sentences(),
        "files": {**FILES, **found.kind.files},
        "cited": _cited(found, answer) + (f" {desk.settings.address}/register/{found.id}" if found.published else ""),
    }


def _cited(found: Asked, answer: Released) -> str:
    """How to name a release in a text."""
    price = f"epsilon {found.epsilon:g}{f', delta {found.delta:g}' if found.delta else ''}"
    what = f"{found.dataset}: {found.words}. Released {found.changed[:10]} with differential privacy ({price})"
    return f"{what}, ledger entry {answer.receipt.sequence}."


@final
@dataclass(frozen=True, slots=True)
class _Drawing:
    """An answer that is known by its request: a release never changes, so its picture is drawn once."""

    id: str
    answer: Released = field(compare=False)


def drawn(answer: Released, id_: str, *, narrow: bool) -> Response:
    """The plot of an answer, for a page or a phone; it follows the colours of the page."""
    return Response(_svg(_Drawing(id_, answer), narrow=narrow), media_type="image/svg+xml")


@lru_cache(maxsize=128)
def _svg(drawing: _Drawing, *, narrow: bool) -> str:
    return str(drawing.answer.plot(width=_NARROW if narrow else _WIDE).svg())


def _file(found: Asked, made: Any, bundle: Bundle, name: str) -> Response:
    """One of the files of a release, to be kept."""
    own = found.kind.files
    if name not in FILES and name not in own:
        raise NotFoundError("A release has no such file.", fix=f"choose among {', '.join([*own, *FILES])}.")
    return Response(
        own[name][1](made) if name in own else _content(found.kind.shown(made), bundle, name),
        media_type=own[name][0] if name in own else FILES[name],
        headers={"content-disposition": f'attachment; filename="{found.id}-{name}"'},
    )


def _content(answer: Released, bundle: Bundle, name: str) -> bytes:
    if name == "answer.parquet":
        return _on_disk(answer.to_parquet)
    if name == "report.pdf":
        return _on_disk(lambda path: publication.pdf_report(bundle, path))
    made: dict[str, Callable[[], str]] = {
        "answer.csv": answer.to_csv,
        "answer.json": answer.to_json,
        "release.bundle": lambda: bundle.text,
        "report.html": lambda: publication.release_report(bundle),
        "registry.yaml": lambda: publication.registry_yaml(publication.registry_record(bundle)),
        "nist.html": lambda: publication.evaluation_page(bundle),
    }
    return made[name]().encode("utf-8", "replace")


def _on_disk(write: Callable[[Path], object]) -> bytes:
    """What is written to a file that is gone afterwards. It holds released numbers only."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "file"
        write(place)
        return place.read_bytes()


@router.get("/requests/{id_}/files/{name}")
def file(request: Request, id_: str, name: str, person: Person = doing(Action.SEE_REQUEST)) -> Response:
    """A file of a release."""
    desk = desk_of(request)
    return _file(desk.request(person, id_), desk.result(person, id_), desk.bundle(person, id_), name)


@router.get("/register")
def register(request: Request, person: Person = doing(Action.READ_REGISTER)) -> Response:
    """What was published, for everybody."""
    desk = desk_of(request)
    return page(request, "register.html", releases=desk.register(person), key=desk.key(person))


@router.get("/register/{id_}")
def published(request: Request, id_: str, person: Person = doing(Action.READ_REGISTER)) -> Response:
    """A published release, checked anew."""
    desk = desk_of(request)
    found, made, bundle = desk.published(person, id_)
    context = shown_answer(desk, found, found.kind.shown(made), public=True)
    return page(request, "published.html", found=found, evidence=bundle.verify(), digest=_digest(bundle), **context)


@router.get("/register/{id_}/chart.svg")
def published_chart(
    request: Request, id_: str, narrow: bool = False, person: Person = doing(Action.READ_REGISTER)
) -> Response:
    """The plot of a published release."""
    found, made, _ = desk_of(request).published(person, id_)
    return drawn(found.kind.shown(made), id_, narrow=narrow)


@router.get("/register/{id_}/files/{name}")
def published_file(request: Request, id_: str, name: str, person: Person = doing(Action.READ_REGISTER)) -> Response:
    """A file of a published release."""
    return _file(*desk_of(request).published(person, id_), name)


@router.get("/verify")
def verify(request: Request, person: Person = doing(Action.READ_REGISTER)) -> Response:
    """A form for a bundle."""
    return page(request, "verify.html", evidence=None, problem=None, key=desk_of(request).key(person))


@router.post("/verify")
def verified(request: Request, *, person: Person = doing(Action.READ_REGISTER), form: Form) -> Response:
    """Check a bundle that somebody brings: it is read, and not kept."""
    sent, own = form.get("bundle"), desk_of(request).key(person)
    try:
        if not isinstance(sent, UploadFile):
            raise InvalidParameterError("No file was chosen.", fix="choose the file of a bundle.")
        evidence = Bundle.parse(sent.file.read().decode("ascii", "replace")).verify(key=own)
    except DefocusError as problem:
        return page(request, "verify.html", 422, evidence=None, problem=problem, key=own)
    return page(request, "verify.html", evidence=evidence, problem=None, key=own)


def _digest(bundle: Bundle) -> str:
    return sha256(bundle.text.encode()).hexdigest()


@router.get("/datasets/{name}/ledger")
def ledger(request: Request, name: str, check: bool = False, person: Person = doing(Action.READ_LEDGER)) -> Response:
    """Every entry of a ledger, newest first; and, if asked, whether all of it is as it was written."""
    desk = desk_of(request)
    book = desk.ledger(person, name)
    entries = list(book.entries())
    shown = entries[-_MOST:]
    prices = Prices.of(book.terms, shown)
    rows = [(entry, prices.epsilon(entry) if entry.kind == CHARGE else "") for entry in reversed(shown)]
    context = {"name": name, "book": book, "rows": rows, "total": len(entries), "anchor": book.anchor()}
    return page(request, "ledger.html", checked=desk.verify(person, name) if check else None, **context)


@router.get("/datasets/{name}/exposure")
def exposure(request: Request, name: str, person: Person = doing(Action.READ_LEDGER)) -> Response:
    """What an attacker with all answers of the data set can do at most."""
    desk = desk_of(request)
    context = {"name": name, "book": desk.ledger(person, name), "found": desk.exposure(person, name)}
    return page(request, "exposure.html", **context)


@router.get("/datasets/{name}/head.json")
def head(request: Request, name: str, person: Person = doing(Action.READ_LEDGER)) -> Response:
    """The signed head of a ledger, to keep elsewhere or to co-sign."""
    made = json.dumps(desk_of(request).head(person, name).to_dict(), separators=(",", ":"), sort_keys=True)
    keep = {"content-disposition": f'attachment; filename="{name}-head.json"'}
    return Response(made, media_type="application/json", headers=keep)
