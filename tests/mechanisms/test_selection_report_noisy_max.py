import math

import numpy as np
import pytest
from scipy import stats

from defocus.errors import InvalidParameterError, NotExactError
from defocus.mechanisms import ReportNoisyMax
from defocus.mechanisms.mechanism import LARGEST, SMALLEST
from defocus.noise.testing import seeded


def test_the_noise_has_twice_the_sensitivity_over_epsilon_or_once_if_monotone() -> None:
    assert ReportNoisyMax(epsilon=0.5, candidates=3, sensitivity=2).scale == 8
    assert ReportNoisyMax(epsilon=0.5, candidates=3, sensitivity=2, monotone=True).scale == 4


def test_ties_are_broken_evenly() -> None:
    m, bits = ReportNoisyMax(epsilon=8, candidates=4), seeded(8)
    counts = np.bincount([m.sample([7, 7, 7, 7], bits) for _ in range(4000)], minlength=4)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_utilities_at_the_ends_of_64_bits_are_compared_without_wrapping() -> None:
    m, bits = ReportNoisyMax(epsilon=1, candidates=3), seeded(8)
    assert {m.sample([LARGEST, SMALLEST, 0], bits) for _ in range(50)} == {0}
    assert {m.sample([SMALLEST, 0, LARGEST - 1000], bits) for _ in range(50)} == {2}
    # Cut to 64 bits, the two largest would tie half of the time; they are a hundred scales apart.
    assert {m.sample([LARGEST - 200, LARGEST, 0], bits) for _ in range(100)} == {1}


@pytest.mark.statistical
def test_loss_stays_within_error_and_interval_in_simulation() -> None:
    m, bits = ReportNoisyMax(epsilon=1, candidates=6), seeded(3)
    utilities = np.array([10, 9, 7, 4, 2, 0])
    losses = np.array([10 - utilities[m.sample(utilities, bits)] for _ in range(3000)])
    assert losses.mean() <= m.error
    assert (losses <= m.interval(0.9)).mean() >= 0.9 - 4 * math.sqrt(0.09 / 3000)


def test_fractional_utilities_are_refused() -> None:
    with pytest.raises(NotExactError):
        ReportNoisyMax(epsilon=1, candidates=2).sample([0.5, 1.5])  # type: ignore[list-item]
    with pytest.raises(InvalidParameterError, match="whole number"):
        ReportNoisyMax(epsilon=1, candidates=2, sensitivity=0.5)  # type: ignore[arg-type]


def test_one_candidate_is_chosen_without_loss() -> None:
    m = ReportNoisyMax(epsilon=1, candidates=1)
    assert m.error == pytest.approx(0, abs=1e-9)
    assert (m.interval(0.999), m.sample([5])) == (0, 0)
