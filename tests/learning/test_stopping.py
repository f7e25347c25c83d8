"""The law of the number of runs of a private search."""

import math
from collections import Counter
from fractions import Fraction

import pytest
from scipy.stats import chisquare

from defocus.errors import InvalidParameterError
from defocus.learning.stopping import number_of_runs
from defocus.noise.testing import seeded
from defocus.privacy.events import Pure, Selected
from defocus.privacy.selection import expected_runs

DRAWS = 3000


def law(gamma: float, eta: float, most: int) -> list[float]:
    """P(K = k) for k from 1, the last one for all beyond: the formula, normalised by summing it up."""
    weights, weight = [], 1.0
    for k in range(1, 4000):
        weight *= (1 - gamma) * ((k - 1 + eta) / k if k > 1 else 1.0)
        weights.append(weight)
    total = math.fsum(weights)
    shares = [weight / total for weight in weights]
    return [*shares[: most - 1], math.fsum(shares[most - 1 :])]


def fit(drawn: list[int], gamma: float, eta: float, most: int = 12) -> float:
    seen = Counter(min(k, most) for k in drawn)
    wanted = [DRAWS * share for share in law(gamma, eta, most)]
    return float(chisquare([seen[k] for k in range(1, most + 1)], wanted).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize(("gamma", "eta"), [(0.1, 0), (0.2, 1), (0.1, Fraction(-1, 2)), (0.15, Fraction(1, 2))])
def test_the_number_of_runs_has_the_law_that_is_charged_and_no_other(gamma: float, eta: Fraction) -> None:
    bits = seeded(11)
    drawn = [number_of_runs(gamma, eta, bits) for _ in range(DRAWS)]
    assert min(drawn) == 1
    assert fit(drawn, gamma, float(eta)) > 1e-4
    assert fit(drawn, gamma * 1.6, float(eta)) < 1e-4
    assert fit(drawn, gamma, float(eta) + 0.4) < 1e-4
    mean = expected_runs(Selected(Pure(1), gamma, eta))
    assert sum(drawn) / DRAWS == pytest.approx(mean, rel=0.1)


@pytest.mark.statistical
def test_long_searches_have_their_mean_too() -> None:
    bits = seeded(5)
    drawn = [number_of_runs(Fraction(1, 100), 1, bits) for _ in range(DRAWS)]
    error = 100 / math.sqrt(DRAWS)  # of a geometric law with mean 100
    assert abs(sum(drawn) / DRAWS - 100) < 4 * error
    assert abs(sum(drawn) / DRAWS - 110) > 4 * error
    assert max(drawn) > 400


@pytest.mark.parametrize(("gamma", "eta"), [(0, 0), (1, 0), (0.5, -1), (0.5, 1.5)])
def test_a_law_that_is_not_drawn_exactly_is_refused(gamma: float, eta: float) -> None:
    with pytest.raises(InvalidParameterError, match="eta"):
        number_of_runs(gamma, eta, seeded(1))
