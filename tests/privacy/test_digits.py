"""Printed numbers that hold as they are printed."""

import math

from hypothesis import given
from hypothesis import strategies as st

from defocus.privacy.digits import at_least, at_most, roughly


@given(st.floats(min_value=1e-300, max_value=1e300), st.integers(1, 12))
def test_the_text_is_on_the_safe_side_and_close(value: float, digits: int) -> None:
    low, high = float(at_most(value, digits)), float(at_least(value, digits))
    assert low <= value <= high
    assert high - low <= 2 * 10.0 ** (1 - digits) * value


def test_short_numbers_stay_as_they_are() -> None:
    for number, text in ((0.25, "0.25"), (1.0, "1"), (20.0, "20"), (1e-9, "1e-9"), (0.1, "0.1"), (0.0, "0")):
        assert at_least(number) == at_most(number) == text


def test_an_infinite_number_is_said_to_be_infinite() -> None:
    assert at_least(math.inf) == at_most(math.inf) == "inf"


def test_the_last_bits_are_forgiven_only_on_request() -> None:
    assert at_least(0.1 + 0.2) == "0.300001"
    assert at_least(0.1 + 0.2, forgiving=2**-46) == "0.3"
    assert at_most(0.7 + 0.1) == "0.799999"
    assert at_most(0.7 + 0.1, forgiving=2**-46) == "0.8"


def test_an_estimate_is_rounded_to_the_nearest() -> None:
    assert roughly(2 / 3) == "0.6667"
    assert roughly(1e-6) == "0.000001"
    assert roughly(1e-9) == "1e-9"
