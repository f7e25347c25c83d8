"""The door of the server: bodies, origins, headers, secrets and failures; what is logged, and what never is."""

import io
import json
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.making import COUNT, FILE, SECRET, WORDS, Served, finished

from defocus import Budget, Ledger, rows
from defocus.mechanisms import Laplace
from defocus.release import release
from defocus.server.app import HEADERS
from defocus.server.requests import Desk
from defocus.server.roles import Role

XSS = "<script>alert(1)</script>"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler, logger = logging.StreamHandler(stream), logging.getLogger("defocus.server")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)


@pytest.fixture
def ana(served: Served) -> Iterator[httpx.Client]:
    with served.client(Role.ANALYST) as client:
        yield client


@pytest.fixture
def sofia(served: Served) -> Iterator[httpx.Client]:
    with served.client(Role.STEWARD) as client:
        yield client


def is_problem(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    said: dict[str, Any] = response.json()
    assert said.keys() == {"type", "title", "status", "detail", "fix"}
    assert said["status"] == status
    return said


def test_every_response_has_the_headers_that_protect_a_browser(served: Served, ana: httpx.Client) -> None:
    for response in (ana.get("/health"), ana.get("/nothing"), ana.get("/api/v1/me"), ana.post("/api/v1/nothing")):
        for name, value in HEADERS.items():
            assert response.headers[name] == value
        assert response.headers["cache-control"] == "no-store"
    csp = HEADERS["content-security-policy"]
    assert "unsafe" not in csp
    assert "default-src 'none'" in csp
    assert served.url.startswith("http://127.0.0.1")


def test_refusals_are_problem_details(ana: httpx.Client) -> None:
    assert (
        "line 1, column 8"
        in is_problem(
            ana.post(
                "/api/v1/datasets/visits/preview", json={"question": {"sql": "SELECT name FROM visits", "epsilon": 1}}
            ),
            422,
        )["detail"]
    )
    is_problem(ana.get("/api/v1/datasets/none"), 404)
    is_problem(ana.get("/api/v1/nothing"), 404)
    is_problem(ana.delete("/api/v1/me"), 405)
    is_problem(ana.post("/api/v1/datasets/visits/preview", content=b"{"), 422)
    said = is_problem(ana.post("/api/v1/datasets/visits/requests", json={"question": 3, "extra": WORDS}), 422)
    assert WORDS not in json.dumps(said)


def test_a_page_of_somebody_else_cannot_act_with_a_session(served: Served) -> None:
    """CSRF: with the cookie, and from elsewhere, nothing is changed."""
    secret = served.desk.people.sign_in_as("Ana")
    body = {"name": "stolen"}
    before = len(served.desk.people.tokens(served.people[Role.ANALYST]))
    with httpx.Client(base_url=served.url, cookies={"defocus_session": secret}) as browser:
        for headers in (
            {},
            {"origin": "https://evil.example"},
            {"origin": "null"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site", "origin": served.url},
            {"sec-fetch-site": "none"},
            {"origin": f"{served.url}.evil.example"},
        ):
            refused = browser.post("/api/v1/tokens", json=body, headers=headers)
            is_problem(refused, 403)
            assert "Authorization: Bearer" in refused.json()["fix"]
        assert len(served.desk.people.tokens(served.people[Role.ANALYST])) == before
        for headers in ({"sec-fetch-site": "same-origin"}, {"origin": served.url}):
            assert browser.post("/api/v1/tokens", json=body, headers=headers).status_code == 201
        assert browser.get("/api/v1/me").json()["name"] == "Ana"


@pytest.mark.parametrize("headers", [{"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}])
def test_a_page_of_somebody_else_cannot_sign_a_browser_in(served: Served, headers: dict[str, str]) -> None:
    """A browser leaves the cookie out there, and would take the session of somebody else in its place."""
    link = served.desk.people.invite(served.people[Role.STEWARD], "analyst", "Eve")
    served.desk.people.accept(link, WORDS)
    said = {"name": "Eve", "password": WORDS}
    with served.client() as browser:
        is_problem(browser.post("/sign-in", data=said, headers=headers), 403)
        is_problem(browser.post("/api/v1/session", json=said, headers=headers), 403)
        assert not browser.cookies
        assert browser.post("/sign-in", data=said, headers={"sec-fetch-site": "same-origin"}).status_code == 303


def test_a_password_of_a_proxy_opens_no_way_for_other_pages(served: Served) -> None:
    """A browser sends that of HTTP Basic by itself, so it proves nothing about the page."""
    cookies = {"defocus_session": served.desk.people.sign_in_as("Ana")}
    headers = {"authorization": "Basic YTpi", "sec-fetch-site": "same-site"}
    with httpx.Client(base_url=served.url, cookies=cookies) as browser:
        is_problem(browser.post("/api/v1/tokens", json={"name": "stolen"}, headers=headers), 403)


def test_a_bundle_of_another_key_is_not_verified_as_one_of_this_server(served: Served, tmp_path: Path) -> None:
    book = Ledger.open(tmp_path / "a.ledger", budget=Budget(1), unit=rows(), dataset="visits")
    release(Laplace(scale=4), 1402, ledger=book, purpose="patients", request="May")
    forged = book.bundle("May", key=tmp_path / "own.key")
    book.close()
    assert forged.verify().ok
    with served.client() as client:
        page = client.post("/verify", files={"bundle": ("may.bundle", forged.text)}).text
    assert "another key" in page


def test_a_session_is_for_no_script_and_no_other_site(served: Served) -> None:
    link = served.desk.people.invite(served.people[Role.STEWARD], "analyst", "Bo")
    with served.client() as client:
        response = client.post(f"/api/v1/invitations/{link}", json={"password": WORDS})
        cookie = response.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert client.post("/api/v1/session", json={"name": "Bo", "password": WORDS}).status_code == 403  # no origin
        client.cookies.clear()
        assert client.post("/api/v1/session", json={"name": "Bo", "password": WORDS}).status_code == 204
        assert client.delete("/api/v1/session", headers={"origin": served.url}).status_code == 204
        assert client.get("/api/v1/me").status_code == 401


def test_oversized_bodies_are_refused_before_they_are_read(served: Served, sofia: httpx.Client) -> None:
    is_problem(sofia.post("/api/v1/datasets/check", content=b"x" * (2 << 20)), 413)

    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b"x" * (1 << 16)

    is_problem(sofia.post("/api/v1/datasets/check", content=endless()), 413)
    deep = {"question": json.loads("[" * 500 + "]" * 500), "purpose": "planning", "reason": "x"}
    assert sofia.post("/api/v1/datasets/visits/preview", json=deep).status_code == 422
    long = {"question": {**COUNT, "sql": "SELECT " + "1+" * 300_000}}
    assert sofia.post("/api/v1/datasets/visits/preview", json=long).status_code == 422
    assert served.desk.settings.largest > 2 << 20


@pytest.mark.parametrize(
    "name", ["../x.parquet", "..%2fx.parquet", "%2e%2e%2f%2e%2e%2fserver.db", "x.parquet%00.csv", "x.py", "....//x.csv"]
)
def test_an_upload_stays_in_its_folder(served: Served, sofia: httpx.Client, name: str) -> None:
    before = sorted(served.desk.settings.home.rglob("*"))
    response = sofia.put(f"/api/v1/datasets/visits/files/{name}", content=b"a,b\n")
    assert response.status_code in {404, 405, 422}
    assert [path for path in sorted(served.desk.settings.home.rglob("*")) if "running" not in str(path)] == [
        path for path in before if "running" not in str(path)
    ]


def test_an_upload_is_kept_and_can_be_declared(sofia: httpx.Client) -> None:
    assert sofia.put("/api/v1/datasets/stays/files/stays.csv", content=b"who,days\n1,2\n").status_code == 201
    text = FILE.replace('"visits"', '"stays"').replace("visits.parquet", "stays.csv").replace('"patient"', '"who"')
    text = text.replace('[columns.ward]\nvalues = ["A", "B"]', '[columns.who]\nkind = "integer"')
    body = {"text": text.replace("[columns.days]", '[columns.days]\nkind = "number"'), "why": "new data"}
    assert sofia.post("/api/v1/datasets", json=body).json() == {"name": "stays"}
    assert sofia.get("/api/v1/datasets/stays").json()["columns"][0]["name"] == "who"


def test_text_that_would_act_in_a_page_comes_back_as_data(served: Served, ana: httpx.Client) -> None:
    body = {"question": COUNT, "purpose": "planning", "reason": XSS, "request": XSS}
    response = ana.post("/api/v1/datasets/visits/requests", json=body)
    assert response.json()["reason"] == XSS
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"
    problem = is_problem(ana.get(f"/api/v1/datasets/{XSS.replace('/', '%2f')}"), 404)
    assert XSS not in problem["detail"]
    assert served.desk.history(served.people[Role.ANALYST])


def test_guessing_of_tokens_and_passwords_ends_in_429(tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.server.making import serving  # noqa: PLC0415

    with serving(tmp_path_factory.mktemp("guessed")) as guessed, guessed.client() as client:
        statuses = [
            client.get("/api/v1/me", headers={"authorization": f"Bearer dfc_{n}"}).status_code for n in range(12)
        ]
        assert statuses == [401] * 10 + [429] * 2
        tries = [client.post("/api/v1/session", json={"name": "Ana", "password": "no"}).status_code for _ in range(12)]
        assert tries == [401] * 10 + [429] * 2


def test_no_private_value_and_no_secret_is_logged_or_told(
    served: Served, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = served.desk.people.invite(served.people[Role.STEWARD], "analyst", "Cy")

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"{SECRET} was here")

    with served.client(Role.ANALYST) as client:
        client.get(f"/api/v1/invitations/{link}")
        client.post("/api/v1/session", json={"name": "Cy", "password": WORDS})
        client.post("/api/v1/datasets/visits/preview", json={"question": COUNT})
        monkeypatch.setattr(Desk, "preview", fails)
        failed = client.post("/api/v1/datasets/visits/preview", json={"question": COUNT})
    said = is_problem(failed, 500)
    while "failed" not in log.getvalue():  # it is logged once it is sent
        time.sleep(0.01)
    text = log.getvalue()
    for secret in (SECRET, link, WORDS, served.tokens[Role.ANALYST], "SELECT"):
        assert secret not in text
        assert secret not in json.dumps(said)
    lines = [json.loads(line) for line in text.strip().split("\n")]
    assert lines[-1]["route"] == "/api/v1/datasets/{name}/preview"
    assert lines[-1]["failed"].startswith("RuntimeError at test_app.py:")
    assert lines[-1]["request"] in said["detail"]
    assert {line["route"] for line in lines} >= {"/api/v1/invitations/{secret}"}


def test_health_and_metrics_tell_how_the_server_is(served: Served) -> None:
    with served.client(Role.AUDITOR) as client:
        assert client.get("/health").json() == {"status": "ok"}
        text = client.get("/metrics").text
    assert re.search(r'defocus_responses_total\{method="GET",route="/health",status="200"\} \d+', text)
    assert "defocus_requests" in text


def test_progress_is_told_as_it_happens_until_the_request_is_done(served: Served, ana: httpx.Client) -> None:
    served.desk.datasets.set_policy(served.people[Role.STEWARD], "visits", automatic=1, most=None, why="a test")
    question = {"sql": "SELECT AVG(days) AS stay FROM visits", "epsilon": 0.5}
    body = {"question": question, "purpose": "planning", "reason": "beds"}
    id_ = ana.post("/api/v1/datasets/visits/requests", json=body).json()["id"]
    with ana.stream("GET", f"/api/v1/requests/{id_}/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: ")]
    assert events[-1]["state"] == "released"
    assert finished(served.desk, served.people[Role.ANALYST], id_).state == "released"
    assert ana.get(f"/api/v1/requests/{id_}/answer.csv").text.startswith('"stay"')
    assert ana.get(f"/api/v1/requests/{id_}/answer").json()["question"]
    bundle = ana.get(f"/api/v1/requests/{id_}/bundle").text
    with served.client(Role.OFFICER) as omar, served.client() as public:
        assert omar.post(f"/api/v1/requests/{id_}/publication").status_code == 204
        assert public.get("/api/v1/register").json()[0]["id"] == id_
        assert public.get(f"/api/v1/register/{id_}").json()["answer"]
        assert json.loads(public.get(f"/api/v1/register/{id_}/bundle").text).keys() == json.loads(bundle).keys()
        assert "asker_name" not in public.get(f"/api/v1/register/{id_}").text


def test_the_api_describes_itself(served: Served) -> None:
    with served.client() as client:
        said = client.get("/api/v1/openapi.json").json()
    assert said["openapi"].startswith("3.1")
    assert len(said["paths"]) > 35
