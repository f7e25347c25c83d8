"""Numbers on the device: put on a grid without bias, then randomised by an exact law."""

import numpy as np
from numpy.typing import NDArray

from defocus.local.designs.numeric import STEPS, Duchi, Hybrid, LocalLaplace, Window
from defocus.local.layouts import Payload
from defocus.noise import Bits, discrete_laplace
from defocus.noise.bits import Words

__all__ = ["on_grid", "randomise_duchi", "randomise_hybrid", "randomise_laplace", "randomise_window", "window_cell"]

_Shares = NDArray[np.float64]


def on_grid(shares: _Shares, steps: int, bits: Bits) -> NDArray[np.int64]:
    """One of the two nearest points of the grid, so that the mean is the share itself to 32 bits.

    This happens before the noise: whatever point of the grid comes out, the law that follows is private for it. The law
    is for points of the grid and no others, so a share that lies outside is put back here, NaN at 0.
    """
    scaled = np.fmin(np.fmax(shares, 0.0), 1.0) * steps
    low = np.minimum(scaled.astype(np.int64), steps)
    rest = ((scaled - low) * 2.0**32).astype(np.uint64)
    return low + (bits.words(len(shares)) >> np.uint64(32) < rest)


def randomise_duchi(design: Duchi, shares: _Shares, bits: Bits) -> Payload:
    """One bit for each share."""
    low, high = design.weights
    at = on_grid(shares, STEPS, bits).astype(np.uint64)
    ones = np.uint64(low) + np.uint64(high - low) * at // np.uint64(STEPS)
    return (_below(low + high, len(shares), bits) < ones).astype(np.uint8)


def randomise_window(design: Window, shares: _Shares, bits: Bits) -> Payload:
    """One cell for each share."""
    places = on_grid(shares, design.places, bits)
    hit, index = design.levels.draw(len(shares), bits)
    return window_cell(design, places, hit, index).astype(design.layout.dtype)


def window_cell(design: Window, places: NDArray[np.int64], hit: NDArray[np.bool_], index: Words) -> NDArray[np.int64]:
    """The cell that a draw stands for: the ``index``-th of the window, or the ``index``-th of the others."""
    number = index.view(np.int64)
    return np.where(hit, places + number, number + design.window * (number >= places))


def randomise_hybrid(design: Hybrid, shares: _Shares, bits: Bits) -> Payload:
    """One report of either side for each share."""
    piecewise = bits.words(len(shares)) >> np.uint64(32) < np.uint64(design.coin)
    out = np.empty(len(shares), design.layout.dtype)
    out[piecewise] = randomise_window(design.piecewise, shares[piecewise], bits)
    out[~piecewise] = design.cells + randomise_duchi(design.duchi, shares[~piecewise], bits).astype(out.dtype)
    return out


def randomise_laplace(design: LocalLaplace, shares: _Shares, bits: Bits) -> Payload:
    """One noisy number for each share, cut off far outside of where it ever is."""
    noisy = on_grid(shares, design.steps, bits) + discrete_laplace(design.scale, len(shares), bits)
    return np.asarray(np.clip(noisy, -design.layout.limit, design.layout.limit), "<i8")


def _below(limit: int, size: int, bits: Bits) -> Words:
    """Uniform integers below a limit of at most 2**42, by rejection."""
    shift = np.uint64(64 - (limit - 1).bit_length())
    words = bits.words(size) >> shift
    again = np.flatnonzero(words >= np.uint64(limit))
    while again.size:
        words[again] = bits.words(again.size) >> shift
        again = again[words[again] >= np.uint64(limit)]
    return words
