import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError, UnfitDataError
from defocus.mechanisms import Exponential
from defocus.noise.testing import seeded


def expected_loss(rate: float, gaps: list[float]) -> float:
    weights = [1.0, *(math.exp(-rate * g) for g in gaps)]
    return sum(g * w for g, w in zip([0.0, *gaps], weights, strict=True)) / sum(weights)


@given(st.lists(st.floats(0, 60), min_size=1, max_size=6), st.booleans())
def test_no_utilities_lose_more_than_the_error(gaps: list[float], monotone: bool) -> None:
    m = Exponential(epsilon=0.5, candidates=len(gaps) + 1, monotone=monotone)
    assert expected_loss(0.5 if monotone else 0.25, gaps) <= m.error * (1 + 1e-12)


@pytest.mark.parametrize("n", [2, 5, 100])
def test_the_error_is_reached_by_ties_at_the_gap_of_the_docstring(n: int) -> None:
    m = Exponential(epsilon=2, candidates=n)
    assert expected_loss(1.0, [1.0 + m.error] * (n - 1)) == pytest.approx(m.error)


@given(st.lists(st.floats(0, 60), min_size=1, max_size=6), st.sampled_from([0.3, 0.6, 0.9, 0.99]))
def test_no_utilities_exceed_the_interval_more_often_than_allowed(gaps: list[float], confidence: float) -> None:
    m = Exponential(epsilon=0.5, candidates=len(gaps) + 1)
    weights = [math.exp(-0.25 * g) for g in gaps]
    beyond = sum(w for w, g in zip(weights, gaps, strict=True) if g > m.interval(confidence))
    assert beyond / (1 + sum(weights)) <= 1 - confidence + 1e-12


def test_monotone_utilities_get_the_factor_two_back() -> None:
    """Specification 2.3."""
    plain = Exponential(epsilon=1, candidates=9)
    monotone = Exponential(epsilon=1, candidates=9, monotone=True)
    assert plain.error == pytest.approx(2 * monotone.error)
    assert plain.event == monotone.event


def test_the_published_bound_on_the_loss_holds() -> None:
    """McSherry, Talwar (2007), Theorem 6: losing more than 2Δ(ln n + t)/ε has probability at most e^−t."""
    for n, t in itertools.product((2, 30, 10_000), (0.5, 3.0, 9.0)):
        assert Exponential(epsilon=0.7, candidates=n).interval(1 - math.exp(-t)) <= 2 * (math.log(n) + t) / 0.7


def test_one_candidate_is_chosen_without_loss() -> None:
    m = Exponential(epsilon=1, candidates=1)
    assert (m.error, m.interval(0.999), m.sample([5])) == (0, 0, 0)


def test_utilities_of_any_size_and_exactness_are_taken() -> None:
    m = Exponential(epsilon=Fraction(1, 3), candidates=3, sensitivity=Fraction(1, 7))
    assert m.sample([Fraction(10**50, 3), 0, -(10**60)], seeded(1)) == 0
    assert m.sample(np.array([-5000, 5000, 0]), seeded(1)) == 1


def test_the_number_of_candidates_is_declared_and_held() -> None:
    with pytest.raises(UnfitDataError, match="2 utilities, but this mechanism was made for 3"):
        Exponential(epsilon=1, candidates=3).sample([1, 2])


def test_a_truthy_word_does_not_halve_the_noise() -> None:
    with pytest.raises(InvalidParameterError, match="monotone must be True or False"):
        Exponential(epsilon=1, candidates=2, monotone="no")  # type: ignore[arg-type]


def test_parameters_too_far_apart_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"2\*\*500 apart"):
        Exponential(epsilon=5e-324, candidates=2)
