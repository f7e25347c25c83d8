"""How many runs, and what the best of pure ones costs."""

import math
from fractions import Fraction
from typing import Any

import pytest
from dp_accounting.rdp import rdp_privacy_accountant as peer
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.privacy.events import Gaussian, Pure, Selected, SelectedPoisson
from defocus.privacy.selection import expected_runs, pure_selection_epsilon, select


@given(st.floats(1.01, 1e6), st.floats(-0.9, 5))
def test_the_mean_number_of_runs_is_as_wished(runs: float, eta: float) -> None:
    assert expected_runs(select(Pure(1), runs=runs, eta=eta)) == pytest.approx(runs, rel=1e-6)


@pytest.mark.parametrize("eta", [-0.5, 0, 0.5, 1, 4])
@pytest.mark.parametrize("gamma", [0.001, 0.1, 0.9])
def test_the_mean_agrees_with_the_law_and_with_the_peer(gamma: float, eta: float) -> None:
    found = expected_runs(Selected(Pure(1), gamma, eta))
    if eta >= 0:
        assert found == pytest.approx(peer._truncated_negative_binomial_mean(gamma, eta), rel=1e-9)
    weight, total, mean, k = 1 - gamma, 0.0, 0.0, 1
    while k < 40 / gamma:
        total, mean = total + weight, mean + k * weight
        weight *= (1 - gamma) * (k + eta) / (k + 1)
        k += 1
    assert found == pytest.approx(mean / total, rel=1e-6)


def test_the_best_pure_run_costs_two_runs_and_a_geometric_number_three() -> None:
    """Liu, Talwar (2019); Papernot, Steinke (2022), Corollary 3."""
    assert pure_selection_epsilon(Selected(Pure(1), 0.5, 0), Fraction(1, 3)) == Fraction(2, 3)
    assert pure_selection_epsilon(Selected(Pure(1), 0.5, 1), Fraction(1, 3)) == 1


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_three_candidates_reach_the_pure_price_and_never_exceed_it(epsilon: float, eta: float) -> None:
    """How often the one in the middle is the best: it gains what it gains itself, and what a better one loses."""
    ratios = []
    for gamma in (0.5, 0.01, 1e-4, 1e-7):

        def worse(low: float, gamma: float = gamma) -> float:
            """The chance that no run is better than what a run is with probability ``low``."""
            if eta:
                return (1 / (1 - (1 - gamma) * low) - 1) / (1 / gamma - 1)
            return math.log(1 - (1 - gamma) * low) / math.log(gamma)

        middle, high = 1e-6, 1e-3
        more, less = middle * math.exp(epsilon), high * math.exp(-epsilon)
        here = worse(1 - high) - worse(1 - high - middle)
        there = worse(1 - less) - worse(1 - less - more)
        price = float(pure_selection_epsilon(Selected(Pure(epsilon), gamma, eta), Fraction(epsilon)))
        ratios.append(math.log(there / here) / price)
    assert max(ratios) <= 1
    assert ratios[-1] > 0.98


@pytest.mark.parametrize("bad", [0, 1, -3, float("nan"), float("inf"), True, "20", 1e13])
def test_a_mean_that_makes_no_sense_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError):
        select(Gaussian(1), runs=bad)


@pytest.mark.parametrize("bad", [-1, -2, float("nan"), float("inf"), True, "0"])
def test_a_shape_that_makes_no_sense_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError):
        Selected(Gaussian(1), 0.5, bad)


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, float("nan"), True, "0.5"])
def test_a_gamma_that_makes_no_sense_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError):
        Selected(Gaussian(1), bad)
    with pytest.raises(InvalidParameterError, match="need the event"):
        SelectedPoisson(bad, 3)


def test_a_number_of_runs_beyond_floats_is_infinite_or_refused() -> None:
    assert expected_runs(Selected(Pure(1), Fraction(1, 10**400))) == math.inf
    assert expected_runs(Selected(Pure(1), 0.1, 10**400)) == math.inf
    with pytest.raises(InvalidParameterError, match="between 1 and 1e12"):
        select(Pure(1), runs=10**400)
    with pytest.raises(InvalidParameterError, match="No law"):
        select(Pure(1), runs=20, eta=10**400)
