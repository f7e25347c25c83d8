import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from defocus.errors import DefocusError, UnfitDataError
from defocus.mechanisms import RangeFinding
from defocus.mechanisms.ranges import _sums
from defocus.noise import discrete_laplace
from defocus.noise.testing import seeded
from defocus.privacy import events

SMALL = RangeFinding(epsilon=1, smallest=-2, largest=10)


def histogram(values: Any, finder: RangeFinding) -> np.ndarray:
    places = np.searchsorted(np.array(finder.edges), values, side="right") - 1
    return np.bincount(np.clip(places, 0, finder.buckets - 1), minlength=finder.buckets)


def outside(counts: np.ndarray, found: tuple[float, float], finder: RangeFinding) -> int:
    low, high = finder.edges.index(found[0]), finder.edges.index(found[1])
    return int(counts[:low].sum() + counts[high:].sum())


def test_edges_are_powers_of_two_around_zero() -> None:
    assert RangeFinding(epsilon=1, smallest=-1, largest=1).edges == (-2, -1, -0.5, 0.5, 1, 2)
    assert len(SMALL.edges) == SMALL.buckets + 1 == 2 * 12 + 2
    widest = RangeFinding(epsilon=1, smallest=-1000, largest=1000)
    assert all(math.isfinite(edge) and edge for edge in widest.edges)
    assert list(widest.edges) == sorted(widest.edges)


@pytest.mark.parametrize(("replace", "moves"), [(False, 3), (True, 6)])
def test_the_event_describes_noise_on_disjoint_buckets(replace: bool, moves: int) -> None:
    finder = RangeFinding(epsilon=Fraction(1, 2), sensitivity=3, replace=replace)
    assert finder.event == events.DiscreteLaplace(2 * moves, moves)
    assert finder.error == pytest.approx(1 / math.sinh(1 / (2 * moves)))


def test_no_user_moves_the_histogram_by_more_than_the_sensitivity() -> None:
    finder = RangeFinding(epsilon=1, smallest=0, largest=1, sensitivity=2)
    rows = [-5.0, -1.0, -0.0, 0.0, 0.5, 1.0, 7.0, 1e300]
    for values in itertools.combinations_with_replacement(rows, 2):
        assert histogram(np.array(values), finder).sum() == 2


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["positive", "both signs", "narrow", "with outliers", "few rows"])
def test_a_range_reaches_no_further_than_the_data_and_leaves_out_little(name: str) -> None:
    rng = np.random.default_rng(5)
    values = {
        "positive": rng.exponential(20, 3000),
        "both signs": rng.normal(0, 100, 5000),
        "narrow": rng.uniform(100, 120, 400),
        "with outliers": np.concatenate([rng.uniform(10, 20, 20_000), [900.0] * 3]),
        "few rows": rng.uniform(3, 4, 60),
    }[name]
    counts, bits = histogram(values, SMALL), seeded(8)
    occupied = np.flatnonzero(counts)
    runs = [SMALL.sample(counts, bits) for _ in range(400)]
    wide = [low < SMALL.edges[occupied[0]] or high > SMALL.edges[occupied[-1] + 1] for low, high in runs]
    assert np.mean(wide) <= 0.05
    allowed = SMALL.missed(0.9) + float(SMALL.share) * len(values)
    assert np.mean([outside(counts, found, SMALL) > allowed for found in runs]) <= 0.1


def test_outliers_below_the_share_do_not_widen_the_range() -> None:
    counts = histogram(np.concatenate([np.full(1_000_000, 12.0), np.full(200, 900.0)]), SMALL)
    assert SMALL.sample(counts, seeded(1)) == (8, 16)
    strict = RangeFinding(epsilon=1, smallest=-2, largest=10, share=0)
    assert strict.sample(counts, seeded(1)) == (8, 1024)


def test_many_small_buckets_count_together() -> None:
    """No bucket stands out alone, but what would be left out does."""
    counts = np.full(SMALL.buckets, 6)
    found = [SMALL.sample(counts, seeded(i)) for i in range(60)]
    assert sum(outside(counts, each, SMALL) > SMALL.missed(0.9) for each in found) <= 6


@pytest.mark.statistical
@pytest.mark.parametrize("counts", [np.zeros(25, np.int64), np.full(25, -9)], ids=["empty", "negative"])
def test_an_empty_table_gives_the_default_almost_always(counts: np.ndarray) -> None:
    finder, bits = RangeFinding(epsilon=1, smallest=-2, largest=10, default=(0, 50)), seeded(3)
    assert np.mean([finder.sample(counts, bits) == (0, 50) for _ in range(400)]) >= 0.95


def test_without_a_default_the_range_is_around_zero() -> None:
    assert SMALL.default == (-0.25, 0.25)
    assert SMALL.sample([0] * 25, seeded(1)) == (-0.25, 0.25)


@settings(max_examples=50)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=25, max_size=25))
def test_no_histogram_is_refused_and_every_range_is_one(counts: list[int]) -> None:
    low, high = SMALL.sample(counts, seeded(2))
    assert low < high
    assert {low, high} <= {*SMALL.edges}


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.3, 2, 50])
def test_sums_of_noise_stay_below_their_bounds(scale: float) -> None:
    bounds = _sums(scale, 20, 0.01)
    noise = np.cumsum(discrete_laplace(scale, 20 * 20_000, seeded(4)).reshape(-1, 20), axis=1)
    beyond = (noise > np.array(bounds)).mean(axis=0)
    assert beyond.max() <= 0.012
    assert beyond.max() >= 0.001
    assert bounds == sorted(bounds)


@pytest.mark.slow
@pytest.mark.statistical
def test_noise_has_the_declared_scale_and_no_other() -> None:
    """A bucket eight below the margin stands out only by noise; the chance is summed over the noise of all three."""
    finder = RangeFinding(epsilon=Fraction(1, 4), smallest=0, largest=1, share=0, default=(5, 6))
    margin = finder._margins()[0]
    counts, bits = np.array([0, 0, math.floor(margin) - 8]), seeded(10)
    found = sum(finder.sample(counts, bits) != (5, 6) for _ in range(15_000))

    def fit(scale: float) -> float:
        law = np.exp(-np.abs(np.arange(-400, 401)) / scale)
        law /= law.sum()
        size = np.arange(-400, 401)
        margins = finder._margins()
        a, b, c = np.meshgrid(*[size[330:471]] * 3, indexing="ij", sparse=True)
        p = law[330:471]
        c = c + counts[2]
        stands = (
            (c > margins[0]) | (b > margins[0]) | (a > margins[0]) | (a + b > margins[1]) | (a + b + c > margins[2])
        )
        chance = float(np.einsum("i,j,k,ijk->", p, p, p, stands.astype(float)))
        return float(stats.binomtest(found, 15_000, chance).pvalue)

    assert fit(4) > 1e-4
    assert fit(4.4) < 1e-6
    assert fit(4 / 1.1) < 1e-6


def test_what_may_be_missed_shrinks_with_epsilon_and_grows_with_confidence() -> None:
    at = [RangeFinding(epsilon=e).missed(0.95) for e in (0.1, 1, 10)]
    assert at == sorted(at, reverse=True)
    assert SMALL.missed(0.5) < SMALL.missed(0.99)


@pytest.mark.parametrize(
    ("what", "match"),
    [
        ({"smallest": 0.5}, "smallest"),
        ({"smallest": 2000}, "smallest"),
        ({"largest": "3"}, "largest"),
        ({"largest": True}, "largest"),
        ({"smallest": 5, "largest": 5}, "below the largest"),
        ({"share": 0.5}, "share"),
        ({"share": -0.1}, "share"),
        ({"share": math.nan}, "share"),
        ({"default": 5}, "default"),
        ({"default": (1,)}, "default"),
        ({"default": (2, 1)}, "default"),
        ({"default": (0, math.inf)}, "default"),
        ({"default": "ab"}, "default"),
        ({"replace": "no"}, "replace"),
        ({"epsilon": 0}, "epsilon"),
        ({"sensitivity": 1.5}, "sensitivity"),
        ({"epsilon": 1e-12, "sensitivity": 10**6}, "scale"),
    ],
)
def test_parameters_out_of_range_are_refused(what: dict[str, Any], match: str) -> None:
    with pytest.raises(DefocusError, match=match) as refusal:
        RangeFinding(**{"epsilon": 1, **what})
    assert refusal.value.fix


@pytest.mark.parametrize("counts", [[0.5] * 25, [True] * 25, "3", None, [1] * 24, [], np.zeros((5, 5), np.int64)])
def test_counts_that_are_none_are_refused(counts: Any) -> None:
    with pytest.raises(UnfitDataError):
        SMALL.sample(counts)


def test_a_range_is_widened_for_what_noise_hides_where_that_errs_less() -> None:
    finder = RangeFinding(epsilon=1, smallest=0, largest=10)
    noisy = [0] * finder.buckets
    for edge, number in ((1.0, 900), (2.0, 900), (4.0, 5), (8.0, 3), (64.0, 4)):
        noisy[finder.edges.index(edge)] = number
    assert finder.read(noisy) == (1.0, 4.0)
    close, loose = finder.best(noisy, 0.1), finder.best(noisy, 1e-6)
    assert (close.low, close.high) == (1.0, 4.0)
    assert (loose.low, loose.high) == (1.0, 16.0)  # by two buckets at most, however little noise costs
    assert loose.seen
    assert loose.outside < close.outside < 1


def test_the_share_outside_is_told_with_its_noise_and_a_default_says_nothing() -> None:
    finder = RangeFinding(epsilon=1, smallest=0, largest=10)
    noisy = [0] * finder.buckets
    noisy[finder.edges.index(1.0)], noisy[finder.edges.index(64.0)] = 100_000, 10
    found = finder.best(noisy, math.inf)
    empty = finder.buckets - 1
    assert found.outside == pytest.approx((10 + 1.645 * math.sqrt(2 * empty)) / 100_010)
    nothing = finder.best([0] * finder.buckets, 0.1)
    assert (nothing.low, nothing.high, nothing.outside, nothing.seen) == (-1.0, 1.0, 1.0, False)


def test_the_share_outside_is_an_upper_bound_in_nineteen_of_twenty() -> None:
    finder = RangeFinding(epsilon=1, smallest=0, largest=10)
    counts = [0] * finder.buckets
    for edge, number in ((1.0, 3000), (2.0, 60), (4.0, 20), (16.0, 5)):
        counts[finder.edges.index(edge)] = number
    held = 0
    for i in range(300):
        found = finder.best(finder.add(counts, seeded(i)), math.inf)
        truth = sum(n for n, low in zip(counts, finder.edges, strict=False) if not found.low <= low < found.high)
        held += truth / sum(counts) <= found.outside
    assert held >= 0.92 * 300
