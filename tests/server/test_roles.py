"""Role × action, as a whole: the table, the desk and every route."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi.routing import APIRoute
from tests.server.making import COUNT, Served

from defocus.errors import ForbiddenError
from defocus.server.access import action_of
from defocus.server.roles import PUBLIC, TABLE, Action, Person, Role, allowed, demand

EXPECTED = """
                 steward officer analyst auditor public
READ_REGISTER       x       x       x       x       x
SIGN_IN             x       x       x       x       x
SEE_DATASETS        x       x       x       x       .
PREVIEW             x       x       x       .       .
ASK                 .       x       x       .       .
SEE_REQUEST         x       x       x       x       .
CANCEL              .       x       x       .       .
SEE_QUEUE           x       x       .       x       .
DECIDE              .       x       .       .       .
PUBLISH             x       x       .       .       .
READ_LEDGER         x       x       .       x       .
DECLARE             x       .       .       .       .
MANAGE_PEOPLE       x       .       .       .       .
OWN_ACCOUNT         x       x       x       x       .
"""
"""The table once more, as people agreed on it; a change of the one in the code must be a change of this."""


SECRET = {
    *("/oidc/callback", "/api/v1/invitations/nothing", "/api/v1/session", "/sign-in", "/invitation/nothing"),
}
"""Routes that everybody may try, and that refuse who does not know a secret."""


@dataclass(frozen=True)
class Asked:
    asker: str


def pairs() -> list[tuple[str, str, bool]]:
    head, *lines = EXPECTED.strip("\n").split("\n")
    roles = head.split()
    return [
        (line.split()[0], role, mark == "x")
        for line in lines
        for role, mark in zip(roles, line.split()[1:], strict=True)
    ]


def test_every_action_is_in_the_table() -> None:
    assert set(TABLE) == set(Action)
    assert {(action, role) for action, role, _ in pairs()} == {(one.name, str(role)) for one in Action for role in Role}


@pytest.mark.parametrize(("action", "role", "may"), pairs())
def test_a_role_may_do_what_the_table_says_and_nothing_else(action: str, role: str, may: bool) -> None:
    who = PUBLIC if role == "public" else Person("7", "somebody", Role(role))
    assert allowed(who, Action[action]) is may
    if may:
        demand(who, Action[action])
    else:
        with pytest.raises(ForbiddenError, match="To fix: let one of these do it"):
            demand(who, Action[action])


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("action", list(Action))
def test_whose_a_request_is_only_ever_takes_away(role: Role, action: Action) -> None:
    who = Person("7", "somebody", role)
    for subject in (Asked("7"), Asked("8")):
        assert allowed(who, action, subject) <= allowed(who, action)


def test_nobody_decides_about_their_own_request_and_others_cannot_take_it_back() -> None:
    officer, analyst = Person("7", "Omar", Role.OFFICER), Person("8", "Ana", Role.ANALYST)
    assert not allowed(officer, Action.DECIDE, Asked("7"))
    assert allowed(officer, Action.DECIDE, Asked("8"))
    assert not allowed(officer, Action.CANCEL, Asked("8"))
    assert allowed(analyst, Action.SEE_REQUEST, Asked("8"))
    assert not allowed(analyst, Action.SEE_REQUEST, Asked("9"))
    with pytest.raises(ForbiddenError, match="your own request"):
        demand(officer, Action.DECIDE, Asked("7"))


def actions(route: APIRoute) -> list[Action]:
    return [action for each in route.dependant.dependencies if (action := action_of(each.call)) is not None]  # type: ignore[arg-type]


def routes(app: Any) -> list[APIRoute]:
    """Every route, also those of routers that are included; the files of pages apart, which everybody may see."""
    found: list[APIRoute] = []
    for route in app.routes:
        if hasattr(route, "original_router"):
            found += routes(route.original_router)
        elif getattr(route, "name", "") != "static":
            assert isinstance(route, APIRoute), route
            found.append(route)
    return found


def test_every_route_says_which_action_it_is_for(served: Served) -> None:
    assert len(routes(served.app)) > 40
    for route in routes(served.app):
        assert len(actions(route)) == 1, route.path


@pytest.mark.parametrize("role", list(Role))
def test_every_route_is_closed_to_every_role_that_its_action_does_not_allow(served: Served, role: Role) -> None:
    """Ids are those of nothing, so that what is allowed is not found; what is not allowed is refused before that."""
    with served.client(role) as client:
        for route in routes(served.app):
            (action,) = actions(route)
            path = re.sub(r"\{[^}]*\}", "nothing", route.path)
            for method in (route.methods or set()) - {"HEAD"}:
                status = client.request(method, path).status_code
                if role in TABLE[action]:
                    secret = path in SECRET
                    assert status not in {401, 403} or secret, (role, method, path, status)
                else:
                    assert status == (401 if role is Role.PUBLIC else 403), (role, method, path, status)
                assert status < 500, (role, method, path, status)


def test_an_analyst_is_not_told_whether_a_request_of_others_exists(served: Served) -> None:
    with served.client(Role.OFFICER) as officer, served.client(Role.ANALYST) as analyst:
        body = {"question": COUNT, "purpose": "planning", "reason": "beds"}
        theirs = officer.post("/api/v1/datasets/visits/requests", json=body).json()["id"]
        for path in ("", "/answer", "/bundle", "/record", "/events", "/answer.csv"):
            real = analyst.get(f"/api/v1/requests/{theirs}{path}")
            none = analyst.get(f"/api/v1/requests/0000000000000000{path}")
            assert (real.status_code, real.json()) == (none.status_code, none.json()) == (404, none.json())
        assert analyst.post(f"/api/v1/requests/{theirs}/cancel").status_code == 404
        assert officer.post(f"/api/v1/requests/{theirs}/decision", json={"decision": "approve"}).status_code == 403
