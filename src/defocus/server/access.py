"""Who is at the door: the person of an HTTP request, and the action that each route is for."""

from collections.abc import Callable
from typing import Any

from fastapi import Depends, Request

from defocus.server.requests import Desk
from defocus.server.roles import PUBLIC, Action, Person, demand

__all__ = ["COOKIE", "action_of", "address_of", "desk_of", "doing", "has_token", "person_of"]

COOKIE = "defocus_session"
_BEARER = "bearer "


def desk_of(request: Request) -> Desk:
    """The desk of the server."""
    found: Desk = request.app.state.desk
    return found


def address_of(request: Request) -> str:
    """From where a request comes."""
    return request.client.host if request.client else ""


def has_token(request: Request) -> bool:
    """Whether a program sent a token. Browsers add other kinds of authorization by themselves, and never this one."""
    return request.headers.get("authorization", "").lower().startswith(_BEARER)


def person_of(request: Request) -> Person:
    """Who sent a request: by a token, else by a session, else the public."""
    known = getattr(request.state, "person", None)
    if isinstance(known, Person):
        return known
    desk = desk_of(request)
    if has_token(request):
        secret = request.headers["authorization"][len(_BEARER) :].strip()
        person = desk.people.of_token(secret, address_of(request))
    else:
        person = desk.people.of_session(request.cookies.get(COOKIE)) if COOKIE in request.cookies else PUBLIC
    request.state.person = person
    return person


def doing(action: Action) -> Any:
    """What a route is for: its person, who may do that. Every route has exactly one of these."""

    def acting(request: Request) -> Person:
        person = person_of(request)
        demand(person, action)
        return person

    acting.action = action  # type: ignore[attr-defined]
    return Depends(acting)


def action_of(call: Callable[..., Any]) -> Action | None:
    """The action that a dependency made by :func:`doing` is for."""
    found = getattr(call, "action", None)
    return found if isinstance(found, Action) else None
