"""Pages about people: signing in, invitations, accounts and tokens, and everybody for stewards."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from defocus.errors import DefocusError, InvalidParameterError
from defocus.server.access import COOKIE, address_of, desk_of, doing, person_of
from defocus.server.api import set_session
from defocus.server.pages.rendering import LANGUAGE, Form, door, local, page, seen, text_of
from defocus.server.pages.translations import LANGUAGES
from defocus.server.roles import Action, Person, Role

__all__ = [
    "accept",
    "account",
    "end",
    "invite",
    "invited",
    "language",
    "new_token",
    "people",
    "revoke",
    "router",
    "sign_in",
    "sign_out",
    "signing_in",
]

router = APIRouter(include_in_schema=False)
_ROLES = [role for role in Role if role is not Role.PUBLIC]


@router.get("/language/{chosen}")
def language(request: Request, chosen: str, next: str = "/", _: Person = doing(Action.READ_REGISTER)) -> Response:  # noqa: A002
    """Show pages in another language from now on."""
    response = seen(request, local(next))
    if chosen in LANGUAGES:
        response.set_cookie(LANGUAGE, chosen, max_age=365 * 86400, httponly=True, samesite="lax")
    return response


@router.get("/sign-in")
def signing_in(request: Request, next: str = "/", _: Person = doing(Action.SIGN_IN)) -> Response:  # noqa: A002
    """Ask for a name and a password."""
    person_of(request)
    return door(request, after=local(next))


@router.post("/sign-in")
def sign_in(request: Request, *, _: Person = doing(Action.SIGN_IN), form: Form) -> Response:
    """Open a session."""
    name, after = text_of(form, "name"), local(text_of(form, "next", "/"))
    try:
        secret = desk_of(request).people.sign_in(name, str(form.get("password", "")), address_of(request))
    except DefocusError as problem:
        return door(request, 401, after=after, name=name, problem=problem)
    response = seen(request, after)
    set_session(request, response, secret)
    return response


@router.post("/sign-out")
def sign_out(request: Request, _: Person = doing(Action.SIGN_IN)) -> Response:
    """End the session."""
    desk_of(request).people.sign_out(request.cookies.get(COOKIE, ""))
    response = seen(request, "/")
    response.delete_cookie(COOKIE)
    return response


@router.get("/invitation/{secret}")
def invited(request: Request, secret: str, _: Person = doing(Action.SIGN_IN)) -> Response:
    """Ask somebody who was invited for a password."""
    name, role = desk_of(request).people.invitation(secret)
    return page(request, "invitation.html", name=name, role=role, problem=None)


@router.post("/invitation/{secret}")
def accept(request: Request, secret: str, *, _: Person = doing(Action.SIGN_IN), form: Form) -> Response:
    """Use a link once."""
    people = desk_of(request).people
    name, role = people.invitation(secret)
    try:
        session = people.accept(secret, _twice(form))
    except InvalidParameterError as problem:
        return page(request, "invitation.html", 422, name=name, role=role, problem=problem)
    response = seen(request, "/")
    set_session(request, response, session)
    return response


def _twice(form: Form) -> str:
    """A new password, which was typed twice."""
    if form.get("password") != form.get("again"):
        raise InvalidParameterError("The two passwords differ.", fix="type the same password twice.")
    return str(form.get("password", ""))


@router.get("/account")
def account(request: Request, person: Person = doing(Action.OWN_ACCOUNT)) -> Response:
    """Who one is here, and the tokens of one's programs."""
    return _account(request, person)


@router.post("/account/tokens")
def new_token(request: Request, *, person: Person = doing(Action.OWN_ACCOUNT), form: Form) -> Response:
    """Make a token, which is shown this once."""
    try:
        secret = desk_of(request).people.new_token(person, text_of(form, "name"))
    except InvalidParameterError as problem:
        return _account(request, person, 422, problem=problem)
    return _account(request, person, 201, secret=secret)


@router.post("/account/tokens/{id_}/revoke")
def revoke(request: Request, id_: str, person: Person = doing(Action.OWN_ACCOUNT)) -> Response:
    """End a token."""
    desk_of(request).people.revoke(person, id_)
    return seen(request, "/account")


def _account(request: Request, person: Person, status: int = 200, **more: Any) -> Response:
    desk = desk_of(request)
    context = {"tokens": desk.people.tokens(person), "address": desk.settings.address, "secret": None, "problem": None}
    return page(request, "account.html", status, **context | more)


@router.get("/people")
def people(request: Request, person: Person = doing(Action.MANAGE_PEOPLE)) -> Response:
    """Everybody, and a form to invite."""
    return _people(request, person)


@router.post("/people")
def invite(request: Request, *, person: Person = doing(Action.MANAGE_PEOPLE), form: Form) -> Response:
    """Make a link for somebody, which is shown this once."""
    name = text_of(form, "name")
    try:
        link = desk_of(request).invite(person, text_of(form, "role"), name)
    except InvalidParameterError as problem:
        return _people(request, person, 422, problem=problem, name=name)
    return _people(request, person, 201, link=link, name=name)


@router.post("/people/{id_}/end")
def end(request: Request, id_: str, person: Person = doing(Action.MANAGE_PEOPLE)) -> Response:
    """End somebody's access."""
    desk_of(request).people.end(person, id_)
    return seen(request, "/people")


def _people(request: Request, person: Person, status: int = 200, **more: Any) -> Response:
    everybody = desk_of(request).people.everybody(person)
    context = {"everybody": everybody, "roles": _ROLES, "link": None, "name": "", "problem": None}
    return page(request, "people.html", status, **context | more)
