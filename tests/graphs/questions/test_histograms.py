from fractions import Fraction

import numpy as np
import pytest

from defocus.graphs.questions.node_counts import difference
from defocus.mechanisms import Gaussian, Laplace


def outside(scale: float, half: float) -> float:
    """The chance that two discrete Laplace noises differ by more than ``half``."""
    sensitivity = int(60 * scale) + 20
    chance = np.exp(-np.abs(np.arange(-sensitivity, sensitivity + 1)) / scale)
    law = np.convolve(chance / chance.sum(), chance / chance.sum())
    far = np.abs(np.arange(-2 * sensitivity, 2 * sensitivity + 1)) > half
    return float(law[far].sum())


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40)])
def test_two_laplace_noises_differ_by_more_in_one_of_twenty_cases_at_most(scale: Fraction) -> None:
    half = difference(Laplace(scale=scale))
    assert outside(float(scale), half) <= 0.05
    assert half == 1 or outside(float(scale), 0.8 * half - 1) > 0.05, "not much wider than it must be"


def test_two_laplace_noises_of_scale_one_thousand_are_within_4114() -> None:
    assert difference(Laplace(scale=Fraction(1000))) == 4114


def test_two_gaussian_noises_have_a_standard_deviation_of_root_two() -> None:
    assert difference(Gaussian(sigma=Fraction(1000), sensitivity=Fraction(1))) == 2772
