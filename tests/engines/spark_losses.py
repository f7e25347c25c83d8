"""A program that loses parts of Spark while a question is asked, and prints what became of the question, as JSON.

    python spark_losses.py FOLDER

A cluster of one executor is started on this machine. The executor is stopped before a question and killed while it
holds tasks of it, which it so cannot have finished; then the Java machine of the driver is killed; then the table is
opened anew, and its Spark stopped.
"""

# ruff: noqa: T201 our own program

import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import defocus as dp
from defocus.engines.spark.sessions import find_java, pyspark
from defocus.errors import QuestionFailedError
from defocus.noise.testing import seeded

SLOW = 300
"""Seconds to wait for something that takes a few."""


def prepare(home: Path) -> None:
    """Let ``"spark"`` mean a small cluster: a driver that is its master and worker too, and an executor beside it."""
    find_java()
    os.environ["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # machines that live a minute
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    own = home / "spark"  # where executors keep their files, beside the programs of the package
    own.mkdir()
    for one in Path(pyspark("pyspark").__file__).parent.iterdir():
        if one.name != "work":
            (own / one.name).symlink_to(one)
    os.environ["SPARK_HOME"] = str(own)
    settings = {
        "spark.master": "local-cluster[1,2,512]",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
    }
    (home / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    os.environ["SPARK_CONF_DIR"] = str(home)


def wait(until: Any) -> None:
    end = time.monotonic() + SLOW
    while not until():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.1)


def executors(home: Path) -> list[int]:
    """The processes in which the driver of this program lets compute."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            inside = folder.name.isdigit() and (folder / "cwd").readlink().is_relative_to(home)
            if inside and b"CoarseGrainedExecutorBackend" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def main(home: Path) -> dict[str, Any]:
    prepare(home)
    number = 30_000
    rng = np.random.default_rng(1)
    rows = {
        "patient": rng.integers(0, number // 10, number),
        "ward": rng.integers(0, 3, number),
        "days": rng.random(number),
    }
    pq.write_table(pa.table(rows), home / "visits.parquet", row_group_size=3_000)
    said: dict[str, Any] = {}

    def opened() -> Any:
        return dp.open(
            home / "visits.parquet",
            engine="spark",
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
        wait(working)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)

    for pid in killed:
        os.kill(pid, signal.SIGSTOP)
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
    pyspark("pyspark").SparkContext._gateway.proc.poll = lambda: None  # a busy system is late to say that it ended
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
    try:
        print(json.dumps(main(Path(sys.argv[1]))))
    finally:
        for left in executors(Path(sys.argv[1])):
            os.kill(left, signal.SIGKILL)
