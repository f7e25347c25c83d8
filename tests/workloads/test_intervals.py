import math
from fractions import Fraction

import numpy as np
import pytest

from defocus.errors import InvalidParameterError
from defocus.workloads.answers import without_negatives
from defocus.workloads.measurement import laplace_factor, normal_factor


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.9999])
def test_sums_of_laplace_noise_stay_within_the_factor(confidence: float) -> None:
    """Exact for one variable and for two equal ones; the normal law is the limit of many."""
    t, allowed = laplace_factor(confidence), 1 - confidence
    assert math.exp(-t * math.sqrt(2)) <= allowed  # one: P(|L| > t) = e^(-t/b), variance 2b²
    z = 2 * t  # two: b = 1/2, P = (1 + z/2) e^(-z)
    assert (1 + z / 2) * math.exp(-z) <= allowed
    assert t >= normal_factor(confidence)
    assert t <= 1.35 * max(-math.log(allowed) / math.sqrt(2), normal_factor(confidence))


@pytest.mark.parametrize("outside", [Fraction(1, 2**53), Fraction(1, 10**30), Fraction(1, 10**299)])
def test_confidence_may_be_as_near_to_one_as_tails_can_be_computed(outside: Fraction) -> None:
    normal, laplace = normal_factor(1 - outside), laplace_factor(1 - outside)
    assert math.erfc(normal / math.sqrt(2)) == pytest.approx(float(outside), rel=1e-9)
    assert math.exp(-laplace * math.sqrt(2)) <= outside


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 2, float("nan"), "0.9", True, 1 - Fraction(1, 10**400)])
def test_confidence_is_a_probability_strictly_between_its_ends(confidence: float) -> None:
    for factor in (normal_factor, laplace_factor):
        with pytest.raises(InvalidParameterError):
            factor(confidence)


def test_the_nearest_counts_without_negatives_keep_the_total() -> None:
    counts = np.random.default_rng(1).normal(2, 5, 50)
    kept = without_negatives(counts)
    assert kept.min() >= 0
    assert kept.sum() == pytest.approx(counts.sum())
    nudged = [
        np.maximum(kept + step * np.eye(50)[i] - step * np.eye(50)[j], 0)
        for step in (0.1,)
        for i in (0, 7)
        for j in (3, 9)
    ]
    assert all(
        np.linalg.norm(kept - counts) <= np.linalg.norm(n / n.sum() * kept.sum() - counts) + 1e-9 for n in nudged
    )
    assert without_negatives(np.array([-3.0, 1.0])).tolist() == [0, 0]
