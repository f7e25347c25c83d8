r"""Elementary privacy filters: one additive number each, proven for releases chosen adaptively.

A filter is *fully adaptive* when the privacy parameters of each release, not only its query, may depend on all earlier
answers. All four filters here rest on the same backward induction. Let :math:`f_b` be the guarantee bought with an
amount b. Conditional on the answers so far, with b left, a release costs c ≤ b, fixed before its answer is drawn; by
induction, whatever the answer, all that follows is within :math:`f_{b-c}`; so this release and all that follows are
within the composition of :math:`f_c` and :math:`f_{b-c}`, and in each of these families that is :math:`f_b`.

========  =====================================  ======================================================
filter    adds up                                reference
========  =====================================  ======================================================
basic     epsilon of pure releases               Rogers, Roth, Ullman, Vadhan (2016); Whitehouse,
                                                 Ramdas, Rogers, Wu (2023)
Rényi     divergence at one order, fixed first   Feldman, Zrnic (2021); Lécuyer (2021)
zCDP      ρ                                      Feldman, Zrnic (2021); Whitehouse et al. (2023)
Gaussian  squared μ                              Koskela, Tobaben, Honkela (2023); Smith, Thakurta (2022)
========  =====================================  ======================================================
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, singledispatch
from typing import ClassVar, NamedTuple, Protocol, final

import numpy as np
from scipy.special import erfinv, ndtri

from defocus.errors import UnsupportedEventError
from defocus.privacy.accounting.basic import pure_epsilon
from defocus.privacy.accounting.pld.lowering import smoothed
from defocus.privacy.accounting.renyi import curve
from defocus.privacy.accounting.shuffling import replaced_only
from defocus.privacy.accounting.zcdp import rho_of
from defocus.privacy.events import DiscreteGaussian, Event, Exponential, Gaussian
from defocus.privacy.losses import squared_mu
from defocus.privacy.numbers import PAD, above
from defocus.privacy.units import Adjacency

__all__ = ["ConcentratedSum", "Elementary", "GaussianSum", "PureSum", "RenyiSum", "price"]


class Elementary(Hashable, Protocol):
    """One additive number and how much of it the budget allows."""

    @property
    def limit(self) -> float:
        """The most a run may add up to."""

    @property
    def measure(self) -> str:
        """What is added up, in words."""

    def cost(self, event: Event, adjacency: Adjacency) -> float:
        """What one release adds, rounded up; infinite where it cannot be expressed."""


@final
@dataclass(frozen=True, slots=True)
class PureSum:
    """The sum of pure epsilons."""

    limit: float
    measure: ClassVar[str] = "epsilon"

    def cost(self, event: Event, adjacency: Adjacency) -> float:
        """What one release adds."""
        return pure_epsilon(event, adjacency)


@final
@dataclass(frozen=True, slots=True)
class RenyiSum:
    """The sum of Rényi divergences at one order."""

    limit: float
    order: float

    @property
    def measure(self) -> str:
        """What is added up, in words."""
        return f"Rényi divergence of order {self.order:.6g}"

    def cost(self, event: Event, adjacency: Adjacency) -> float:
        """What one release adds."""
        with np.errstate(all="ignore"):
            found = float(curve(event, np.array([self.order]), adjacency)[0])
        return math.inf if math.isnan(found) else found


@final
@dataclass(frozen=True, slots=True)
class ConcentratedSum:
    """The sum of ρ."""

    limit: float
    measure: ClassVar[str] = "rho"

    def cost(self, event: Event, adjacency: Adjacency) -> float:
        """What one release adds."""
        replaced_only(event, adjacency)
        return rho_of(event)


@final
@dataclass(frozen=True, slots=True)
class GaussianSum:
    r"""The sum of squared μ, for releases whose trade-off curve lies above that of a Gaussian.

    Gaussian noise counts exactly. A pure release of :math:`\varepsilon` is covered by
    :math:`\mu = -2\Phi^{-1}(1/(1+e^\varepsilon))`: its trade-off curve has one corner, where the Gaussian's passes, and
    the Gaussian's is convex. One of bounded range :math:`\varepsilon` has corners whose log-odds differ by exactly
    :math:`\varepsilon`; the probit of the logistic function is steepest at zero, so the symmetric corner is the worst
    and :math:`\mu` is that of a pure release of half of it.

    Discrete Gaussian noise is a continuous one, rounded, up to a factor :math:`\kappa` in each density
    (:func:`~defocus.privacy.accounting.pld.lowering.smoothed`). Factors multiply along a run, so if the logarithms of
    its :math:`\kappa^2` add up to at most s, the run is within :math:`(\varepsilon + s, e^{s/2}\delta)` of the
    continuous one. They are charged as squared μ at ``blur_price`` = limit/s, so that a sum within the limit keeps
    both within theirs.
    """

    limit: float
    blur_price: float = math.inf
    measure: ClassVar[str] = "squared mu"

    def cost(self, event: Event, adjacency: Adjacency) -> float:
        """What one release adds."""
        squared, blur = _gaussian(event, adjacency)
        return (squared + (blur * self.blur_price if blur else 0.0)) * PAD


class _Gaussian(NamedTuple):
    squared: float
    blur: float = 0.0


@singledispatch
def _gaussian(event: Event, adjacency: Adjacency) -> _Gaussian:
    return _pure(pure_epsilon(event, adjacency))


@_gaussian.register
def _(event: Gaussian, adjacency: Adjacency) -> _Gaussian:
    del adjacency
    return _Gaussian(above(squared_mu(event)))


@_gaussian.register
def _(event: Exponential, adjacency: Adjacency) -> _Gaussian:
    del adjacency
    return _pure(above(Fraction(event.epsilon) / 2))


@_gaussian.register
def _(event: DiscreteGaussian, adjacency: Adjacency) -> _Gaussian:
    del adjacency
    around = smoothed(event)
    return _Gaussian(around.mu * around.mu * PAD, around.blur)


def _pure(epsilon: float) -> _Gaussian:
    if epsilon < 1:
        mu = 2 * math.sqrt(2) * float(erfinv(math.tanh(epsilon / 2)))
    elif epsilon < 700:
        mu = -2 * float(ndtri(1 / (1 + math.exp(epsilon))))
    else:
        mu = math.inf
    return _Gaussian(mu * mu * PAD)


@lru_cache(maxsize=65536)
def price(elementary: Elementary, event: Event, adjacency: Adjacency) -> float:
    """What one release adds to an elementary filter; infinite where it cannot be expressed."""
    try:
        return elementary.cost(event, adjacency)
    except UnsupportedEventError:
        return math.inf
