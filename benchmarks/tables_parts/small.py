"""The latency of a small query, with the durable charge.

    python small.py FILE [RELEASES]

A new question each time, so nothing of the plan can be kept from one to the next.
"""

import json
import os
import sys
import tempfile
import time

from protocol import GROUPS
from with_defocus import begin

import defocus as dp
from defocus.privacy.events import Laplace


def flush(folder: str) -> float:
    """Append 4 KiB to a file and flush it: the least that anything durable costs here."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        start = time.perf_counter()
        file.write(b"x" * 4096)
        file.flush()
        os.fsync(file.fileno())
        return time.perf_counter() - start


def main() -> None:
    start = time.perf_counter()
    table, folder = begin(sys.argv[1])
    opened = time.perf_counter() - start
    seconds, flushes, charges = [], [], []
    for i in range(int(sys.argv[2]) if len(sys.argv) > 2 else 60):
        start = time.perf_counter()
        groups = table.bound(rows=5).group_by("grp", keys=list(range(GROUPS)))
        asked = groups.agg(n=dp.count(), s=dp.sum("v", 0, 100 + i), m=dp.mean("v", 0, 100 + i))
        asked.release(epsilon=1).to_arrow()
        seconds.append(time.perf_counter() - start)
        flushes.append(flush(folder.name))
        start = time.perf_counter()
        asked.ledger.charge(Laplace(1), purpose="one charge alone")
        charges.append(time.perf_counter() - start)
    print(json.dumps({"open": opened, "seconds": seconds, "flushes": flushes, "charges": charges}))


if __name__ == "__main__":
    main()
