import math

import numpy as np
import pytest

from defocus import Budget
from defocus.errors import InvalidParameterError
from defocus.noise import discrete_laplace
from defocus.noise.testing import seeded
from defocus.workloads.streams import RunningSum


def test_variances_are_the_same_asked_for_one_by_one_or_together() -> None:
    plan, other = RunningSum(50, budget=Budget(1, 1e-6)), RunningSum(50, budget=Budget(1, 1e-6))
    one_by_one = [plan.variance(step) for step in (50, 1, 25)]
    assert one_by_one == [other.variances[step - 1] for step in (50, 1, 25)]
    assert plan.standard_error(25) == math.sqrt(plan.variance(25))


def test_a_gaussian_interval_is_the_normal_one() -> None:
    plan = RunningSum(50, budget=Budget(1, 1e-6))
    assert plan.interval(50, 0.95) == pytest.approx(1.959964 * plan.standard_error(50), rel=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("step", [1, 4, 7, 63])
def test_a_laplace_interval_holds_and_is_not_much_too_wide(step: int) -> None:
    plan = RunningSum(64, budget=Budget(1), noise="laplace")
    scale = plan._design.noise.scale  # type: ignore[union-attr]
    blocks = step.bit_count()
    sums = discrete_laplace(scale, 200_000 * blocks, seeded(4)).reshape(-1, blocks).sum(axis=1)
    half = plan.interval(step, 0.95)
    assert np.mean(np.abs(sums) <= half) >= 0.95
    assert half < 2 * np.quantile(np.abs(sums), 0.95)


@pytest.mark.parametrize("step", [0, 51, -1, True, 1.0, "1", None])
def test_there_are_no_other_steps(step: object) -> None:
    with pytest.raises(InvalidParameterError):
        RunningSum(50, budget=Budget(1, 1e-6)).variance(step)  # type: ignore[arg-type]


@pytest.mark.parametrize("confidence", [0, 1, float("nan"), -0.1, True])
def test_there_are_no_other_confidences(confidence: float) -> None:
    with pytest.raises(InvalidParameterError):
        RunningSum(50, budget=Budget(1, 1e-6)).interval(5, confidence)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_largest_float_below_one_is_a_confidence(noise: str) -> None:
    plan = RunningSum(8, budget=Budget(1, 1e-6), noise=noise)
    assert plan.interval(3, 0.999) < plan.interval(3, 1 - 2**-53) < 30 * plan.standard_error(3)
