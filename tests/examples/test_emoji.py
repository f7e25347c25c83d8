"""The example of emoji."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "emoji.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def test_every_oracle_finds_the_popular_ones(example: dict[str, Any]) -> None:
    true = np.bincount(example["usage"](20_000), minlength=len(example["EMOJI"]))
    lengths = {}
    for name in example["ORACLES"]:
        estimate, lengths[name] = example["collect"](name, 20_000)
        assert abs(estimate.counts[0] - true[0]) < 5 * estimate.errors[0]
        assert int(np.argmax(estimate.counts)) == 0
    assert lengths["hcms"] < lengths["cms"]


@pytest.mark.slow
def test_it_prints_a_table(example: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    example["main"]()
    assert "U+1F300" in capsys.readouterr().out
