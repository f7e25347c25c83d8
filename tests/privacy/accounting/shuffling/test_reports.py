import math
from fractions import Fraction

import pytest

from defocus.errors import UnsupportedEventError
from defocus.privacy.accounting.shuffling.reports import reports_of
from defocus.privacy.events import (
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    SubsetResponse,
)


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


def test_noise_without_a_largest_loss_is_refused() -> None:
    with pytest.raises(UnsupportedEventError, match="pure local epsilon"):
        reports_of(Gaussian(1))
