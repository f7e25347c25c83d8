"""Real processes: programs of tests that fork, race and are killed, and print what they found as JSON.

Such a program imports everything and forks the others, so that hundreds of them cost little; it holds no connection
while it forks.
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.waiting import HANGS

ROOT = Path(__file__).parents[1]


def found_by(module: str, *words: object, timeout: float = HANGS) -> dict[str, Any]:
    """Run a module of these tests as a program of its own, and return what it printed."""
    command = [sys.executable, "-m", module, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, cwd=ROOT)  # noqa: S603  # our own
    sys.stderr.write(done.stderr[-4000:])
    assert done.returncode == 0
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def forked(act: Callable[[], None]) -> int:
    """Start ``act`` in a child process and return its number."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException:  # noqa: BLE001  # said here, since nobody catches it above
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    """How a child ended: its exit code, or minus the signal that killed it."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def note(path: Path, text: str) -> None:
    """Show a line to the world: once written, nothing takes it back."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{text}\n".encode())
    os.close(handle)
