r"""Noise that nobody knows: each party draws a share, and the shares of the honest ones that stay are enough.

Laplace
    Shares of :func:`~defocus.noise.shares.laplace_share` add up to discrete Laplace noise exactly.

Gaussian
    Each of h shares is discrete Gaussian with variance :math:`s^2`, where :math:`h s^2 = \sigma^2 + b^2` and
    :math:`b \ge 16`. Let :math:`N(v)` be the discrete Gaussian law with :math:`P(x) \propto e^{-x^2/2v}`. The sum
    of independent numbers of :math:`N(u)` and :math:`N(w)` has, by completing the square, probabilities

    .. math:: e^{-z^2/2(u+w)} \sum_x e^{-(x-\mu)^2/2v} \cdot const, \quad 1/v = 1/u + 1/w,

    and by Poisson's summation formula the inner sum is :math:`\sqrt{2\pi v}(1 + \eta)` with
    :math:`|\eta| \le y = 2 \sum_{k \ge 1} e^{-2\pi^2 v k^2}`, whatever :math:`\mu`. Both laws add up to one, so
    the ratio of their probabilities lies between :math:`(1-y)/(1+y)` and its inverse. Such bounds multiply, and
    stay when further independent numbers are added. So the sum of h shares has, within a factor
    :math:`e^{\pm\tau}` everywhere, the law of a number of :math:`N(\sigma^2)` plus an independent one of
    :math:`N(b^2)`: noise of the mechanism, processed.

    If P' is within :math:`e^{\pm d\tau}` of P, then :math:`P' = e^{-d\tau} P + (1 - e^{-d\tau}) R` for some law R. So
    d such sums can be simulated from the mechanism's own output and from something that tells everything with
    probability :math:`1 - e^{-d\tau} \le d\tau`: that is charged as ``Approximate(0, d tau)``. It is far below any
    delta: at most 1e-250 for each entry and party.

Further shares, of more honest parties than were counted on, are independent noise on top.

Reference: Kairouz, Liu, Steinke (2021), The distributed discrete Gaussian mechanism for federated learning with secure
aggregation, for sums of discrete Gaussians.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, count
from defocus.mechanisms.gaussian import Gaussian
from defocus.mechanisms.laplace import Laplace
from defocus.mechanisms.mechanism import integers
from defocus.noise import Bits, discrete_gaussian
from defocus.noise.shares import laplace_share
from defocus.privacy.events import Approximate, Event

__all__ = ["NoiseShare"]

_BESIDE = 16
"""The standard deviation of what is added to Gaussian noise to make it divisible."""
_FINE = 1 << 60


@final
@dataclass(frozen=True, slots=True)
class NoiseShare:
    """One party's share of the noise of a mechanism.

    Guarantee:
        The sum of vectors to which at least ``honest`` parties added independent shares is as private as the mechanism
        on the sum of the vectors, up to what :attr:`event` charges beside it. Shares that others know, or that are
        missing, must not be counted: of n parties, of which D may drop out and C collude, n - D - C are honest.
    Assumes:
        The sum is all that is seen of the vectors, as in a secure sum.

    Args:
        mechanism: the noise that the sum is to have: Laplace or Gaussian.
        honest: how many shares are there for sure.

        parties: how many shares are added up if nobody drops out; as many as are honest by default.
        added: makes the noisy sum over all parties of one party's vector with its share: a secure sum. Without it,
            the vector with its share is all there is.

    >>> from defocus.mechanisms import Laplace
    >>> share = NoiseShare(Laplace(scale=20), honest=8, parties=10)
    >>> share.event
    DiscreteLaplace(scale=20, sensitivity=1)
    >>> round(share.mechanism.variance, 1), round(share.variance, 1)
    (799.8, 999.8)
    """

    mechanism: Laplace | Gaussian
    honest: int
    parties: int = 0
    added: Callable[[NDArray[np.int64]], NDArray[np.int64]] = field(default=lambda own: own, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Laplace | Gaussian):
            raise InvalidParameterError(
                f"Noise of {type(self.mechanism).__name__} cannot be shared.",
                fix="pass a Laplace or Gaussian mechanism.",
            )
        count("honest", self.honest)
        if not self.parties:
            object.__setattr__(self, "parties", self.honest)
        count("parties", self.parties)
        if isinstance(self.mechanism, Gaussian) and min(self._sigma, self.mechanism.sigma) < _BESIDE:
            raise InvalidParameterError(
                f"A share of Gaussian noise with sigma {float(self.mechanism.sigma):g} among {self.honest} parties is"
                f" too narrow: sums of such shares are not Gaussian.",
                fix=f"use a finer grid, so that a share has a standard deviation of at least {_BESIDE}.",
            )

    @property
    def event(self) -> Event:
        """What the noisy sum owes: the mechanism's event, and how far the sum of the shares is from its noise."""
        if isinstance(self.mechanism, Laplace):
            return self.mechanism.event
        return self.mechanism.event + Approximate(0, self._slack)

    def sample(self, value: Any, bits: Bits | None = None) -> NDArray[np.int64]:
        """The noisy sum of all parties' vectors, of which this is one, modulo 2**64."""
        vector, _ = integers(value)
        if isinstance(self.mechanism, Laplace):
            noise = laplace_share(self.mechanism.scale, self.honest, len(vector), bits)
        else:
            noise = discrete_gaussian(self._sigma, len(vector), bits)
        return self.added(vector + noise)

    @property
    def variance(self) -> float:
        """Of one entry of the sum, if all parties added a share."""
        if isinstance(self.mechanism, Laplace):
            return self.mechanism.variance * self.parties / self.honest
        return self.parties * float(self._sigma) ** 2

    @property
    def sensitivity(self) -> Number:
        """Of the mechanism."""
        return self.mechanism.sensitivity

    @property
    def _sigma(self) -> Fraction:
        """The standard deviation of a share, rounded up."""
        wanted = Fraction(self.mechanism.sigma) ** 2 + _BESIDE**2  # type: ignore[union-attr]  # of Gaussian noise
        square = wanted / self.honest * _FINE**2
        return Fraction(math.isqrt(math.ceil(square)) + 1, _FINE)

    @property
    def _slack(self) -> float:
        """At least dimension * tau; see the module."""
        # Of the partial sums of h shares v >= s²/2, and of sigma and b together v >= b²/2, both at least 128.
        least = min(float(self._sigma) ** 2, float(_BESIDE**2)) / 2
        beyond = 2.1 * math.exp(-2 * math.pi**2 * min(least, 30.0))  # with 30 for 128: no float is as small
        return self.mechanism.dimension * self.honest * 2.1 * beyond  # type: ignore[union-attr]
