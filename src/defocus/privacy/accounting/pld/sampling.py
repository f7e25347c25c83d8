"""Profiles made from others: the pair exchanged, and releases on a random sample."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import erfcx, ndtr

from defocus.privacy.accounting.pld.profiles import Atoms, Curve, Floats, Profile, Tails, U
from defocus.privacy.accounting.shuffling import Amplification

__all__ = ["Batched", "ReplacedGaussian", "Reversed", "SampledProfile", "ShuffledProfile"]


_DEEPEST = -690.0
"""Inner losses below this are taken for it: their odds are below 1e-299."""


@final
@dataclass(frozen=True, slots=True)
class Reversed:
    """The same pair with P and Q exchanged."""

    inner: Profile
    at_infinity = 0.0

    @property
    def top(self) -> float:
        """See the protocol."""
        return -self.inner.bottom

    @property
    def bottom(self) -> float:
        """See the protocol."""
        return -self.inner.top

    @property
    def symmetric(self) -> bool:
        """See the protocol."""
        return self.inner.symmetric

    @property
    def atomic(self) -> bool:
        """See the protocol."""
        return self.inner.atomic

    def curve(self, l: Floats) -> Curve:
        """See the protocol: x'(l) = e^l x(-l)."""
        inner = self.inner.curve(-l)
        scale = np.exp(np.minimum(l, 700.0))
        excess = scale * inner.excess
        pad = scale * inner.pad + 4 * U * (1 + np.abs(l)) * excess + 1e-300
        return Curve(excess, pad, scale * inner.steep + excess)

    def tails(self, l: Floats) -> Tails:
        """See the protocol; an atom exactly at a threshold may fall on either side, which no bound relies on."""
        inner = self.inner.tails(-l)
        return Tails(inner.q_below, inner.q_above, inner.p_below, inner.p_above, inner.error)

    def atoms(self) -> Atoms | None:
        """See the protocol; P's own mass is given up where Q has none, which the reversed pair does not need."""
        inner = self.inner.atoms()
        if inner is None or inner.at_infinity:
            return None
        losses = tuple(-l for l in reversed(inner.losses))
        return Atoms(losses, inner.q[::-1], inner.p[::-1], 0.0, symmetric=inner.symmetric, error=inner.error)

    def grid(self, step: float, log_tail: float) -> Floats:
        """See the protocol."""
        return -self.inner.grid(step, log_tail)[::-1]


@final
@dataclass(frozen=True, slots=True)
class SampledProfile:
    r"""Poisson sampling at ``rate``: qP + (1−q)Q against Q, the unit being removed.

    :math:`x'(l') = q\,x(l)` with :math:`l' = \log(1-q+qe^l)`; l and l' have the same sign.
    The unit being added is this profile reversed (Zhu, Dong, Wang 2022, Theorem 11).
    """

    inner: Profile
    rate: float
    symmetric = False

    @property
    def at_infinity(self) -> float:
        """See the protocol."""
        return self.rate * self.inner.at_infinity * (1 + 4 * U)

    @property
    def top(self) -> float:
        """See the protocol."""
        return self._outer(self.inner.top)

    @property
    def bottom(self) -> float:
        """See the protocol."""
        return self._outer(self.inner.bottom)

    @property
    def atomic(self) -> bool:
        """See the protocol."""
        return self.inner.atomic

    def curve(self, l: Floats) -> Curve:
        """See the protocol."""
        inside, wobble = self._inner(l)
        inner = self.inner.curve(inside)
        steep, moved = self._steepest(inside, wobble, inner.steep)
        known = inside > _DEEPEST
        # At the least loss itself, rounding decides whether anything lies below.
        edge = np.expm1(np.minimum(l, 0.0)) >= -self.rate * (1 + 8 * U)
        excess = np.where(known, self.rate * inner.excess, 0.0)
        pad = np.where(known | edge, self.rate * (inner.pad + moved), 0.0) + 1e-300
        # dl/dl' = e^(l'-l)/q, and steep holds e^l Q(...), so |dx'/dl'| = e^l' Q(...).
        outer = np.where(known, steep * np.exp(np.clip(l - inside, -700.0, 700.0)), np.exp(np.minimum(l, 0.0)))
        return Curve(excess, pad + 4 * U * excess, outer)

    def _steepest(self, inside: Floats, wobble: Floats, steep: Floats) -> tuple[Floats, Floats]:
        """A bound on the slope wherever the inner loss may really lie, and what the uncertainty costs.

        The slope of x in e^l is a probability that grows towards zero, so its value at the
        nearer end of the uncertainty bounds it. That matters beside atoms, at the ends of the
        support, and close to the least loss, where rounding of the outer loss moves the inner one far.
        """
        ends = np.abs(inside) >= self.inner.top * (1 - 16 * U) - wobble  # never, where losses are unbounded
        doubtful = np.full(inside.shape, self.inner.atomic) | (inside < -14.0) | ends
        if not doubtful.any():
            return steep, steep * wobble
        at, off = inside[doubtful], wobble[doubtful]
        nearer = np.where(at < 0, np.minimum(at + np.log1p(off), -1e-300), np.maximum(at - off, 0.0))
        slope = self.inner.curve(nearer).steep
        found, moved = steep.copy(), steep * wobble
        found[doubtful] = np.maximum(steep[doubtful], slope * np.exp(np.minimum(at - nearer, 700.0)))
        # The slope may underflow where its product with the uncertainty does not.
        moved[doubtful] = np.maximum(
            moved[doubtful], slope * np.exp(np.minimum(at - nearer + np.log(np.maximum(off, U)), 700.0))
        )
        return found, moved

    def tails(self, l: Floats) -> Tails:
        """See the protocol."""
        inside, _ = self._inner(l)
        inner = self.inner.tails(np.clip(inside, -1e300, 1e300))
        q, rest = self.rate, 1 - self.rate
        return Tails(
            q * inner.p_above + rest * inner.q_above,
            q * inner.p_below + rest * inner.q_below,
            inner.q_above,
            inner.q_below,
            inner.error + 8 * U,
        )

    def atoms(self) -> Atoms | None:
        """See the protocol."""
        inner = self.inner.atoms()
        if inner is None or inner.at_infinity:
            return None
        p = tuple(self.rate * a + (1 - self.rate) * b for a, b in zip(inner.p, inner.q, strict=True))
        losses = tuple(self._outer(l) for l in inner.losses)
        return Atoms(losses, p, inner.q, 0.0, symmetric=False, error=inner.error + 16 * U)

    def grid(self, step: float, log_tail: float) -> Floats:
        """See the protocol."""
        return np.unique(self._outer_array(self.inner.grid(step, log_tail)))

    def _outer(self, l: float) -> float:
        """The outer loss of an inner end of the support, rounded outward."""
        if l == math.inf or self.rate == 1:
            return l
        outer = math.log1p(self.rate * math.expm1(l)) if l < 40 else l + math.log(self.rate) + math.exp(-l) / self.rate
        return outer + 16 * U * math.copysign(abs(outer) + (l if l > 40 else 0.0), outer)

    def _outer_array(self, l: Floats) -> Floats:
        if self.rate == 1:
            return l
        return np.asarray(np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + l))

    def _inner(self, l: Floats) -> tuple[Floats, Floats]:
        """The inner loss of an outer one, and a bound on its rounding error."""
        if self.rate == 1:
            return l, np.zeros_like(l)
        grown = np.maximum(np.expm1(np.minimum(l, 40.0)) / self.rate, -1.0)
        with np.errstate(divide="ignore"):
            inside = np.where(l > 40.0, l - math.log(self.rate), np.log1p(grown))
        clipped = np.clip(inside, _DEEPEST, None)
        return clipped, 8 * U * (1 + np.abs(clipped) + np.exp(np.maximum(-clipped, 0.0)))


@final
@dataclass(frozen=True, slots=True)
class Batched:
    r"""Sampling where the unit's data is exchanged rather than absent: the worse of both directions.

    For l ≥ 0 the profile of :math:`(qP+(1-q)Q, Q)`, for l < 0 that of :math:`(P, (1-q)P+qQ)`,
    whose slopes meet convexly at 0 (Zhu, Dong, Wang 2022, Theorem 11). It covers sampling
    without replacement, and Poisson sampling under replace-one when the inner pair bounds a
    unit added, removed or replaced: by advanced joint convexity (Balle, Barthe, Gaboardi
    2018) :math:`\delta'(\log(1+q(e^l-1))) \le q\,\delta(l)` in both cases.
    """

    inner: Profile
    rate: float
    symmetric = True

    @property
    def _removed(self) -> SampledProfile:
        return SampledProfile(self.inner, self.rate)

    @property
    def at_infinity(self) -> float:
        """See the protocol."""
        return self._removed.at_infinity

    @property
    def top(self) -> float:
        """See the protocol."""
        return self._removed.top

    @property
    def bottom(self) -> float:
        """See the protocol."""
        return -self._removed.top

    @property
    def atomic(self) -> bool:
        """See the protocol."""
        return self.inner.atomic

    def curve(self, l: Floats) -> Curve:
        """See the protocol: symmetric, so the excess below zero is that above, times e^l."""
        outer = self._removed.curve(np.abs(l))
        damp = np.exp(np.minimum(l, 0.0))
        excess = outer.excess * damp
        pad = outer.pad * damp + 4 * U * (1 + np.abs(l)) * excess + 1e-300
        return Curve(excess, pad, (outer.steep + outer.excess) * damp)

    def tails(self, l: Floats) -> Tails:
        """The pair with the unit's data removed is one that occurs."""
        return self._removed.tails(l)

    def atoms(self) -> None:
        """See the protocol: the worse of two pairs is not one pair."""

    def grid(self, step: float, log_tail: float) -> Floats:
        """See the protocol."""
        above = self._removed.grid(step, log_tail)
        above = above[above > 0]
        return np.unique(np.concatenate((-above, [0.0], above)))


@final
@dataclass(frozen=True, slots=True)
class ReplacedGaussian:
    r"""The sampled Gaussian mechanism where a unit is replaced: :math:`(1-q)N(0,1) + qN(\pm\mu,1)`, one sign each.

    Guarantee:
        This pair dominates every pair that occurs, in both directions. Given who else is in the sample, the laws are
        :math:`(1-q)N(0,I) + qN(a,I)` and :math:`(1-q)N(0,I) + qN(b,I)` up to a common shift, where a and b are what
        the unit adds, :math:`|a|, |b| \le \mu`; by joint convexity it is enough to bound these. For
        :math:`\gamma \ge 1`

        .. math:: \delta(\log\gamma) = q\,E\,(Y_a - \gamma Y_b - c)_+, \quad c = (\gamma-1)(1-q)/q,

        where :math:`Y_v = e^{\langle v,x\rangle - |v|^2/2}` and x is standard normal: the price of a spread option.
        It depends on a and b through :math:`\Sigma = (|a|^2, |b|^2, \langle a,b\rangle)` alone. Move Σ in a straight
        line to :math:`(\mu^2, \mu^2, -\mu^2)`; every point between is a covariance. For a smooth convex f instead of
        :math:`(\cdot)_+`, Gaussian integration by parts gives the derivative along the line,

        .. math:: E\,f''(Y_a - \gamma Y_b - c)\,\bigl[\tfrac12(\mu^2-|a|^2)Y_a^2
            + \tfrac12(\mu^2-|b|^2)\gamma^2Y_b^2 + (\mu^2+\langle a,b\rangle)\gamma Y_aY_b\bigr] \ge 0

        (the terms in f' cancel since :math:`E\,Y_v = 1`), and f tends to :math:`(\cdot)_+`. So the worst are a and b of
        full length and opposite, which is this pair in one dimension. For :math:`\gamma < 1` exchange the two laws.
        A unit added or removed (b = 0) is covered as well.

    The loss is an increasing odd function of x, :math:`L = \log\frac{1-q+ke^{\mu x}}{1-q+ke^{-\mu x}}` with
    :math:`k = qe^{-\mu^2/2}`, and equals l at :math:`x = (l/2 + \operatorname{asinh}(\tfrac{1-q}k\sinh\tfrac l2))/\mu`.

    Reference:
        Zhu, Dong, Wang (2022) for dominating pairs. Kahane's inequality compares Gaussian expectations in the same way.
    """

    mu: float
    rate: float
    at_infinity = 0.0
    symmetric = True
    atomic = False
    top = math.inf
    bottom = -math.inf

    def curve(self, l: Floats) -> Curve:
        """See the protocol: symmetric, so the excess below zero is that above, times e^l."""
        size, damp = np.abs(l), np.exp(np.minimum(l, 0.0))
        x = self._place(size)
        q, rest = self.rate, 1 - self.rate
        near = rest * ndtr(-x) + q * ndtr(self.mu - x)
        far = rest * _weighted(size, x) + q * _weighted(size, x + self.mu)
        square = np.minimum(x + self.mu, 40.0) ** 2
        # The threshold is right to 16 units, which moves the loss there by at most twice mu times as much.
        pad = U * (48 + 8 * square + 8 * np.minimum(size, 1e3)) * (near + far) + 64 * U * self.mu * (1 + x) * far
        excess = np.maximum(near - far, 0.0)
        return Curve(
            excess * damp,
            (pad + 4 * U * (1 + size) * excess) * damp + 1e-300,
            (far + np.where(l < 0, excess, 0.0)) * damp,
        )

    def tails(self, l: Floats) -> Tails:
        """See the protocol: L > l where x lies beyond the place of l."""
        x = np.sign(l) * self._place(np.abs(l))
        q, rest, mu = self.rate, 1 - self.rate, self.mu
        worst = np.minimum(np.abs(x) + mu, 40.0) ** 2
        return Tails(
            rest * ndtr(-x) + q * ndtr(mu - x),
            rest * ndtr(x) + q * ndtr(x - mu),
            rest * ndtr(-x) + q * ndtr(-mu - x),
            rest * ndtr(x) + q * ndtr(x + mu),
            U * (48 + 32 * worst),
        )

    def atoms(self) -> None:
        """See the protocol."""

    def grid(self, step: float, log_tail: float) -> Floats:
        """See the protocol: equal steps of the underlying normal variable, where P or Q has mass."""
        reach = min(math.sqrt(max(2.0, -2 * log_tail)), 37.0) + self.mu
        x = np.linspace(0.0, reach, max(8, math.ceil(reach / step) + 1))
        above = self._loss(x)
        return np.unique(np.concatenate((-above, above)))

    def _place(self, l: Floats) -> Floats:
        """The x at which the loss is ``l``, at least zero; by logarithms where sinh or k leave the range of floats."""
        log_ratio = self._log_odds + self.mu**2 / 2
        if self.rate == 1:
            return np.asarray(l / (2 * self.mu))
        with np.errstate(divide="ignore"):
            log_s = log_ratio + l / 2 + np.log(-np.expm1(-l)) - math.log(2)
        steep = np.where(log_s > 30.0, log_s + math.log(2), np.arcsinh(np.exp(np.minimum(log_s, 30.0))))
        return np.asarray((l / 2 + steep) / self.mu)

    def _loss(self, x: Floats) -> Floats:
        shift = -self._log_odds - self.mu**2 / 2
        return np.asarray(np.logaddexp(0.0, shift + self.mu * x) - np.logaddexp(0.0, shift - self.mu * x))

    @property
    def _log_odds(self) -> float:
        """Log of (1-q)/q."""
        return math.log1p(-self.rate) - math.log(self.rate) if self.rate < 1 else -math.inf


def _weighted(l: Floats, z: Floats) -> Floats:
    """e^l times the upper tail of a standard normal at z >= 0, where it neither overflows nor loses digits."""
    near = np.minimum(z, 1e8)
    return np.asarray(0.5 * np.exp(np.minimum(l - near * near / 2, 700.0)) * erfcx(near / math.sqrt(2)))


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
