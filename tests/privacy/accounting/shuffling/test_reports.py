import math
from fractions import Fraction

import pytest

from defocus.errors import UnsupportedEventError
from defocus.privacy.accounting.shuffling.reports import replaced_only, reports_of
from defocus.privacy.events import (
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Sampled,
    SampledBatch,
    Selected,
    Shuffled,
    SubsetResponse,
)
from defocus.privacy.units import Adjacency


@pytest.mark.parametrize(
    "event",
    [
        Pure(Fraction(1, 3)),
        Laplace(2),
        DiscreteLaplace(3, 2),
        Exponential(1),
        RandomizedResponse(2, 7),
        SubsetResponse(1, 0.25, 0.0625),
        SubsetResponse(1e-9, 0.5),
    ],
)
def test_masses_add_up_to_a_law_under_either_value(event: Event) -> None:
    r = reports_of(event)
    assert (r.odds + 1) * r.alone + r.odds * r.both + r.neither == pytest.approx(1, rel=1e-12)
    assert r.silent == pytest.approx(1 - 2 * r.alone - r.both - r.neither, abs=1e-12)
    assert r.odds >= math.exp(r.epsilon)
    assert r.gain >= math.expm1(r.epsilon)


def test_randomised_response_is_a_subset_response_that_names_one_value() -> None:
    one, other = reports_of(RandomizedResponse(1, 8)), reports_of(SubsetResponse(1, Fraction(1, 8)))
    assert (one.alone, one.both, one.neither) == pytest.approx((other.alone, other.both, other.neither))


SHUFFLED = Shuffled(Pure(1), 100)


@pytest.mark.parametrize("event", [SHUFFLED, 3 * SHUFFLED + Gaussian(1), Selected(SHUFFLED, 0.1)])
def test_shuffled_reports_anywhere_need_a_value_that_is_replaced(event: Shuffled) -> None:
    replaced_only(event, Adjacency.REPLACE)
    with pytest.raises(UnsupportedEventError, match="can be counted"):
        replaced_only(event, Adjacency.ADD_REMOVE)


def test_other_events_may_have_any_neighbours() -> None:
    for adjacency in Adjacency:
        replaced_only(Sampled(Gaussian(1), 0.1) + Pure(1), adjacency)


def test_a_poisson_sample_has_a_size_that_depends_on_one_user() -> None:
    replaced_only(SampledBatch(SHUFFLED, 100, 200), Adjacency.REPLACE)
    with pytest.raises(UnsupportedEventError, match="Poisson"):
        replaced_only(Sampled(SHUFFLED, 0.1), Adjacency.REPLACE)
