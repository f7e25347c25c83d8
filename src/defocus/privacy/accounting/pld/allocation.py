r"""Random allocation: each unit takes part in at most one of several steps, and nobody knows in which.

So are balls-and-bins batches and, with a spare, shuffled ones. With k steps, r the probability of each and Gaussian
noise of ratio :math:`1/\mu`, let O be the law of what is released without the unit. Given what was released before,
step i has the likelihood ratio :math:`Y_i = e^{\langle a_i, x_i\rangle - |a_i|^2/2}` if the unit is in it, where
:math:`x_i` is standard normal under O and :math:`|a_i| \le \mu`. So the law with the unit has, with respect to O,

.. math:: M = 1 + r \sum_{i \le k} (Y_i - 1).

*One variable says all.* A unit that is removed has the profile :math:`E(M - e^l)_+`, one that is added
:math:`E(1 - e^l M)_+`: expectations of convex functions of M. The convex order is kept by sums of independent terms,
and step by step also where :math:`a_i` depends on the past: if f is convex, :math:`E f(s + rY_a)` is convex in s and
grows with :math:`|a|`, as Y with the shorter a is a conditional mean of Y with the longer one. So the worst are
independent lognormal :math:`Y_i` of full length, and any variable above M in convex order dominates both directions.

*A unit replaced.* The laws are :math:`M'O` and :math:`M''O`, both at most M in convex order, whatever else holds of
them. For all b, :math:`(m' - \gamma m'')_+ \le (m' - \gamma b)_+ + \gamma(b - m'')_+`, so

.. math:: \delta(\log\gamma) \le \min_b E(M - \gamma b)_+ + \gamma\,E(b - M)_+,

which is what the pair of M and its antithetic copy attains.

*The law of the sum.* Y − 1 is put on a grid by splitting the mass between two neighbours onto both, with its mean: a
mean-preserving spread, and so larger in convex order. Sums are convolutions of positive numbers, whose rounding is
relative. Far values are kept on ever coarser grids, each 4 times the one before; going from one to the next is a
spread again. Each stored mass is an upper bound, so every expectation of a positive function is. What lies beyond the
last grid (mass ν, with a mean of λ under O) is taken for a loss that is infinite: the limit of spreads to 0 and K,
:math:`K \to \infty`.

*Told.* If the step were told, though not whether the unit takes part, the release would be one on a Poisson sample at
rate kr: never better, by joint convexity, and the lesser of both bounds holds. It is the lesser where there is little
noise and few steps, and the grid too coarse for the smallest M.

*Error.* Grids are 1/64 of a standard deviation fine, which costs 0.05 to 0.3 % of epsilon.

Reference:
    Chua, Ghazi, Harrison, Kamath, Kumar, Leeman, Manurangsi, Sinha, Zhang (2025), Balls-and-bins sampling for DP-SGD
    (the dominating pair, and Monte Carlo for it); Feldman, Shenfeld (2025), Privacy amplification by random
    allocation; Shaked, Shanthikumar (2007), Stochastic orders, Theorem 3.A.12 (sums) and 3.A.4 (spreads).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from scipy.special import ndtr

from defocus.privacy.accounting.pld.profiles import Curve, Floats, GaussianProfile, Profile, Tails, U
from defocus.privacy.accounting.pld.sampling import ReplacedGaussian, SampledProfile
from defocus.privacy.numbers import above

__all__ = ["AllocatedProfile", "Law", "allocated", "law_of_sum"]

_HALF = 512
"""Grids have nodes from -_HALF to _HALF."""
_COARSER = 4
_FINE = 64
"""How many nodes of the finest grid there are in a standard deviation, at least."""
_LEAST_MU, _LARGEST_MU = 1e-4, 4.0
"""With more noise than the first, rounding would count; with less than the second, hiding the step gains nothing."""
_MOST_STEPS = 2**40
_REACH = 10.5
"""Beyond so many standard deviations of the tilted law, about 4e-26 of it, a loss counts as infinite."""
_CONVOLUTION = (2 * _HALF + 1 + 64) * U
"""Relative error of one convolution with its regridding: sums of so many positive products."""
_TINY = 1e-250


@final
@dataclass(frozen=True, slots=True)
class Law:
    """Upper bounds on the masses of a sum of ``count`` centred variables, on grids of growing coarseness."""

    count: int
    step: float
    grids: tuple[Floats, ...]
    """Grid s has the nodes -_HALF ... _HALF times ``step`` times _COARSER**s."""
    lost: float
    """Mass beyond the last grid."""
    lost_mean: float
    """What the sum (not centred) has for a mean there."""
    error: float
    """Relative error of the masses."""


def _spread(masses: Floats, factor: int) -> Floats:
    """The same masses on a grid ``factor`` times as coarse, half as many nodes to each side as fit."""
    half = len(masses) // 2
    coarse = -(-half // factor)
    padded = np.zeros(2 * coarse * factor + factor)
    padded[coarse * factor - half : coarse * factor + half + 1] = masses
    blocks = padded.reshape(2 * coarse + 1, factor)
    right = np.arange(factor) / factor
    found: Floats = blocks @ (1 - right)
    found[1:] += (blocks @ right)[:-1]
    return found


def _added(into: Floats, masses: Floats) -> None:
    """Add ``masses`` to those of a grid that is longer on both sides."""
    half, inner = len(into) // 2, len(masses) // 2
    into[half - inner : half + inner + 1] += masses


def _sum(one: Law, other: Law) -> Law:
    """The law of a sum of two independent ones on equal steps."""
    scales = len(one.grids)
    made = [np.zeros(2 * _HALF + 1) for _ in range(scales)]
    finer_one, finer_other = np.zeros(1), np.zeros(1)
    over, lost, lost_mean = np.zeros(1), 0.0, 0.0
    for scale, (a, b) in enumerate(zip(one.grids, other.grids, strict=True)):
        both = np.zeros(4 * _HALF + 1)
        _added(both, over)
        for left, right in ((a, b), (a, finer_other), (finer_one, b)):
            if left.any() and right.any():
                _added(both, np.convolve(left, right))
        made[scale] = both[_HALF : 3 * _HALF + 1].copy()
        both[_HALF : 3 * _HALF + 1] = 0
        if scale + 1 < scales:
            over = _spread(both, _COARSER)
            finer_one, finer_other = (
                _spread(_joined(grid, finer), _COARSER) for grid, finer in ((a, finer_one), (b, finer_other))
            )
        else:
            places = np.arange(-2 * _HALF, 2 * _HALF + 1) * (one.step * _COARSER**scale) + one.count + other.count
            lost, lost_mean = float(both.sum()), float(both @ np.maximum(places, 0.0))
    return Law(
        one.count + other.count,
        one.step,
        tuple(made),
        (one.lost + other.lost + lost) * (1 + 64 * U),
        (one.lost_mean + other.lost_mean + one.lost * other.count + other.lost * one.count + lost_mean)
        * (1 + one.error + other.error + _CONVOLUTION + 64 * U),
        one.error + other.error + _CONVOLUTION,
    )


def _joined(grid: Floats, finer: Floats) -> Floats:
    whole = grid.copy()
    _added(whole, finer)
    return whole


def _coarser(law: Law, step: float) -> Law:
    """The same law on twice the step, as often as it takes."""
    while law.step < step:
        grids = []
        for grid in law.grids:
            halved = np.zeros(2 * _HALF + 1)
            _added(halved, _spread(grid, 2))
            grids.append(halved)
        law = Law(law.count, 2 * law.step, tuple(grids), law.lost, law.lost_mean, law.error + 8 * U)
    return law


def _single(mu: float, count: int) -> Law:
    r"""One lognormal variable less its mean, on grids that serve sums of up to ``count``.

    Between nodes u < v, with A the mass and B the mean of Y there, v gets :math:`(B - (1+u)A)/(v-u)` and u the rest of
    A. Both are differences of normal probabilities, taken from the nearer tail; what rounding may have done to them is
    added, so that each is an upper bound.
    """
    spread = math.sqrt(math.expm1(mu * mu))
    step = float(np.float32(spread / _FINE * (1 - 1e-6)))  # so short that its multiples are exact
    farthest = max(math.exp(min(mu * (_REACH + mu / 2), 600.0)), math.sqrt(count), 2.0)
    scales = 1
    while _HALF * step * _COARSER ** (scales - 1) < farthest:
        scales += 1
    grids = [np.zeros(2 * _HALF + 1) for _ in range(scales)]
    lost = lost_mean = 0.0
    for scale in range(scales):
        width = step * _COARSER**scale
        inner = 0 if scale == 0 else _HALF // _COARSER
        for first, last in ((-_HALF, _HALF),) if scale == 0 else ((-_HALF, -inner), (inner, _HALF)):
            _put(grids[scale], mu, width, first, last)
        if scale == scales - 1:
            x = _normal(np.array([_HALF * width]), mu)
            lost, lost_mean = float(ndtr(-x)[0]) * (1 + 1e-9), float(ndtr(mu - x)[0]) * (1 + 1e-9)
    return Law(1, step, tuple(grids), lost + _TINY, lost_mean + _TINY, 64 * U)


def _normal(z: Floats, mu: float) -> Floats:
    """The normal variable at which Y - 1 is z; minus infinity where Y would not be positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(z > -1, (np.log1p(np.maximum(z, -1.0)) + mu * mu / 2) / mu, -np.inf)


def _put(grid: Floats, mu: float, width: float, first: int, last: int) -> None:
    """Add the mass between two nodes of a grid to it."""
    nodes: Floats = np.arange(first, last + 1, dtype=np.float64) * width
    x = _normal(nodes, mu)
    upper = x[:-1] > 0
    tails = [
        (np.where(upper, ndtr(c - x[:-1]), ndtr(x[1:] - c)), np.where(upper, ndtr(c - x[1:]), ndtr(x[:-1] - c)))
        for c in (0.0, mu)
    ]
    mass, mean = (large - small for large, small in tails)
    # Each tail is right to 8 units at its argument, whose rounding adds the square of it, or of its logarithm's error.
    square = np.minimum(np.maximum(np.abs(x[:-1]), np.where(np.isfinite(x[1:]), np.abs(x[1:]), 0.0)) + mu, 40.0) ** 2
    unit = U * (32 + 16 * square + 16 * np.minimum(np.abs(np.where(np.isfinite(x[1:]), x[1:], 0.0)) / mu, 1e4))
    off_mass, off_mean = (unit * (large + small) for large, small in tails)
    low, high = 1 + nodes[:-1], 1 + nodes[1:]
    slack = (off_mean + np.maximum(np.abs(low), np.abs(high)) * off_mass) / width
    to_right = np.maximum((mean - low * mass) / width, 0.0) + slack
    to_left = np.maximum((high * mass - mean) / width, 0.0) + slack
    some = high > 0
    at = np.arange(first, last) + _HALF
    grid[at] += np.where(some, to_left, 0.0)
    grid[at + 1] += np.where(some, to_right, 0.0)


@lru_cache(maxsize=256)
def law_of_sum(mu: float, count: int) -> Law:
    """The law of a sum of ``count`` independent lognormal variables of mean one, less its mean, from above.

    >>> law = law_of_sum(1.0, 100)
    >>> round(float(sum(grid.sum() for grid in law.grids)), 5), law.lost_mean < 1e-20
    (1.0, True)
    """
    single = _single(mu, count)
    law = single
    for bit in bin(count)[3:]:
        law = _sum(law, law)
        law = _coarser(law, math.ldexp(single.step, (law.count.bit_length() - 1) // 2))
        if bit == "1":
            law = _sum(law, _coarser(single, law.step))
    return law


@final
@dataclass(frozen=True, slots=True, eq=False)
class AllocatedProfile:
    """The profile of M against one, where M = 1 + ``places``, or of M against its antithetic copy.

    For l >= 0 it is the expectation of (M - e^l)+ and for l < 0 that of (e^l - M)+. Below ``floor`` the latter is
    taken as proportional to e^l: it is convex and vanishes at 0, as M is positive, though grid nodes may not be.
    """

    places: Floats
    lost: float
    lost_mass: float
    error: float
    replaced: bool
    told: Profile
    """The profile if the step of the unit, though not whether it takes part, were told: never better."""
    above: Floats
    """Masses from each place on, and beyond the last one."""
    above_mean: Floats
    below: Floats
    """Masses up to each place, and before the first one."""
    below_mean: Floats
    floor: float
    spread: float
    """About the standard deviation of the loss, to choose a grid."""
    atomic = False
    top = math.inf
    bottom = -math.inf

    @property
    def at_infinity(self) -> float:
        """See the protocol."""
        return self.lost

    @property
    def symmetric(self) -> bool:
        """See the protocol."""
        return self.replaced

    def _call(self, d: Floats) -> tuple[Floats, Floats]:
        """The expectation of (M - 1 - d)+, from above, and the mass beyond."""
        at = np.searchsorted(self.places, d, side="right")
        mass = self.above[at]
        found = np.maximum(self.above_mean[at] - d * mass, 0.0)
        rounding = (self.error + 16 * U * len(self.places)) * (np.abs(self.above_mean[at]) + np.abs(d) * mass)
        return found + rounding + self.lost, mass

    def _put(self, d: Floats) -> tuple[Floats, Floats]:
        """The expectation of (1 + d - M)+, from above, and the mass below."""
        low = np.maximum(d, self.floor)
        at = np.searchsorted(self.places, low, side="left")
        mass = self.below[at]
        found = np.maximum(low * mass - self.below_mean[at], 0.0)
        rounding = (self.error + 16 * U * len(self.places)) * (np.abs(self.below_mean[at]) + np.abs(low) * mass)
        value = found + rounding + (1 + low) * self.lost_mass
        under = d < self.floor
        share = np.where(under, (1 + d) / (1 + self.floor), 1.0)
        return value * share, np.where(under, value / (1 + self.floor), mass)

    def curve(self, l: Floats) -> Curve:
        """See the protocol: the lesser of what is known with the place hidden and with it told."""
        hidden, told = self._against_copy(l) if self.replaced else self._against_one(l), self.told.curve(l)
        less = hidden.excess + hidden.pad <= told.excess + told.pad
        return Curve(*(np.where(less, a, b) for a, b in zip(hidden, told, strict=True)))

    def _against_one(self, l: Floats) -> Curve:
        d = np.expm1(np.minimum(l, 700.0))
        up = l >= 0
        value, mass = (np.where(up, a, b) for a, b in zip(self._call(d), self._put(d), strict=True))
        steep = (1 + d) * mass
        return Curve(value, 8 * U * (value + (1 + np.abs(l)) * steep) + 1e-300, steep)

    def _against_copy(self, l: Floats) -> Curve:
        """See the module: the best b has as much mass beyond gamma*b as below b; any b gives a bound."""
        size = np.minimum(np.abs(l), 700.0)
        gamma = np.exp(size)
        low, high = -size - 10.0, np.full_like(size, 10.0)
        for _ in range(60):
            middle = (low + high) / 2
            beyond, below = self._call(np.expm1(middle + size))[1], self._put(np.expm1(middle))[1]
            low, high = np.where(beyond > below, middle, low), np.where(beyond > below, high, middle)
        options = [(self._call(np.expm1(b + size)), self._put(np.expm1(b)), b) for b in (low, high)]
        values = [call[0] + gamma * put[0] for call, put, _ in options]
        slopes = [np.exp(b + size) * call[1] + gamma * put[0] for call, put, b in options]
        first = values[0] <= values[1]
        value, slope = np.where(first, *values), np.where(first, *slopes)
        damp = np.exp(np.minimum(l, 0.0))
        pad = 16 * U * (1 + size) * (value + slope) * damp + 1e-300
        return Curve(value * damp, pad, (slope + value) * damp)

    def tails(self, l: Floats) -> Tails:
        """Probabilities of the stored law; no lower bound is drawn from them."""
        d = np.expm1(np.minimum(l, 700.0))
        above = self.above[np.searchsorted(self.places, d, side="right")]
        below = self.below[np.searchsorted(self.places, d, side="right")]
        return Tails(above, below, above, below, np.ones_like(d))

    def atoms(self) -> None:
        """See the protocol: there are too many."""

    def grid(self, step: float, log_tail: float) -> Floats:
        """See the protocol: equal steps of standard deviations, and beyond eight of them the places themselves."""
        d = self.places[self.places >= max(self.floor, -1 + 1e-12)]
        least = math.exp(max(log_tail, -690.0))
        inside = np.where(d < 0, self._put(d)[0] > least, self._call(d)[0] - self.lost > least)
        low, high = bool(inside[0]), self.lost > least  # where the other bound decides
        inside |= np.append(inside[1:], False) | np.append(False, inside[:-1])
        losses = np.log1p(d[inside])
        if self.replaced:  # one side only, since mirrored points could all but coincide with others
            beyond = 2 * losses[losses > 0]
            losses, low = np.concatenate((-beyond[::-1], beyond)), low or high
            high = low
        first, last = float(losses.min()), float(losses.max())
        gap = step * self.spread
        even = np.arange(-math.ceil(8 / step), math.ceil(8 / step) + 1) * gap
        even = even[(even > first + gap / 2) & (even < last - gap / 2)]
        losses = losses[np.abs(losses) > 8 * self.spread + gap]
        far = self.told.grid(step, log_tail)
        ends = (far[(far < first - gap) & low], far[(far > last + gap) & high], [first, last])
        return np.unique(np.concatenate((even, losses, *ends)))


@lru_cache(maxsize=64)
def allocated(mu: float, rate: float, count: int, *, replaced: bool) -> AllocatedProfile | None:
    """The profile of ``count`` steps, each with the unit in it with probability ``rate``, in one of them at most.

    None where there is so little noise that hiding the step gains next to nothing.
    """
    if mu > _LARGEST_MU or count > _MOST_STEPS:
        return None
    part = min(above(Fraction(rate) * count), 1.0)
    told: Profile = SampledProfile(GaussianProfile(mu), part)
    if replaced:
        told = ReplacedGaussian(mu, part) if part < 1 else GaussianProfile(2 * mu)
    law = law_of_sum(max(mu, _LEAST_MU), count)
    places = np.concatenate(
        [np.arange(-_HALF, _HALF + 1) * (law.step * _COARSER**scale) for scale in range(len(law.grids))]
    )
    masses = np.concatenate(law.grids)
    there = masses > 0
    unique, index = np.unique(places[there], return_inverse=True)
    joined: Floats = np.bincount(index, masses[there]).astype(np.float64)
    d = unique * rate
    nothing = np.zeros(1)
    moments: tuple[Floats, Floats] = (joined, joined * d)
    below, below_mean = (np.concatenate((nothing, np.cumsum(each))) for each in moments)
    beyond, beyond_mean = (np.concatenate((np.cumsum(each[::-1])[::-1], nothing)) for each in moments)
    positive = 1 + d > 0
    puts = (d * below[:-1] - below_mean[:-1] + 1e-300)[positive] / (1 + d[positive])
    floor = float(d[positive][int(np.argmin(np.where(d[positive] < 0, puts, np.inf)))])
    lost = (rate * law.lost_mean + law.lost * max(0.0, 1 - count * rate)) * (1 + 1e-9) + _TINY
    size = np.minimum(np.abs(np.log1p(np.maximum(d, -0.999))), 5.0)
    return AllocatedProfile(
        places=d,
        lost=lost,
        lost_mass=law.lost * (1 + 1e-9),
        error=law.error + 64 * U,
        replaced=replaced,
        told=told,
        above=beyond,
        above_mean=beyond_mean,
        below=below,
        below_mean=below_mean,
        floor=floor,
        spread=math.sqrt(float(joined @ size**2)) * (1 + replaced),
    )
