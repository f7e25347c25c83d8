r"""Privacy profiles: what one release does to the odds, as a curve with certified rounding error.

For a pair of output laws (P, Q) with privacy loss :math:`L = \log dP/dQ`, the profile is
:math:`\delta(l) = \sup_S P(S) - e^l Q(S)`. It never lies below :math:`\max(0, 1-e^l)`; a
profile here reports its *excess* over that floor, which is the quantity that can be
computed with small relative error on both sides of zero:

.. math:: x(l) = \delta(l) - \max(0, 1 - e^l).

Swapping P and Q gives :math:`x'(l) = e^l x(-l)`, so both directions of an adjacency come
from one curve. Poisson sampling at rate q maps the curve to :math:`q\,x(l)` at
:math:`l' = \log(1 - q + q e^l)`.

Reference:
    Zhu, Dong, Wang (2022), Optimal accounting of differential privacy via characteristic
    function, Theorem 11; Doroshenko et al. (2022), Connect the dots.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

__all__ = [
    "Atoms",
    "BoundedRange",
    "Curve",
    "Floats",
    "GaussianProfile",
    "LaplaceProfile",
    "Masses",
    "Profile",
    "Tails",
    "U",
]


Floats: TypeAlias = NDArray[np.float64]
U = 2.0**-53


class Curve(NamedTuple):
    """Values of a profile at some losses."""

    excess: Floats
    """x(l), computed."""
    pad: Floats
    """Bound on the absolute error of ``excess``."""
    steep: Floats
    """Bound on |dx/dl|: what an error in l costs."""


class Tails(NamedTuple):
    """Probabilities of the loss lying above or not above some thresholds, and their relative error."""

    p_above: Floats
    p_below: Floats
    q_above: Floats
    q_below: Floats
    error: Floats


class Masses(Protocol):
    """A loss with few values: what can be enumerated."""

    @property
    def losses(self) -> tuple[float, ...]:
        """The values, increasing."""

    @property
    def p(self) -> tuple[float, ...]:
        """P's masses there."""

    @property
    def q(self) -> tuple[float, ...]:
        """Q's masses there."""

    @property
    def at_infinity(self) -> float:
        """What each law puts where the other has none."""

    @property
    def symmetric(self) -> bool:
        """Whether swapping P and Q gives the same profile."""

    @property
    def error(self) -> float:
        """Relative error of the masses."""


class Profile(Protocol):
    """One pair of output laws."""

    @property
    def top(self) -> float:
        """The largest finite loss."""

    @property
    def bottom(self) -> float:
        """The least loss."""

    @property
    def at_infinity(self) -> float:
        """Mass that P puts where Q puts none."""

    @property
    def symmetric(self) -> bool:
        """Whether swapping P and Q gives the same profile."""

    @property
    def atomic(self) -> bool:
        """Whether the loss takes few values, so that a grid should bracket each of them."""

    def curve(self, l: Floats) -> Curve:
        """The profile at losses ``l``."""

    def tails(self, l: Floats) -> Tails:
        """Probabilities beyond ``l`` under both laws of a pair that occurs."""

    def atoms(self) -> Masses | None:
        """The pair as finitely many atoms, where it is one with few."""

    def grid(self, step: float, log_tail: float) -> Floats:
        """Increasing losses that resolve the law, leaving out about e^log_tail of mass at each end."""


@final
@dataclass(frozen=True, slots=True)
class Atoms:
    """A loss with finitely many values: randomised response, and the worst pure or approximate mechanism.

    ``losses`` increase; ``p`` and ``q`` are the masses of P and Q there, correct to ``error`` relative;
    each law puts ``at_infinity`` where the other has none.
    """

    losses: tuple[float, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    at_infinity: float = 0.0
    symmetric: bool = True
    error: float = 16 * U
    atomic = True

    @property
    def top(self) -> float:
        """See the protocol."""
        return self.losses[-1]

    @property
    def bottom(self) -> float:
        """See the protocol."""
        return -math.inf if self.at_infinity else self.losses[0]

    def curve(self, l: Floats) -> Curve:
        """See the protocol: a sum over the atoms beyond l."""
        atoms, p, q = (np.asarray(a)[:, None] for a in (self.losses, self.p, self.q))
        gain = np.where(
            l >= 0,
            np.where(atoms > l, p * -np.expm1(np.minimum(l - atoms, 0.0)), 0.0),
            np.where(atoms < l, q * np.exp(np.minimum(l, 0.0)) * -np.expm1(np.minimum(atoms - l, 0.0)), 0.0),
        )
        steep = np.where(
            l >= 0, np.where(atoms >= l, p, 0.0), np.where(atoms <= l, q * np.exp(np.minimum(l, 0.0)), 0.0)
        )
        damp = np.exp(np.minimum(l, 0.0)) * self.at_infinity
        excess = gain.sum(axis=0) + damp
        slope = steep.sum(axis=0) + damp
        worst = max(abs(self.losses[0]), abs(self.losses[-1]))
        return Curve(excess, (self.error + 16 * U) * excess + 32 * U * (1 + worst) * slope + 1e-300, slope)

    def tails(self, l: Floats) -> Tails:
        """See the protocol."""
        atoms, p, q = (np.asarray(a)[:, None] for a in (self.losses, self.p, self.q))
        above = atoms > l
        lost = self.at_infinity
        return Tails(
            (p * above).sum(axis=0) + lost,
            (p * ~above).sum(axis=0),
            (q * above).sum(axis=0),
            (q * ~above).sum(axis=0) + lost,
            np.full_like(l, self.error + 8 * U * len(self.losses)),
        )

    def atoms(self) -> "Atoms":
        """See the protocol."""
        return self

    def grid(self, step: float, log_tail: float) -> Floats:
        """See the protocol."""
        del step, log_tail
        return np.asarray(self.losses)


_SQRT2 = math.sqrt(2.0)


def _square(z: Floats) -> Floats:
    """z², but no more than 1600: beyond 40 standard deviations tails are 0 and 1 to within 1e-300."""
    near = np.minimum(np.abs(z), 40.0)
    return near * near


@final
@dataclass(frozen=True, slots=True)
class GaussianProfile:
    r"""N(μ, 1) against N(0, 1), or a pair within :math:`e^{\pm\text{blur}}` of it pointwise.

    :math:`\delta(l) = \bar\Phi(z_1) - e^l\bar\Phi(z_0)` with :math:`z_0 = l/\mu + \mu/2`,
    :math:`z_1 = z_0 - \mu` (Balle, Wang 2018). Where :math:`z_0 > 0` the second term is
    :math:`\varphi(z_1)` times Mills' ratio of :math:`z_0`, which neither overflows nor
    loses digits.

    Assumes:
        ``ndtr``, ``erfcx`` and ``exp`` are accurate to 8 units in the last place at the
        argument given; the error of the argument itself adds z² units. The test suite
        checks this against 60-digit arithmetic.
    """

    mu: float
    blur: float = 0.0
    at_infinity = 0.0
    symmetric = True
    atomic = False
    top = math.inf
    bottom = -math.inf

    def curve(self, l: Floats) -> Curve:
        """See the protocol."""
        z0, z1 = self._normal(l)
        square0, square1 = _square(z0), _square(z1)
        up = l >= 0
        outward = np.where(up, z0, -z0)
        mills = 0.5 * np.exp(-0.5 * square1) * erfcx(np.maximum(outward, 0.0) / _SQRT2)
        # e^l Q(L > l) above zero, e^l Q(L <= l) below it.
        far = np.where(outward > 0, mills, np.exp(np.minimum(l, 0.0)) * ndtr(-outward))
        near = np.where(up, ndtr(-z1), ndtr(z1))
        pad = (U * (24 + 4 * square0 + 4 * square1) + 4 * self.blur) * (near + far) + 1e-300
        return Curve(np.maximum(np.where(up, near - far, far - near), 0.0), pad, far)

    def tails(self, l: Floats) -> Tails:
        """See the protocol."""
        z0, z1 = self._normal(l)
        worst = np.maximum(_square(z0), _square(z1))
        return Tails(ndtr(-z1), ndtr(z1), ndtr(-z0), ndtr(z0), U * (24 + 4 * worst) + 4 * self.blur)

    def _normal(self, l: Floats) -> tuple[Floats, Floats]:
        """How many standard deviations from the centres of Q and of P the loss is l."""
        with np.errstate(over="ignore"):
            middle = l / self.mu
        return middle + self.mu / 2, middle - self.mu / 2

    def atoms(self) -> None:
        """See the protocol."""

    def grid(self, step: float, log_tail: float) -> Floats:
        """See the protocol: equal steps of the underlying normal variable."""
        reach = min(math.sqrt(max(2.0, -2 * log_tail)), 37.0)
        low, high = -reach, self.mu + reach
        x = np.linspace(low, high, max(8, math.ceil((high - low) / step) + 1))
        return np.asarray(self.mu * (x - self.mu / 2))


@dataclass(frozen=True, slots=True)
class _Between:
    """What profiles share whose losses lie between -epsilon and epsilon."""

    epsilon: float
    at_infinity = 0.0
    symmetric = True
    atomic = False

    @property
    def top(self) -> float:
        """See the protocol."""
        return self.epsilon

    @property
    def bottom(self) -> float:
        """See the protocol."""
        return -self.epsilon

    def atoms(self) -> None:
        """See the protocol."""

    def grid(self, step: float, log_tail: float) -> Floats:
        """See the protocol."""
        del log_tail
        return np.linspace(-self.epsilon, self.epsilon, max(3, math.ceil(2 / step)))


@final
@dataclass(frozen=True, slots=True)
class LaplaceProfile(_Between):
    r"""Lap(1, b) against Lap(0, b) with :math:`\varepsilon = 1/b`: :math:`\delta(l) = 1 - e^{(l-\varepsilon)/2}`."""

    def curve(self, l: Floats) -> Curve:
        """See the protocol: for l < 0 the excess is that of -l, times e^l, since the pair is symmetric."""
        inside = np.minimum(np.abs(l), self.epsilon)
        damp = np.exp(np.minimum(l, 0.0))
        excess = -np.expm1((inside - self.epsilon) / 2) * damp
        steep = np.where(np.abs(l) <= self.epsilon, 1.0, 0.0) * damp
        return Curve(excess, 16 * U * (excess + (self.epsilon + inside) * damp * (excess > 0)) + 1e-300, steep)

    def tails(self, l: Floats) -> Tails:
        """See the protocol: L > l where the noise lies left of (1 - l/epsilon)/2, atoms at both ends."""
        y = (1 - np.clip(l / self.epsilon, -1.0, 1.0)) / 2
        inside_p = 0.5 - 0.5 * np.expm1(-self.epsilon * y)
        inside_q = 0.5 * np.exp(-self.epsilon * (1 - y))
        above, below = l >= self.epsilon, l < -self.epsilon
        p = np.where(above, 0.0, np.where(below, 1.0, inside_p))
        q = np.where(above, 0.0, np.where(below, 1.0, inside_q))
        p_left = np.where(above, 1.0, np.where(below, 0.0, 0.5 * np.exp(-self.epsilon * y)))
        q_left = np.where(above, 1.0, np.where(below, 0.0, 0.5 - 0.5 * np.expm1(-self.epsilon * (1 - y))))
        return Tails(p, p_left, q, q_left, np.full_like(l, 16 * U * (1 + self.epsilon)))


@final
@dataclass(frozen=True, slots=True)
class BoundedRange(_Between):
    r"""The worst of all pairs whose losses span at most ``epsilon``: the exponential mechanism.

    The extreme pairs put losses t and t−ε, so
    :math:`\delta(l) = \sup_t \frac{(e^\varepsilon - e^t)(1 - e^{l-t})}{e^\varepsilon - 1}`, whose
    maximum lies at t = (ε+l)/2:
    :math:`\delta(l) = (e^{\varepsilon/2} - e^{l/2})^2/(e^\varepsilon - 1)` for |l| ≤ ε.
    A supremum of profiles is a profile, and dominates every member under composition.
    No single pair attains it at every l.
    Reference: Dong, Durfee, Rogers (2020).
    """

    def curve(self, l: Floats) -> Curve:
        """See the protocol."""
        inside = np.minimum(np.abs(l), self.epsilon)
        damp = np.exp(np.minimum(l, 0.0))
        root = -np.expm1((inside - self.epsilon) / 2)
        excess = root * root / -math.expm1(-self.epsilon) * damp
        steep = np.where(root > 0, 1.0, 0.0) * damp
        return Curve(excess, 32 * U * (1 + self.epsilon) * (excess + root * damp) + 1e-300, steep)

    def tails(self, l: Floats) -> Tails:
        """Those of the balanced member, with losses ±ε/2."""
        return self.balanced().tails(l)

    def balanced(self) -> Atoms:
        """The member with losses ±ε/2: a pair that occurs, though not the worst at every l."""
        half = self.epsilon / 2
        other, truth = math.exp(-half) / (1 + math.exp(-half)), 1 / (1 + math.exp(-half))
        return Atoms((-half, half), (other, truth), (truth, other), error=(32 + self.epsilon) * U)
