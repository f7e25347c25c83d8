import copy
import importlib
import math
import pickle
import pkgutil
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import defocus.mechanisms as room
from defocus.errors import InvalidParameterError, NotExactError
from defocus.mechanisms import Exponential, Gaussian, Grid, Laplace, Mechanism, RandomizedResponse
from defocus.mechanisms.mechanism import (
    LARGEST,
    SMALLEST,
    add,
    checked_budget,
    integers,
    noise_scale,
    outside,
    rationals,
    saturate,
    scale_for,
)
from defocus.privacy.budgets import Budget


def test_the_room_exports_everything_public_and_nothing_else() -> None:
    assert sorted(room.__all__) == room.__all__
    assert all(hasattr(room, name) for name in room.__all__)


def test_every_file_names_what_it_offers() -> None:
    for file in pkgutil.iter_modules(room.__path__, "defocus.mechanisms."):
        module = importlib.import_module(file.name)
        assert module.__doc__
        assert all(hasattr(module, name) for name in module.__all__)


def test_what_offers_less_is_no_mechanism() -> None:
    assert isinstance(Laplace(scale=1), Mechanism)
    assert not isinstance(Grid(1), Mechanism)


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


@pytest.mark.parametrize("budget", [1, 0.5, "1", (1, 1e-6)])
def test_only_a_budget_is_a_budget(budget: object) -> None:
    with pytest.raises(InvalidParameterError, match="calibrated to a Budget") as refusal:
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


int64 = st.integers(SMALLEST, LARGEST)


@given(st.lists(st.tuples(int64, int64), min_size=1))
def test_sums_are_those_of_unbounded_integers_cut_to_64_bits(rows: list[tuple[int, int]]) -> None:
    a, b = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    assert add(a, b).tolist() == [max(SMALLEST, min(LARGEST, x + y)) for x, y in rows]


@given(st.integers(), st.integers())
def test_cutting_moves_neighbours_no_further_apart(x: int, y: int) -> None:
    assert abs(saturate(x) - saturate(y)) <= abs(x - y)
    assert SMALLEST <= saturate(x) <= LARGEST


@given(st.lists(int64, min_size=1))
def test_integers_come_through_unchanged_from_every_container(items: list[int]) -> None:
    for value in (items, tuple(items), np.array(items, dtype=np.int64), np.array(items, dtype=object)):
        vector, single = integers(value)
        assert vector.dtype == np.int64
        assert vector.tolist() == items
        assert not single


@pytest.mark.parametrize("value", [7, np.int64(7), np.uint8(7), np.array(7)])
def test_a_number_is_remembered_as_a_number(value: Any) -> None:
    vector, single = integers(value)
    assert vector.tolist() == [7]
    assert single


def test_the_data_given_is_not_written_to() -> None:
    data = np.array([1, 2, 3])
    vector, _ = integers(data)
    vector += 1
    assert data.tolist() == [1, 2, 3]


@pytest.mark.parametrize("value", [1.5, Fraction(3, 2), Decimal("1.5"), np.float32(1.5), [1, 1.5], [Fraction(1, 2)]])
def test_fractional_data_is_sent_to_the_grid_and_not_quoted(value: Any) -> None:
    with pytest.raises(NotExactError) as refusal:
        integers(value)
    assert "Grid" in refusal.value.fix
    assert "1.5" not in str(refusal.value)


def test_utilities_may_be_fractions_and_integers_of_any_size() -> None:
    assert rationals([10**30, Fraction(1, 3), np.int8(-2)], length=3) == [10**30, Fraction(1, 3), -2]
