"""A small hospital on a server, with one person of each role; and the server as a thread that listens."""

import contextlib
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import uvicorn
from fastapi import FastAPI
from tests.waiting import HANGS

from defocus.server.app import create_app
from defocus.server.jobs import Jobs
from defocus.server.operations import Settings
from defocus.server.requests import Desk, Request
from defocus.server.roles import ADMINISTRATOR, PUBLIC, Person, Role

WORDS = "correct horse battery staple"
FILE = """
name = "visits"
data = "visits.parquet"
purposes = ["planning", "research"]
unit.column = "patient"
budget.epsilon = 10
budget.delta = 1e-6
bound.rows = 2
[columns.ward]
values = ["A", "B"]
[columns.days]
low = 0
high = 30
"""
COUNT = {"sql": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "epsilon": 0.5}
SECRET = "Zebediah-Quux"  # noqa: S105  # nobody signs in with it
"""A value in the data that must stand nowhere else."""
NAMES = {Role.STEWARD: "Sofia", Role.OFFICER: "Omar", Role.ANALYST: "Ana", Role.AUDITOR: "Aki"}


def rows(number: int = 400) -> pa.Table:
    return pa.table(
        {
            "patient": [i // 2 for i in range(number)],
            "ward": ["A" if i % 3 else "B" for i in range(number)],
            "days": [float(i % 20) for i in range(number)],
            "name": [SECRET if i == 7 else f"name {i}" for i in range(number)],
        }
    )


def hospital(home: Path, text: str = FILE, **settings: Any) -> Desk:
    """A desk with the data set that the text declares."""
    desk = Desk(Settings(home=home, **settings))
    folder = desk.settings.folder("visits")
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(), folder / "visits.parquet")
    if not desk.datasets.all():
        desk.declare(ADMINISTRATOR, text, "a test")
    return desk


def person(desk: Desk, role: Role, name: str | None = None) -> Person:
    """Somebody new, or who is known already; without a password, which takes long to hash."""
    called = NAMES[role] if name is None else name
    if called not in desk.people.names().values():
        desk.people.invite(ADMINISTRATOR, role, called)
    return desk.people.of_session(desk.people.sign_in_as(called))


def everybody(desk: Desk) -> dict[Role, Person]:
    """One person of each role, and the public."""
    return {**{role: person(desk, role) for role in NAMES}, Role.PUBLIC: PUBLIC}


def approve(desk: Desk, officer: Person, id_: str, words: str = "") -> Request:
    """What an officer does who has looked at the preview."""
    return desk.decide(officer, id_, "approve", words, desk.foresee(officer, id_).declared)


@contextlib.contextmanager
def working(desk: Desk) -> Iterator[Jobs]:
    """The desk with its workers."""
    jobs = Jobs(desk)
    object.__setattr__(desk, "wake", jobs.wake)
    jobs.start()
    try:
        yield jobs
    finally:
        jobs.stop()


def finished(desk: Desk, who: Person, id_: str) -> Request:
    """A request once nothing more happens to it."""
    while not (found := desk.request(who, id_)).done:
        time.sleep(0.01)
    return found


@dataclass
class Served:
    """A server that listens, its desk and the tokens of its people."""

    app: FastAPI
    url: str
    desk: Desk
    people: dict[Role, Person]
    tokens: dict[Role, str]

    def client(self, role: Role | None = None) -> httpx.Client:
        headers = {} if role in {None, Role.PUBLIC} else {"authorization": f"Bearer {self.tokens[Role(str(role))]}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=HANGS)


@contextlib.contextmanager
def serving(home: Path, text: str = FILE, **settings: Any) -> Iterator[Served]:
    """The small hospital on a port of this machine."""
    hospital(home, text, **settings).close()
    app = create_app(Settings(home=home, **settings))
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    desk: Desk = app.state.desk
    people = everybody(desk)
    tokens = {role: desk.people.new_token(who, secrets.token_hex(4)) for role, who in people.items() if who.signed_in}
    try:
        yield Served(app, f"http://127.0.0.1:{port}", desk, people, tokens)
    finally:
        server.should_exit = True
        thread.join()
