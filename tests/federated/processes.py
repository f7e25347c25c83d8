"""Sites as processes of this machine: one process imports everything once, and forks into a site when asked.

It may be told where a site is to kill itself, and each site writes down what it sends into a secure sum.
"""

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from defocus.federated import make_identity

POINTS = tuple(
    f"{what}{when}" for what in ("offer", "charge", *(f"sum{i}" for i in range(1, 6)), "done") for when in "-+"
)
"""Before and after what a site does for a question that takes one sum."""


def free_ports(number: int) -> list[int]:
    """Ports that no program is given by itself, since those begin above, and that no other worker of a run asks for."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 8
    found: list[int] = []
    while len(found) < number:
        port = 20_000 + 1_500 * worker + int.from_bytes(os.urandom(8)) % 1_500
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found += [] if port in found else [port]
    return found


class Sites:
    """Running sites by name, of the files in one folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.pids: dict[str, int] = {}
        self._maker = subprocess.Popen(  # noqa: S603
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def start(self, *names: str, dies: str = "") -> None:
        """Start sites and wait until they listen; each kills itself at a point, if one is named."""
        assert self._maker.stdin is not None
        assert self._maker.stdout is not None
        for name in names:
            self._maker.stdin.write(f"{self.home / name}.toml\t{dies}\n")
        self._maker.stdin.flush()
        for _ in range(2 * len(names)):  # two lines of each, in any order
            said = self._maker.stdout.readline().split()
            assert said[:1] in (["pid"], ["listening"]), f"a site did not start, but said {said}"
            if said[0] == "pid":
                self.pids[said[1]] = int(said[2])

    def ask(self, sql: str, epsilon: float, *, dies: int) -> None:
        """Ask as a coordinator that kills itself before it sends so many frames, and wait for its end."""
        assert self._maker.stdin is not None
        assert self._maker.stdout is not None
        asked = json.dumps({"sql": sql, "epsilon": epsilon, "dies": dies})
        self._maker.stdin.write(f"{self.home / 'federation.toml'}\t{asked}\n")
        self._maker.stdin.flush()
        self.pids["federation"] = int(self._maker.stdout.readline().split()[2])
        self.gone("federation")

    def kill(self, *names: str) -> None:
        """Kill sites as a loss of power would, and wait until they are gone."""
        for name in filter(self.pids.get, names):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pids[name], signal.SIGKILL)
            self.gone(name)

    def gone(self, name: str) -> None:
        """Wait for the end of a site."""
        while name in self.pids:
            try:
                os.kill(self.pids[name], 0)
                time.sleep(0.01)
            except ProcessLookupError:
                del self.pids[name]

    def sent(self, name: str) -> list[dict[str, Any]]:
        """What a site sent into sums: its vector before noise and after, and how many shares it counts on."""
        place = self.home / f"{name}.sent"
        return [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []

    def spare(self, name: str, missing: int, dropouts: int) -> int:
        """What a site added last for so many that are missing; if any are, that stays in the sum."""
        place = self.home / f"{name}.spare"
        drawn = [int(line) for line in place.read_text().splitlines()] if place.exists() else []
        return sum(drawn[len(drawn) - dropouts :][:missing])

    def close(self) -> None:
        """End all of them."""
        os.killpg(self._maker.pid, signal.SIGKILL)  # all that it forked, also those that nobody heard of
        self._maker.communicate()


def declared(home: Path, names: Sequence[str], **facts: int) -> None:
    """Write keys, certificates, rows of 200 people for each site, and all files of a federation."""
    made = [f"{name} = {value}" for name, value in facts.items()]
    said = ['name = "hospitals"', *made, '[coordinator]\ncertificate = "coordinator.pem"']
    make_identity("coordinator", home)
    for name, port in zip(names, free_ports(len(names)), strict=True):
        make_identity(name, home)
        said.append(f'[sites.{name}]\naddress = "127.0.0.1:{port}"\ncertificate = "{name}.pem"')
        stays = pa.table({"patient": [f"{name}-{i}" for i in range(200)], "days": [i % 20 for i in range(200)]})
        pq.write_table(stays, home / f"{name}.parquet")
        (home / f"{name}-data.toml").write_text(
            f'name = "visits"\ndata = "{name}.parquet"\nledger = "{name}.ledger"\n[unit]\ncolumn = "patient"\n'
            "[budget]\nepsilon = 1000\n[bound]\nrows = 1\n[columns.days]\nlow = 0\nhigh = 20\n"
        )
        (home / f"{name}.toml").write_text(
            f'name = "{name}"\nfederation = "federation.toml"\ndataset = "{name}-data.toml"\nkey = "{name}.key"\n'
            "most_epsilon = 20\n"
        )
    (home / "federation.toml").write_text("\n".join(said))


@contextlib.contextmanager
def sites_in(home: Path, names: Sequence[str]) -> Iterator[Sites]:
    """Sites that run, and none afterwards."""
    made = Sites(home)
    try:
        made.start(*names)
        yield made
    finally:
        made.close()


def _serve(config: str, dies: str) -> None:
    """What a site does; ``dies`` is a point, such as ``sum3+``."""
    from defocus.federated import SumPlan, lockstep, serve_site  # noqa: PLC0415
    from defocus.federated.transport import Channel, Frame  # noqa: PLC0415
    from defocus.ledger import Ledger  # noqa: PLC0415
    from defocus.mechanisms.noise_shares import NoiseShare  # noqa: PLC0415

    vectors = itertools.count(1)

    def at(what: str, do: Callable[[], Any]) -> Any:
        if dies == f"{what}-":
            os.kill(os.getpid(), signal.SIGKILL)
        made = do()
        if dies == f"{what}+":
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    send, say, charge, sample = Channel.send, Channel.say, Ledger.charge, NoiseShare.sample
    added = lockstep.Link._added
    exact: list[list[int]] = []

    def sending(self: Channel, kind: Any, body: bytes) -> None:
        name = f"sum{next(vectors)}" if kind is Frame.SUM else "other"
        at(name, lambda: send(self, kind, body))

    def saying(self: Channel, said: Any) -> None:
        at(said["do"], lambda: say(self, said))

    def charging(self: Any, *given: Any, **named: Any) -> Any:
        return at("charge", lambda: charge(self, *given, **named))

    def sampling(self: Any, value: Any, bits: Any = None) -> Any:
        exact.append([int(one) for one in np.ravel(value)])
        return sample(self, value, bits)

    def adding(self: Any, vector: Any, spare: Any) -> Any:
        said = {"exact": exact.pop(), "noisy": vector.tolist(), "honest": self.honest}
        with Path(config).with_suffix(".sent").open("a") as file:
            file.write(json.dumps(said) + "\n")
        return added(self, vector, spare)

    for owner, name, replaced in (
        (Channel, "send", sending),
        (Channel, "say", saying),
        (Ledger, "charge", charging),
        (NoiseShare, "sample", sampling),
        (lockstep.Link, "_added", adding),
        (SumPlan, "spare_noise", _noting(config, SumPlan.spare_noise)),
    ):
        setattr(owner, name, replaced)
    serve_site(config)


def _noting(config: str, drawn: Callable[..., Any]) -> Callable[..., Any]:
    """Write down what a site adds for those who may be gone."""

    def drawing(*given: Any) -> Any:
        noise = drawn(*given)
        with Path(config).with_suffix(".spare").open("a") as file:
            file.write(f"{noise.view(np.int64)[0]}\n")
        return noise

    return drawing


def _ask(config: str, sql: str, epsilon: float, dies: int) -> None:
    """What a coordinator does, until it dies."""
    import defocus as dp  # noqa: PLC0415
    from defocus.federated.transport import Channel  # noqa: PLC0415

    send, sent = Channel.send, itertools.count()

    def sending(self: Channel, kind: Any, body: bytes) -> None:
        if next(sent) >= dies:
            os.kill(os.getpid(), signal.SIGKILL)
        send(self, kind, body)

    setattr(Channel, "send", sending)  # noqa: B010
    dp.federation(config).sql(sql, epsilon=epsilon)


def _make() -> None:
    import defocus.federated.site  # noqa: F401, PLC0415  # once, for all that are forked

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while line := sys.stdin.readline():
        config, dies = line.rstrip("\n").split("\t")
        sys.stdout.flush()
        made = os.fork()
        if made == 0:
            if dies.startswith("{"):
                os.close(1)  # nobody reads what it says
                _ask(config, **json.loads(dies))
                os._exit(0)
            _serve(config, dies)
            return
        os.write(1, f"pid {Path(config).stem} {made}\n".encode())
    os.killpg(os.getpid(), signal.SIGKILL)  # whoever asked for them was killed itself


if __name__ == "__main__":
    _make()
