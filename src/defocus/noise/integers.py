"""The integers in which noise is returned, and the scales it may have."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from defocus.errors import InvalidParameterError, NoiseOverflowError, positive

__all__ = ["LARGEST_SCALE", "Integers", "fitting", "rational_scale"]

Integers = npt.NDArray[np.int64]

LARGEST_SCALE = 1 << 40
"""Above this scale a 64-bit integer might no longer hold noise added to a large value."""


def rational_scale(name: str, value: object) -> Fraction:
    """Return the exact rational ``value`` stands for, if it is positive and at most 2**40.

    >>> rational_scale("sigma", 0.1)
    Fraction(3602879701896397, 36028797018963968)
    """
    scale = Fraction(positive(name, value))
    if scale > LARGEST_SCALE:
        raise InvalidParameterError(
            f"{name} must be at most 2**40 on the integer grid, but it is about 2**{_log2(scale)}.",
            fix="release on a coarser grid, so that the noise is a smaller multiple of it.",
        )
    return scale


def fitting(value: int) -> int:
    """Return ``value`` if a 64-bit integer holds it; never wrapped around, never clamped."""
    if not -(1 << 63) <= value < 1 << 63:
        raise NoiseOverflowError(value.bit_length())
    return value


def _log2(scale: Fraction) -> int:
    return int(scale).bit_length() - 1
