"""The Gaussian mechanism: discrete Gaussian noise on integers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, final, overload

from defocus.errors import CannotCalibrateError, InvalidParameterError, Number, UnsupportedEventError, count, positive
from defocus.mechanisms import error_laws
from defocus.mechanisms.mechanism import (
    Integers,
    IntVector,
    add,
    checked_budget,
    integers,
    noise_scale,
    not_by_epsilon,
)
from defocus.noise import Bits, discrete_gaussian
from defocus.privacy import events
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate

__all__ = ["Gaussian"]

_WIDE = 4.5
"""From this sigma on, the certified accountant expresses discrete Gaussians of every dimension and sensitivity."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    r"""Add independent discrete Gaussian noise, :math:`P(x) \propto e^{-x^2/2\sigma^2}`, to every entry.

    Guarantee:
        If neighbouring inputs are integer vectors that differ by at most ``sensitivity`` in L2
        norm, the output is :math:`\rho`-zCDP with :math:`\rho = \Delta_2^2/2\sigma^2`; the event
        keeps the whole law, from which an accountant takes the tighter (epsilon, delta).
    Assumes:
        ``sensitivity`` holds under the unit and adjacency of the ledger that is charged;
        ``bits`` is uniform. An irrational sensitivity such as √3 must be rounded up.

    Error:
        Unbiased; each entry has variance at most :math:`\sigma^2`, and absolute error close to
        :math:`\sigma\sqrt{2/\pi}`. A noisy value that does not fit in 64 bits is cut to fit.
    Reference:
        Canonne, Kamath, Steinke (2020), The discrete Gaussian for differential privacy, Theorems 4 and 14.

    >>> histogram = Gaussian(sigma=4, sensitivity=1, dimension=10)
    >>> histogram.event
    DiscreteGaussian(sigma=4, sensitivity=1, dimension=10)
    >>> round(histogram.error, 2), histogram.interval(0.95)
    (3.17, 8)
    """

    sigma: Number
    sensitivity: Number = 1
    dimension: int = 1

    def __new__(cls, **named: object) -> Self:
        """Before the fields are set: an epsilon given by name is told where it belongs."""
        not_by_epsilon("Gaussian", named, usual="epsilon=1, delta=1e-6")
        return object.__new__(cls)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", noise_scale("sigma", self.sigma))
        object.__setattr__(self, "sensitivity", _distance(self.sensitivity))
        object.__setattr__(self, "dimension", count("dimension", self.dimension))

    @classmethod
    def calibrated(
        cls,
        budget: Budget | None = None,
        /,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        mu: Number | None = None,
        sensitivity: Number = 1,
        dimension: int = 1,
    ) -> Self:
        """The least noise whose exact discrete law meets ``epsilon`` and ``delta``, or ``rho``, or a whole budget.

        Rho is met through zCDP, (epsilon, delta) through the certified accountant, or through Rényi DP where the
        noise is too narrow for that one to express it.
        """
        bound, size = _distance(sensitivity), count("dimension", dimension)
        price = checked_budget(budget, epsilon=epsilon, delta=delta, rho=rho, mu=mu)
        if price.epsilon is not None and not price.delta:
            raise CannotCalibrateError(
                "Gaussian noise cannot meet a budget without a delta.",
                fix="add a delta, for example epsilon=1, delta=1e-6, or use Laplace, which needs none.",
            )
        if price.mu is not None:
            raise CannotCalibrateError(
                "Discrete Gaussian noise has no exact Gaussian-DP guarantee.",
                fix="give the price as (epsilon, delta) or rho.",
            )
        per_step = float(bound)  # searched as sigma over sensitivity, which is of ordinary size

        def family(ratio: float) -> events.DiscreteGaussian:
            return events.DiscreteGaussian(ratio * per_step, bound, size)

        sigma = _least_ratio(family, price, wide=_WIDE / per_step) * per_step
        return cls(sigma=sigma, sensitivity=bound, dimension=size)

    @property
    def event(self) -> events.DiscreteGaussian:
        """What one release owes. Read from the fields, so it cannot drift from them."""
        return events.DiscreteGaussian(self.sigma, self.sensitivity, self.dimension)

    @property
    def error(self) -> float:
        """The expected absolute error of one entry."""
        return error_laws.gaussian_error(self.sigma)

    @property
    def variance(self) -> float:
        """The variance, and mean squared error, of one entry."""
        return error_laws.gaussian_variance(self.sigma)

    def interval(self, confidence: Number) -> int:
        """A half-width that holds one entry's error with probability of at least ``confidence``.

        The least one for sigma up to 200, and at most one step more above.
        """
        return error_laws.half_width(lambda width: error_laws.gaussian_tail(self.sigma, width), confidence)

    def check(self, value: object) -> None:
        """Refuse anything but ``dimension`` 64-bit integers."""
        integers(value, length=self.dimension)

    @overload
    def sample(self, value: int, bits: Bits | None = None) -> int: ...
    @overload
    def sample(self, value: Integers, bits: Bits | None = None) -> IntVector: ...
    def sample(self, value: int | Integers, bits: Bits | None = None) -> int | IntVector:
        """Return ``value`` plus fresh noise: a number for a number, a vector for a vector."""
        vector, single = integers(value, length=self.dimension)
        noisy = add(vector, discrete_gaussian(self.sigma, len(vector), bits))
        return int(noisy[0]) if single else noisy


def _distance(sensitivity: object) -> Number:
    """An L2 distance on the integer grid. Below one it would say that no neighbours differ: a slip of the grid."""
    bound = positive("sensitivity", sensitivity)
    if bound < 1:
        raise InvalidParameterError(
            f"sensitivity is {float(bound):.6g}, but integer vectors that differ are at least 1 apart.",
            fix="give the sensitivity in steps of the integer grid, for example Grid.bound(low=0, high=1).",
        )
    if bound >= 2**63:
        raise InvalidParameterError("sensitivity does not fit in 64 bits.", fix="use a coarser grid.")
    return bound


def _least_ratio(family: Callable[[float], events.Event], budget: Budget, *, wide: float) -> float:
    if budget.rho is not None:
        return calibrate(family, budget, method="zcdp")
    try:
        return calibrate(family, budget, method="pld")
    except UnsupportedEventError:
        return min(calibrate(family, budget, method="pld", low=wide), calibrate(family, budget, method="rdp"))
