"""Profiles of the discrete mechanisms, whose losses live on the integers."""

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from defocus.privacy.accounting.pld.profiles import Atoms, Curve, Floats, Tails, U

__all__ = ["DiscreteGaussianProfile", "DiscreteLaplaceProfile"]

_FEW = 256
_FEWEST = 8


@final
@dataclass(frozen=True, slots=True)
class DiscreteLaplaceProfile:
    r"""Discrete Laplace noise of scale b at 0 against the same at Δ.

    The loss at x is :math:`(|x-\Delta| - |x|)/b`, so :math:`L > l` exactly where
    :math:`x \le m = \lceil(\Delta - lb)/2\rceil - 1`, and with :math:`a = e^{-1/b}`,
    :math:`\delta(l) = [(1 - e^{l-\varepsilon+m/b}) + a(1 - e^{-m/b})]/(1+a)` for
    :math:`0 \le l < \varepsilon = \Delta/b`: a sum of positive terms. A wrong m by rounding
    is still a test, worse by no more than the rounding of l.
    Vectors with L1 sensitivity Δ are dominated by this scalar pair: the noise is
    log-concave, so spreading a shift over coordinates only makes it harder to see.
    """

    scale: float
    shift: float
    at_infinity = 0.0
    symmetric = True

    @property
    def top(self) -> float:
        """See the protocol."""
        return self.shift / self.scale * (1 + 4 * U)

    @property
    def bottom(self) -> float:
        """See the protocol."""
        return -self.top

    @property
    def atomic(self) -> bool:
        """See the protocol."""
        return self.shift < _FEW

    def _last(self, l: Floats) -> Floats:
        return np.ceil((self.shift - l * self.scale) / 2) - 1

    def curve(self, l: Floats) -> Curve:
        """See the protocol."""
        size = np.abs(l)
        m = np.clip(self._last(size), 0.0, None)
        gap = size - self.shift / self.scale + m / self.scale
        a = math.exp(-1 / self.scale)
        live = size < self.top
        damp = np.exp(np.minimum(l, 0.0)) / (1 + a)
        excess = (
            np.where(live, np.maximum(-np.expm1(np.minimum(gap, 0.0)) - a * np.expm1(-m / self.scale), 0.0), 0.0) * damp
        )
        steep = np.where(live, 1.0, 0.0) * damp
        return Curve(excess, 16 * U * (excess + (1 + self.top) * steep) + 1e-300, steep + excess)

    def tails(self, l: Floats) -> Tails:
        """See the protocol."""
        m = np.clip(self._last(l), -1.0, self.shift)
        never, always = l >= self.top, l < -self.top
        a = math.exp(-1 / self.scale)
        left = np.where(m >= 0, 1 - np.exp(-(m + 1) / self.scale) / (1 + a), a / (1 + a))
        right = np.where(m >= 0, np.exp(-(m + 1) / self.scale) / (1 + a), 1 / (1 + a))
        far = np.where(m < self.shift, np.exp(-(self.shift - m) / self.scale) / (1 + a), 1 / (1 + a))
        back = np.where(m < self.shift, 1 - np.exp(-(self.shift - m) / self.scale) / (1 + a), a / (1 + a))
        return Tails(
            np.where(never, 0.0, np.where(always, 1.0, left)),
            np.where(never, 1.0, np.where(always, 0.0, right)),
            np.where(never, 0.0, np.where(always, 1.0, far)),
            np.where(never, 1.0, np.where(always, 0.0, back)),
            np.full_like(l, 16 * U * (1 + self.top)),
        )

    def atoms(self) -> Atoms | None:
        """See the protocol: the loss takes the values (Δ-2x)/b for x = 0 … Δ, the ends gathering both tails."""
        if self.shift > _FEWEST:
            return None
        x = np.arange(int(self.shift), -1, -1, dtype=np.float64)
        a = math.exp(-1 / self.scale)
        at = -math.expm1(-1 / self.scale) / (1 + a)
        inside = np.where((x > 0) & (x < self.shift), at, 1 / (1 + a))
        p, q = inside * np.exp(-x / self.scale), inside * np.exp(-(self.shift - x) / self.scale)
        losses = (self.shift - 2 * x) / self.scale
        error = 32 * U * (1 + self.top)
        return Atoms(tuple(losses.tolist()), tuple(p.tolist()), tuple(q.tolist()), error=error)

    def grid(self, step: float, log_tail: float) -> Floats:
        """See the protocol."""
        del log_tail
        if self.atomic:
            return (2 * np.arange(self.shift + 1) - self.shift) / self.scale
        return np.linspace(-self.top, self.top, max(3, math.ceil(2 / step)))


@final
@dataclass(frozen=True, slots=True)
class DiscreteGaussianProfile:
    r"""Discrete Gaussian noise of parameter σ at 0 against the same at an integer Δ.

    The loss at x is :math:`(\Delta^2 - 2x\Delta)/2\sigma^2`, so :math:`L > l` exactly where
    :math:`x \le m = \lceil \Delta/2 - \sigma^2 l/\Delta \rceil - 1` and
    :math:`\delta(l) = F(m) - e^l F(m - \Delta)`. The distribution function F is summed from
    the left in extended precision over 39σ, beyond which less than 1e-300 is left.
    """

    sigma: float
    shift: int
    _log_cdf: NDArray[np.float64] = field(init=False, repr=False, compare=False)
    at_infinity = 0.0
    symmetric = True
    top = math.inf
    bottom = -math.inf

    def __post_init__(self) -> None:
        reach = math.ceil(39 * self.sigma) + 1
        x = np.arange(-reach, reach + 1).astype(np.longdouble)
        weight = np.exp(-x * x / (2 * np.longdouble(self.sigma) ** 2))
        total = np.cumsum(weight)
        with np.errstate(divide="ignore", under="ignore"):
            object.__setattr__(self, "_log_cdf", np.log(total / total[-1]).astype(np.float64))

    @property
    def atomic(self) -> bool:
        """See the protocol."""
        return self.sigma * 80 < _FEW * 4

    def _cdf(self, m: Floats) -> Floats:
        """Log of F(m)."""
        reach = len(self._log_cdf) // 2
        inside = np.clip(m + reach, -1, len(self._log_cdf) - 1).astype(np.int64)
        return np.where(inside < 0, -np.inf, self._log_cdf[np.maximum(inside, 0)])

    def _last(self, l: Floats) -> Floats:
        return np.ceil(self.shift / 2 - self.sigma * self.sigma * l / self.shift) - 1

    def curve(self, l: Floats) -> Curve:
        """See the protocol: symmetric, so only l >= 0 is computed.

        Where l all but equals a loss that occurs, rounding may leave its atom out, which may
        outweigh all the others beyond l; what that can cost is added to the pad.
        """
        size = np.abs(l)
        m = self._last(size)
        scaled = self.sigma * self.sigma * size / self.shift
        place = self.shift / 2 - scaled
        unsure = np.abs(place - np.rint(place)) <= 8 * U * (self.shift + scaled)
        left_out = np.where(unsure, np.exp(self._cdf(m + 1)), 0.0)
        log_near, log_far = self._cdf(m), self._cdf(m - self.shift)
        near, far = np.exp(log_near), np.exp(np.minimum(size + log_far, 0.0))
        # Each addition that filled the table may have rounded.
        table = 2 * len(self._log_cdf) * float(np.finfo(np.longdouble).eps) / U
        digits = 24 + table + 8 * size + 4 * np.minimum(np.abs(log_near), 800.0)
        damp = np.exp(np.minimum(l, 0.0))
        excess = np.maximum(near - far, 0.0) * damp
        pad = U * (digits * (near + far) + (8 * size + (self.shift / self.sigma) ** 2) * left_out)
        return Curve(excess, pad * damp + 1e-300, (far + near + left_out) * damp)

    def tails(self, l: Floats) -> Tails:
        """See the protocol; probabilities above a threshold come from the left sums, those below by symmetry."""
        m = self._last(l)
        return Tails(
            np.exp(self._cdf(m)),
            np.exp(self._cdf(-m - 1)),
            np.exp(self._cdf(m - self.shift)),
            np.exp(self._cdf(self.shift - m - 1)),
            np.full_like(l, U * 4000 + 2 * len(self._log_cdf) * float(np.finfo(np.longdouble).eps)),
        )

    def atoms(self) -> None:
        """See the protocol."""

    def grid(self, step: float, log_tail: float) -> Floats:
        """See the protocol: each integer while there are few, equal steps beyond."""
        reach = min(math.sqrt(max(2.0, -2 * log_tail)), 38.0) * self.sigma
        low, high = math.floor(-reach), math.ceil(self.shift + reach)
        if self.atomic:
            x = np.arange(low, high + 1, dtype=np.float64)
        else:
            x = np.linspace(low, high, max(8, math.ceil((high - low) / (step * self.sigma)) + 1))
        return (self.shift * self.shift - 2 * x[::-1] * self.shift) / (2 * self.sigma * self.sigma)
