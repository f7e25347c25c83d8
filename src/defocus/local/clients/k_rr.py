"""k-ary randomised response on the device."""

import numpy as np
from numpy.typing import NDArray

from defocus.local.designs import KRR
from defocus.local.domains import Codes
from defocus.local.layouts import Payload
from defocus.noise import Bits
from defocus.noise.bits import Words

__all__ = ["place", "randomise"]


def randomise(design: KRR, codes: Codes, bits: Bits) -> Payload:
    """One report for each code."""
    hit, index = design.levels.draw(len(codes), bits)
    return place(codes, hit, index).astype(design.layout.dtype)


def place(codes: Codes, hit: NDArray[np.bool_], index: Words) -> NDArray[np.int64]:
    """The category that a draw stands for: the truth, or the ``index``-th of the others."""
    other = index.view(np.int64)
    other += other >= codes
    np.copyto(other, codes, where=hit)
    return other
