import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from defocus.errors import InvalidParameterError, NotBitsError
from defocus.noise import cells
from defocus.noise.cells import cell_choice
from defocus.noise.testing import seeded


def drawn(counts: list[int], bounds: list[int], grain: Fraction, distance: Any, n: int) -> list[tuple[int, int]]:
    bits = seeded(3)
    return [cell_choice(np.array(counts), np.array(bounds), grain, distance, bits) for _ in range(n)]


def fit(found: list[tuple[int, int]], counts: list[int], distance: Any, off: float = 1) -> float:
    places = [(i, j) for i, count in enumerate(counts) for j in range(count)]
    weights = np.array([math.exp(-float(distance(*place)) * off) for place in places])
    expected = weights / weights.sum() * len(found)
    observed = [found.count(place) for place in places]
    return float(stats.chisquare(observed, expected).pvalue)


CASES: list[tuple[str, list[int], list[int], Fraction, Any]] = [
    ("single candidates with exact bounds", [1, 1, 1], [0, 1, 2], Fraction(1), lambda i, _: Fraction(i)),
    ("bounds that say nothing", [2, 3], [0, 0], Fraction(1), lambda i, j: Fraction(2 * i + j, 2)),
    ("cells with a slope", [4, 5], [0, 3], Fraction(1, 3), lambda i, j: Fraction(3 * i + j, 3)),
    ("no candidate at zero", [3, 2], [7, 9], Fraction(1, 7), lambda i, j: 1 + Fraction(4 * i + 2 * j, 7)),
]
every_case = pytest.mark.parametrize(
    ("name", "counts", "bounds", "grain", "distance"), CASES, ids=[c[0] for c in CASES]
)


@pytest.mark.statistical
@every_case
def test_candidates_have_the_declared_law_and_no_other(
    name: str, counts: list[int], bounds: list[int], grain: Fraction, distance: Any
) -> None:
    del name
    found = drawn(counts, bounds, grain, distance, 12_000)
    assert fit(found, counts, distance) > 1e-4
    assert fit(found, counts, distance, off=1.3) < 1e-6
    assert fit(found, counts, distance, off=1 / 1.3) < 1e-6


@pytest.mark.statistical
def test_a_scale_ten_per_cent_off_is_rejected() -> None:
    counts, distance = [1, 40], lambda i, _: Fraction(37 * i, 10)
    found = drawn(counts, [0, 3], Fraction(1), distance, 12_000)
    assert fit(found, counts, distance) > 1e-4
    assert fit(found, counts, distance, off=1.1) < 1e-6
    assert fit(found, counts, distance, off=1 / 1.1) < 1e-6


@given(
    grain=st.fractions(Fraction(1, 10**12), 10**12).filter(lambda x: x > 0),
    bounds=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=20),
)
def test_the_envelope_never_undercuts_a_bound(grain: Fraction, bounds: list[int]) -> None:
    marks = cells._marks(grain, 80)
    halvings = np.searchsorted(marks, np.array(bounds, np.uint64), side="right").tolist()
    with mpmath.workdps(60):
        for bound, m in zip(bounds, halvings, strict=True):
            least = mpmath.mpf(grain.numerator) / grain.denominator * bound
            assert m * mpmath.log(2) <= least
            assert m == len(marks) or least < (m + 1) * mpmath.log(2) + mpmath.mpf(grain.numerator) / grain.denominator


def test_a_bound_above_its_distance_is_a_fault_that_shows() -> None:
    with pytest.raises(AssertionError, match="bound exceeds"):
        cell_choice(np.array([1]), np.array([10]), 1, lambda _, __: Fraction(0), seeded(1))


def test_candidates_beyond_all_hope_are_never_the_ones() -> None:
    far = [
        cell_choice(np.array([1, 10**6]), np.array([0, 2**62]), 1, lambda i, j: Fraction(i * 2**62 + j))
        for _ in range(50)
    ]
    assert set(far) == {(0, 0)}


@pytest.mark.parametrize(
    ("counts", "bounds"),
    [([], []), ([0, 0], [1, 1]), ([1 << 53], [0]), ([1, 1], [0])],
    ids=["none", "empty", "many", "short"],
)
def test_cells_without_candidates_are_refused(counts: list[int], bounds: list[int]) -> None:
    with pytest.raises(InvalidParameterError, match="no candidates"):
        cell_choice(np.array(counts, np.int64), np.array(bounds, np.int64), 1, lambda _, __: Fraction(0))


@pytest.mark.parametrize("grain", [0, -1, math.nan, math.inf, True, "1", None])
def test_a_grain_that_is_no_positive_number_is_refused(grain: Any) -> None:
    with pytest.raises(InvalidParameterError, match="grain"):
        cell_choice(np.array([1]), np.array([0]), grain, lambda _, __: Fraction(0))


def test_a_seed_is_not_a_source_of_bits() -> None:
    with pytest.raises(NotBitsError):
        cell_choice(np.array([1]), np.array([0]), 1, lambda _, __: Fraction(0), 42)  # type: ignore[arg-type]
