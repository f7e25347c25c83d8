"""The profile of shuffled reports: a polygon that lies above the worst pair's, whichever way it is read."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from defocus.privacy.accounting.pld.profiles import Curve, Floats, Tails, U
from defocus.privacy.accounting.shuffling import Amplification

__all__ = ["ShuffledProfile"]

_FINE = 0.03
"""A grid no finer than this takes the corners of the polygon as they are."""


@final
@dataclass(frozen=True, slots=True)
class ShuffledProfile:
    """One user's value replaced among shuffled reports; symmetric, since either value may be the true one."""

    inner: Amplification
    at_infinity = 0.0
    symmetric = True
    atomic = False

    @property
    def top(self) -> float:
        """See the protocol: what a report shows unshuffled."""
        return self.inner.epsilon

    @property
    def bottom(self) -> float:
        """See the protocol."""
        return -self.inner.epsilon

    def curve(self, l: Floats) -> Curve:
        """See the protocol: below zero it is that above, times e^l."""
        deltas, slopes = self.inner.at(np.abs(l))
        damp = np.exp(np.minimum(l, 0.0))
        steep = slopes * np.exp(np.minimum(np.abs(l), self.inner.epsilon))
        pad = (16 * U * (1 + np.abs(l)) * (deltas + steep)) * damp + 1e-300
        return Curve(deltas * damp, pad, (steep + deltas) * damp)

    def tails(self, l: Floats) -> Tails:
        """See the protocol, for the pair of laws whose profile the polygon is."""
        size = np.abs(l)
        deltas, slopes = self.inner.at(size)
        q_far = slopes  # Q beyond a positive loss; by symmetry P beyond its negative
        p_far = deltas + np.exp(size) * slopes
        up = l >= 0
        return Tails(
            np.where(up, p_far, 1 - q_far),
            np.where(up, 1 - p_far, q_far),
            np.where(up, q_far, 1 - p_far),
            np.where(up, 1 - q_far, p_far),
            np.full_like(l, 64 * U),
        )

    def atoms(self) -> None:
        """See the protocol: there are too many."""

    def grid(self, step: float, log_tail: float) -> Floats:
        """See the protocol: the corners that matter, with more between them where the step is small."""
        last = int(np.searchsorted(-self.inner.log_deltas, -log_tail)) + 1
        corners = self.inner.losses[: max(last, 8)]
        between = max(1, min(8, math.ceil(_FINE / step)))
        places = np.arange((len(corners) - 1) * between + 1) / between
        above = np.interp(places, np.arange(len(corners)), corners)
        return np.unique(np.concatenate((-above, above)))
