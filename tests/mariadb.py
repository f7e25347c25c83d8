"""A MariaDB server of its own for tests: in a folder that is thrown away, on a socket that nobody else reaches."""

import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import HANGS

__all__ = ["running"]

_FOLDERS = ("/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin", "/usr/libexec")


@contextmanager
def running() -> Iterator[str]:
    """The address of a server that was started, and is ended afterwards."""
    server, install = _program("mariadbd"), _program("mariadb-install-db")
    home = Path(tempfile.mkdtemp(prefix="defocus-my-", dir="/tmp"))  # a socket's path is short
    user = ["--user=mysql"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(home, "mysql")
        home.chmod(0o755)
    data, door = home / "data", home / "s.sock"
    options = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
    subprocess.run(  # noqa: S603  # programs of the system
        [install, "--no-defaults", *user, f"--datadir={data}", *options], check=True, capture_output=True
    )
    small = [
        "--innodb-buffer-pool-size=64M",
        "--innodb-flush-log-at-trx-commit=0",
        "--skip-networking",
        "--skip-log-bin",
    ]
    process = subprocess.Popen(  # noqa: S603  # likewise
        [server, "--no-defaults", *user, f"--datadir={data}", f"--socket={door}", *small],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"mysql://root@localhost/hospital?unix_socket={door}"
        _await(process, door)
        yield address
    finally:
        process.kill()  # what it holds is thrown away
        process.wait()
        shutil.rmtree(home, ignore_errors=True)


def _await(process: "subprocess.Popen[bytes]", door: Path) -> None:
    import pymysql  # noqa: PLC0415  # only those who start a server need it

    until = time.monotonic() + HANGS
    while process.poll() is None and time.monotonic() < until:
        if _listens(door):
            with pymysql.connect(unix_socket=str(door), user="root") as connection, connection.cursor() as cursor:
                cursor.execute("CREATE DATABASE IF NOT EXISTS hospital CHARACTER SET utf8mb4")
            return
        time.sleep(0.05)
    message = "The MariaDB server did not start."
    raise RuntimeError(message)


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as line:
        return line.connect_ex(str(path)) == 0


def _program(name: str) -> str:
    """Where a program of MariaDB is; installed first where that is possible, by one worker at a time."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *_FOLDERS])
    if (found := shutil.which(name, path=path)) is not None:
        return found
    apt = shutil.which("apt-get")
    if os.geteuid() == 0 and apt is not None:
        with Path(tempfile.gettempdir(), "defocus-mariadb.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if shutil.which(name, path=path) is None:
                for asked in (["update"], ["install", "-y", "--no-install-recommends", "mariadb-server"]):
                    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
                    subprocess.run([apt, *asked], check=True, stdout=subprocess.DEVNULL, env=quiet)  # noqa: S603
    found = shutil.which(name, path=path)
    if found is None:
        message = f"There is no {name}. Install MariaDB 10.11 or later: apt-get install mariadb-server."
        raise RuntimeError(message)
    return found
