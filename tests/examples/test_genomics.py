"""The example of genomics: sensitivities by brute force, and what is found."""

import runpy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from defocus import Budget, Ledger, rows

EXAMPLE = Path(__file__).parents[2] / "examples" / "genomics.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.mark.parametrize("group", [1, 2, 3, 5, 8])
def test_the_sensitivity_of_chi_square_is_that_of_all_tables(example: dict[str, Any], group: int) -> None:
    """4N/(N+2) for N people: Uhlerop, Slavković, Fienberg (2013)."""
    assert (
        example["brute_force"](group) == example["chi_square_sensitivity"](group) == Fraction(8 * group, 2 * group + 2)
    )


def test_the_statistic_is_pearson_s(example: dict[str, Any]) -> None:
    table = ((10, 20, 30), (25, 15, 20))
    assert float(example["chi_square"](*table)) == pytest.approx(chi2_contingency(table, correction=False).statistic)
    assert example["chi_square"]((0, 0, 5), (0, 0, 5)) == 0


def test_one_person_moves_counts_by_what_the_noise_covers(example: dict[str, Any]) -> None:
    cases, controls = example["study"](group=20, places=9)
    del controls
    for genotype in (0, 1, 2):
        changed = cases.copy()
        changed[0] = genotype
        alleles = changed.sum(axis=0) - cases.sum(axis=0)
        genotypes = np.array(example["counted"](changed)) - np.array(example["counted"](cases))
        assert (alleles**2).sum() <= 4 * 9
        assert (genotypes**2).sum() <= 2 * 9


def test_linked_places_stand_out_in_what_is_released(example: dict[str, Any], tmp_path: Path) -> None:
    cases, controls = example["study"]()
    with Ledger.open(tmp_path / "a", budget=Budget(30, 1e-4), unit=rows(replace=True), dataset="study") as book:
        noisy = example["statistics"](cases, controls, book, Budget(8, 1e-5))
        common, rare = example["frequencies"](cases, controls, book, Budget(4, 1e-5))
        one = example["one_statistic"](cases, controls, 17, book, 2.0)
    assert set(np.argsort(-noisy)[:3]) == set(example["LINKED"])
    assert np.abs(common - cases.mean(axis=0) / 2).max() < 0.05
    assert np.abs(rare - controls.mean(axis=0) / 2).max() < 0.05
    assert abs(one - 60.5) < 30
    assert len(example["figure"](list(noisy), noisy).axes[0].lines) == 3
