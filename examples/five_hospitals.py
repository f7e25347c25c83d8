"""Five hospitals answer one question together, as processes of their own, and go on when machines fail.

Each has its rows, its ledger and its key; they know each other by certificates, and talk over TLS on this machine. A
coordinator, who sees no row, asks three times: all are there; one is killed as by a loss of power; it is back. What it
prints beside each answer is the truth about the hospitals that took part, which nobody outside this example has, and
what the one that was killed still has left: the answer it took no part in cost it nothing.

Run it with ``.venv/bin/python examples/five_hospitals.py``; it takes some ten seconds, and everything is made up.
"""

import os
import random
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from sys import executable
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

import defocus as dp
from defocus.federated import make_identity

NAMES = ("north", "south", "east", "west", "centre")
PATIENTS, LONGEST = 2000, 20
QUESTION = "SELECT COUNT(*) AS visits, AVG(days) AS stay FROM visits"
SERVE = "from defocus.federated import serve_site; serve_site({!r})"


def free_ports(number: int) -> list[int]:
    """Ports of this machine that nobody listens on."""
    opened = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    found = [each.getsockname()[1] for each in opened]
    for each in opened:
        each.close()
    return found


def write_files(home: Path) -> dict[str, list[int]]:
    """Keys, certificates, rows and declarations of all hospitals; how long the patients of each stayed."""
    stays: dict[str, list[int]] = {}
    members = ["dropouts = 1", '[coordinator]\ncertificate = "coordinator.pem"']
    make_identity("coordinator", home)
    for name, port in zip(NAMES, free_ports(len(NAMES)), strict=True):
        make_identity(name, home)
        members.append(f'[sites.{name}]\naddress = "127.0.0.1:{port}"\ncertificate = "{name}.pem"')
        draw = random.Random(name)  # noqa: S311 -- made-up rows
        stays[name] = [min(LONGEST, int(draw.expovariate(0.2))) for _ in range(PATIENTS)]
        rows = pa.table({"patient": [f"{name}-{i}" for i in range(PATIENTS)], "days": stays[name]})
        pq.write_table(rows, home / f"{name}.parquet")
        (home / f"{name}-data.toml").write_text(
            f'name = "visits"\ndata = "{name}.parquet"\nledger = "{name}.ledger"\n[unit]\ncolumn = "patient"\n'
            f"[budget]\nepsilon = 3\n[bound]\nrows = 1\n[columns.days]\nlow = 0\nhigh = {LONGEST}\n",
            "utf-8",
        )
        (home / f"{name}.toml").write_text(
            f'name = "{name}"\nfederation = "federation.toml"\ndataset = "{name}-data.toml"\nkey = "{name}.key"\n'
            "most_epsilon = 1\n",
            "utf-8",
        )
    (home / "federation.toml").write_text("\n".join(members), "utf-8")
    return stays


def started(home: Path, name: str) -> subprocess.Popen[str]:
    """A hospital that listens."""
    site = subprocess.Popen(  # noqa: S603 -- our own program
        [executable, "-c", SERVE.format(str(home / f"{name}.toml"))], stdout=subprocess.PIPE, text=True
    )
    if site.stdout is not None:
        site.stdout.readline()  # it says when it listens
    return site


@contextmanager
def hospitals(home: Path) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """All of them, until the end of the block."""
    sites = {name: started(home, name) for name in NAMES}
    try:
        yield sites
    finally:
        for site in sites.values():
            site.kill()
            site.communicate()


def show(what: str, home: Path, stays: Mapping[str, list[int]]) -> None:
    """Ask, and print the answer beside the truth about those who took part."""
    answer = dp.federation(home / "federation.toml").sql(QUESTION, epsilon=0.5, purpose="how long patients stay")
    out = [name for name in NAMES if any(str(rule).startswith(f"{name} took no part") for rule in answer.rules)]
    there = [days for name in NAMES if name not in out for days in stays[name]]
    visits, stay = (answer[name].values[0] for name in ("visits", "stay"))
    print(f"{what}: {visits:.0f} visits ({len(there)}), {stay:.2f} days ({sum(there) / len(there):.2f})")
    for rule in answer.rules:
        if "took no part" in str(rule):
            print(f"  {rule}")


def main() -> None:
    """Ask three times."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        stays = write_files(home)
        with hospitals(home) as sites:
            show("all five", home, stays)
            os.kill(sites["east"].pid, signal.SIGKILL)
            sites["east"].communicate()
            show("one is down", home, stays)
            sites["east"] = started(home, "east")
            show("it is back", home, stays)
            for name, left in dp.federation(home / "federation.toml").budgets().items():
                print(f"{name}: {left}")


if __name__ == "__main__":
    main()
