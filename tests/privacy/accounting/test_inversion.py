"""The delta found has been checked."""

import math

from hypothesis import given
from hypothesis import strategies as st

from defocus.privacy.accounting.inversion import least_delta


@given(st.floats(0.01, 700))
def test_the_delta_found_is_enough_and_hardly_more(epsilon: float) -> None:
    found = least_delta(lambda delta: -math.log(delta), epsilon)
    assert -math.log(found) <= epsilon
    assert abs(-math.log(found) - epsilon) <= 1e-9


def test_where_none_is_enough_the_answer_is_one() -> None:
    assert least_delta(lambda _: 2.0, 1.0) == 1.0
    assert least_delta(lambda _: 0.0, 1.0) <= 1e-300
