"""The hospital's example: the AUC of the document, and that it rises with epsilon."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from defocus.noise.testing import seeded

EXAMPLE = Path(__file__).parents[2] / "examples" / "hospital_auc.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def test_the_auc_falls_from_95_to_about_91_as_in_the_document(example: dict[str, Any]) -> None:
    train, test = example["hospital"](example["PATIENTS"]), example["hospital"](5000, seed=1)
    assert example["plain_auc"](train, test) == pytest.approx(0.95, abs=0.01)
    way = "coefficients + Gaussian noise"
    found = example["private_auc"](way, 1.0, train, test, runs=12, bits=seeded(1))
    assert found == pytest.approx(0.91, abs=0.015)


def test_better_ways_lose_less_and_more_budget_loses_less(example: dict[str, Any]) -> None:
    train, test = example["hospital"](example["PATIENTS"]), example["hospital"](5000, seed=1)
    way = "coefficients + Gaussian noise"
    few, more = (example["private_auc"](way, epsilon, train, test, runs=6, bits=seeded(1)) for epsilon in (0.25, 4.0))
    better = example["private_auc"]("noisy descent (default)", 1.0, train, test, runs=1, bits=seeded(1))
    assert few < 0.9 < more
    assert better > 0.94


def test_the_plot_has_a_line_for_each_way(example: dict[str, Any]) -> None:
    found = {way: [0.9] * len(example["EPSILONS"]) for way in example["WAYS"]}
    assert len(example["figure"](0.95, found).axes[0].lines) == 4
