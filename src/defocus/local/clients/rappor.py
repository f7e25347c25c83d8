"""RAPPOR on the device."""

import numpy as np
from numpy.typing import NDArray

from defocus.local.clients.unary import noisy_bits
from defocus.local.designs import Rappor
from defocus.local.domains import Codes
from defocus.local.hashes import bloom_bits
from defocus.local.layouts import Payload
from defocus.noise import Bits, uniform
from defocus.noise.bits import Words

__all__ = ["disguised", "permanent", "randomise"]


def randomise(design: Rappor, codes: Codes, bits: Bits) -> Payload:
    """One report for each code, of people who never reported before."""
    cohorts = uniform(design.cohorts, len(codes), bits)
    return disguised(design, cohorts, permanent(design, cohorts, codes, bits), bits)


def permanent(design: Rappor, cohorts: NDArray[np.int64], codes: Codes, bits: Bits) -> Words:
    """Filters with each bit flipped once and for all."""
    flips, depth = design.permanent
    words = -(-design.width // 64)
    rows = noisy_bits(flips, depth, len(codes) * words, bits).reshape(len(codes), words)
    positions = bloom_bits(design.domain, cohorts, codes, design.width, design.hashes)
    filters = np.zeros_like(rows)
    people = np.arange(len(codes))
    for i in range(design.hashes):
        filters[people, positions[:, i] >> 6] |= np.uint64(1) << (positions[:, i] & 63).view(np.uint64)
    return rows ^ filters


def disguised(design: Rappor, cohorts: NDArray[np.int64], remembered: Words, bits: Bits) -> Payload:
    """A fair bit where the remembered one is a zero; the *or* of two fair bits where it is a one."""
    fair = bits.words(2 * remembered.size).reshape(2, *remembered.shape)
    shown = fair[0] | remembered & fair[1]
    if design.width % 64:
        shown[:, -1] &= np.uint64((1 << design.width % 64) - 1)
    packed = shown.astype("<u8", copy=False).view(np.uint8)[:, : -(-design.width // 8)]
    return design.layout.with_rows(cohorts, packed)
