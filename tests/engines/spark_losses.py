"""A program that loses parts of Spark while a question is asked, and prints what became of the question, as JSON.

    python spark_losses.py FOLDER

A cluster of one master and one worker is started on this machine. An executor is killed while it works on a question;
then the Java machine of the driver is; then the table is opened anew, and its Spark stopped.
"""

# ruff: noqa: S603, T201, PLW1509 our own programs and pages

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import defocus as dp
from defocus.engines.spark_sessions import find_java, pyspark
from defocus.errors import QuestionFailedError
from defocus.noise.testing import seeded

SLOW = 40
"""Seconds to wait for something that takes a few."""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def end_with_us() -> None:
    """Let the kernel end a program when the one that started it ends, however that is."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@contextlib.contextmanager
def cluster(home: Path) -> Iterator[str]:
    """The address of a master with one worker of two cores."""
    find_java()
    os.environ["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # four machines that live a minute
    program = str(Path(pyspark("pyspark").__file__).parent / "bin" / "spark-class")
    port, page = free_port(), free_port()
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(home / "work")}
    places = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)]
    settings = {"spark.sql.shuffle.partitions": "2", "spark.executor.memory": "512m", "spark.driver.memory": "512m"}
    (home / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    os.environ["SPARK_CONF_DIR"] = str(home)
    log = (home / "cluster.log").open("wb")
    master = [program, "org.apache.spark.deploy.master.Master", *places]
    worker = [program, "org.apache.spark.deploy.worker.Worker", "--cores", "2", "--memory", "1g", "--host", "127.0.0.1"]
    running = [subprocess.Popen(master, stdout=log, stderr=log, env=env, preexec_fn=end_with_us)]
    try:
        wait(lambda: reached(page))
        running.append(
            subprocess.Popen(
                [*worker, f"spark://127.0.0.1:{port}"], stdout=log, stderr=log, env=env, preexec_fn=end_with_us
            )
        )
        wait(lambda: '"aliveworkers" : 1' in reached(page))
        yield f"spark://127.0.0.1:{port}"
    finally:
        for one in reversed(running):
            with contextlib.suppress(ProcessLookupError):
                one.kill()
            one.wait()
        log.close()


def reached(page: int) -> str:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=2) as found:
        return str(found.read().decode())
    return ""


def wait(until: Any, often: float = 0.1) -> None:
    end = time.monotonic() + SLOW
    while not until():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(often)


def executors(home: Path) -> list[int]:
    """The processes in which the worker of this program computes."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            inside = folder.name.isdigit() and (folder / "cwd").readlink().is_relative_to(home / "work")
            if inside and b"CoarseGrainedExecutorBackend" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def main(home: Path) -> dict[str, Any]:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    number = 300_000
    rng = np.random.default_rng(1)
    rows = {
        "patient": rng.integers(0, number // 10, number),
        "ward": rng.integers(0, 3, number),
        "days": rng.random(number),
    }
    pq.write_table(pa.table(rows), home / "visits.parquet", row_group_size=30_000)
    said: dict[str, Any] = {}
    with cluster(home) as address:

        def opened() -> Any:
            return dp.open(
                home / "visits.parquet",
                engine=address,
                unit=dp.user("patient"),
                budget=dp.Budget(100),
                ledger=home / "v.ledger",
                name="v",
            )

        def ask(table: Any) -> Any:
            question = table.group_by("ward", keys=[0, 1, 2]).agg(n=dp.count(), stay=dp.mean("days", 0, 1))
            return question.release(epsilon=1, bits=seeded(1)).to_arrow().to_pydict()

        table = opened()
        before = ask(table)
        killed = executors(home)
        tracker = pyspark("pyspark").SparkContext._active_spark_context.statusTracker()
        stages: set[int] = set()

        def working() -> bool:
            stages.update(tracker.getActiveStageIds())
            return any(tracker.getStageInfo(one).numActiveTasks for one in stages)

        def kill() -> None:
            wait(working, often=0.01)
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            said["executor"] = "same" if ask(table) == before else "different"
        except QuestionFailedError as problem:
            said["executor"] = str(problem)
        killer.join()
        said["killed"] = len(killed)
        said["failed tasks"] = sum(tracker.getStageInfo(one).numFailedTasks for one in stages)
        java = pyspark("pyspark").SparkContext._gateway.proc.pid
        os.killpg(java, signal.SIGKILL) if os.getpgid(java) == java else os.kill(java, signal.SIGKILL)
        spent = str(table.ledger.spent())
        try:
            said["java"] = str(ask(table))
        except QuestionFailedError as problem:
            said["java"] = str(problem)
            said["context"] = repr(problem.__context__)
        said["charged"] = str(table.ledger.spent()) != spent
        said["verified"] = bool(table.ledger.verify())
        table.close()
        again = opened()
        said["again"] = ask(again) == before
        pyspark().SparkSession.getActiveSession().stop()
        try:
            said["stopped"] = str(ask(again))
        except QuestionFailedError as problem:
            said["stopped"] = str(problem)
        again.close()
    return said


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
