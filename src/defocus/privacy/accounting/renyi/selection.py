r"""Private selection: the best of a random number K of runs, at the price of little more than one.

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

import numpy as np

from defocus.privacy.accounting.renyi.conversion import delta_at
from defocus.privacy.accounting.renyi.curves import Floats, curve
from defocus.privacy.events import Event, Selected, SelectedPoisson
from defocus.privacy.numbers import PAD, above, below
from defocus.privacy.selection import expected_runs
from defocus.privacy.units import Adjacency

__all__ = ["overhead"]

_HELPERS = np.concatenate((1 + np.geomspace(0.01, 8, 24), np.geomspace(10, 4000, 40).round()))


@curve.register
def _(event: Selected, orders: Floats, adjacency: Adjacency) -> Floats:
    fixed, runs = overhead(event, adjacency), math.log(expected_runs(event))
    return _monotone(lambda at: curve(event.event, at, adjacency) + fixed + runs / (at - 1), orders)


@curve.register
def _(event: SelectedPoisson, orders: Floats, adjacency: Adjacency) -> Floats:
    helpers = curve(event.event, _HELPERS, adjacency)
    mean = above(event.mean)

    def bound(at: Floats) -> Floats:
        slack = [np.min(delta_at(helpers, _HELPERS, -math.log1p(-1 / order) * (1 - 1e-15))) for order in at.tolist()]
        exponent = math.log(mean) + (at - 1) * (curve(event.event, at, adjacency) + mean * np.array(slack))
        found: Floats = np.logaddexp(-below(event.mean), exponent) / (at - 1)
        return found

    return _monotone(bound, orders)


def _monotone(bound: Callable[[Floats], Floats], orders: Floats) -> Floats:
    """Divergences increase with the order, so a bound at a higher order holds at all lower ones."""
    later = np.minimum.accumulate(bound(_HELPERS)[::-1])[::-1]
    reach = np.append(later, np.inf)[np.searchsorted(_HELPERS, orders)]
    found: Floats = np.minimum(bound(orders), reach) * PAD
    return found


def overhead(event: Selected, adjacency: Adjacency) -> float:
    """What selection adds at every order: (1+η) times the least of (1−1/λ̂)D(λ̂) + log(1/γ)/λ̂."""
    helpers = curve(event.event, _HELPERS, adjacency)
    gamma = below(event.gamma)
    log_runs = -math.log(gamma) if gamma else math.inf
    values = (1 - 1 / _HELPERS) * helpers + log_runs / _HELPERS
    return float(np.min(_refined(event.event, values, adjacency, log_runs))) * (1 + above(event.eta)) * PAD


def _refined(event: Event, values: Floats, adjacency: Adjacency, log_runs: float) -> Floats:
    """The same values and a finer look around their minimum."""
    best = int(np.argmin(values))
    near = np.linspace(_HELPERS[max(best - 1, 0)], _HELPERS[min(best + 1, len(_HELPERS) - 1)], 24)
    return np.append(values, (1 - 1 / near) * curve(event, near, adjacency) + log_runs / near)
