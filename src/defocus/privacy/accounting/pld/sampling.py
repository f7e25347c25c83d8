"""Profiles made from others: the pair exchanged, and releases on a random sample."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from defocus.privacy.accounting.pld.profiles import Atoms, Curve, Floats, Profile, Tails, U
from defocus.privacy.accounting.shuffling import Amplification

__all__ = ["Batched", "Reversed", "SampledProfile", "ShuffledProfile"]


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
