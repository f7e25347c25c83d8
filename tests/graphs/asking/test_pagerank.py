import numpy as np
import pytest
from tests.graphs.asking.small import answer, public, ways

from defocus import Budget
from defocus.errors import DefocusError
from defocus.graphs import Network, build
from defocus.graphs.asking import AskPageRank
from defocus.graphs.statistics import PageRank
from defocus.noise.testing import seeded


def test_ranks_come_back_in_shares_with_noise_of_the_bound() -> None:
    star = build(2000, [0] * 1500, list(range(1, 1501)))
    method = ways(AskPageRank(0.5), 2000, Budget(1))["laplace"]
    column = answer(method, star).columns[0]
    truth = PageRank(0.5).shares(star)
    off = np.abs(column.values - truth)
    assert off.mean() == pytest.approx(2 / 2000, rel=0.1)
    assert off.mean() == pytest.approx(method.error, rel=0.1)
    assert (off <= method.interval).mean() > 0.93


def test_only_the_highest_are_shown_when_asked() -> None:
    star = build(500, [7] * 400, list(range(8, 408)))
    result = answer(ways(AskPageRank(0.5, top=3), 500, Budget(5))["laplace"], star)
    assert result.keys["node"][0] == 7
    assert len(result.columns[0].values) == 3
    assert "look higher" in result.processing[0]


def test_bad_numbers_are_refused() -> None:
    for bad in (0, -1, True, 1.5):
        with pytest.raises(DefocusError, match="top"):
            AskPageRank(0.5, top=bad)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(DefocusError, match="only 9 nodes"):
        AskPageRank(0.5, top=10).methods(public(9), Budget(1))
    with pytest.raises(DefocusError, match="damping"):
        AskPageRank(1.0)


def test_ranks_are_written_with_the_digits_that_the_noise_leaves(friends: Network) -> None:
    """Ranks are small numbers: one digit below their error is shown, however small both are."""
    column = friends.pagerank(damping=0.5).release(epsilon=900, bits=seeded(1))["pagerank"]
    assert column.places is not None
    assert 10.0**-column.places <= column.spread[0] / 2
    assert 10.0**-column.places > column.spread[0] / 20
