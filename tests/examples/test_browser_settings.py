"""The example of home pages."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "browser_settings.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def test_estimates_are_as_near_as_they_say(example: dict[str, Any]) -> None:
    true, estimate = example["collect"](20_000)
    assert (np.abs(estimate.counts - true) < 5 * estimate.errors).all()
    assert estimate.errors.max() < 1000


def test_a_year_of_reports_costs_more_than_one_and_no_two_are_alike(example: dict[str, Any]) -> None:
    different, one, every = example["one_browser"](50)
    assert different == 50
    assert one < every == 4


def test_it_prints_both(example: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    example["main"]()
    out = capsys.readouterr().out
    assert "adware-b" in out
    assert "365 different reports" in out
