import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus import Budget
from defocus.errors import InvalidParameterError
from defocus.mechanisms import Gaussian
from defocus.noise import discrete_laplace
from defocus.noise.testing import seeded
from defocus.workloads.streams import RunningSum
from defocus.workloads.streams.design import Design, Participation, best_bandwidth, design
from defocus.workloads.streams.strategies import Factor, Tree, toeplitz_variances

ONCE = Participation(1, 1, 1, replace=False)


def made(**changes: Any) -> Design:
    plain: dict[str, Any] = {
        "steps": 64,
        "entries": 1,
        "largest": 2**24,
        "price": Budget(1, 1e-6),
        "laplace": False,
        "participation": ONCE,
        "method": "square root",
        "bandwidth": None,
        "spread": 8,
    }
    return design(**plain | changes)


@given(st.integers(1, 10**4), st.fractions(min_value=1, max_value=10**6), st.booleans())
def test_an_irrational_norm_is_rounded_up_and_hardly(steps: int, contribution: Fraction, replace: bool) -> None:
    tree = Tree(steps, scale=3)
    found = Participation(1, 1, contribution, replace).distance(tree)
    exact = tree.squared_sensitivity(1, 1) * contribution**2 * (4 if replace else 1)
    assert exact <= found**2 <= exact * (1 + Fraction(1, 2**28))


@pytest.mark.parametrize("method", ["square root", "binned", "banded", "tree"])
def test_noise_and_strategy_are_calibrated_to_each_other(method: str) -> None:
    found = made(method=method)
    assert isinstance(found.noise, Gaussian)
    assert found.noise.sensitivity == ONCE.distance(found.strategy)
    assert found.noise.dimension == found.strategy.rows


def test_more_noise_or_longer_steps_make_the_grid_coarser_not_the_rows_wrap() -> None:
    usual, noisy = made(), made(price=Budget(0.001, 1e-9), participation=Participation(1, 1, 1000, replace=False))
    long = made(largest=2**40)
    for found in (usual, noisy, long):
        assert isinstance(found.strategy, Factor)
        assert found.strategy.reach * found.largest < 2**62
        assert isinstance(found.noise, Gaussian)
        assert found.noise.sigma <= 2**40
    assert noisy.strategy.reach < usual.strategy.reach
    assert long.strategy.reach < usual.strategy.reach


def test_what_cannot_fit_is_refused_with_a_remedy() -> None:
    with pytest.raises(InvalidParameterError, match="64 bits") as refusal:
        made(largest=2**60)
    assert "smaller largest" in refusal.value.fix
    with pytest.raises(InvalidParameterError, match=r"2\*\*40") as refusal:
        made(participation=Participation(1, 1, 10**9, replace=False))
    assert "coarser grid" in refusal.value.fix


def test_the_best_band_beats_every_other_for_many_participations() -> None:
    unit = Participation(12, 30, 1, replace=False)
    best = best_bandwidth(365, unit)

    def mean(width: int) -> float:
        strategy = Factor(365, bits=(18, 0), bandwidth=width)
        return sum(strategy.variances()) * strategy.squared_sensitivity(12, 30)

    assert best == 30
    assert mean(30) < min(mean(width) for width in (1, 8, 16, 64, 365))


def test_far_beyond_the_band_each_step_adds_the_same_variance() -> None:
    """What the choice of a band for long streams relies on."""
    strategy = Factor(9000, bits=(18, 0), bandwidth=1024)
    column = strategy.coefficients(np.arange(1024))
    found = list(toeplitz_variances(column, 9000))
    assert found[-1] - found[-2] == pytest.approx(1 / float(column.sum()) ** 2, rel=1e-2)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"method": "binned"},
        {"method": "banded", "bandwidth": 5},
        {"method": "tree"},
        {"entries": 7},
        {"laplace": True, "method": "tree", "price": Budget(1)},
    ],
)
def test_a_design_survives_json(changes: dict[str, Any]) -> None:
    found = made(**changes)
    again = Design.of(json.loads(json.dumps(found.to_dict())))
    assert again.to_dict() == found.to_dict()
    assert again.noise == found.noise
    assert list(again.strategy.variances()) == list(found.strategy.variances())


@pytest.mark.parametrize(
    "tampered",
    [
        {"participation": [2, 1, "1", False]},
        {"participation": [1, 1, "2", False]},
        {"participation": [1, 1, "1", True]},
        {"entries": 2},
        {"steps": 65},
        {"event": {"kind": "DiscreteLaplace", "scale": 1, "sensitivity": 1}},
    ],
)
def test_a_design_whose_noise_does_not_cover_it_is_refused(tampered: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 # resume() says what it means
        Design.of(made().to_dict() | tampered)


def test_variances_are_the_same_asked_for_one_by_one_or_together() -> None:
    plan, other = RunningSum(50, epsilon=1, delta=1e-6), RunningSum(50, epsilon=1, delta=1e-6)
    one_by_one = [plan.variance(step) for step in (50, 1, 25)]
    assert one_by_one == [other.variances[step - 1] for step in (50, 1, 25)]
    assert plan.standard_error(25) == math.sqrt(plan.variance(25))


def test_a_gaussian_interval_is_the_normal_one() -> None:
    plan = RunningSum(50, epsilon=1, delta=1e-6)
    assert plan.interval(50, 0.95) == pytest.approx(1.959964 * plan.standard_error(50), rel=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("step", [1, 4, 7, 63])
def test_a_laplace_interval_holds_and_is_not_much_too_wide(step: int) -> None:
    plan = RunningSum(64, epsilon=1, noise="laplace")
    scale = plan._design.noise.scale  # type: ignore[union-attr]
    blocks = step.bit_count()
    sums = discrete_laplace(scale, 200_000 * blocks, seeded(4)).reshape(-1, blocks).sum(axis=1)
    half = plan.interval(step, 0.95)
    assert np.mean(np.abs(sums) <= half) >= 0.95
    assert half < 2 * np.quantile(np.abs(sums), 0.95)


@pytest.mark.parametrize("step", [0, 51, -1, True, 1.0, "1", None])
def test_there_are_no_other_steps(step: object) -> None:
    with pytest.raises(InvalidParameterError):
        RunningSum(50, epsilon=1, delta=1e-6).variance(step)  # type: ignore[arg-type]


@pytest.mark.parametrize("confidence", [0, 1, float("nan"), -0.1, True])
def test_there_are_no_other_confidences(confidence: float) -> None:
    with pytest.raises(InvalidParameterError):
        RunningSum(50, epsilon=1, delta=1e-6).interval(5, confidence)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_largest_float_below_one_is_a_confidence(noise: str) -> None:
    plan = RunningSum(8, epsilon=1, delta=1e-6, noise=noise)
    assert plan.interval(3, 0.999) < plan.interval(3, 1 - 2**-53) < 30 * plan.standard_error(3)
