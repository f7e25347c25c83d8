"""What counts as a number, and which numbers are let through."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import (
    InvalidParameterError,
    choice,
    count,
    finite,
    in_range,
    non_negative,
    positive,
    probability,
    storable,
    whole,
)

exact = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.fractions()
CHECKS: list[Callable[[str, Any], object]] = [finite, positive, non_negative, probability, whole, count]


class Third(Fraction):
    """Someone's own rational."""


@given(exact)
def test_exact_numbers_stay_what_they_are(value: float | Fraction) -> None:
    found = finite("x", value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        (np.float64(1.5), 1.5),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float16(1.5), 1.5),
        (np.int8(3), 3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (Third(1, 3), Fraction(1, 3)),
        (np.longdouble(1.5), 1.5),
    ],
    ids=repr,
)
def test_other_numeric_types_become_plain_ones_of_the_same_value(given_: Any, kept: Any) -> None:
    found = finite("x", given_)
    assert found == kept
    assert type(found) is type(kept)
    assert type(found) in {int, float, Fraction}


@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(np.float64).eps, reason="no wider floats on this machine")
def test_a_long_double_keeps_digits_that_a_float_would_lose() -> None:
    wide = np.longdouble(1) + np.finfo(np.longdouble).eps
    found = finite("x", wide)
    assert float(found) == 1.0
    assert found > 1
    assert probability("p", np.longdouble(1) - np.finfo(np.longdouble).eps, one=False) < 1
    with pytest.raises(InvalidParameterError):
        probability("p", wide)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    "odd",
    [
        True,
        False,
        np.bool_(True),
        "1",
        b"1",
        None,
        1 + 0j,
        np.complex128(1),
        Decimal(1),
        math.nan,
        math.inf,
        -math.inf,
        np.float64("nan"),
        np.longdouble("inf"),
        np.array(1),
        np.array([1, 2]),
        [1],
        {},
        int,
        object(),
    ],
    ids=lambda odd: f"{type(odd).__name__}",
)
def test_what_is_no_finite_number_is_refused_by_name(check: Callable[[str, Any], object], odd: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)^knob must .*To fix: .*\S") as caught:
        check("knob", odd)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_of_thousands_of_digits_are_compared_but_never_printed(sign: int) -> None:
    huge = sign * 10**5000
    assert finite("x", huge) == huge
    assert finite("x", Fraction(1, huge)) == Fraction(1, huge)
    for check, bad in (
        (probability, huge),
        (count, huge),
        (lambda name, x: in_range(name, x, 0, 1), huge),
        (positive, -abs(huge)),
        (non_negative, -abs(huge)),
        (lambda name, x: whole(name, x, at_least=1), -abs(huge)),
    ):
        with pytest.raises(InvalidParameterError, match=r"(?s)x must .*To fix") as caught:
            check("x", bad)
        assert len(str(caught.value)) < 200


@given(exact)
def test_signs_are_told_apart(value: float | Fraction) -> None:
    for check, allowed in ((positive, value > 0), (non_negative, value >= 0)):
        if allowed:
            assert check("x", value) == value
        else:
            with pytest.raises(InvalidParameterError, match="To fix: pass x >"):
                check("x", value)


@given(exact, st.booleans(), st.booleans())
def test_probabilities_know_their_ends(value: float | Fraction, zero: bool, one: bool) -> None:
    if 0 < value < 1 or (value == 0 and zero) or (value == 1 and one):
        assert probability("p", value, zero=zero, one=one) == value
    else:
        bounds = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        with pytest.raises(InvalidParameterError) as caught:
            probability("p", value, zero=zero, one=one)
        assert caught.value.fix == f"choose p in {bounds}."


def test_zero_and_one_are_probabilities_by_default() -> None:
    assert [probability("p", end) for end in (0, 1)] == [0, 1]


def test_the_ends_of_a_range_belong_to_it() -> None:
    assert in_range("x", 2, 2, 3) == 2
    assert in_range("x", Fraction(3), 2, 3) == 3
    for outside in (math.nextafter(2, 0), math.nextafter(3, 4), Fraction(10**30 - 1, 10**30) * 2):
        with pytest.raises(InvalidParameterError, match=r"between 2 and 3.*\n.*\[2, 3\]"):
            in_range("x", outside, 2, 3)


@pytest.mark.parametrize("fractional", [1.0, 2.5, Fraction(4, 2), np.float64(3)])
def test_a_float_is_no_count_even_when_it_is_whole(fractional: Any) -> None:
    for check in (whole, count):
        with pytest.raises(InvalidParameterError, match="whole number"):
            check("n", fractional)


def test_counts_are_positive_and_fit_in_64_bits() -> None:
    assert whole("n", 0) == 0
    assert count("n", 2**63 - 1) == 2**63 - 1
    assert type(count("n", np.int16(7))) is int
    for bad, words in ((0, "at least 1"), (-1, "at least 1"), (2**63, "below 2"), (10**5000, "below 2")):
        with pytest.raises(InvalidParameterError, match=words):
            count("n", bad)


def test_a_name_is_meant_however_it_is_written() -> None:
    names, also = ("k-rr", "square root", "ramp, measured"), {"grr": "k-rr", "sqrt": "square root", "far": "elsewhere"}
    for text, meant in (
        *((name, name) for name in names),
        (" K_RR ", "k-rr"),
        ("Square-Root", "square root"),
        ("Ramp measured", "ramp, measured"),
        ("GRR", "k-rr"),
        ("sqrt", "square root"),
    ):
        assert choice("method", text, names, also) == meant


@pytest.mark.parametrize(
    ("bad", "near"),
    [("krrr", "did you mean k-rr? Else "), ("gr", "did you mean k-rr? Else "), ("far", ""), (None, ""), (7, "")],
)
def test_an_unknown_name_is_refused_with_the_known_ones_and_the_closest(bad: Any, near: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"There is no method named {bad!r}") as refusal:
        choice("method", bad, ("k-rr", "ramp, measured"), {"grr": "k-rr", "far": "elsewhere"})
    assert refusal.value.fix == f'{near}choose one of k-rr, "ramp, measured".'
    with pytest.raises(InvalidParameterError) as long:
        choice("method", "x" * 10**6, ("k-rr",))
    assert len(str(long.value)) < 200


def test_what_can_be_stored_has_at_most_4096_bits() -> None:
    for fine in (0.1, 5e-324, 10**400, Fraction(1, 10**1233), 2**4096 - 1, -(2**4096) + 1):
        assert storable("x", fine) == fine
    for long in (2**4096, -(2**4096), Fraction(1, 2**4096), Fraction(2**5000, 3)):
        with pytest.raises(InvalidParameterError, match=r"(?s)too many digits.*To fix: round x"):
            storable("x", long)
