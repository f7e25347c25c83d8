import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.errors import FormulaOutOfRangeError, InvalidParameterError
from defocus.privacy import Pure, Shuffled, account
from defocus.privacy.accounting.shuffling.closed_forms import CLOSED_FORMS, shuffled_epsilon


@pytest.mark.parametrize(("epsilon", "by", "value"), [(1, "feldman-2021", 0.214), (3, "feldman-2021", 0.824)])
def test_published_numbers_for_ten_thousand_users(epsilon: float, by: str, value: float) -> None:
    assert shuffled_epsilon(epsilon, 10_000, 1e-6, by=by) == pytest.approx(value, abs=5e-4)


@pytest.mark.parametrize("by", CLOSED_FORMS)
@settings(max_examples=15, deadline=None)
@given(epsilon=st.floats(0.1, 4), users=st.integers(1000, 10**6), delta=st.floats(1e-9, 1e-3))
def test_no_formula_is_below_the_bound_that_is_computed(by: str, epsilon: float, users: int, delta: float) -> None:
    try:
        found = shuffled_epsilon(epsilon, users, delta, by=by)
    except FormulaOutOfRangeError:
        return
    assert found >= account(Shuffled(Pure(epsilon), users), "basic", "replace").epsilon(delta) * (1 - 1e-3)


@pytest.mark.parametrize(
    ("epsilon", "users", "delta", "by"),
    [(1, 10_000, 1e-6, "erlingsson-2019"), (0.1, 999, 1e-6, "erlingsson-2019"), (5, 1000, 1e-6, "feldman-2023")],
)
def test_outside_its_range_a_formula_is_refused(epsilon: float, users: int, delta: float, by: str) -> None:
    with pytest.raises(FormulaOutOfRangeError, match="holds for"):
        shuffled_epsilon(epsilon, users, delta, by=by)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1", True, None])
def test_what_is_no_positive_number_is_refused(bad: float) -> None:
    for given_ in ((bad, 1000, 1e-6), (0.1, bad, 1e-6), (0.1, 1000, bad)):
        with pytest.raises(InvalidParameterError):
            shuffled_epsilon(*given_)
    with pytest.raises(InvalidParameterError, match="choose one of"):
        shuffled_epsilon(1, 1000, 1e-6, by="guess")
