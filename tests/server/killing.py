"""A server that is killed again and again while people ask: ``python killing.py HOME KILLS SEED``.

Everything is imported once, in a process without threads, of which each server is a fork: so a start takes no longer
than opening its files, and 200 of them a few minutes. What was acknowledged is compared with what is found at the end.
"""

import contextlib
import http.client
import importlib
import json
import os
import random
import signal
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import uvicorn
from tests.forking import forked
from tests.server import making
from tests.waiting import HANGS

from defocus.ledger import Ledger
from defocus.server.app import create_app
from defocus.server.operations import Settings
from defocus.server.roles import ADMINISTRATOR, Role

TEXT = making.FILE.replace("budget.epsilon = 10", "budget.epsilon = 100000")
QUESTION = {**making.COUNT, "epsilon": 0.01}
DONE = {"released", "failed", "refused", "cancelled"}


def prepare(home: Path) -> None:
    desk = making.hospital(home, TEXT)
    desk.datasets.set_policy(ADMINISTRATOR, "visits", automatic=1, most=None, why="a test")
    ana, aki = making.person(desk, Role.ANALYST), making.person(desk, Role.AUDITOR)
    (home / "tokens").write_text("\n".join(desk.people.new_token(who, "test") for who in (ana, aki)))
    started = time.monotonic()
    with making.working(desk):
        done = making.finished(desk, ana, desk.submit(ana, "visits", QUESTION, "planning", "a test", "first").id)
        desk.answer(ana, done.id).to_dict()
    (home / "takes").write_text(str(time.monotonic() - started))
    desk.close()
    (home / "modules").write_text("\n".join(sorted(sys.modules)))


def serve(home: Path, port: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    uvicorn.run(create_app(Settings(home=home)), host="127.0.0.1", port=port, log_level="critical", access_log=False)


def call(port: int, token: str, method: str, path: str, body: Any = None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGS)
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        said = json.loads(response.read() or b"null")
    finally:
        connection.close()
    assert response.status < 300, (path, response.status, said)
    return said


def ready(port: int, pid: int) -> bool:
    """Whether the server answers; False if it ended."""
    while True:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return False
        try:
            call(port, "", "GET", "/api/v1/key")
        except (OSError, http.client.HTTPException, AssertionError):
            time.sleep(0.005)
        else:
            return True


def killing(pid: int, moment: float) -> int:
    """Kill a process at a moment."""

    def kill() -> None:
        time.sleep(moment)
        os.kill(pid, signal.SIGKILL)

    return forked(kill)


def asked(port: int, token: str, name: str) -> dict[str, Any]:
    body = {"question": QUESTION, "purpose": "planning", "reason": "a test", "request": name}
    found: dict[str, Any] = call(port, token, "POST", "/api/v1/datasets/visits/requests", body)
    return found


def main(home: Path, kills: int, seed: int) -> None:
    rng, door = random.Random(seed), reserved_port()
    port = door.getsockname()[1]
    os.waitpid(forked(lambda: prepare(home)), 0)
    for module in (home / "modules").read_text().split("\n"):  # what a server loads when it is first asked
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    ana, _ = (home / "tokens").read_text().split("\n")
    window = max(1.0, 2 * float((home / "takes").read_text()))  # a busy machine is slow
    known: dict[str, str] = {}
    answers: dict[str, Any] = {}
    for number in range(kills):
        pid = forked(lambda: serve(home, port))
        starting, moment = number % 5 == 4, rng.uniform(0, window)
        killer = killing(pid, moment) if starting else 0
        try:
            if ready(port, pid):
                killer = killer or (killing(pid, moment) if known else 0)
                for serial in range(1000):
                    name = f"{number}-{serial}"
                    known[name] = asked(port, ana, name)["id"]
                    killer = killer or killing(pid, moment)  # however slow the machine is, one is acknowledged
                    older = rng.choice(list(known))
                    if call(port, ana, "GET", f"/api/v1/requests/{known[older]}")["state"] == "released":
                        answer = call(port, ana, "GET", f"/api/v1/requests/{known[older]}/answer")
                        assert answers.setdefault(older, answer) == answer, older
        except (OSError, http.client.HTTPException):  # it was killed
            pass
        os.waitpid(pid, 0)
        if killer:
            os.waitpid(killer, 0)
    print(json.dumps({"kills": kills, **compared(home, port, known, answers)}))  # noqa: T201


def compared(home: Path, port: int, known: dict[str, str], answers: dict[str, Any]) -> dict[str, int]:
    """What became of everything that was acknowledged, on a server that is not killed, and in the ledger."""
    ana, aki = (home / "tokens").read_text().split("\n")
    pid = forked(lambda: serve(home, port))
    assert ready(port, pid)
    states: Counter[str] = Counter()
    for name, id_ in known.items():
        assert asked(port, ana, name)["id"] == id_
        while (found := call(port, ana, "GET", f"/api/v1/requests/{id_}"))["state"] not in DONE:
            time.sleep(0.02)
        states[found["state"]] += 1
        if found["state"] == "released":
            answer = call(port, ana, "GET", f"/api/v1/requests/{id_}/answer")
            assert answers.setdefault(name, answer) == answer, name
        else:
            assert found["state"] == "failed", found
            assert "it was charged" in found["why"], found
    assert set(answers) <= set(known)
    listed = call(port, aki, "GET", "/api/v1/requests?most=500")
    assert all(one["state"] in DONE for one in listed), [one for one in listed if one["state"] not in DONE]
    assert call(port, aki, "GET", "/api/v1/datasets/visits/verification")["ok"]
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    with Ledger.open(home / "datasets" / "visits" / "data.ledger", read_only=True) as book:
        entries = list(book.entries())
    charges = Counter(entry.content["request"] for entry in entries if entry.kind == "charge")
    recorded = {entry.content["charge"] for entry in entries if entry.kind == "release"}
    assert set(charges.values()) <= {1}, "a request was charged twice"
    assert set(known.values()) <= set(charges), "a charge was lost"
    kept = {entry.content["request"] for entry in entries if entry.kind == "charge" and entry.sequence in recorded}
    assert len(kept & set(known.values())) == states["released"], "a recorded answer was not returned"
    return {"asked": len(known), "charges": sum(charges.values()), **states}


def reserved_port() -> socket.socket:
    """A port that nobody else is given: bound without listening, so that one server after the other can have it."""
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind(("127.0.0.1", 0))
    return door


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
