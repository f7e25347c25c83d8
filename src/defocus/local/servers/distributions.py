"""From reported cells back to the distribution of numbers."""

import numpy as np
from numpy.typing import NDArray

from defocus.errors import whole
from defocus.local.designs.numeric import Window
from defocus.local.servers.counts import Tally

__all__ = ["expectation_maximisation", "transitions"]

_ROUNDS = 2000
"""A few hundred are usual; this ends those that creep."""
_STILL = 1e-7
"""Shares that change by less, all together, have settled: noise is far larger."""
_FINE = 256
"""Parts at least: smoothing would blur wider ones."""


def expectation_maximisation(design: Window, tally: Tally, bins: int, *, smooth: bool) -> NDArray[np.float64]:
    """The likeliest shares of ``bins`` parts of the interval given the reports, smoothed after each round if asked for.

    Smoothing averages each part with its neighbours (1, 2, 1), which keeps the likelihood from being fitted to noise.
    It is done on 256 parts or more, however few are asked for, since it would blur wide ones.
    Reference: Li et al. (2020), Estimating numerical distributions under local differential privacy, Section 5.
    """
    wanted = whole("bins", bins, at_least=2)
    parts = wanted * -(-_FINE // wanted)
    chance = transitions(design, parts)
    shares = np.full(parts, 1 / parts)
    seen = tally / max(tally.sum(), 1)
    for _ in range(_ROUNDS):
        made = chance @ shares
        new = shares * (chance.T @ np.divide(seen, made, out=np.zeros_like(made), where=made > 0))
        if smooth:
            wide = np.pad(new, 1, mode="edge")
            new = (wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4
        new /= max(new.sum(), 1e-300)
        still = np.abs(new - shares).sum() < _STILL
        shares = new
        if still:
            break
    found: NDArray[np.float64] = shares.reshape(wanted, -1).sum(axis=1)
    return found


def transitions(design: Window, bins: int) -> NDArray[np.float64]:
    """P(cell | part): numbers within a part are taken to be uniform over the places of the window in it."""
    levels, places = design.levels, design.places
    part = np.minimum(np.arange(places + 1) * bins // places, bins - 1)
    counts = np.bincount(part, minlength=bins).astype(np.float64)
    starts = np.zeros((design.cells + 1, bins))
    np.add.at(starts, (np.arange(places + 1), part), 1.0)
    np.add.at(starts, (np.arange(places + 1) + design.window, part), -1.0)
    inside = starts.cumsum(axis=0)[:-1] / np.maximum(counts, 1)
    out: NDArray[np.float64] = (levels.low + (levels.high - levels.low) * inside) / levels.total
    return out
