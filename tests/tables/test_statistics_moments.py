"""Statistics from sums are those from values, and stay in their range."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.tables.splits import Argument
from defocus.tables.statistics import MOMENTS, slopes

X, Z = Argument("x", -2, 8), Argument("z", 1, 4)


def sums(operation: str, x: Any, z: Any) -> tuple[Any, ...]:
    values = [x, z]
    powers = MOMENTS[operation].powers
    return tuple(
        np.array([np.sum(np.prod([values[i] ** p for i, p in enumerate(power)], axis=0) * np.ones(len(x)))])
        for power in powers
    )


@given(st.integers(0, 10**6))
def test_formulas_agree_with_numpy(seed: int) -> None:
    x, z = np.random.default_rng(seed).uniform(0.05, 0.95, (2, 9))
    real_x, real_z = x * X.width + X.bottom, z * Z.width + Z.bottom
    truth = {
        "count": 9.0,
        "sum": real_x.sum(),
        "squares": (real_x**2).sum(),
        "mean": real_x.mean(),
        "variance": real_x.var(),
        "std": real_x.std(),
        "covariance": np.cov(real_x, real_z, bias=True)[0, 1],
        "correlation": np.corrcoef(real_x, real_z)[0, 1],
        "ratio": real_x.sum() / real_z.sum(),
        "weighted_mean": np.average(real_x, weights=real_z),
    }
    assert set(truth) == set(MOMENTS)
    for operation, expected in truth.items():
        found = MOMENTS[operation].value(sums(operation, x, z), (X, Z)[: len(MOMENTS[operation].degrees)])
        assert found[0] == pytest.approx(expected, rel=1e-9), operation


@pytest.mark.parametrize("operation", MOMENTS)
def test_no_sums_whatever_leave_the_range(operation: str) -> None:
    moments = MOMENTS[operation]
    values = (X, Z)[: len(moments.degrees)]
    low, high = moments.range(values)
    noise = np.random.default_rng(1).normal(0, 100, (len(moments.powers), 500))
    noise[:, :3] = 0.0
    found = moments.value(tuple(noise), values)
    assert not np.isnan(found).any()
    assert ((low <= found) & (found <= high)).all()


def test_slopes_are_derivatives() -> None:
    found = slopes(MOMENTS["mean"].formula, (np.array([10.0]), np.array([4.0])), (X,))
    assert found[0][0] == pytest.approx(-X.width * 4 / 100, rel=1e-6)
    assert found[1][0] == pytest.approx(X.width / 10, rel=1e-6)
