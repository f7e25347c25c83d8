r"""Shuffled reports as a curve that provably lies above their loss: what every accountant reads.

The bounds of :mod:`~defocus.privacy.accounting.shuffling.blanket` and
:mod:`~defocus.privacy.accounting.shuffling.binary` are computed at some hundred losses. The true delta is convex and
decreasing in :math:`e^l`, so it lies below the convex hull of these points and below every chord of it; the polygon is
itself the profile of a pair of laws, which therefore dominates the release and may be composed.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import final

import numpy as np

from defocus.privacy.accounting.shuffling import binary, blanket
from defocus.privacy.accounting.shuffling.binomials import Floats
from defocus.privacy.accounting.shuffling.reports import Reports, reports_of
from defocus.privacy.events import RandomizedResponse, Shuffled
from defocus.privacy.numbers import PAD

__all__ = ["Amplification", "amplification"]

_DEEPEST = -650.0
"""Deltas below e^-650 are kept as logarithms only."""


@final
@dataclass(frozen=True, slots=True)
class Amplification:
    """Increasing losses from zero to the local epsilon, and the logarithms of delta there; none at the last."""

    epsilon: float
    losses: Floats = field(repr=False, compare=False)
    log_deltas: Floats = field(repr=False, compare=False)

    def at(self, losses: Floats) -> tuple[Floats, Floats]:
        """Delta at non-negative ``losses``, and how fast it falls with :math:`e^l`, without the sign."""
        rises, deltas = np.expm1(self.losses), np.exp(self.log_deltas)
        place = np.clip(np.searchsorted(self.losses, losses, side="right") - 1, 0, len(rises) - 2)
        slope = (deltas[place] - deltas[place + 1]) / (rises[place + 1] - rises[place])
        ahead = np.maximum(rises[place + 1] - np.expm1(np.minimum(losses, self.epsilon)), 0.0)
        inside = losses < self.epsilon
        return np.where(inside, deltas[place + 1] + slope * ahead, 0.0), np.where(inside, slope, 0.0)

    def epsilon_at(self, delta: float) -> float:
        """The least loss at which the polygon is no higher than ``delta``, rounded up."""
        deltas = np.exp(self.log_deltas)
        if delta <= 0:
            return self.epsilon
        if deltas[0] <= delta:
            return 0.0
        place = int(np.argmax(deltas <= delta))
        low, high = deltas[place - 1], deltas[place]
        share = (low - delta) / (low - high)
        start, end = (math.expm1(float(self.losses[i])) for i in (place - 1, place))
        return min(math.log1p((start + share * (end - start)) * PAD) * PAD, self.epsilon)


@lru_cache(maxsize=128)
def amplification(event: Shuffled) -> Amplification | None:
    """The curve of ``event``; None where the reports say nothing at all."""
    reports = reports_of(event.event)
    if not reports.epsilon:
        return None
    exact = isinstance(event.event, RandomizedResponse) and event.event.categories == 2
    scale = reports.gain / math.sqrt(reports.odds) if exact else reports.spread
    losses = _nodes(reports, scale / math.sqrt(event.users))
    found = (binary if exact else blanket).log_deltas(reports, event.users, losses)
    found = np.minimum.accumulate(np.minimum(found, 0.0))
    return _hull(reports.epsilon, losses, found)


def _nodes(reports: Reports, scale: float) -> Floats:
    """Losses below the local epsilon, close together where ``scale`` says that most of delta lies."""
    end = reports.epsilon
    near = np.concatenate((np.linspace(0, 8, 193), np.linspace(8, 40, 129)[1:])) * scale
    far = np.geomspace(40 * scale, end, 80) if 40 * scale < end else np.linspace(0, end, 257)
    losses = np.unique(np.concatenate((near, far)))
    losses = losses[losses < end * (1 - 1e-9)]
    return np.asarray(losses[np.append(True, np.diff(losses) > 1e-6 * scale)])


def _hull(epsilon: float, losses: Floats, log_deltas: Floats) -> Amplification:
    """The convex hull from below of the points, in the plane of e^l and delta; deep points stay as they are."""
    shallow = int(np.searchsorted(-log_deltas, -_DEEPEST))
    rises, deltas = np.expm1(losses[:shallow]).tolist(), np.exp(log_deltas[:shallow]).tolist()
    kept: list[int] = []
    for i in range(shallow):
        while len(kept) > 1 and _above(rises, deltas, kept[-2], kept[-1], i):
            kept.pop()
        kept.append(i)
    lowered = np.interp(rises, [rises[i] for i in kept], [deltas[i] for i in kept])
    found = np.concatenate((np.log(lowered), log_deltas[shallow:])) + 1e-11
    return Amplification(epsilon, np.append(losses, epsilon), np.append(found, -np.inf))


def _above(x: list[float], y: list[float], a: int, b: int, c: int) -> bool:
    """Whether point b lies on or above the line from a to c."""
    return (y[b] - y[a]) * (x[c] - x[a]) >= (y[c] - y[a]) * (x[b] - x[a])
