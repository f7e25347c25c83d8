import math
from fractions import Fraction

import numpy as np
import pytest

from defocus.errors import DefocusError, InvalidParameterError, NoiseOverflowError
from defocus.noise.integers import LARGEST_SCALE, fitting, rational_scale


def test_a_float_scale_means_what_it_stores() -> None:
    assert rational_scale("scale", 0.1) == Fraction(0.1) != Fraction(1, 10)
    assert rational_scale("scale", np.float32(0.1)) == Fraction(float(np.float32(0.1)))
    assert rational_scale("scale", np.int64(3)) == 3


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, "1", True, None, Fraction(0)])
def test_a_scale_that_is_not_positive_is_refused(scale: object) -> None:
    with pytest.raises(InvalidParameterError, match="scale must be"):
        rational_scale("scale", scale)


@pytest.mark.parametrize(
    "scale", [LARGEST_SCALE + 1, LARGEST_SCALE + Fraction(1, 10**30), 1e300, pytest.param(10**5000, id="huge")]
)
def test_a_scale_above_the_largest_is_refused_in_few_words(scale: object) -> None:
    with pytest.raises(
        InvalidParameterError, match=r"(?s)at most 2\*\*40.*To fix: release on a coarser grid"
    ) as caught:
        rational_scale("sigma", scale)
    assert len(str(caught.value)) < 300


def test_the_largest_scale_is_allowed() -> None:
    assert rational_scale("sigma", LARGEST_SCALE) == 2**40


@pytest.mark.parametrize("value", [0, (1 << 63) - 1, -(1 << 63)])
def test_what_fits_is_returned(value: int) -> None:
    assert fitting(value) == value


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1, 1 << 1000])
def test_what_does_not_fit_is_refused_and_never_wrapped(value: int) -> None:
    with pytest.raises(NoiseOverflowError, match=r"(?s)does not fit a 64-bit integer.*To fix:"):
        fitting(value)
    assert issubclass(NoiseOverflowError, DefocusError)
