r"""The dominating pair of an event, as a finite list of losses: what sampling amplifies.

Every pair (P, Q) here is symmetric: swapping P and Q mirrors the loss :math:`\ell = \log dP/dQ`, so the half
with positive losses says everything: :math:`Q(\ell = -y) = e^y Q(\ell = y)`. A pair is given by its positive losses and
the logarithms of their probabilities under Q: atoms for discrete laws, Gauss–Legendre nodes for continuous ones.
A node rule of 16 points is used on panels so short that the integrands of this accountant, analytic in a strip of
half-width :math:`\pi\sigma^2` around the line, are resolved to far better than the pad of 1e-12.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import final

import numpy as np

from defocus.privacy import events
from defocus.privacy.accounting.renyi.curves import Floats
from defocus.privacy.losses import largest_loss, squared_mu
from defocus.privacy.numbers import above

__all__ = ["HalfPair", "half_pair", "merged"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_PANELS = 4000
_ATOMS = 4096
_TAIL = 9.0


@final
@dataclass(frozen=True, slots=True)
class HalfPair:
    """Positive losses and the logarithm of their Q-probabilities; ``largest`` is the supremum of the loss."""

    losses: Floats
    log_q: Floats
    largest: float


@singledispatch
def half_pair(event: events.Event, order: float) -> HalfPair | None:
    """The pair that dominates ``event``, resolved for moments up to ``order``; None where none is known or feasible."""
    del event, order
    return None


@half_pair.register
def _(event: events.Composed, order: float) -> HalfPair | None:
    """Only Gaussians merge: several on one sample are one with the squares of their inverse ratios added."""
    squared = merged(event)
    return None if squared is None else _gaussian(math.sqrt(above(squared)) * (1 + 1e-15), order)


@half_pair.register
def _(event: events.Gaussian, order: float) -> HalfPair | None:
    return _gaussian(above(1 / Fraction(event.ratio)), order)


@half_pair.register
def _(event: events.SampledGaussian, order: float) -> HalfPair | None:
    """The pair for a unit replaced, (1−q)N(0, 1) + qN(±μ, 1), on x > 0; the loss is never steeper than 2μ."""
    mu, rate = above(1 / Fraction(event.ratio)), min(above(event.rate), 1.0)
    reach = (2 * order + 1) * mu + _TAIL
    panels = math.ceil(min(_PANELS + 1.0, reach * max(1.0, mu / 2)))
    if panels > _PANELS:
        return None
    x, weights = _legendre(0.0, reach, panels)
    with np.errstate(divide="ignore"):
        out, inside = np.log(1 - rate), math.log(rate) - mu * mu / 2
    log_q = np.log(weights) - x * x / 2 - math.log(2 * math.pi) / 2 + np.logaddexp(out, inside - mu * x)
    return HalfPair(np.logaddexp(out, inside + mu * x) - np.logaddexp(out, inside - mu * x), log_q, math.inf)


@half_pair.register
def _(event: events.Laplace, order: float) -> HalfPair | None:
    epsilon = above(largest_loss(event))
    panels = math.ceil(min(_PANELS + 1.0, 1 + order * epsilon / 8))
    if panels > _PANELS:
        return None
    x, weights = _legendre(0.5, 1.0, panels)
    losses = np.append((2 * x - 1) * epsilon, epsilon)
    log_q = np.append(np.log(weights * epsilon / 2) - x * epsilon, math.log(0.5) - epsilon)
    return HalfPair(losses, log_q, epsilon)


@half_pair.register
def _(event: events.DiscreteLaplace, order: float) -> HalfPair | None:
    """Atoms (2x − Δ)/b at the integers between the two centres, and all that lies beyond the far one."""
    shift, step = event.sensitivity, above(1 / Fraction(event.scale))
    epsilon = above(largest_loss(event))
    if shift > _ATOMS or math.isinf(epsilon):
        return half_pair(events.Pure(largest_loss(event)), order)
    x = np.arange(shift // 2 + 1, shift, dtype=np.float64)
    losses = np.append((2 * x - shift) * step, epsilon)
    log_q = np.append(math.log(math.tanh(step / 2)) - x * step, -epsilon - math.log1p(math.exp(-step)))
    return HalfPair(losses, log_q, epsilon)


@half_pair.register
def _(event: events.Pure | events.SubsetResponse, order: float) -> HalfPair | None:
    del order
    return _response(above(event.epsilon), 2)


@half_pair.register
def _(event: events.Exponential, order: float) -> HalfPair | None:
    """Bounded range ε is in particular ε-DP; no single pair is worst for it."""
    del order
    return _response(above(event.epsilon), 2)


@half_pair.register
def _(event: events.RandomizedResponse, order: float) -> HalfPair | None:
    del order
    return _response(above(event.epsilon), event.categories)


def merged(event: events.Event) -> Fraction | None:
    """The squared mu of the one Gaussian that a composition of Gaussians is, exactly; None for anything else."""
    parts = events.parts_of(event)
    if not parts or not all(isinstance(part, events.Gaussian) for part, _ in parts):
        return None
    return sum((times * squared_mu(part) for part, times in parts if isinstance(part, events.Gaussian)), Fraction(0))


def _response(epsilon: float, categories: int) -> HalfPair | None:
    if math.isinf(epsilon) or epsilon == 0:
        return None
    return HalfPair(
        np.array([epsilon]), np.array([-epsilon - math.log1p((categories - 1) * math.exp(-epsilon))]), epsilon
    )


def _gaussian(mu: float, order: float) -> HalfPair | None:
    """N(1, σ²) against N(0, σ²) on x > 1/2, up to where the moment of this order has no mass left."""
    sigma = 1 / mu if mu else math.inf
    if not 0 < sigma < math.inf:
        return None
    reach = order + _TAIL * sigma + 1
    panels = math.ceil(min(_PANELS + 1.0, reach / min(sigma, 2 * sigma * sigma)))
    if panels > _PANELS:
        return None
    x, weights = _legendre(0.5, reach, panels)
    log_q = np.log(weights) - (x / sigma) ** 2 / 2 - math.log(sigma) - math.log(2 * math.pi) / 2
    return HalfPair((2 * x - 1) * mu * mu / 2, log_q, math.inf)


def _legendre(low: float, high: float, panels: int) -> tuple[Floats, Floats]:
    edges = np.linspace(low, high, panels + 1)
    half = np.diff(edges) / 2
    x = (edges[:-1] + half)[:, None] + half[:, None] * _NODES
    return x.ravel(), (half[:, None] * _WEIGHTS).ravel()
