import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from defocus import noise
from defocus.errors import InvalidParameterError, NotBitsError
from defocus.noise import choice
from defocus.noise import choice as cells
from defocus.noise.choice import cell_choice
from defocus.noise.testing import seeded

numbers = st.one_of(st.integers(-(10**6), 10**6), st.fractions(), st.floats(-1e9, 1e9))
factors = st.one_of(st.just(1), st.fractions(Fraction(1, 10**12), 10**12), st.floats(1e-9, 1e9))


def frequencies(weights: Any, n: int, **how: Any) -> list[int]:
    bits = seeded(1)
    chosen = [noise.exponential_choice(weights, bits, **how) for _ in range(n)]
    return [chosen.count(i) for i in range(len(weights))]


@given(weights=st.lists(numbers, min_size=1, max_size=30), factor=factors)
def test_the_envelope_never_undercuts_the_weight_and_is_tight(weights: list[Any], factor: Any) -> None:
    """2**-m >= exp(-d) makes the law exact; 2**-m < 3 exp(-d), but for the deepest class, makes it fast."""
    exact, rate = [Fraction(w) for w in weights], Fraction(factor)
    halvings = choice._halvings(exact, max(exact), rate).tolist()
    with mpmath.workdps(60):
        for w, m in zip(exact, halvings, strict=True):
            d = rate * (max(exact) - w)
            distance = mpmath.mpf(d.numerator) / d.denominator
            assert m * mpmath.log(2) <= distance
            assert m == 64 + len(weights).bit_length() or distance < m * mpmath.log(2) + mpmath.log(3)


@given(scores=st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=30), factor=factors)
def test_integer_scores_have_exact_gaps_over_the_whole_range(scores: list[int], factor: Any) -> None:
    gaps = choice._exact_gaps(np.array(scores, np.int64))
    assert gaps.tolist() == [max(scores) - s for s in scores]
    halvings = choice._halvings(np.array(scores, np.int64), Fraction(max(scores)), Fraction(factor)).tolist()
    with mpmath.workdps(60):
        for s, m in zip(scores, halvings, strict=True):
            d = Fraction(factor) * (max(scores) - s)
            assert m * mpmath.log(2) <= mpmath.mpf(d.numerator) / d.denominator


@given(shares=st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any))
def test_proposals_cover_every_rank_of_every_class_in_proportion(shares: list[int]) -> None:
    deepest = len(shares) - 1
    scaled = [count << (deepest - m) for m, count in enumerate(shares)]

    class Counting(noise.Bits):
        def __init__(self, value: int) -> None:
            self.value = value

        def words(self, n: int) -> Any:
            raise NotImplementedError

        def integer(self, nbits: int) -> int:
            assert nbits == (sum(scaled) - 1).bit_length()
            return self.value

    found: dict[tuple[int, int], int] = {}
    for value in range(sum(scaled)):
        key = choice._proposal(scaled, Counting(value))
        found[key] = found.get(key, 0) + 1
    assert found == {(m, r): 1 << (deepest - m) for m, count in enumerate(shares) for r in range(count)}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    "weights",
    [
        [0, -1, -2, -3],
        [Fraction(1, 3), Fraction(2, 3), 5, Fraction(9, 2)],
        [10**30, 10**30 - 1, 10**30 - 2],
        [0.1, 0.2, -0.3, 2.5, -800.0],
        np.array([5, 4, 2, 3, 5]),
        np.array([0.5, -0.25]),
    ],
)
def test_choices_follow_the_declared_weights_and_no_others(weights: Any) -> None:
    seen = np.array(frequencies(weights, 8_000))
    gaps = np.array([float(Fraction(w) - max(Fraction(v) for v in weights)) for w in weights])

    def p_value(rate: float) -> float:
        expected = np.exp(rate * gaps) / np.exp(rate * gaps).sum() * 8_000
        keep = expected > 5
        return float(stats.chisquare(seen[keep], expected[keep] * seen[keep].sum() / expected[keep].sum()).pvalue)

    assert p_value(1.0) > 1e-6
    assert p_value(1.5) < 1e-6
    assert p_value(0.5) < 1e-6


@pytest.mark.statistical
def test_a_factor_scales_the_weights() -> None:
    scores = np.array([40, 20, 0])
    seen = frequencies(scores, 8_000, factor=Fraction(1, 20))
    expected = np.exp(-np.arange(3.0)) / np.exp(-np.arange(3.0)).sum() * 8_000
    assert stats.chisquare(seen, expected).pvalue > 1e-6
    assert (
        stats.chisquare(seen, np.exp(-1.1 * np.arange(3.0)) / np.exp(-1.1 * np.arange(3.0)).sum() * 8_000).pvalue < 1e-6
    )
    assert stats.chisquare(frequencies(scores, 8_000, factor=0)).pvalue > 1e-6


@pytest.mark.statistical
def test_unsigned_and_short_integers_are_scores_too() -> None:
    assert frequencies(np.array([2**64 - 1, 0], np.uint64), 20) == [20, 0]
    assert frequencies(np.array([-128, 127], np.int8), 20) == [0, 20]


@pytest.mark.statistical
def test_a_million_candidates_are_no_trouble() -> None:
    scores = np.zeros(1_000_000, np.int64)
    scores[123_456] = 14  # exp(14) = 1.2 million: a little more than all others together
    bits = seeded(2)
    hits = sum(noise.exponential_choice(scores, bits) == 123_456 for _ in range(100))
    assert stats.binomtest(hits, 100, math.exp(14) / (math.exp(14) + 999_999)).pvalue > 1e-6
    assert stats.binomtest(hits, 100, math.exp(12.6) / (math.exp(12.6) + 999_999)).pvalue < 1e-6


@pytest.mark.parametrize("spread", [10**3, 10**9, 10**18])
def test_a_hopeless_crowd_is_never_chosen(spread: int) -> None:
    scores = np.full(100_000, -spread)
    scores[7] = 0
    assert noise.exponential_choice(scores) == 7
    assert noise.exponential_choice([Fraction(-spread), Fraction(0), -spread * 10**40]) == 1


def test_one_candidate_is_chosen() -> None:
    assert noise.exponential_choice([Fraction(-7, 3)]) == 0


@pytest.mark.parametrize(
    "weights",
    [[], (), np.array([]), np.zeros((2, 2), np.int64), np.array(3), None, 5, "abc", [[1], [2]], [1, math.nan]],
)
def test_weights_that_are_no_flat_numbers_are_refused(weights: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)log_weights.*To fix:"):
        noise.exponential_choice(weights)


@pytest.mark.parametrize("weight", [math.inf, -math.inf, True, "1", None])
def test_a_weight_that_is_no_number_is_refused_by_its_place(weight: object) -> None:
    with pytest.raises(InvalidParameterError, match=r"log_weights\[1\] must be a finite number"):
        noise.exponential_choice([0, weight])  # type: ignore[list-item]  # wrong on purpose


@pytest.mark.parametrize("factor", [-1, math.nan, math.inf, "1", True])
def test_a_factor_below_zero_is_refused(factor: Any) -> None:
    with pytest.raises(InvalidParameterError, match="factor must"):
        noise.exponential_choice([0, 1], factor=factor)


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


@pytest.mark.slow
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


def test_a_cell_whose_bound_exceeds_the_distance_is_noticed() -> None:
    with pytest.raises(AssertionError, match="a bound exceeds a distance"):
        cells._scaled_exp_of_cell(Fraction(1, 2), 1, 64)  # 2 exp(-1/2) is more than 1
    low, high = cells._scaled_exp_of_cell(Fraction(1), 1, 64)
    assert low <= mpmath.ldexp(2 * mpmath.exp(-1), 64) <= high
