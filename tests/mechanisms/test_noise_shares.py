"""Shares of a mechanism's noise, and what their sum owes."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from defocus.errors import InvalidParameterError
from defocus.mechanisms import Gaussian, Laplace
from defocus.mechanisms.noise_shares import NoiseShare
from defocus.noise.testing import seeded
from defocus.privacy import account


def test_laplace_shares_owe_what_the_mechanism_owes() -> None:
    assert NoiseShare(Laplace(scale=7, sensitivity=2), 5).event == Laplace(scale=7, sensitivity=2).event


def test_gaussian_shares_owe_hardly_more() -> None:
    noise = Gaussian(sigma=500, sensitivity=40, dimension=1000)
    alone, shared = (account(each.event).epsilon(1e-6) for each in (noise, NoiseShare(noise, 20)))
    assert alone <= shared <= alone * (1 + 1e-4)


@pytest.mark.parametrize("honest", [2, 3, 17])
def test_sums_of_gaussian_shares_are_as_close_to_processed_noise_as_is_charged(honest: int) -> None:
    """The bound of the docstring against the law of a sum, computed with 60 digits."""
    variance, small = 9.0, 2.25  # narrower than is allowed, so that there is a difference to see
    with mpmath.workdps(60):
        reach = 120

        def law(v: float) -> dict[int, Any]:
            raw = {x: mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * v)) for x in range(-reach, reach + 1)}
            total = sum(raw.values())
            return {x: p / total for x, p in raw.items()}

        def added(a: dict[int, Any], b: dict[int, Any]) -> dict[int, Any]:
            return {z: sum(a[x] * b[z - x] for x in a if z - x in b) for z in range(-25, 26)}

        one, other = law(variance), law(small)
        both, whole = added(one, other), law(variance + small)
        gap = max(abs(mpmath.log(both[z] / whole[z])) for z in both)
        v = 1 / (1 / mpmath.mpf(variance) + 1 / mpmath.mpf(small))
        y = 2 * sum(mpmath.exp(-2 * mpmath.pi**2 * v * k**2) for k in range(1, 5))
        assert 0 < gap <= mpmath.log((1 + y) / (1 - y))
    assert 0 < NoiseShare(Gaussian(sigma=100 * honest), honest)._slack < 1e-240


def test_a_share_of_gaussian_noise_is_rounded_up() -> None:
    share = NoiseShare(Gaussian(sigma=1000), 7)
    assert 7 * share._sigmas[0] ** 2 >= 1000**2 + 16**2
    assert float(7 * share._sigmas[0] ** 2) < (1000**2 + 16**2) * (1 + 1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", [Laplace(scale=50), Gaussian(sigma=90)])
def test_the_sum_of_shares_has_the_declared_variance_and_no_other(mechanism: Laplace | Gaussian) -> None:
    bits, parties = seeded(3), 6
    share = NoiseShare(mechanism, honest=4, parties=parties)
    total = sum((share.sample(np.zeros(40_000, np.int64), bits) for _ in range(parties)), np.zeros(40_000, np.int64))
    assert abs(total.var() / share.variance - 1) < 0.05
    assert share.variance == pytest.approx(mechanism.variance * 1.5, rel=0.05)


def test_what_is_added_up_is_the_vector_with_its_share() -> None:
    share = NoiseShare(Laplace(scale=Fraction(1, 100)), 3, added=lambda own, _: own * 10)
    assert share.sample([1, 2, 3], seeded(1)).tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"mechanism": Gaussian(sigma=20), "honest": 8}, "too narrow"),
        ({"mechanism": Gaussian(sigma=1), "honest": 1}, "too narrow"),
        ({"mechanism": "laplace", "honest": 8}, "cannot be shared"),
        ({"mechanism": Laplace(scale=1), "honest": 0}, "honest"),
        ({"mechanism": Laplace(scale=1), "honest": math.nan}, "honest"),
        ({"mechanism": Laplace(scale=1), "honest": 2, "parties": -1}, "parties"),
    ],
)
def test_noise_that_cannot_be_shared_is_refused(how: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidParameterError, match=match):
        NoiseShare(**how)
