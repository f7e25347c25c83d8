"""What a run shows: paid for, or marked private."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.learning.metrics import GRID, Metrics, NoisyMetrics, PrivateMetrics, Tally, as_metrics

anything = st.floats(allow_nan=True, allow_infinity=True, width=32)


@given(loss=anything, norm=st.floats(0, allow_infinity=True, width=32) | st.just(math.nan), clip=st.floats(1e-3, 1e3))
def test_nobody_moves_what_is_watched_by_more_than_one(loss: float, norm: float, clip: float) -> None:
    one = Metrics().vector(torch.tensor([loss]), torch.tensor([norm]), clip)
    assert len(one) == Metrics().width
    assert float((one / GRID).norm()) <= 1 + 1e-6
    more = Metrics().vector(torch.tensor([loss, 1.0]), torch.tensor([norm, clip]), clip)
    fewer = Metrics().vector(torch.tensor([1.0]), torch.tensor([clip]), clip)
    assert torch.equal(more - fewer, one), "whole numbers, whoever is beside"
    thirds = sum(Metrics().vector(torch.tensor([loss]), torch.tensor([norm]), clip, 1 / 3) for _ in range(3))
    assert bool((thirds <= one).all())
    assert bool((one - thirds <= 6).all())


@given(st.lists(st.tuples(anything, st.sampled_from([0.0, 1.0, 2.0, 0.5, 3.0]) | st.floats()), max_size=5))
def test_one_is_counted_once_and_in_a_cell_that_there_is(given: list[tuple[float, float]]) -> None:
    rows = torch.tensor(given, dtype=torch.float64).reshape(-1, 2)
    losses, norms = torch.zeros(len(rows)), torch.zeros(len(rows))
    whole = Tally(3).vector(losses, norms, 1.0, 1.0, rows)
    there = [int(cell) for _, cell in given if cell in {0, 1, 2}]
    assert whole.tolist() == [GRID * there.count(cell) for cell in range(3)]
    third = Tally(3).vector(losses, norms, 1.0, 1 / 3, rows)
    assert bool((3 * third <= whole).all())
    assert Tally(3).vector(losses, norms, 1.0).tolist() == [0, 0, 0]


def test_what_is_counted_is_paid_for_and_no_loss_is_shown() -> None:
    glance = NoisyMetrics(Tally(2), batch=4.0)
    glance.note([3.0, 1.0], 1.0, 0.1)
    assert str(glance) == glance.words() == ""
    assert math.isnan(glance.loss()[0])
    assert as_metrics(Tally(2)) == Tally(2)
    with pytest.raises(InvalidParameterError):
        Tally(0)


def test_means_and_quantiles_are_read_off_the_sums() -> None:
    watch = Metrics(loss=4)
    glance = NoisyMetrics(watch, batch=10.0)
    for _ in range(5):
        sums = watch.vector(torch.full((10,), 1.5), torch.tensor([0.2] * 6 + [3.0] * 4), 1.0)
        glance.note((sums / GRID).tolist(), 1.0, 0.1)
    loss, error = glance.loss()
    assert loss == pytest.approx(1.5)
    assert error == pytest.approx(4 * 0.1 / math.sqrt(5) / 10 / math.sqrt(0.8))
    assert glance.quantile(0.5) == 0.25
    assert glance.quantile(0.9) == 4.0
    assert "loss 1.500" in str(glance)
    assert str(NoisyMetrics(watch)) == ""


def test_a_quantile_beyond_the_last_edge_is_infinite() -> None:
    glance = NoisyMetrics(Metrics(), batch=1.0)
    glance.note(Metrics().vector(torch.ones(1), torch.tensor([100.0]), 1.0).tolist(), 1.0, 0.1)
    assert glance.quantile(0.5) == math.inf
    assert "> 4" in str(glance)


def test_exact_numbers_say_that_they_are_private() -> None:
    private = PrivateMetrics()
    private.note(torch.tensor([1.0, 3.0, math.nan]), torch.tensor([1.0, 2.0, math.inf]), 1)
    private.note(torch.zeros(0), torch.zeros(0), 0)
    private.note(torch.tensor([math.nan]), torch.tensor([math.inf]), 1)
    assert private.losses[0] == 2.0
    assert private.quantiles[0] == (1.25, 1.5, 1.75)
    assert private.unusable == 2
    assert "owner only" in repr(private)
    assert "2.0" not in repr(private)


def test_ways_to_watch_are_named() -> None:
    assert as_metrics("paid") == Metrics()
    assert as_metrics("private") == "private"
    assert as_metrics("nothing") == "nothing"
    assert as_metrics(Metrics(loss=2)) == Metrics(loss=2)


@pytest.mark.parametrize("bad", ["all", None, True, 3])
def test_other_ways_to_watch_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match="no metrics called") as caught:
        as_metrics(bad)
    assert '"private"' in caught.value.fix


@pytest.mark.parametrize(
    "bad", [{"loss": 0}, {"loss": math.nan}, {"precision": 0}, {"precision": 0.9}, {"precision": "1"}]
)
def test_a_watch_has_bounds(bad: Any) -> None:
    with pytest.raises(InvalidParameterError):
        Metrics(**bad)
