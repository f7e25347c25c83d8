"""When parts of Spark are lost: a clear error or the same integers, a kept charge, and nothing half-released."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import HANGS

pytestmark = pytest.mark.slow


def test_a_lost_executor_and_a_lost_driver_lose_no_charge_and_release_nothing(tmp_path: Path) -> None:
    """In a program of its own, since a killed Java machine would take other tests with it."""
    script = Path(__file__).with_name("spark_losses.py")
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-W", "ignore", str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["killed"] == 1
    assert said["failed tasks"] >= 1
    assert said["executor"] == "same" or "executors were lost" in said["executor"]
    assert "connection to it was lost" in said["java"]
    assert said["context"] == "None"
    assert said["charged"]
    assert said["verified"]
    assert said["again"]
    assert "it was stopped" in said["stopped"]
