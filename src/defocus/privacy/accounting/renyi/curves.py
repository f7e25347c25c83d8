r"""The Rényi divergence of each event at given orders, and its composition: divergences add.

Every formula starts from :math:`M - 1`, the moment :math:`M = E_Q[(P/Q)^\alpha]` less one, written as a sum of
positive terms, so that the divergence :math:`\log(M)/(\alpha-1)` keeps its digits for losses as small as
floats can express. Results carry a relative pad of 1e-12 upwards.

Reference:
    Mironov (2017), Rényi differential privacy, Propositions 1 and 6.
"""

import math
from fractions import Fraction
from functools import singledispatch

import numpy as np

from defocus.errors import Number, UnsupportedEventError
from defocus.privacy.accounting.renyi.special import Floats, log_expm1
from defocus.privacy.events import (
    Approximate,
    Composed,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    SubsetResponse,
)
from defocus.privacy.magnitudes import largest_loss, squared_mu
from defocus.privacy.rounding import PAD, above
from defocus.privacy.units import Adjacency

__all__ = ["Floats", "concentrated", "curve", "divergence", "pure"]

_ROUNDING = 2.0**-48


@singledispatch
def curve(event: Event, orders: Floats, adjacency: Adjacency) -> Floats:
    """An upper bound on the Rényi divergence of ``event`` at each of ``orders``, all above 1 and finite."""
    del orders, adjacency
    raise UnsupportedEventError(
        event, accountant="rdp", why="its Rényi divergence is not known", fix='use account(event, by="pld").'
    )


@curve.register
def _(event: Composed, orders: Floats, adjacency: Adjacency) -> Floats:
    """Divergences add: the only composition rule of this accountant."""
    total = np.zeros_like(orders)
    for part, times in event.parts:
        each = curve(part, orders, adjacency)
        total += np.multiply(above(times), each, out=np.zeros_like(orders), where=each != 0)
    return total * PAD


@curve.register
def _(event: Approximate, orders: Floats, adjacency: Adjacency) -> Floats:
    if event.delta == 0:
        return pure(event.epsilon, orders)
    del adjacency
    raise UnsupportedEventError(
        event,
        accountant="rdp",
        why="an (epsilon, delta) guarantee allows an infinite divergence",
        fix='use account(event, by="pld") or by="basic".',
    )


@curve.register
def _(event: Gaussian, orders: Floats, adjacency: Adjacency) -> Floats:
    del adjacency
    return concentrated(squared_mu(event) / 2, orders)


@curve.register
def _(event: DiscreteGaussian, orders: Floats, adjacency: Adjacency) -> Floats:
    """At most that of the continuous Gaussian, in any dimension: Canonne, Kamath, Steinke (2020), Theorem 14."""
    del adjacency
    return concentrated(squared_mu(event) / 2, orders)


@curve.register
def _(event: Concentrated, orders: Floats, adjacency: Adjacency) -> Floats:
    del adjacency
    return concentrated(event.rho, orders)


@curve.register
def _(event: Pure, orders: Floats, adjacency: Adjacency) -> Floats:
    del adjacency
    return pure(event.epsilon, orders)


@curve.register
def _(event: RandomizedResponse, orders: Floats, adjacency: Adjacency) -> Floats:
    del adjacency
    return pure(event.epsilon, orders, categories=event.categories)


@curve.register
def _(event: SubsetResponse, orders: Floats, adjacency: Adjacency) -> Floats:
    """No report tells two values apart by more than epsilon; which share of them does is not used."""
    del adjacency
    return pure(event.epsilon, orders)


@curve.register
def _(event: Laplace, orders: Floats, adjacency: Adjacency) -> Floats:
    r"""Exact, with :math:`g(x) = e^x-1-x`.

    .. math:: (2\alpha-1)(M-1) = \alpha g((\alpha-1)\varepsilon) + (\alpha-1) g(-\alpha\varepsilon)
    """
    del adjacency
    epsilon = above(largest_loss(event))
    if math.isinf(epsilon):
        return np.full_like(orders, np.inf)
    with np.errstate(divide="ignore"):
        up = np.log(orders) + _log_rest((orders - 1) * epsilon)
        down = np.log(orders - 1) + _log_rest(-orders * epsilon)
    return divergence(np.logaddexp(up, down) - np.log(2 * orders - 1), orders, ceiling=epsilon)


@curve.register
def _(event: DiscreteLaplace, orders: Floats, adjacency: Adjacency) -> Floats:
    r"""Exact for losses that matter; the pure bound where all the loss is at its ends or is below 1e-3.

    With :math:`r = e^{-1/b}`, the moment is :math:`\tanh(1/2b)` times
    :math:`(r^{\alpha\Delta}+r^{(1-\alpha)\Delta})/(1-r) + \sum_{x=1}^{\Delta-1} r^{\alpha(\Delta-x)+(1-\alpha)x}`.
    """
    del adjacency
    shift, step = event.sensitivity, above(1 / Fraction(event.scale))
    epsilon = above(largest_loss(event))
    if shift == 1 or epsilon < 1e-3 or math.isinf(epsilon):
        return pure(epsilon, orders) if math.isfinite(epsilon) else np.full_like(orders, np.inf)
    # Everything relative to e^((α-1)ε), the largest term: the inner sum is geometric with ratio e^-((2α-1)/b).
    ratio = np.exp(-(2 * orders - 1) * step)
    inner = ratio * -np.expm1(-(2 * orders - 1) * step * (shift - 1)) / -np.expm1(-(2 * orders - 1) * step)
    ends = (1 + np.exp(-(2 * orders - 1) * epsilon)) / -math.expm1(-step)
    log_moment = (orders - 1) * epsilon + np.log(math.tanh(step / 2) * (ends + inner))
    log_moment += _ROUNDING * (1 + orders * epsilon)
    return np.minimum(log_moment / (orders - 1), pure(epsilon, orders)) * PAD


@curve.register
def _(event: Exponential, orders: Floats, adjacency: Adjacency) -> Floats:
    r"""The worst pair with losses in [t−ε, t] has two outcomes, and t is chosen by calculus.

    With :math:`c = e^{-(\alpha-1)\varepsilon}` and :math:`x = e^t`, the moment is
    :math:`x^{\alpha-1}[e^\varepsilon - c - x(1-c)]/(e^\varepsilon-1)`, largest at
    :math:`x = (\alpha-1)(e^\varepsilon-c)/(\alpha(1-c))`. Never above :math:`\alpha\varepsilon^2/8`.

    Reference: Dong, Durfee, Rogers (2020); Cesar, Rogers (2021), for ε²/8.
    """
    del adjacency
    quadratic = concentrated(Fraction(event.epsilon) ** 2 / 8, orders)
    epsilon = above(event.epsilon)
    if epsilon == 0 or math.isinf(epsilon):
        return quadratic
    c = np.exp(-(orders - 1) * epsilon)
    spread = epsilon + np.log(-np.expm1(-orders * epsilon)) - np.log1p(-c)
    log_x = np.log1p(-1 / orders) + spread
    log_moment = (
        (orders - 1) * log_x + spread + np.log1p(-c) - np.log(orders) - epsilon - math.log(-math.expm1(-epsilon))
    )
    log_moment += 8 * _ROUNDING * (1 + orders * (1 + epsilon + np.log(orders)))
    return np.minimum(np.minimum(quadratic, pure(event.epsilon, orders)), log_moment / (orders - 1) * PAD)


def concentrated(rho: Number, orders: Floats) -> Floats:
    """The divergence αρ of zero-concentrated privacy, and of Gaussian noise exactly."""
    return above(rho) * orders * PAD


def pure(epsilon: Number, orders: Floats, *, categories: int = 2) -> Floats:
    r"""Randomised response among k ``categories``; with two of them it is the worst ε-DP mechanism.

    .. math:: (e^\varepsilon+k-1)(M-1) = (e^{\alpha\varepsilon}-1)(1-e^{-(\alpha-1)\varepsilon})

    Reference: Kairouz, Oh, Viswanath (2015), for its dominance over every ε-DP mechanism.
    """
    e = above(epsilon)
    if e == 0 or math.isinf(e):
        return np.full_like(orders, e)
    norm = e + math.log1p(math.exp(-e) * (above(categories) - 1)) if e < 700 else e
    with np.errstate(divide="ignore"):
        excess = log_expm1(orders * e) + np.log(-np.expm1(-(orders - 1) * e)) - norm
    return divergence(excess, orders, ceiling=e)


def divergence(log_excess: Floats, orders: Floats, *, ceiling: float = math.inf) -> Floats:
    """From the logarithm of M − 1 to the divergence, rounded up; never above the largest loss."""
    return np.minimum(np.logaddexp(0.0, log_excess) / (orders - 1), ceiling) * PAD


def _log_rest(x: Floats) -> Floats:
    """log(e^x − 1 − x)."""
    series = np.ones_like(x)
    for k in range(14, 2, -1):
        series = 1 + x / k * series
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        small = 2 * np.log(np.abs(x)) - math.log(2) + np.log(series)
        plain = np.log(np.expm1(np.minimum(x, 30.0)) - x)
        steep = x + np.log1p(-(1 + x) * np.exp(-x))
    return np.where(np.abs(x) < 0.1, small, np.where(x > 30, steep, plain))
