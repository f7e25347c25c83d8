"""Local hashing on the device."""

import numpy as np
from numpy.typing import NDArray

from defocus.local.designs import LocalHashing
from defocus.local.domains import Codes
from defocus.local.finite_fields import Elements, coordinates, field
from defocus.local.layouts import Payload
from defocus.noise import Bits
from defocus.noise.bits import Words

__all__ = ["hashed", "place", "randomise"]


def randomise(design: LocalHashing, codes: Codes, bits: Bits) -> Payload:
    """One report for each code."""
    hit, index = design.levels.draw(len(codes), bits)
    return place(design, codes, hit, index).astype(design.layout.dtype)


def place(design: LocalHashing, codes: Codes, hit: NDArray[np.bool_], index: Words) -> NDArray[np.int64]:
    """Seed and value: a hit names the seed and the value is right; otherwise the value is a step away from it."""
    g, number = design.order, index.view(np.int64)
    seeds = number // (g - 1)
    steps = number - seeds * (g - 1) + 1
    np.copyto(seeds, number, where=hit)
    np.copyto(steps, 0, where=hit)
    steps += hashed(design, seeds, codes)
    steps -= g * (steps >= g)
    seeds *= g
    seeds += steps
    return seeds


def hashed(design: LocalHashing, seeds: NDArray[np.int64], codes: Codes) -> Elements:
    """The inner product of the digits of seed and category."""
    f = field(design.order)
    total: Elements = np.zeros(len(codes), np.int16)
    for a, v in zip(coordinates(seeds, f.q, design.digits), coordinates(codes, f.q, design.digits), strict=True):
        total = f.add(total, f.multiply(a, v))
    return total
