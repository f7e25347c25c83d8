"""What every peer of the tables benchmark runs inside: time some releases, repeat more of them for their accuracy.

Only the standard library, since each peer has an environment of its own. The last line that is printed is JSON.
"""

import argparse
import json
import os
import platform
import resource
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

GROUPS = 100
ROWS = 5
LOW, HIGH = 0.0, 100.0
EPSILON = 1.0


def busy_seconds() -> float:
    """Processor time of this process and all its living children, such as a Java machine."""
    total, left = time.process_time(), children(os.getpid())
    while left:
        pid = left.pop()
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        left += children(pid)
    return total


def children(pid: int) -> list[int]:
    try:
        tasks = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(each) for task in tasks for each in task]


def measure(
    package: str,
    begin: Callable[[str], Any],
    release: Callable[[Any], list[float]],
    again: Callable[[Any], Callable[[], list[float]]] | None = None,
) -> None:
    """Print the times, the peak memory and the released group means of one peer.

    `begin` makes the peer ready for a file; it is timed apart, as loading. `release` goes from there to the means by
    group, in the order of the groups. `again` makes an equivalent release that need not repeat the planning; only its
    means are used.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=1, help="timed releases")
    parser.add_argument("--releases", type=int, default=0, help="further releases, for accuracy")
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin no further release after this long")
    wanted = parser.parse_args()
    start = time.perf_counter()
    ready = begin(str(wanted.file))
    load = time.perf_counter() - start
    seconds, processor, means = [], [], []
    for _ in range(wanted.runs):
        start, before = time.perf_counter(), busy_seconds()
        means.append(release(ready))
        seconds.append(time.perf_counter() - start)
        processor.append(busy_seconds() - before)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start, more = time.perf_counter(), None
    for _ in range(wanted.releases):
        if time.perf_counter() - start > wanted.seconds:
            break
        if more is None:
            more = again(ready) if again else lambda: release(ready)
        means.append(more())
    found = {
        "package": package,
        "version": version(package),
        "python": platform.python_version(),
        "load_seconds": load,
        "seconds": seconds,
        "processor_seconds": processor,
        "peak_mib": peak,
        "means": [[round(float(x), 5) for x in each] for each in means],
    }
    print(json.dumps(found), flush=True)
