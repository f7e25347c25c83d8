import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.workloads.streams.strategies import (
    coefficients,
    energies,
    inverse,
    separated,
    square_root,
    squares,
    toeplitz_variances,
)

falling = st.lists(st.integers(0, 2**18), min_size=1, max_size=9).map(lambda xs: np.array(sorted(xs, reverse=True)))


def test_the_square_root_times_itself_is_summation() -> None:
    f = square_root(300)
    assert np.convolve(f, f)[:300] == pytest.approx(np.ones(300), rel=1e-12)


def test_the_energy_grows_like_the_logarithm_over_pi() -> None:
    """Σ f² ≈ (ln n + γ + ln 16)/π; Henzinger, Upadhyay, Upadhyay (2023)."""
    assert energies(10**6)[-1] == pytest.approx((np.log(1e6) + np.euler_gamma + np.log(16)) / np.pi, rel=1e-6)


@pytest.mark.parametrize("bits", [8, 14, 18])
def test_coefficients_are_the_rounded_square_root_and_never_rise(bits: int) -> None:
    ages = np.arange(20_000)
    g = coefficients(ages, bits)
    assert np.abs(g - 2.0**bits * square_root(20_000)).max() <= 0.501
    assert (np.diff(g) <= 0).all()
    assert g[0] == 2**bits


@pytest.mark.parametrize("size", [1, 2**16, 2**31 - 1, 2**31, 2**40])
def test_squares_are_exact_whatever_their_size(size: int) -> None:
    assert squares(np.array([size, -size, 1, 0])) == 2 * size**2 + 1
    assert squares(np.array([size] * 3000)) == 3000 * size**2


def brute_force(column: list[int], steps: int, participations: int, separation: int) -> int:
    best = 0
    for times in range(1, participations + 1):
        for pattern in itertools.combinations(range(steps), times):
            if all(b - a >= separation for a, b in itertools.pairwise(pattern)):
                total = [0] * steps
                for s in pattern:
                    for a, c in enumerate(column[: steps - s]):
                        total[s + a] += c
                best = max(best, sum(x * x for x in total))
    return best


@given(column=falling, steps=st.integers(1, 9), participations=st.integers(1, 4), separation=st.integers(1, 6))
def test_taking_part_early_and_often_is_the_worst_pattern_of_all(
    column: np.ndarray, steps: int, participations: int, separation: int
) -> None:
    """Kalinin, Lampert (2024), Theorem 2, against every allowed pattern."""
    expected = brute_force(column.tolist(), steps, participations, separation)
    assert separated(column, steps, participations, separation) == expected


@given(column=falling.filter(lambda c: c[0] > 0), steps=st.integers(1, 30))
def test_the_inverse_undoes_the_series(column: np.ndarray, steps: int) -> None:
    h = np.array(list(inverse(column, steps)))
    size = np.convolve(column, np.abs(h))[:steps].max()
    assert np.convolve(column, h)[:steps] == pytest.approx(np.eye(1, steps)[0], abs=1e-12 * size)


def test_variances_are_those_of_the_inverted_matrix() -> None:
    column, steps = np.array([8, 4, 3, 1]), 12
    matrix = sum(c * np.eye(steps, k=-a) for a, c in enumerate(column))
    expected = (np.tri(steps) @ np.linalg.inv(matrix)) ** 2
    assert list(toeplitz_variances(column, steps)) == pytest.approx(expected.sum(axis=1).tolist())
