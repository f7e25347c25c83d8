r"""Laws of a privacy loss whose moment generating function is a formula: these need no grid.

With :math:`M(s) = E_P e^{sL}`, tilting by θ and transforming gives :math:`M(\theta+it)/M(\theta)`.

*Gaussian*, ratio 1/μ: :math:`\log M(s) = \mu^2 s(1+s)/2`.

*Laplace*, ratio 1/ε: the loss is ε with probability 1/2, -ε with :math:`e^{-\varepsilon}/2`, and has density
:math:`e^{(l-\varepsilon)/2}/4` between. With :math:`u = s + 1/2`,
:math:`M(s) = e^{-\varepsilon/2}(\cosh u\varepsilon + \sinh(u\varepsilon)/2u)`.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.privacy.accounting.pld.profiles import Floats, GaussianProfile, LaplaceProfile, Profile, U

__all__ = ["Formula", "GaussianFormula", "LaplaceFormula", "formula_of"]

_BLURRED = 1e-6


@final
@dataclass(frozen=True, slots=True)
class GaussianFormula:
    """The loss of N(μ, 1) against N(0, 1), ``times`` times over; of a pair within e^±blur of it, once moved."""

    mu: float
    blur: float
    times: int
    lost: ClassVar[float] = 0.0
    top: ClassVar[float] = math.inf

    def moments(self, theta: float) -> tuple[float, float, float]:
        """Cumulant, mean and variance under the tilt."""
        square = self.mu * self.mu
        return 0.5 * square * theta * (1 + theta), square * (theta + 0.5), square

    def cumulant(self, theta: float) -> float:
        """Log of the tilted total mass."""
        return self.moments(theta)[0]

    def slack(self, theta: float) -> float:
        """Bound on the absolute error of the cumulant."""
        return 16 * U * self.cumulant(theta)

    def rise(self, theta: float) -> float:
        """No grid moves a loss."""
        del theta
        return 0.0

    def transform(self, theta: float, t: Floats) -> tuple[NDArray[np.complex128], Floats]:
        """The tilted law's transform, and bounds on its absolute error."""
        fall, turn = 0.5 * np.square(self.mu * t), self.mu * self.mu * (theta + 0.5) * t
        values = np.exp(-fall + 1j * turn)
        return values, (16 * U * (1 + fall + np.abs(turn))) * np.exp(-fall) + 1e-300

    def envelope(self, theta: float, t: float) -> float:
        """Log of a bound on the transform's size from ``t`` on."""
        del theta
        return -0.5 * (self.mu * t) ** 2 * (1 - 8 * U)


@final
@dataclass(frozen=True, slots=True)
class LaplaceFormula:
    """The loss of Laplace noise with the ratio 1/epsilon, ``times`` times over."""

    epsilon: float
    times: int
    blur: ClassVar[float] = 0.0
    lost: ClassVar[float] = 0.0

    @property
    def top(self) -> float:
        """The largest loss."""
        return self.epsilon

    def _total(self, theta: float) -> tuple[float, float, float]:
        """For s = θ: u, e^(-2uε), and M(θ) in units of e^(θε), which is at least a half."""
        u = theta + 0.5
        small = math.exp(-2 * u * self.epsilon)
        return u, small, 0.5 * (1 + small) - math.expm1(-2 * u * self.epsilon) / (4 * u)

    def moments(self, theta: float) -> tuple[float, float, float]:
        """Cumulant, mean and variance under the tilt."""
        u, small, total = self._total(theta)
        e, even, odd = self.epsilon, 0.5 * (1 + small), 0.5 * (1 - small)
        first = (e * odd + (e * even - odd / u) / (2 * u)) / total
        second = (e * e * even + (e * e * odd - 2 * (e * even - odd / u) / u) / (2 * u)) / total
        return theta * e + math.log(total), first, max(second - first * first, 0.0)

    def cumulant(self, theta: float) -> float:
        """Log of the tilted total mass."""
        return self.moments(theta)[0]

    def slack(self, theta: float) -> float:
        """Bound on the absolute error of the cumulant."""
        return U * (32 + 16 * (theta + 0.5) * self.epsilon)

    def rise(self, theta: float) -> float:
        """No grid moves a loss."""
        del theta
        return 0.0

    def transform(self, theta: float, t: Floats) -> tuple[NDArray[np.complex128], Floats]:
        """The tilted law's transform, and bounds on its absolute error."""
        a, small, total = self._total(theta)
        turn, quarter = np.exp(1j * self.epsilon * t), 0.25 / (a + 1j * t)
        values = (turn * (0.5 + quarter) + small * np.conj(turn) * (0.5 - quarter)) / total
        return values, U * (128 + 64 * self.epsilon * (np.abs(t) + a))

    def envelope(self, theta: float, t: float) -> float:
        """Log of a bound on the transform's size from ``t`` on: |sinh u| is at most the real part's cosh."""
        _, small, total = self._total(theta)
        return min(math.log(0.5 * (1 + small) * (1 + 0.5 / t) / total) + 64 * U, 0.0)


Formula: TypeAlias = GaussianFormula | LaplaceFormula


def formula_of(profile: Profile, times: int) -> Formula | None:
    """The formula of a profile that has one.

    >>> formula_of(LaplaceProfile(0.1), 10).top
    0.1
    """
    if isinstance(profile, LaplaceProfile):
        return LaplaceFormula(profile.epsilon, times)
    if isinstance(profile, GaussianProfile) and times * profile.blur < _BLURRED:
        return GaussianFormula(profile.mu, profile.blur, times)
    return None
