"""d-bit flip on the device."""

import numpy as np
from numpy.typing import NDArray

from defocus.local.designs import DBitFlip
from defocus.local.domains import Codes
from defocus.local.layouts import Payload
from defocus.noise import Bits, bernoulli, uniform

__all__ = ["answers", "asked", "packed", "randomise"]


def randomise(design: DBitFlip, codes: Codes, bits: Bits) -> Payload:
    """One report for each code, of people who never reported before."""
    about = asked(design, len(codes), bits)
    yes = np.where(about == codes[:, None], *answers(design, about.shape, bits))
    return packed(design, about, yes)


def asked(design: DBitFlip, size: int, bits: Bits) -> NDArray[np.int64]:
    """For each person, different categories, uniform, by Floyd's method: one more category joins in each step."""
    k, d = design.domain.size, design.asked
    out = np.empty((size, d), np.int64)
    for i, top in enumerate(range(k - d, k)):
        tried = uniform(top + 1, size, bits)
        known = (out[:, :i] == tried[:, None]).any(axis=1)
        out[:, i] = np.where(known, top, tried)
    return out


def answers(design: DBitFlip, shape: tuple[int, ...], bits: Bits) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """What would be answered about one's own category, and what about another."""
    size = int(np.prod(shape))
    own = bernoulli(design.bits.p, size, bits).reshape(shape)
    return own, bernoulli(design.bits.q, size, bits).reshape(shape)


def packed(design: DBitFlip, about: NDArray[np.int64], yes: NDArray[np.bool_]) -> Payload:
    """Yes among the first k bits, no among the last k."""
    k = design.domain.size
    rows = np.zeros((len(about), 2 * k), np.uint8)
    np.put_along_axis(rows, np.where(yes, about, about + k), 1, axis=1)
    return np.packbits(rows, axis=1, bitorder="little")
