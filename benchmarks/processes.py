"""Parts of a benchmark in processes of their own: what they print, and the most memory they take."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "tables_parts"))

from protocol import children

TICK = 0.05


def child(script: Path, *arguments: object, python: Path | None = None) -> tuple[Any, float]:
    """The JSON that a part prints last, and the peak of the memory of the process and its children, in MiB."""
    command = [str(python or sys.executable), str(script), *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(TICK):
            peak[0] = max(peak[0], resident(process.pid))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    out, problem = process.communicate()
    done.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{script} failed:\n{problem[-3000:]}")
    return json.loads(out.splitlines()[-1]), peak[0]


def resident(pid: int) -> float:
    """Resident memory of a process and all its children now, in MiB."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20 + sum(map(resident, children(pid)))
