"""Count-mean sketches on the device."""

import numpy as np

from defocus.local.clients.hadamard import signed
from defocus.local.clients.unary import encoded
from defocus.local.designs import CountMeanSketch, HadamardSketch
from defocus.local.domains import Codes
from defocus.local.hashes import sketch_hashes
from defocus.local.layouts import Payload
from defocus.noise import Bits, uniform
from defocus.noise.bits import Words

__all__ = ["place", "randomise", "randomise_hadamard"]


def randomise(design: CountMeanSketch, codes: Codes, bits: Bits) -> Payload:
    """One row with its noisy bits for each code."""
    rows = uniform(design.rows, len(codes), bits)
    at = sketch_hashes(design.seed, design.rows, design.width, rows, codes)
    return design.layout.with_rows(rows, encoded(design.bits, design.width, at, bits))


def randomise_hadamard(design: HadamardSketch, codes: Codes, bits: Bits) -> Payload:
    """One row, entry and noisy sign for each code, from one word each."""
    words = bits.words(len(codes))
    pairs = words >> np.uint64(64 - design.order)
    words &= np.uint64((1 << (64 - design.order)) - 1)
    return place(design, codes, pairs, words < np.uint64(design.flips)).astype(design.layout.dtype)


def place(
    design: HadamardSketch, codes: Codes, pairs: Words, flipped: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
) -> Words:
    """Pair and sign in one number; the sign is that of (entry, column) in the Hadamard matrix."""
    rows = (pairs // np.uint64(design.width)).astype(np.int64)
    at = sketch_hashes(design.seed, design.rows, design.width, rows, codes)
    return signed(at, pairs, flipped)
