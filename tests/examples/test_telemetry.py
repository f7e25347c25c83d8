"""The example of hours of use."""

import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "telemetry.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def test_the_mean_is_as_near_as_it_says(example: dict[str, Any]) -> None:
    for true, estimate in example["collect"](2000, 2):
        assert abs(true - estimate.value) < 5 * estimate.error


@pytest.mark.slow
def test_it_prints_days_and_alternatives(example: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    example["main"]()
    out = capsys.readouterr().out
    assert "10,000 devices" in out
    assert "hybrid" in out
