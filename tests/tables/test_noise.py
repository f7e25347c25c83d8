"""Every measurement has the noise that it is charged for."""

from fractions import Fraction

import numpy as np
import pytest

from defocus.noise.testing import seeded
from defocus.privacy import Sensitivity
from defocus.privacy.events import DiscreteGaussian, DiscreteLaplace
from defocus.tables.noise import CellNoise, gaussian, laplace

SENSITIVITY = Sensitivity(1000)
NOISES = {"laplace": laplace(SENSITIVITY, Fraction(1, 2)), "gaussian": gaussian(SENSITIVITY, 2.0)}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", NOISES)
def test_the_noise_has_the_declared_variance_and_no_other(kind: str) -> None:
    noise = NOISES[kind]
    drawn = noise.add(np.full((40_000, 2), 7, np.int64), seeded(4)) - 7
    ratio = drawn.std() / np.sqrt(noise.variance)
    assert abs(drawn.mean()) < 4 * np.sqrt(noise.variance / drawn.size)
    assert abs(ratio - 1) < 0.02
    assert abs(1.1 * ratio - 1) > 0.02
    held = np.mean(np.abs(drawn) <= noise.width * np.sqrt(noise.variance))
    assert abs(held - 0.95) < 0.004


def test_the_event_is_that_of_the_noise() -> None:
    one, other = NOISES["laplace"].event, NOISES["gaussian"].event
    assert one == DiscreteLaplace(2000, 1000)
    assert isinstance(other, DiscreteGaussian)
    assert (other.sigma, other.sensitivity) == (2000, 1000)


def test_replacing_moves_twice_as_far_in_one_norm_and_root_two_in_the_other() -> None:
    replaced = Sensitivity(5, 9).replaced()
    assert replaced.l1 == 10
    assert Fraction(18) <= replaced.l2**2 < 18 + Fraction(1, 10**12)


def test_no_cells_need_no_noise() -> None:
    empty = np.zeros((0, 3), np.int64)
    for noise in NOISES.values():
        assert isinstance(noise, CellNoise)
        assert noise.add(empty, seeded(1)).shape == (0, 3)


def test_each_is_called_by_its_name() -> None:
    assert [noise.words for noise in NOISES.values()] == ["discrete Laplace noise", "discrete Gaussian noise"]
