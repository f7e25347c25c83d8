"""The example that shows how epsilon grows."""

import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "compose.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def test_basic_composition_is_linear_and_the_others_approach_the_root(example: dict[str, Any]) -> None:
    found, counts = example["growth"](), example["COUNTS"]
    for name, values in found.items():
        assert values == sorted(values), name
    ratios = {name: values[-1] / values[-2] for name, values in found.items()}
    assert counts[-1] == 4 * counts[-2]
    assert ratios["basic"] == pytest.approx(4)
    for name in ("pld", "rdp", "zcdp"):
        assert 2 < ratios[name] < 2.3
    assert found["pld"][-1] <= min(values[-1] for values in found.values())


def test_it_prints_a_table(example: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    example["main"]()
    out = capsys.readouterr().out
    for name in (*example["ACCOUNTANTS"], "16384", "root of T"):
        assert name in out
