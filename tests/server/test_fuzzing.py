"""The API under random questions: Schemathesis makes requests from the OpenAPI, as each role, and nothing gives way."""

import json
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from tests.server.making import SECRET, Served

from defocus.server.roles import Role

LEFT_OUT = ("/events", "/session", "/invitations")
"""Streams, which end with a request that there is not; and what guards against guessing, and would refuse the rest."""


def findings(served: Served, role: Role, examples: int) -> tuple[int, list[str]]:
    """How many requests were sent, and what was wrong with the responses."""
    schema = schemathesis.openapi.from_dict(served.app.openapi(), config=SchemathesisConfig())
    schema.location = f"{served.url}/api/v1/openapi.json"
    found: list[str] = []
    sent = 0
    headers = {} if role is Role.PUBLIC else {"authorization": f"Bearer {served.tokens[role]}"}
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]
        if any(part in operation.path for part in LEFT_OUT):
            continue

        @hypothesis.settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=[hypothesis.Phase.generate],
        )
        @hypothesis.given(case=operation.as_strategy())
        def send(case: Any) -> None:
            nonlocal sent
            response = case.call(base_url=served.url, headers=headers)
            sent += 1
            if response.status_code >= 500:
                found.append(f"{case.method} {case.path} {case.body!r}: {response.status_code} {response.text[:200]}")
            if response.status_code >= 400:
                kind = response.headers["content-type"][0]
                if kind != "application/problem+json":
                    found.append(f"{case.method} {case.path}: {response.status_code} as {kind}")
            if SECRET in response.text:
                found.append(f"{case.method} {case.path} shows a private value")

        send()
    return sent, found


@pytest.mark.parametrize("role", [Role.STEWARD, Role.ANALYST, Role.PUBLIC])
def test_no_random_request_makes_the_server_fail_or_tell(served: Served, role: Role) -> None:
    sent, found = findings(served, role, 3)
    assert sent > 60
    assert found == []


@pytest.mark.long
@pytest.mark.parametrize("role", list(Role))
def test_no_random_request_makes_the_server_fail_or_tell_in_thousands(served: Served, role: Role) -> None:
    sent, found = findings(served, role, 100)
    assert sent > 2000
    assert found == []


def test_the_description_is_plain_json(served: Served) -> None:
    assert json.loads(json.dumps(served.app.openapi())) == served.app.openapi()
