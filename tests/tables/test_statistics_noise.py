"""Statistics know of which noises they are made: their errors follow from them, and so do their covariances."""

import itertools

import numpy as np
import pytest

from defocus.answers.noise_sources import atoms_of, matrix_of
from defocus.tables.noise import Noisy
from defocus.tables.splits import Argument, Split
from defocus.tables.statistics import Statistic

VALUE = Argument("x", 0, 30)
SPLIT = Split((VALUE,), (2,))
OPERATIONS = ["count", "sum", "squares", "mean", "variance", "std"]
GROUPS = 20_000


def noisy(seed: int) -> Noisy:
    """Many groups with the same four cells, each with noise of its own; the last counts what is missing."""
    cells = np.array([300.0, 250.0, 350.0, 20.0])
    drawn = cells + 3 * np.random.default_rng(seed).normal(size=(GROUPS, 4))
    return Noisy(drawn, 9.0, 1.96, "noise", source="sums 0")


COLUMNS = {name: Statistic(name, (VALUE,)).read(name, SPLIT, noisy(1)) for name in OPERATIONS}


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_error_of_a_statistic_is_that_of_its_noises(name: str) -> None:
    column = COLUMNS[name]
    assert column.noise is not None
    mix = matrix_of(column.noise, GROUPS, atoms_of([(column.noise, GROUPS)]))
    assert np.allclose(np.sqrt(mix.dot(mix)), column.errors, rtol=1e-6)
    assert column.noise.linear == (name in {"count", "sum", "squares"})


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(OPERATIONS, 2)))
def test_the_covariance_of_two_statistics_is_that_of_their_noises_and_no_other(one: str, other: str) -> None:
    first, second = COLUMNS[one], COLUMNS[other]
    atoms = atoms_of([(first.noise, GROUPS), (second.noise, GROUPS)])
    assert first.noise is not None
    assert second.noise is not None
    told = float(np.mean(matrix_of(first.noise, GROUPS, atoms).dot(matrix_of(second.noise, GROUPS, atoms))))
    scale = float(np.sqrt(np.mean(first.errors**2) * np.mean(second.errors**2)))
    seen = float(np.cov(first.values, second.values)[0, 1])
    assert abs(seen - told) < 0.03 * scale  # four standard errors of what 20 000 draws show
    variance = float(np.var(first.values))
    assert abs(variance / np.mean(first.errors**2) - 1) < 0.05
    assert not abs(1.21 * variance / np.mean(first.errors**2) - 1) < 0.05


def test_cells_whose_groups_may_share_noise_say_nothing_about_it() -> None:
    unknown = Noisy(np.ones((2, 4)), 9.0, 1.96, "noise")
    assert Statistic("sum", (VALUE,)).read("x", SPLIT, unknown).noise is None
