"""Hadamard response on the device."""

import numpy as np

from defocus.local.designs import Hadamard
from defocus.local.domains import Codes
from defocus.local.layouts import Payload
from defocus.noise import Bits
from defocus.noise.bits import Words

__all__ = ["place", "randomise", "signed"]


def randomise(design: Hadamard, codes: Codes, bits: Bits) -> Payload:
    """One report for each code, from one word each: its leading bits name the row, the others decide the flip."""
    words = bits.words(len(codes))
    rows = words >> np.uint64(64 - design.order)
    words &= np.uint64((1 << (64 - design.order)) - 1)
    return place(codes, rows, words < np.uint64(design.flips)).astype(design.layout.dtype)


def place(codes: Codes, rows: Words, flipped: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Words:
    """Row and sign in one number: category v has column v + 1."""
    return signed(codes + 1, rows, flipped)


def signed(columns: Codes, rows: Words, flipped: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Words:
    """Entry (j, v) of the matrix is minus where j & v has an odd number of ones. Overwrites the rows."""
    sign = np.bitwise_count(rows & columns.view(np.uint64))
    sign += flipped
    rows <<= np.uint64(1)
    rows |= sign & np.uint8(1)
    return rows
