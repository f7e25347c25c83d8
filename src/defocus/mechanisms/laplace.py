"""The Laplace mechanism: discrete Laplace noise on integers."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Self, final, overload

from defocus.errors import CannotCalibrateError, Number, count, positive
from defocus.mechanisms import error_laws
from defocus.mechanisms.mechanism import (
    Integers,
    IntVector,
    add,
    checked_budget,
    integers,
    noise_scale,
    not_by_epsilon,
    scale_for,
)
from defocus.noise import Bits, discrete_laplace
from defocus.privacy import events
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate

__all__ = ["Geometric", "Laplace"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    r"""Add independent discrete Laplace noise, :math:`P(x) \propto e^{-|x|/b}`, to every entry.

    Guarantee:
        If neighbouring inputs are integer vectors that differ by at most ``sensitivity`` in L1
        norm, the output is :math:`\Delta_1/b`-DP: shifting the noise of entry i by :math:`k_i`
        changes its log-probability by at most :math:`|k_i|/b`.
    Assumes:
        ``sensitivity`` holds under the unit and adjacency of the ledger that is charged;
        the length of the vector is public; ``bits`` is uniform.

    Error:
        Unbiased. The absolute error of an entry is :math:`1/\sinh(1/b)` on average, just
        below the :math:`b` of continuous noise. A noisy value that does not fit in 64 bits is cut to fit.
    Reference:
        Dwork, McSherry, Nissim, Smith (2006), Calibrating noise to sensitivity, Theorem 1;
        Ghosh, Roughgarden, Sundararajan (2012) for the discrete form.

    >>> Laplace(scale=2).event
    DiscreteLaplace(scale=2, sensitivity=1)
    >>> count_of_cases = Laplace.calibrated(epsilon=0.8)
    >>> count_of_cases.scale, round(count_of_cases.error, 3), count_of_cases.interval(0.95)
    (1.25, 1.126, 4)
    """

    scale: Number
    sensitivity: int = 1

    def __new__(cls, **named: object) -> Self:
        """Before the fields are set: an epsilon given by name is told where it belongs."""
        not_by_epsilon("Laplace", named, usual="epsilon=0.1")
        return object.__new__(cls)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", noise_scale("scale", self.scale))
        object.__setattr__(self, "sensitivity", count("sensitivity", self.sensitivity))

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
        sensitivity: int = 1,
    ) -> Self:
        """The least noise for ``epsilon`` or ``rho``, or for a whole budget.

        Laplace noise needs no delta: with (epsilon, delta) it is calibrated to epsilon alone.

        >>> Laplace.calibrated(epsilon=Fraction(1, 10), sensitivity=3).scale
        Fraction(30, 1)
        """
        bound = count("sensitivity", sensitivity)
        price = checked_budget(budget, epsilon=epsilon, delta=delta, rho=rho, mu=mu)
        if price.rho is not None:
            ratio = calibrate(lambda x: events.DiscreteLaplace(x * bound, bound), price, method="zcdp")
            return cls(scale=ratio * bound, sensitivity=bound)
        if price.epsilon is None:
            raise CannotCalibrateError(
                "Laplace noise has no exact Gaussian-DP guarantee.", fix="give the price as epsilon or rho."
            )
        return cls(scale=scale_for(bound, price.epsilon), sensitivity=bound)

    @property
    def epsilon(self) -> Fraction:
        """The pure loss of one release, exactly: sensitivity / scale."""
        return self.sensitivity / Fraction(self.scale)

    @property
    def event(self) -> events.DiscreteLaplace:
        """What one release owes. Read from the fields, so it cannot drift from them."""
        return events.DiscreteLaplace(self.scale, self.sensitivity)

    @property
    def error(self) -> float:
        """The expected absolute error of one entry."""
        return error_laws.laplace_error(self.scale)

    @property
    def variance(self) -> float:
        """The variance, and mean squared error, of one entry."""
        return error_laws.laplace_variance(self.scale)

    def interval(self, confidence: Number) -> int:
        """The least half-width that holds one entry's error with probability of at least ``confidence``."""
        return error_laws.half_width(lambda width: error_laws.laplace_tail(self.scale, width), confidence)

    def check(self, value: object) -> None:
        """Refuse anything but 64-bit integers."""
        integers(value)

    @overload
    def sample(self, value: int, bits: Bits | None = None) -> int: ...
    @overload
    def sample(self, value: Integers, bits: Bits | None = None) -> IntVector: ...
    def sample(self, value: int | Integers, bits: Bits | None = None) -> int | IntVector:
        """Return ``value`` plus fresh noise: a number for a number, a vector for a vector."""
        vector, single = integers(value)
        noisy = add(vector, discrete_laplace(self.scale, len(vector), bits))
        return int(noisy[0]) if single else noisy


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Geometric:
    r"""Add two-sided geometric noise, :math:`P(x) = \frac{1-\alpha}{1+\alpha}\alpha^{|x|}`, to every entry.

    Guarantee:
        With :math:`\alpha = e^{-\varepsilon/\Delta}` and L1 sensitivity :math:`\Delta` on the
        integers, the output is :math:`\varepsilon`-DP. The noise is :class:`Laplace` of scale
        :math:`\Delta/\varepsilon`, which is rounded up where ``epsilon`` is a float.
    Assumes:
        ``sensitivity`` holds under the ledger's unit and adjacency; the length of the vector is public.

    Error:
        Unbiased. For one count no :math:`\varepsilon`-DP mechanism is better for any user with any
        prior and any loss that grows with the error.
    Reference:
        Ghosh, Roughgarden, Sundararajan (2012), Universally utility-maximizing privacy mechanisms.

    >>> Geometric(epsilon=0.8).event
    DiscreteLaplace(scale=1.25, sensitivity=1)
    """

    epsilon: Number
    sensitivity: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "sensitivity", count("sensitivity", self.sensitivity))
        _ = self.laplace

    @property
    def laplace(self) -> Laplace:
        """The same noise described by its scale."""
        return Laplace(scale=scale_for(self.sensitivity, self.epsilon), sensitivity=self.sensitivity)

    @property
    def event(self) -> events.DiscreteLaplace:
        """What one release owes."""
        return self.laplace.event

    @property
    def error(self) -> float:
        """The expected absolute error of one entry."""
        return self.laplace.error

    @property
    def variance(self) -> float:
        """The variance, and mean squared error, of one entry."""
        return self.laplace.variance

    def interval(self, confidence: Number) -> int:
        """The least half-width that holds one entry's error with probability of at least ``confidence``."""
        return self.laplace.interval(confidence)

    def check(self, value: object) -> None:
        """Refuse anything but 64-bit integers."""
        self.laplace.check(value)

    @overload
    def sample(self, value: int, bits: Bits | None = None) -> int: ...
    @overload
    def sample(self, value: Integers, bits: Bits | None = None) -> IntVector: ...
    def sample(self, value: int | Integers, bits: Bits | None = None) -> int | IntVector:
        """Return ``value`` plus fresh noise: a number for a number, a vector for a vector."""
        return self.laplace.sample(value, bits)
