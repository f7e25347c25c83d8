"""The example of direct and indirect releases: exact numbers by brute force, and what noise measures."""

import runpy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from defocus.noise.testing import seeded

EXAMPLE = Path(__file__).parents[2] / "examples" / "direct_and_indirect.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_an_edge_moves_two_degrees_by_one_over_all_graphs(example: dict[str, Any], n: int) -> None:
    assert example["brute_force_sensitivities"](n) == (2, 2)


@pytest.mark.parametrize("n", [2, 3, 5, 9, 100])
def test_the_ratio_is_a_quarter_of_the_edges_for_laplace_and_half_for_gaussian(example: dict[str, Any], n: int) -> None:
    """The document's example: (n−1)/4 and (n−1)/2."""
    assert example["ratios"](n) == (Fraction(n - 1, 4), Fraction(n - 1, 2))


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_the_ratio_is_that_of_the_two_strategies_as_matrices(example: dict[str, Any], n: int) -> None:
    """Variance of degree = ‖its row over the strategy‖² times the strategy's squared sensitivity (L1, then L2)."""
    matrix = example["degrees_from_edges"](n)
    edges = matrix.shape[1]
    found = []
    for norm in (1, 2):
        variances = []
        for strategy, rows in ((np.eye(edges), matrix), (matrix, np.eye(n))):
            sensitivity = (np.abs(strategy) ** norm).sum(axis=0).max() ** (2 / norm)
            variances.append((rows**2).sum(axis=1) * sensitivity)
        found.append(variances[0] / variances[1])
    for index in (0, 1):
        assert found[index] == pytest.approx([float(example["ratios"](n)[index])] * n)


@pytest.mark.parametrize("n", [4, 7, 12])
def test_the_bound_is_that_of_the_singular_values(example: dict[str, Any], n: int) -> None:
    matrix = example["degrees_from_edges"](n)
    values = np.linalg.svd(matrix.astype(float), compute_uv=False)
    assert example["least_total_variance"](n) == pytest.approx(values.sum() ** 2 / matrix.shape[1])


def test_at_a_hundred_nodes_direct_is_within_two_thousandths_of_the_bound(example: dict[str, Any]) -> None:
    assert 1 <= 200 / example["least_total_variance"](100) < 1.002


@pytest.mark.statistical
def test_exact_noise_measures_these_ratios_and_no_others(example: dict[str, Any]) -> None:
    found = example["measured"](21, 60_000, seeded(2))
    assert found == pytest.approx((5, 10), rel=0.04)
    assert not any(value == pytest.approx(1.1 * right, rel=0.04) for value, right in zip(found, (5, 10), strict=True))


def test_it_prints_a_table_and_draws_a_plot(
    example: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example["main"](str(tmp_path / "plot.svg"))
    out = capsys.readouterr().out
    for text in ("Laplace", "Gaussian", "24.75", "49.5", "SVD"):
        assert text in out
    assert "<svg" in (tmp_path / "plot.svg").read_text(encoding="utf-8")
