"""Answers in files: time and memory as the number of groups grows, and whether the noise is the announced one.

    python benchmarks/bulk.py [GROUPS ...] [--engine duckdb|spark]

Page views: as many rows as groups, of which each row is a unit, and a public table with the key of every group. A count
of every group is released with ``release_to``, by DuckDB with ``memory="1GB"`` and by Spark on two cores, whose Java,
driver and executors in one, has a heap of 1 GB. Each release is a process of its own. Memory is the peak of
resident memory of the Python driver and of Java; processor seconds are those of the whole process, Java, its start and
Python workers included. The noise is measured against the exact counts of all groups. Results go into
results/bulk.json and leave those of other sizes and engines in place.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb

import defocus as dp

RESULTS = Path(__file__).parent / "results" / "bulk.json"
PARTITIONS = 16


def made(home: Path, groups: int) -> None:
    """Rows and keys, written by DuckDB."""
    with duckdb.connect(config={"memory_limit": "1GB", "temp_directory": str(home / "spill")}) as connection:
        rows = f"SELECT CAST(hash(i) % {groups} AS BIGINT) AS page FROM range({groups}) t(i)"  # noqa: S608
        keys = f"SELECT i AS page FROM range({groups}) t(i)"  # noqa: S608
        for name, text in (("views", rows), ("pages", keys)):
            connection.execute(f"COPY ({text}) TO '{home / name}.parquet' (ROW_GROUP_SIZE 1000000)")


def session() -> Any:
    from defocus.engines.spark.sessions import find_java, pyspark

    find_java()
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
    }
    builder = pyspark().SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started


def peak(process: int | str) -> int:
    """The most resident memory of a process so far, in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) >> 10


def one(home: Path, groups: int, engine: str) -> dict[str, Any]:
    """One release, in this process."""
    spark = session() if engine == "spark" else None
    how = {"engine": spark} if spark is not None else {"memory": "1GB"}
    table = dp.open(home / "views.parquet", unit=dp.rows(), budget=dp.Budget(10), ledger=home / engine, name="v", **how)
    question = table.group_by("page", keys=home / "pages.parquet").agg(views=dp.count())
    start = time.perf_counter()
    written = question.release_to(home / f"by page, {engine}", epsilon=1)
    seconds = time.perf_counter() - start
    found = {"engine": engine, "groups": groups, "seconds": round(seconds, 1), "driver": peak("self")}
    if spark is not None:
        gateway = spark.sparkContext._gateway  # noqa: SLF001  # started by PySpark
        found["java"] = peak(gateway.proc.pid)
    assert written.groups == groups
    found["announced"] = written.columns[0].error
    table.close()
    if spark is not None:
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {**found, "processor": round(sum(each.ru_utime + each.ru_stime for each in used))}


def measured(home: Path, engine: str) -> float:
    """The standard deviation of the noise over all groups."""
    with duckdb.connect(config={"memory_limit": "2GB", "temp_directory": str(home / "spill")}) as connection:
        views, answers = str(home / "views.parquet"), str(home / f"by page, {engine}" / "*.parquet")
        text = (
            "SELECT sqrt(avg(power(views - n, 2))) FROM read_parquet($answers) JOIN (SELECT page, sum(n) AS n FROM"
            " (SELECT page, 1 AS n FROM read_parquet($views) UNION ALL SELECT page, 0 FROM read_parquet($pages))"
            " GROUP BY page) USING (page)"
        )
        given = {"answers": answers, "views": views, "pages": str(home / "pages.parquet")}
        return float(connection.execute(text, given).fetchall()[0][0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", type=int, default=[10**6, 10**7])
    parser.add_argument("--engine", action="append", choices=["duckdb", "spark"])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help="where the rows and the answers are kept meanwhile")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(Path(given.one), given.groups[0], given.engine[0])))
        return
    found = []
    for groups in given.groups:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            made(Path(folder), groups)
            print(f"{groups} rows and keys are written", flush=True)
            for engine in given.engine or ["duckdb", "spark"]:
                command = [sys.executable, __file__, str(groups), "--engine", engine, "--one", folder]
                said = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603  # ours
                found.append({**json.loads(said.splitlines()[-1]), "measured": measured(Path(folder), engine)})
                print(found[-1], flush=True)
    packages = {name: version(name) for name in ("duckdb", "pyspark", "pyarrow")}
    known = json.loads(RESULTS.read_text())["runs"] if RESULTS.exists() else []
    again = {(run["engine"], run["groups"]) for run in found}
    runs = [run for run in known if (run["engine"], run["groups"]) not in again] + found
    runs.sort(key=lambda run: (run["engine"], run["groups"]))
    RESULTS.write_text(json.dumps({"versions": packages, "partitions": PARTITIONS, "runs": runs}, indent=2) + "\n")


if __name__ == "__main__":
    main()
