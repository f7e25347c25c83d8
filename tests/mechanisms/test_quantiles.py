import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import DefocusError, InvalidParameterError, UnfitDataError
from defocus.mechanisms import Located, Quantiles
from defocus.noise.testing import seeded
from defocus.privacy import events
from defocus.privacy.accounting import account

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
METHODS = ("search", "tree")
every_method = pytest.mark.parametrize("method", METHODS)


@every_method
@pytest.mark.parametrize("levels", [(0.5,), (0.5, 0.9), (0.1, 0.5, 0.9), DECILES], ids=len)
def test_every_release_costs_epsilon_and_no_more(levels: Any, method: str) -> None:
    event = Quantiles(levels=levels, epsilon=0.7, buckets=100, sensitivity=5, method=method).event
    assert account(event).epsilon(0) == pytest.approx(0.7, rel=1e-6)
    assert account(event, by="basic").epsilon(0) <= 0.7 * (1 + 1e-9)


def test_one_level_keeps_the_epsilon_it_was_given() -> None:
    assert Quantiles(levels=(0.5,), epsilon=0.7, buckets=9).event == events.Exponential(0.7)


@every_method
def test_a_replaced_user_moves_twice_as_much(method: str) -> None:
    added = Quantiles(levels=(0.5,), epsilon=1, buckets=50, sensitivity=6, method=method)
    replaced = Quantiles(levels=(0.5,), epsilon=1, buckets=50, sensitivity=3, replace=True, method=method)
    assert added.rank_error(0.9) == replaced.rank_error(0.9)
    assert added.error == replaced.error
    assert account(added.event).epsilon(0) == account(replaced.event).epsilon(0)


@given(st.lists(st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9, 0.95]), min_size=1, max_size=6, unique=True))
def test_levels_are_answered_in_the_order_they_were_asked(levels: list[float]) -> None:
    counts = np.full(100, 10_000)
    for method in METHODS:
        found = Quantiles(levels=levels, epsilon=10, buckets=100, method=method).sample(counts, seeded(1))
        assert np.abs(found - 100 * np.array(levels)).max() <= 2


def test_a_level_means_the_decimal_that_was_written() -> None:
    assert Quantiles(levels=[0.9, np.float64(0.1)], epsilon=1, buckets=2).levels == (Fraction(9, 10), Fraction(1, 10))


@every_method
def test_a_matrix_is_answered_row_by_row(method: str) -> None:
    q = Quantiles(levels=(0.25, 0.5, 0.75), epsilon=1, buckets=30, method=method)
    counts = np.zeros((4, 30), np.int64)
    counts[range(4), [3, 9, 27, 0]] = 10**6
    found = q.locate(counts, seeded(1))
    assert found.buckets.tolist() == [[3] * 3, [9] * 3, [27] * 3, [0] * 3]
    assert q.sample(counts[0], seeded(1)).tolist() == [3, 3, 3]
    assert q.sample(np.zeros((0, 30), np.int64)).shape == (0, 3)
    if method == "tree":
        assert found.low is not None
        assert found.low.tolist() == found.buckets.tolist()
    else:
        assert found.low is None


@every_method
@given(counts=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=7, max_size=7), seed=st.integers(0, 50))
def test_no_histogram_is_refused(method: str, counts: list[int], seed: int) -> None:
    found = Quantiles(levels=(0.2, 0.5, 0.7), epsilon=1, buckets=7, method=method).sample(counts, seeded(seed))
    assert found.dtype == np.int64
    assert sorted(found.tolist()) == found.tolist()
    assert 0 <= found.min() <= found.max() < 7


def test_many_levels_take_the_tree_and_few_the_search() -> None:
    kind = {
        k: type(Quantiles(levels=[Fraction(i + 1, k + 1) for i in range(k)], epsilon=1, buckets=1024).event)
        for k in (1, 2, 3, 9)
    }
    assert kind == {1: events.Exponential, 2: events.Composed, 3: events.Composed, 9: events.DiscreteLaplace}


def test_weights_too_fine_for_the_noise_of_a_tree_are_searched() -> None:
    fine = {"levels": DECILES, "epsilon": 0.01, "buckets": 1024, "sensitivity": 2**38}
    assert isinstance(Quantiles(**fine).event, events.Composed)  # type: ignore[arg-type]  # named above
    with pytest.raises(InvalidParameterError, match="2\\*\\*40"):
        Quantiles(**fine, method="tree")  # type: ignore[arg-type]  # named above


@every_method
def test_rank_errors_scale_with_weights_and_shrink_with_epsilon(method: str) -> None:
    one = Quantiles(levels=DECILES, epsilon=1, buckets=64, method=method)
    heavy = Quantiles(levels=DECILES, epsilon=1, buckets=64, sensitivity=1000, method=method)
    precise = Quantiles(levels=DECILES, epsilon=4, buckets=64, method=method)
    assert heavy.rank_error(0.95) == pytest.approx(1000 * one.rank_error(0.95))
    assert precise.rank_error(0.95) == pytest.approx(one.rank_error(0.95) / 4)
    assert one.error < one.rank_error(0.95) == one.interval(0.95) < one.rank_error(0.99)


def test_the_published_bound_for_one_level_holds() -> None:
    """McSherry, Talwar (2007): losing more than (ln n + t)/c has probability at most e^−t; c = ε for a median."""
    q = Quantiles(levels=(0.5,), epsilon=0.5, buckets=1000)
    for t in (1.0, 3.0, 9.0):
        assert q.rank_error(1 - math.exp(-t)) <= (math.log(1000) + t) / 0.5


def test_intervals_widen_with_confidence() -> None:
    q, counts = Quantiles(levels=(0.5,), epsilon=1, buckets=64, method="tree"), np.full(64, 4)
    narrow, wide = (q.locate(counts, seeded(3), confidence=c) for c in (0.5, 0.999))
    assert isinstance(narrow, Located)
    assert narrow.low is not None
    assert wide.low is not None
    assert narrow.high is not None
    assert wide.high is not None
    assert wide.low <= narrow.low <= narrow.buckets <= narrow.high <= wide.high
    assert wide.high - wide.low > narrow.high - narrow.low


@pytest.mark.parametrize(
    ("what", "match"),
    [
        ({"levels": ()}, "distinct"),
        ({"levels": (0.5, 0.5)}, "distinct"),
        ({"levels": (0.5, Fraction(1, 2))}, "distinct"),
        ({"levels": 0.5}, "sequence"),
        ({"levels": "half"}, "sequence"),
        ({"levels": {0.5: 1}}, "sequence"),
        ({"levels": (0,)}, "strictly between"),
        ({"levels": (1,)}, "strictly between"),
        ({"levels": (-0.5,)}, "strictly between"),
        ({"levels": (math.nan,)}, "finite"),
        ({"levels": (True,)}, "finite"),
        ({"levels": ("0.5",)}, "finite"),
        ({"levels": (math.pi / 4,)}, "million"),
        ({"levels": (1e-320,)}, "million"),
        ({"buckets": 0}, "buckets"),
        ({"buckets": 2**25}, "buckets"),
        ({"buckets": 2.0}, "buckets"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 5e-324}, "2\\*\\*500"),
        ({"sensitivity": 0.5}, "sensitivity"),
        ({"replace": "yes"}, "replace"),
        ({"method": "best"}, "no such method"),
        ({"method": None}, "no such method"),
    ],
)
def test_parameters_out_of_range_are_refused(what: dict[str, Any], match: str) -> None:
    with pytest.raises(DefocusError, match=match) as refusal:
        Quantiles(**{"levels": (0.5,), "epsilon": 1, "buckets": 8, **what})
    assert refusal.value.fix


@every_method
@pytest.mark.parametrize(
    "counts",
    [
        [1] * 7,
        np.ones((2, 7), np.int64),
        np.ones((2, 8)),
        np.ones((2, 2, 8), np.int64),
        [True] * 8,
        "12345678",
        None,
        [0.5] * 8,
    ],
    ids=lambda x: type(x).__name__,
)
def test_unfit_histograms_are_refused(method: str, counts: Any) -> None:
    q = Quantiles(levels=(0.5,), epsilon=1, buckets=8, method=method)
    for act in (q.check, q.sample, q.locate):
        with pytest.raises(UnfitDataError):
            act(counts)
