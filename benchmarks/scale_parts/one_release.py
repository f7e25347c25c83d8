"""Some releases from one table, in a process of its own, so that its memory is what a release takes.

python one_release.py duckdb|postgresql|spark FILE RUNS [MEMORY]
"""

import json
import resource
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from asking import opened, release
from places import loaded, server, session


def main(engine: str, file: Path, runs: int, memory: str | None) -> None:
    with ExitStack() as stack:
        data: Any = file
        where: dict[str, Any] = {} if memory is None else {"memory": memory}
        if engine == "spark":
            where["engine"] = stack.enter_context(session())
        elif engine == "postgresql":
            data = stack.enter_context(server(file.parent / "postgresql"))
            where["table"] = loaded(data, file)
        table = stack.enter_context(opened(data, **where))
        seconds, processor = [], []
        for _ in range(runs):
            start, busy = time.perf_counter(), time.process_time()
            release(table)
            seconds.append(time.perf_counter() - start)
            processor.append(time.process_time() - busy)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "processor_seconds": processor, "peak_mib": peak}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else None)
