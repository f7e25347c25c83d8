"""Unary encodings on the device."""

import numpy as np
from numpy.typing import NDArray

from defocus.local.designs import Unary
from defocus.local.designs.unary import UnaryLaw
from defocus.local.domains import Codes
from defocus.local.layouts import Payload
from defocus.noise import Bits
from defocus.noise.bits import Words

__all__ = ["encoded", "noisy_bits", "randomise"]

_WORDS = 1 << 16
"""Words at once, which stay in the processor's cache."""


def randomise(design: Unary, codes: Codes, bits: Bits) -> Payload:
    """One row of bits for each code."""
    return encoded(design.bits, design.domain.size, codes, bits)


def encoded(law: UnaryLaw, width: int, codes: Codes, bits: Bits) -> NDArray[np.uint8]:
    """Packed rows of ``width`` noisy bits, in each of which one was a one."""
    words = -(-width // 64)
    out = np.empty((len(codes), -(-width // 8)), np.uint8)
    step = max(1, _WORDS // words)
    for start in range(0, len(codes), step):
        part = codes[start : start + step]
        rows = noisy_bits(law.noise, law.depth, len(part) * words, bits).reshape(len(part), words)
        ones = bits.words(len(part)) >> np.uint64(1) < np.uint64(law.truth)
        _write(rows, part, ones)
        if width % 64:
            rows[:, -1] &= np.uint64((1 << width % 64) - 1)
        out[start : start + step] = rows.astype("<u8", copy=False).view(np.uint8)[:, : out.shape[1]]
    return out


def noisy_bits(noise: int, depth: int, size: int, bits: Bits) -> Words:
    r"""Words all of whose bits are independent ones of probability exactly noise / 2**depth.

    Let :math:`0.b_1 b_2 \dots b_k` be the probability in binary. A bit that is one with probability
    :math:`0.b_{i+1} \dots b_k` becomes one with probability :math:`0.b_i b_{i+1} \dots b_k` by a fair bit: *or* if
    :math:`b_i = 1`, *and* if it is 0. Sixty-four of them at once, one operation for each binary digit.
    """
    digits = depth - ((noise & -noise).bit_length() - 1)
    fair = bits.words(digits * size).reshape(digits, size)
    made: Words = fair[0]
    for i in range(1, digits):
        if noise >> (depth - digits + i) & 1:
            made |= fair[i]
        else:
            made &= fair[i]
    return made


def _write(rows: Words, codes: Codes, ones: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
    """Put each person's own bit where it belongs."""
    at = np.arange(len(codes)), codes >> 6
    shift = (codes & 63).view(np.uint64)
    rows[at] = rows[at] & ~(np.uint64(1) << shift) | ones.astype(np.uint64) << shift
