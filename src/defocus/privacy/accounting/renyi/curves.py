r"""Rényi divergences of events, order by order.

Small differences of large numbers, computed without the difference.

The Rényi divergence of each event at given orders, and its composition: divergences add.

Every formula starts from :math:`M - 1`, the moment :math:`M = E_Q[(P/Q)^\alpha]` less one, written as a sum of
positive terms, so that the divergence :math:`\log(M)/(\alpha-1)` keeps its digits for losses as small as
floats can express. Results carry a relative pad of 1e-12 upwards.

Reference:
    Mironov (2017), Rényi differential privacy, Propositions 1 and 6.

The Rényi divergence of shuffled reports, from the polygon that lies above their profile.

With :math:`\delta(l)` the profile of either direction, the moment of order :math:`\alpha` is

.. math:: M = 1 + \alpha(\alpha-1)\int_0^\infty \bigl(e^{(\alpha-1)l} + e^{-\alpha l}\bigr)\,\delta(l)\,dl.

Between corners, h apart, the polygon falls linearly in :math:`e^l` by some d. It exceeds the chord in l by no more
than an eighth of :math:`h^2` times its second derivative, that is :math:`dhe^h/8`. Both ends are raised by so much, and
the integrals of chords against exponentials are positive sums.

Reference:
    Sason, Verdú (2016), f-divergence inequalities, Theorem 11: divergences as integrals of hockey-stick ones.
"""

import math
from fractions import Fraction
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from defocus.errors import Number, UnsupportedEventError
from defocus.privacy import events
from defocus.privacy.accounting.shuffling import amplification, replaced_only
from defocus.privacy.losses import largest_loss, squared_mu
from defocus.privacy.numbers import PAD, above
from defocus.privacy.units import Adjacency

__all__ = ["Floats", "concentrated", "curve", "divergence", "log_bernoulli", "log_expm1", "log_sum", "pure"]


Floats = NDArray[np.float64]

_SMALL, _TERMS, _LARGE = 0.05, 14, 30.0


def log_expm1(x: Floats) -> Floats:
    """log(e^x − 1) for x > 0, whatever its size."""
    with np.errstate(divide="ignore"):
        return x + np.log(-np.expm1(-x))


def log_sum(x: Floats) -> Floats:
    """The logarithm of the sum of e^x along the last axis; minus infinity for an empty or vanishing sum."""
    if x.shape[-1] == 0:
        return np.full(x.shape[:-1], -np.inf)
    largest = np.max(x, axis=-1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        total: Floats = largest[..., 0] + np.log(np.sum(np.exp(x - largest), axis=-1))
    return total


def log_bernoulli(beta: Floats, base: Floats) -> Floats:
    r"""The logarithm of :math:`(1+u)^\beta - 1 - \beta u`, which Bernoulli's inequality makes non-negative.

    For beta above 1 or below 0, with ``base`` = log(1 + u); both are broadcast. With :math:`v = (\beta-1)\log(1+u)`
    and :math:`s = u/(1+u)` it is :math:`(1+u)\,(e^v - 1 - (\beta-1)s)`: the Taylor series where everything is
    small, this form where it is not (its sibling :math:`e^{\beta\log(1+u)} - 1 - \beta u` for beta near zero), and
    the same divided by :math:`e^v` where that would overflow.
    """
    beta, base = np.broadcast_arrays(beta, base)
    power = beta - 1
    v = power * base
    with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
        u, s = np.expm1(base), -np.expm1(-base)
        near_one = np.expm1(np.minimum(v, _LARGE)) - power * s
        near_zero = np.expm1(np.minimum(beta * base, _LARGE)) * (1 - s) - beta * s
        plain = base + np.log(np.where(np.abs(beta) < 0.5, near_zero, near_one))
        steep = base + v + np.log1p(-np.exp(-v) * (1 + power * s))
        series = np.ones_like(v)
        for k in range(_TERMS, 1, -1):
            series = 1 + (beta - k) / (k + 1) * u * series
        small = np.log(np.abs(beta * power) / 2) + 2 * np.log(np.abs(u)) + np.log(series)
        tiny = np.abs(u) * (2 + np.abs(beta)) < _SMALL
    return np.where(tiny, small, np.where(v > _LARGE, steep, plain))


_ROUNDING = 2.0**-48


@singledispatch
def curve(event: events.Event, orders: Floats, adjacency: Adjacency) -> Floats:
    """An upper bound on the Rényi divergence of ``event`` at each of ``orders``, all above 1 and finite."""
    del orders, adjacency
    raise UnsupportedEventError(
        event, accountant="rdp", why="its Rényi divergence is not known", fix='use account(event, method="pld").'
    )


@curve.register
def _(event: events.Composed, orders: Floats, adjacency: Adjacency) -> Floats:
    """Divergences add: the only composition rule of this accountant."""
    total = np.zeros_like(orders)
    for part, times in event.parts:
        each = curve(part, orders, adjacency)
        total += np.multiply(above(times), each, out=np.zeros_like(orders), where=each != 0)
    return total * PAD


@curve.register
def _(event: events.Approximate, orders: Floats, adjacency: Adjacency) -> Floats:
    if event.delta == 0:
        return pure(event.epsilon, orders)
    del adjacency
    raise UnsupportedEventError(
        event,
        accountant="rdp",
        why="an (epsilon, delta) guarantee allows an infinite divergence",
        fix='use account(event, method="pld") or method="basic".',
    )


@curve.register
def _(event: events.Gaussian | events.DiscreteGaussian, orders: Floats, adjacency: Adjacency) -> Floats:
    """The discrete law has at most that of the continuous one, in any dimension.

    Reference: Canonne, Kamath, Steinke (2020), Theorem 14.
    """
    del adjacency
    return concentrated(squared_mu(event) / 2, orders)


@curve.register
def _(event: events.Concentrated, orders: Floats, adjacency: Adjacency) -> Floats:
    del adjacency
    return concentrated(event.rho, orders)


@curve.register
def _(event: events.RandomizedResponse, orders: Floats, adjacency: Adjacency) -> Floats:
    del adjacency
    return pure(event.epsilon, orders, categories=event.categories)


@curve.register
def _(event: events.Pure | events.SubsetResponse, orders: Floats, adjacency: Adjacency) -> Floats:
    """No report of a subset response tells two values apart by more than epsilon; which share does is not used."""
    del adjacency
    return pure(event.epsilon, orders)


@curve.register
def _(event: events.Laplace, orders: Floats, adjacency: Adjacency) -> Floats:
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
def _(event: events.DiscreteLaplace, orders: Floats, adjacency: Adjacency) -> Floats:
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
def _(event: events.Exponential, orders: Floats, adjacency: Adjacency) -> Floats:
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


@curve.register
def _(event: events.Shuffled, orders: Floats, adjacency: Adjacency) -> Floats:
    replaced_only(event, adjacency)
    found = amplification(event)
    if found is None:
        return np.zeros_like(orders)
    low, high = found.losses[:-1], found.losses[1:]
    width = high - low
    fall = found.log_deltas[:-1] + np.log(width / 8) + width
    start, end = (np.logaddexp(corner, fall) for corner in (found.log_deltas[:-1], found.log_deltas[1:]))
    order = orders[:, None]
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        rising, falling = (order - 1) * width, order * width
        up = (order - 1) * high + np.logaddexp(start + _log_late(rising), end + _log_early(rising))
        down = -order * low + np.logaddexp(start + _log_early(falling), end + _log_late(falling))
        excess = log_sum(np.logaddexp(up, down) + np.log(width)) + np.log(orders) + np.log(orders - 1) + 1e-10
    return divergence(np.where(np.isnan(excess), np.inf, excess), orders, ceiling=found.epsilon)


def _log_early(x: Floats) -> Floats:
    """The logarithm of the integral of (1−s)e^(−xs) over [0, 1]: (x − 1 + e^−x)/x²."""
    series = 0.5 - x / 6 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6)))
    return np.asarray(np.log(np.where(x < 0.01, series, (x + np.expm1(-x)) / np.maximum(x * x, 1e-300))))


def _log_late(x: Floats) -> Floats:
    """The logarithm of the integral of s·e^(−xs) over [0, 1]: (1 − (1+x)e^−x)/x²."""
    series = 0.5 - x / 3 * (1 - 3 * x / 8 * (1 - 4 * x / 15 * (1 - 5 * x / 24)))
    return np.asarray(np.log(np.where(x < 0.01, series, (-np.expm1(-x) - x * np.exp(-x)) / np.maximum(x * x, 1e-300))))
