r"""Amplification by sampling, with and without replacement of neighbours, from the losses of the inner event.

Let u be the law of the answer when the unit is not in the sample, :math:`p_1` (and :math:`q_1`) when it is, q the
sampling rate, (P, Q) a symmetric pair that dominates each two of them, and :math:`L = 1 + q(P/Q - 1)`.

*Unit added or removed* (Poisson), or *a fixed batch of a data set with one unit more or less*: the laws are
:math:`(1-q)u + q p_1` and u, dominated by the pair :math:`((1-q)Q + qP,\ Q)` in one direction and its reverse
in the other; the larger moment of :math:`E_Q[L^\alpha]` and :math:`E_Q[L^{1-\alpha}]` counts.

*Unit replaced*: the laws are :math:`(1-q)u + q p_1` and :math:`(1-q)u + q q_1`. By advanced joint convexity the
profile at :math:`\varepsilon' = \log(1+q(e^\varepsilon-1)) \ge 0` is at most q times that of (P, Q) at
:math:`\varepsilon`, in both directions. A moment is an integral of the profile,

.. math:: M - 1 = \alpha(\alpha-1)\int_1^\infty (s^{\alpha-2} H_s(p\|q) + s^{-\alpha-1} H_s(q\|p))\,ds,

so :math:`M - 1 \le E_Q[(L^\alpha + L^{1-\alpha} - 1 - L)\,1_{L>1}]`, at every real order. This is never above the bound
of Wang, Balle and Kasiviswanathan, whose triples (u, p1, q1) it also covers. For the sampled Gaussian mechanism the
worst pair itself is known and symmetric (:class:`.ReplacedGaussian`), and L is its likelihood ratio.

Reference:
    Mironov, Talwar, Zhang (2019), Rényi differential privacy of the sampled Gaussian mechanism (integer orders, and
    Theorem 5: the first direction is the larger one for symmetric pairs); Balle, Barthe, Gaboardi (2018), Theorem 2
    (advanced joint convexity); Zhu, Wang (2019); Wang, Balle, Kasiviswanathan (2019), Theorem 9.

Private selection: the best of a random number K of runs, at the price of little more than one.

Guarantee:
    *Truncated negative binomial K.* If one run has divergence :math:`D_\lambda`, then for every
    :math:`\hat\lambda \ge 1` the best run has at most
    :math:`D_\lambda + (1+\eta)[(1-1/\hat\lambda)D_{\hat\lambda} + \log(1/\gamma)/\hat\lambda]
    + \log E[K]/(\lambda-1)`; the best :math:`\hat\lambda` found is used.

    *Poisson K of mean m.* If one run is :math:`(\hat\varepsilon, \hat\delta)`-DP with
    :math:`e^{\hat\varepsilon} \le \lambda/(\lambda-1)`, the moment at order λ is at most
    :math:`e^{-m} + m\,e^{(\lambda-1)(D_\lambda + m\hat\delta)}`: with t, t' the upper tails of one run's score on
    the two data sets, the best of K has the density of one run times :math:`m e^{-mt}`, and
    :math:`-\lambda t + (\lambda-1)t' \le (\lambda-1)\hat\delta` by the assumption. The first term is K = 0, when
    nothing is released.
Assumes:
    Scores are totally ordered (ties broken at random or by a fixed order), K is secret and drawn independently.
Reference:
    Papernot, Steinke (2022), Hyperparameter tuning with Rényi differential privacy, Theorems 2 and 6;
    Liu, Talwar (2019), Private selection from private candidates.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy.special import gammaln

from defocus.errors import Number, UnsupportedEventError
from defocus.privacy import events
from defocus.privacy.accounting.renyi.conversion import delta_at
from defocus.privacy.accounting.renyi.curves import Floats, curve, divergence, log_bernoulli, log_expm1, log_sum
from defocus.privacy.accounting.renyi.pairs import HalfPair, half_pair, merged
from defocus.privacy.losses import squared_mu
from defocus.privacy.numbers import PAD, above, below
from defocus.privacy.selection import expected_runs
from defocus.privacy.units import Adjacency

__all__ = ["amplified", "overhead"]


_RANDOM = (
    *(events.Sampled, events.SampledBatch, events.SampledGaussian),
    *(events.Selected, events.SelectedPoisson, events.AllocatedGaussian, events.ShuffledGaussian),
)
_LARGEST_SUM = 4096
_ROUNDING = 2.0**-50


@curve.register
def _(event: events.Sampled, orders: Floats, adjacency: Adjacency) -> Floats:
    if isinstance(
        event.event, events.Sampled
    ):  # A Poisson sample of a Poisson sample is one, at the product of the rates.
        rate = Fraction(event.rate) * Fraction(event.event.rate)
        return curve(events.Sampled(event.event.event, rate), orders, adjacency)
    return amplified(event.event, event.rate, orders, adjacency)


@curve.register
def _(event: events.SampledBatch, orders: Floats, adjacency: Adjacency) -> Floats:
    return amplified(event.event, Fraction(event.size, event.population), orders, adjacency)


@curve.register
def _(event: events.SampledGaussian, orders: Floats, adjacency: Adjacency) -> Floats:
    if adjacency is Adjacency.ADD_REMOVE:
        return amplified(events.Gaussian(event.ratio), event.rate, orders, adjacency)
    whole = amplified(events.Gaussian(Fraction(event.ratio) / 2), event.rate, orders, adjacency)
    pairs = [(half_pair(event, order), order) for order in orders.tolist()]
    found = [math.inf if pair is None else _from_pair(pair, 1.0, order, adjacency) for pair, order in pairs]
    return np.minimum(whole, found)


@curve.register
def _(event: events.AllocatedGaussian, orders: Floats, adjacency: Adjacency) -> Floats:
    """Whatever the step, the laws are those of one Gaussian release, and mixtures are not further apart."""
    ratio = Fraction(event.ratio)
    return curve(events.Gaussian(ratio / 2 if adjacency is Adjacency.REPLACE else ratio), orders, adjacency)


@curve.register
def _(event: events.ShuffledGaussian, orders: Floats, adjacency: Adjacency) -> Floats:
    """For a given place one vector is replaced by another, at most twice the bound away."""
    return curve(events.Gaussian(Fraction(event.ratio) / 2), orders, adjacency)


def amplified(inner: events.Event, rate: Number, orders: Floats, adjacency: Adjacency) -> Floats:
    """The divergence of ``inner`` run on a sample that holds a unit with probability ``rate``."""
    _refuse_nested(inner)
    q = min(above(rate), 1.0)
    # A mixture is never further apart than its parts, so the inner divergence always bounds the result.
    whole = curve(inner, orders, adjacency)
    if q == 1.0:
        return whole
    return np.minimum(whole, [_amplified(inner, q, order, adjacency) for order in orders.tolist()])


def _amplified(inner: events.Event, q: float, order: float, adjacency: Adjacency) -> float:
    exact = adjacency is Adjacency.ADD_REMOVE and _half_squared_mu(inner) is not None
    if not (exact and order.is_integer()) and (pair := half_pair(inner, order)) is not None:
        return _from_pair(pair, q, order, adjacency)
    if order > _LARGEST_SUM:
        return math.inf
    # The logarithm of a moment is convex in the order and zero at order one, so a chord bounds it from above.
    low, high = math.floor(order), math.ceil(order)
    at_high = _log_moment(inner, q, high, adjacency)
    at_low = at_high if low == high else 0.0 if low < 2 else _log_moment(inner, q, low, adjacency)
    return (at_low + (order - low) * (at_high - at_low)) / (order - 1) * PAD


def _from_pair(pair: HalfPair, q: float, order: float, adjacency: Adjacency) -> float:
    """Moments over the losses of a pair: both halves for add/remove, the upper one for replacement."""
    beta = np.array([[order], [1 - order]])
    excess = log_bernoulli(beta, _sampled_loss(pair.losses, q)) + pair.log_q
    if adjacency is Adjacency.REPLACE:
        excess = excess.reshape(1, -1)
    else:
        mirrored = log_bernoulli(beta, np.log1p(q * np.expm1(-pair.losses))) + pair.losses + pair.log_q
        excess = np.concatenate((excess, mirrored), axis=1)
    moment = np.array([np.max(log_sum(excess))]) + _ROUNDING * np.max(np.abs(pair.log_q))
    ceiling = float(_sampled_loss(np.array([pair.largest]), q)[0])
    return float(divergence(moment, np.array([order]), ceiling=ceiling * PAD)[0])


def _sampled_loss(losses: Floats, q: float) -> Floats:
    """log(1 + q(e^ℓ − 1)) without overflow."""
    with np.errstate(over="ignore"):
        return np.where(
            losses < 50,
            np.log1p(q * np.expm1(np.minimum(losses, 50.0))),
            losses + math.log(q) + (1 - q) / q * np.exp(-losses),
        )


def _log_moment(inner: events.Event, q: float, n: int, adjacency: Adjacency) -> float:
    r"""The logarithm of a bound on the moment of integer order n, from the divergences of ``inner`` alone.

    Gaussian noise, unit added or removed, exactly:
    :math:`M - 1 = \sum_k \binom{n}{k} (1-q)^{n-k} q^k (e^{k(k-1)/2\sigma^2} - 1)`. For the
    discrete Gaussian the same is an upper bound, since its pairs are symmetric (by reflection) and its moments smaller.

    Otherwise, with :math:`K_j = (j-1) D_j`, expanding :math:`(p/q)^n` around 1 and using the joint convexity of
    :math:`|a|^j b^{1-j}`: for a unit added or removed
    :math:`M - 1 \le \binom n2 q^2 (e^{K_2}-1) + \sum_{j \ge 3} \binom nj q^j e^{K_j}`, because
    :math:`E|r-1|^j \le E[r^j]` for a likelihood ratio r; for a unit replaced,
    :math:`|p_1-q_1|^j \le p_1^j + q_1^j` costs a factor 2, and the triangle inequality gives
    :math:`4(e^{K_2}-1)` at j = 2 (Wang, Balle, Kasiviswanathan, Theorem 9).
    """
    j = np.arange(2.0, n + 1)
    ways = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)
    half = _half_squared_mu(inner)
    if half is not None and adjacency is Adjacency.ADD_REMOVE:
        terms = ways + (n - j) * math.log1p(-q) + j * math.log(q) + log_expm1(j * (j - 1) * half)
    else:
        moments = (j - 1) * curve(inner, j, adjacency)
        second = log_expm1(moments[:1])
        if adjacency is Adjacency.REPLACE:
            second = np.minimum(math.log(4) + second, math.log(2) + moments[:1])
            moments = math.log(2) + moments
        terms = ways + j * math.log(q) + np.concatenate((second, moments[1:]))
    finite = terms[np.isfinite(terms)]
    digits = float(gammaln(n + 1)) + n * abs(math.log(q)) + (float(np.max(np.abs(finite))) if finite.size else 0.0)
    return float(np.logaddexp(0.0, log_sum(terms) + _ROUNDING * digits)) * PAD


def _half_squared_mu(inner: events.Event) -> float | None:
    """Half the squared sensitivity over the variance, for events that are Gaussian noise; else None."""
    found = squared_mu(inner) if isinstance(inner, events.DiscreteGaussian) else merged(inner)
    return None if found is None else above(found / 2)


def _refuse_nested(inner: events.Event) -> None:
    for part, _ in events.parts_of(inner):
        if isinstance(part, _RANDOM):
            raise UnsupportedEventError(
                part,
                accountant="rdp",
                why="inside a sample, nested sampling and selection have no proven bound here",
                fix='describe the outer sampling of each release separately, or use account(event, method="pld").',
            )


_PURE = (events.Pure, events.Laplace, events.DiscreteLaplace, events.RandomizedResponse, events.Exponential)
_HUGE = 1e10
"""An order at which these cost nearly their epsilon, and are computed by a formula."""
_LITTLE = 1e-9
"""Shapes and remainders nearer to zero are left to bounds without a difference of nearly equal numbers."""
_MOST_SHAPE = 1e6
_HELPERS = np.concatenate((1 + np.geomspace(0.01, 8, 24), np.geomspace(10, 4000, 40).round()))


@curve.register
def _(event: events.Selected, orders: Floats, adjacency: Adjacency) -> Floats:
    helpers = np.union1d(_HELPERS, orders[orders > 1])
    fixed, runs = overhead(event, adjacency, helpers), math.log(expected_runs(event))

    def bound(at: Floats) -> Floats:
        one = curve(event.event, at, adjacency)
        return np.minimum(one + fixed + runs / (at - 1), _all_runs(event, one, at))

    return _monotone(bound, orders)


def _all_runs(event: events.Selected, one: Floats, at: Floats) -> Floats:
    r"""What the release of all runs costs, of which the best is post-processing: :math:`\log E[M^K]/(\alpha-1)`.

    K is the same law for both neighbours, and given K, runs are independent, each with the moment M at most. With
    :math:`E[x^K] = ((1-(1-\gamma)x)^{-\eta}-1)/(\gamma^{-\eta}-1)`, and its limit
    :math:`\log(1-(1-\gamma)x)/\log\gamma` for :math:`\eta = 0`; infinite from :math:`x = 1/(1-\gamma)` on. That is
    less than other bounds say where runs are few and far from each other. More runs cost more, so γ is rounded down and
    η up.
    """
    if event.eta > _MOST_SHAPE:
        return np.full_like(at, np.inf)
    gamma, eta = below(event.gamma), above(event.eta)
    if gamma <= 0 or 0 < abs(eta) < _LITTLE:
        return np.full_like(at, np.inf)
    runs = -math.log(gamma)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        more = (1 - gamma) * np.expm1((at - 1) * one * PAD)
        left = gamma - more  # 1 - (1 - γ)M, which is γe^-d
        d = -np.log1p(-more / gamma)
        # E[M^K] - 1 without a difference of nearly equal numbers.
        rise = np.expm1(eta * d) / -math.expm1(-eta * runs) if eta else d / runs
        found = np.log1p(rise) / (at - 1) * PAD + _ROUNDING
    return np.where((left > _LITTLE) & np.isfinite(found) & (found >= one), found, np.inf)


@curve.register
def _(event: events.SelectedPoisson, orders: Floats, adjacency: Adjacency) -> Floats:
    known = np.union1d(_HELPERS, orders[orders > 1])
    if isinstance(event.event, _PURE):  # their epsilon itself may be below what a delta is looked for at
        known = np.append(known, _HUGE)
    helpers = curve(event.event, known, adjacency)
    mean = above(event.mean)

    def bound(at: Floats) -> Floats:
        one = curve(event.event, at, adjacency)
        slack = [np.min(delta_at(helpers, known, -math.log1p(-1 / order) * (1 - 1e-15))) for order in at.tolist()]
        exponent = math.log(mean) + (at - 1) * (one + mean * np.array(slack))
        lost = _ROUNDING * ((1 + np.abs(exponent)) * np.exp(np.minimum(exponent, 0.0)) + mean)
        found: Floats = (np.logaddexp(-below(event.mean), exponent) + lost) / (at - 1)
        # All runs together, of which the best is post-processing: E[M^K] = exp(mean (M - 1)).
        with np.errstate(over="ignore"):
            together = mean * np.expm1((at - 1) * one * PAD) / (at - 1) * PAD
        return np.minimum(found, together)

    return _monotone(bound, orders)


def _monotone(bound: Callable[[Floats], Floats], orders: Floats) -> Floats:
    """Divergences increase with the order, so a bound at a higher order holds at all lower ones."""
    tried = np.union1d(_HELPERS, orders[orders > 1])
    later = np.minimum.accumulate(bound(tried)[::-1])[::-1]
    found: Floats = np.append(later, np.inf)[np.searchsorted(tried, orders)] * PAD
    return found


def overhead(event: events.Selected, adjacency: Adjacency, known: Floats = _HELPERS) -> float:
    """What selection adds at every order: (1+η) times the least of (1−1/λ̂)D(λ̂) + log(1/γ)/λ̂, ``known`` λ̂ and near."""
    helpers = curve(event.event, known, adjacency)
    gamma = below(event.gamma)
    log_runs = -math.log(gamma) if gamma else math.inf
    values = (1 - 1 / known) * helpers + log_runs / known
    best = int(np.argmin(values))
    near = np.linspace(known[max(best - 1, 0)], known[min(best + 1, len(known) - 1)], 24)
    values = np.append(values, (1 - 1 / near) * curve(event.event, near, adjacency) + log_runs / near)
    return float(np.min(values)) * (1 + above(event.eta)) * PAD
