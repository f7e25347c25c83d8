"""The two-sided geometric mechanism: discrete Laplace noise by its classical name and parameter."""

from dataclasses import dataclass
from typing import final, overload

from defocus.errors import Number, count, positive
from defocus.mechanisms.laplace import Laplace
from defocus.mechanisms.parameters import scale_for
from defocus.mechanisms.values import Integers, IntVector
from defocus.noise import Bits
from defocus.privacy import events

__all__ = ["Geometric"]


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
