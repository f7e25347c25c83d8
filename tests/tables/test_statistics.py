"""Intervals hold what they promise, for every statistic, in groups of every size, and at the ends of ranges."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from defocus.noise.testing import seeded
from defocus.privacy import Sensitivity
from defocus.tables.noise import CellNoise, Noisy, gaussian, laplace
from defocus.tables.splits import PRESENCE, Argument, Split
from defocus.tables.statistics import MOMENTS, Statistic, expected

GRID = 1 << 20
GROUPS = 4000
X, Z = Argument("x", -2, 8), Argument("z", 0, 10)
NOISES = {
    "Laplace": laplace(Sensitivity(GRID), Fraction(1)),
    "Gaussian": gaussian(Sensitivity(GRID), 1.0),
}
SHARES = {  # the values of x and of z in a group, in [0, 1]
    "spread": ([0.1, 0.4, 0.5, 0.9], [0.2, 0.3, 0.9, 0.6]),
    "high": ([1.0] * 4, [1.0] * 4),
    "low": ([0.0, 0.01, 0.0, 0.01], [0.02, 0.0, 0.01, 0.01]),
    "binary": ([0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]),
}


def cells(split: Split, rows: int, which: str) -> tuple[Any, Any]:
    """The exact cells of a group, and its values in [0, 1]."""
    values = [np.resize(part, rows) for part in SHARES[which]][: len(split.values)]
    powers = np.ones((rows, 1))
    for x, degree in zip(values, split.degrees, strict=True):
        own = np.stack(
            [{0: 1.0, 1: 1.0 * degree, 2: 1.0}[j] * x**j * (1 - x) ** (degree - j) for j in range(degree + 1)], 1
        )
        powers = np.einsum("ri,rj->rij", powers, own).reshape(rows, -1)
    return np.append(powers.sum(axis=0), [0.0] * split.optional), values


def truth(operation: str, values: Any) -> float:
    x, z = values[0] * X.width + X.bottom, (values[1] * Z.width + Z.bottom if len(values) > 1 else None)
    if z is None:
        sums = {"count": len(x), "sum": x.sum(), "squares": (x**2).sum()}
        return float((sums | {"mean": x.mean(), "variance": x.var(), "std": x.std()})[operation])
    if operation == "correlation":
        return float(np.corrcoef(x, z)[0, 1]) if x.std() * z.std() else 0.0
    found = {"covariance": np.mean(x * z) - x.mean() * z.mean(), "ratio": x.sum() / z.sum()}
    return float(found[operation] if operation in found else (x * z).sum() / z.sum())


def asked(operation: str) -> tuple[Statistic, Split]:
    degrees = MOMENTS[operation].degrees
    values = (X, Z)[: len(degrees)]
    return Statistic(operation, values), Split(values, degrees)


def noisy(noise: CellNoise, exact: Any, seed: int, groups: int = GROUPS) -> Noisy:
    whole = np.rint(np.broadcast_to(exact, (groups, len(exact))) * GRID).astype(np.int64)
    return noise.noisy(whole, seeded(seed), GRID)


@pytest.mark.statistical
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("operation", MOMENTS)
def test_intervals_hold_the_truth_in_at_least_95_percent_of_releases(operation: str, noise: str) -> None:
    statistic, split = asked(operation)
    for which in SHARES:
        for rows in (4, 12, 40, 400, 10_000):
            if operation == "correlation" and which != "spread" and rows < 400:
                continue
            exact, values = cells(split, rows, which)
            column = statistic.read("it", split, noisy(NOISES[noise], exact, rows))
            true = truth(operation, values)
            held = np.mean((column.low <= true + 1e-6) & (true - 1e-6 <= column.high))
            assert held > 0.935, (which, rows, held)


@pytest.mark.statistical
@pytest.mark.parametrize("operation", ["count", "sum"])
def test_errors_are_those_of_the_noise_and_nothing_leans(operation: str) -> None:
    statistic, split = asked(operation)
    exact, values = cells(split, 100, "spread")
    column = statistic.read("it", split, noisy(NOISES["Laplace"], exact, 5))
    off = column.values - truth(operation, values)
    assert abs(off.mean()) < 4 * column.errors[0] / np.sqrt(GROUPS)
    ratio = off.std() / column.errors[0]
    assert 0.94 < ratio < 1.06
    assert not 0.94 < ratio * 1.1 < 1.06
    assert not 0.94 < ratio / 1.1 < 1.06


@pytest.mark.statistical
@pytest.mark.parametrize("operation", [name for name in MOMENTS if name not in {"correlation", "std"}])
def test_errors_of_large_groups_are_those_that_are_measured(operation: str) -> None:
    statistic, split = asked(operation)
    exact, values = cells(split, 2000, "spread")
    column = statistic.read("it", split, noisy(NOISES["Gaussian"], exact, 6))
    measured = np.sqrt(np.mean((column.values - truth(operation, values)) ** 2))
    assert 0.93 < measured / np.median(column.errors) < 1.07


def test_a_group_that_noise_could_hide_has_the_whole_range_as_its_interval() -> None:
    statistic, split = asked("mean")
    column = statistic.read("it", split, Noisy(np.array([[0.0, 0.0, 0.0], [-5.0, 2.0, 0.0]]), 1.0, 1.96, "noise"))
    assert np.isnan(column.errors).all()
    assert (column.low == -2).all()
    assert (column.high == 8).all()
    assert ((column.low <= column.values) & (column.values <= column.high)).all()


def test_values_and_intervals_stay_in_the_range_of_the_statistic() -> None:
    for operation in ("mean", "variance", "std", "covariance", "correlation", "weighted_mean"):
        statistic, split = asked(operation)
        low, high = MOMENTS[operation].range(split.values)
        rng = np.random.default_rng(1)
        column = statistic.read("it", split, Noisy(rng.normal(0, 100, (500, split.cells)), 1.0, 1.96, "noise"))
        for numbers in (column.values, column.low, column.high):
            assert ((low <= numbers) & (numbers <= high)).all()
        assert (column.low <= column.high).all()


def test_a_count_is_the_sum_of_all_cells() -> None:
    split = Split((X,), (2,))
    column = Statistic("count").read("n", split, Noisy(np.array([[1.0, 2.0, 3.0, 4.0]]), 1.0, 1.96, "noise"))
    assert column.values.tolist() == [10.0]
    assert column.errors.tolist() == [2.0]
    assert Noisy(np.array([[7.0]]), 4.0, 2.0, "noise").count("p", np.ones(1), "people").high.tolist() == [11.0]


def test_what_is_expected_of_a_group_adds_up_to_its_rows() -> None:
    for split in (PRESENCE, Split((X,), (2,)), Split((X, Z), (1, 1)), Split((Argument("x", 0, 1, missing=0),), (1,))):
        assert expected(split, 120).sum() == pytest.approx(120)
