r"""Connect the dots: a finite measure on a grid of losses that provably dominates a profile.

Between grid points the profile is convex in :math:`r = e^l`, so the polygon through points
on or above it lies above it. The polygon is the profile of a measure with atoms at the
grid points, found from its slopes. Whatever rounding did to those atoms, the profile
:math:`\hat H` of the measure *as stored* is then evaluated again at every grid point by
sums of positive numbers, and the worst relative shortfall

.. math:: \eta = \max_i \left(1 - \hat H(r_i)/H(r_i)\right)

is kept with it. Then :math:`\hat H \ge (1-\eta) H` everywhere, and since composition is
monotone and positively homogeneous in each factor, T copies cost a factor
:math:`(1-\eta)^{-T}` in delta and nothing else: no assumption on rounding is left.

Reference:
    Doroshenko, Ghazi, Kamath, Kumar, Manurangsi (2022), Connect the dots.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.privacy.accounting.pld.profiles import Floats, Profile, U

__all__ = ["Dots", "Wide", "connect", "lattice"]

Wide: TypeAlias = NDArray[np.longdouble]
_WIDE_U = float(np.finfo(np.longdouble).eps)
_LARGEST = 700.0 if np.finfo(np.longdouble).maxexp < 2048 else 10000.0
_LEAST = -700.0


@final
@dataclass(frozen=True, slots=True)
class Dots:
    """A measure on increasing losses: ``log_p`` at ``losses``, ``lost`` at infinity, repeated ``times``."""

    losses: Floats
    log_p: Floats
    lost: float
    shortfall: float
    times: int
    gaps: Floats
    """Distance to the neighbouring grid points, for the error estimate."""

    def tilted(self, theta: float) -> tuple[Floats, float]:
        """Weights p·e^(θl) scaled to sum to one, and the log of their sum: the cumulant at θ."""
        exponent = self.log_p + theta * self.losses
        largest = float(exponent.max())
        weights = np.exp(exponent - largest)
        total = float(weights.sum())
        weights /= total
        return weights, largest + math.log(total)

    def digits(self, theta: float) -> float:
        """Relative error of the tilted weights and of their sum, in units of the last place."""
        return (
            32.0
            + 4 * float(np.max(np.abs(self.log_p) + abs(theta) * np.abs(self.losses)))
            + 2 * math.log2(len(self.losses) + 2)
        )


def connect(profile: Profile, losses: Floats, times: int) -> Dots:
    """The measure on ``losses`` that dominates ``profile``, with its certified shortfall."""
    losses = losses[(losses < _LARGEST) & (losses > _LEAST)]
    if len(losses) < 2:
        losses = np.array([-1.0, 0.0, 1.0])
    curve = profile.curve(losses)
    excess = (curve.excess + curve.pad).astype(np.longdouble)
    l = losses.astype(np.longdouble)
    r = np.exp(l)
    width = r[:-1] * np.expm1(np.diff(l))
    slope = np.diff(excess) / width
    middle = int(np.searchsorted(losses, 0.0))
    # Below zero the excess is measured from 1 - r, whose slope is -1; the segment that ends at the first
    # point at or above zero starts from a point below it.
    if 0 < middle < len(losses):
        floor = -np.expm1(l[middle - 1])
        slope[middle - 1] = (excess[middle] - excess[middle - 1] - floor) / width[middle - 1] + 1
    p = np.empty(len(losses), dtype=np.longdouble)
    # Slopes of the excess jump by 1 where its floor bends.
    p[0] = r[0] * slope[0] - excess[0] if middle > 0 else 1 - excess[0] + r[0] * slope[0]
    p[1:-1] = r[1:-1] * np.diff(slope)
    if 0 < middle < len(losses) - 1:
        p[middle] = r[middle] * (slope[middle] - slope[middle - 1] + 1)
    p[-1] = -r[-1] * (slope[-1] - (1 if middle >= len(losses) - 1 else 0))
    masses = np.maximum(p, 0).astype(np.float64)
    lost = float(np.nextafter(float(excess[-1]) + -math.expm1(min(float(losses[-1]), 0.0)), 1.0))
    shortfall = _shortfall(l, width, masses.astype(np.longdouble) / r, lost, excess)
    if not masses.any():  # all is lost; a trace of mass, which only adds, keeps the measure one
        masses[-1] = 1e-300
    keep = masses > 0
    return Dots(losses[keep], np.log(masses[keep]), lost, shortfall, times, _gaps(losses, atomic=profile.atomic)[keep])


def _gaps(losses: Floats, *, atomic: bool) -> Floats:
    """How far a loss near each point was moved: half-way to its neighbours, or one bracket where it is an atom."""
    widths = np.diff(losses)
    if atomic:
        return np.full(len(losses), float(widths.min()))
    return np.concatenate((widths[:1], (widths[1:] + widths[:-1]) / 2, widths[-1:]))


def _shortfall(l: Wide, width: Wide, q: Wide, lost: float, excess: Wide) -> float:
    """How far the profile of the stored measure can lie below the padded one, relatively."""
    beyond = np.cumsum(q[::-1])[::-1][1:]
    rise = np.cumsum((width * beyond)[::-1])[::-1]
    reached = np.append(rise, np.longdouble(0)) + lost
    needed = excess + np.where(l < 0, -np.expm1(l), 0)
    at_zero = float((q * np.exp(l)).sum()) + lost
    worst = max(float(np.max(1 - reached / needed)), 1 - at_zero, 0.0)
    return worst + 4 * len(l) * _WIDE_U + 8 * U


def lattice(profile: Profile, step: float, resolution: float, log_tail: float) -> NDArray[np.int64]:
    """Increasing multiples of ``step`` that resolve the profile; finite ends of its support are bracketed."""
    losses = profile.grid(resolution, log_tail)
    positions = np.clip(losses[np.abs(losses) < _LARGEST] / step, -(2.0**52), 2.0**52)
    found = [np.ceil(positions)]
    if profile.atomic:
        found.append(np.floor(positions))
    # An end that the grid leaves far behind holds next to nothing; a chord to it would put mass there that a tilt
    # turns into everything.
    near = math.inf if profile.atomic else 1e-3 * float(losses[-1] - losses[0])
    ends = (
        [math.floor(profile.bottom / step)] if -math.inf < profile.bottom and losses[0] - profile.bottom <= near else []
    )
    ends += [math.ceil(profile.top / step)] if profile.top < math.inf and profile.top - losses[-1] <= near else []
    indices = np.unique(np.concatenate((*found, np.asarray(ends, dtype=np.float64), [-1.0, 0.0, 1.0]))).astype(np.int64)
    if profile.bottom > -math.inf:
        indices = indices[indices >= math.floor(profile.bottom / step)]
    return indices[indices <= math.ceil(profile.top / step)] if profile.top < math.inf else indices
