import copy
import math
import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.mechanisms import Exponential, Gaussian, Laplace, RandomizedResponse
from defocus.mechanisms.parameters import checked_budget, noise_scale, outside, scale_for
from defocus.privacy.budgets import Budget


@given(st.integers(1, 1000), st.floats(1e-6, 1e6))
def test_the_scale_for_an_epsilon_never_spends_more_than_it_and_hardly_less(bound: int, epsilon: float) -> None:
    scale = scale_for(bound, epsilon)
    assert bound / Fraction(scale) <= Fraction(epsilon)
    assert bound / Fraction(math.nextafter(float(scale), 0)) > Fraction(epsilon)


@given(st.integers(1, 1000), st.fractions(Fraction(1, 1000), 1000))
def test_exact_parameters_give_an_exact_scale(bound: int, epsilon: Fraction) -> None:
    assert scale_for(bound, epsilon) * epsilon == bound


@pytest.mark.parametrize("scale", [2**40 + 1, 1e300, 10**400, Fraction(10**400, 3)])
def test_scales_beyond_the_samplers_are_refused(scale: Fraction) -> None:
    with pytest.raises(InvalidParameterError, match=r"2\*\*40") as refusal:
        noise_scale("scale", scale)
    assert "coarser grid" in refusal.value.fix


@pytest.mark.parametrize("scale", [1e-300, Fraction(1, 10**400), 5e-324])
def test_scales_that_protect_nobody_are_refused(scale: Fraction) -> None:
    with pytest.raises(InvalidParameterError, match="no privacy"):
        noise_scale("scale", scale)


def test_the_widest_and_the_narrowest_scale_are_allowed() -> None:
    assert noise_scale("scale", 2**40) == 2**40
    assert noise_scale("scale", 2.0**-40) == 2.0**-40


@pytest.mark.parametrize("budget", [1, 0.5, None, "1", (1, 1e-6)])
def test_only_a_budget_is_a_budget(budget: object) -> None:
    with pytest.raises(InvalidParameterError, match="needs a Budget") as refusal:
        checked_budget(budget)
    assert "Budget(1, 1e-6)" in refusal.value.fix


def test_what_is_outside_is_what_confidence_leaves() -> None:
    assert outside(Fraction(19, 20)) == 0.05


def test_a_number_in_place_of_a_budget_is_told_its_name() -> None:
    with pytest.raises(InvalidParameterError) as refusal:
        Laplace.calibrated(0.1)  # type: ignore[arg-type] # refused
    assert "epsilon=0.1" in refusal.value.fix


@pytest.mark.parametrize("named", [{"epsilon": 0.1}, {"epsilon": 1, "sensitivity": 2}, {"delta": 1e-6}])
@pytest.mark.parametrize("mechanism", [Laplace, Gaussian])
def test_an_epsilon_in_place_of_noise_is_told_where_it_belongs(mechanism: Any, named: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match="described by its noise") as refusal:
        mechanism(**named)
    assert f"{mechanism.__name__}.calibrated(epsilon=" in refusal.value.fix


def test_noise_for_a_budget_that_is_no_promise_is_refused() -> None:
    for calibrate in (Laplace.calibrated, Gaussian.calibrated):
        with pytest.raises(InvalidParameterError, match="may be broken altogether"):
            calibrate(Budget(1e-6, 0.9))


@pytest.mark.parametrize("mechanism", [Laplace(scale=2), Gaussian(sigma=3, dimension=2)])
def test_a_mechanism_survives_pickling_and_copying(mechanism: Any) -> None:
    assert pickle.loads(pickle.dumps(mechanism)) == copy.deepcopy(mechanism) == mechanism  # noqa: S301 # our own


@pytest.mark.parametrize(
    "mechanism", [Laplace(scale=2), Exponential(epsilon=1, candidates=3), RandomizedResponse(epsilon=1)]
)
def test_a_confidence_that_leaves_no_float_outside_is_refused(mechanism: Any) -> None:
    with pytest.raises(InvalidParameterError, match="so close to 1"):
        mechanism.interval(1 - Fraction(1, 10**400))
    assert mechanism.interval(1 - Fraction(1, 10**200)) > 2 * mechanism.interval(1 - Fraction(1, 10**20))
