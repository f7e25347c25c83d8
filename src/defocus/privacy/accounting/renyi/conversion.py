r"""From a Rényi divergence at one order to (epsilon, delta), and back.

Guarantee:
    If :math:`D_\alpha(P\|Q) \le \gamma` then :math:`P(S) \le e^\varepsilon Q(S) + \delta` with
    :math:`\delta = e^{(\alpha-1)(\gamma-\varepsilon)}\,(1-1/\alpha)^\alpha/(\alpha-1)`. Each order gives a valid
    pair, so the best order may be chosen after the fact.
Reference:
    Canonne, Kamath, Steinke (2020), Proposition 12; Balle, Barthe, Gaboardi, Hsu, Sato (2020). The textbook
    version without the factor :math:`(1-1/\alpha)^\alpha/(\alpha-1)` is Mironov (2017), Proposition 3.
"""

import numpy as np

from defocus.privacy.accounting.renyi.curves import Floats
from defocus.privacy.numbers import PAD

__all__ = ["delta_at", "epsilon_at", "textbook_delta_at", "textbook_epsilon_at"]

_SLACK = 1e-14
_QUIET = np.errstate(over="ignore", under="ignore", invalid="ignore")
"""What overflows on the way is infinite, and what is not a number is no bound."""


@_QUIET
def epsilon_at(divergences: Floats, orders: Floats, delta: float) -> Floats:
    """The epsilon each order vouches for at a positive ``delta``, rounded up."""
    if delta <= 0:
        return np.full_like(orders, np.inf)
    penalty = np.log1p(-1 / orders) - (np.log(delta) + np.log(orders)) / (orders - 1)
    return _up(divergences, penalty, (np.abs(np.log(delta)) + np.log(orders)) / (orders - 1))


@_QUIET
def textbook_epsilon_at(divergences: Floats, orders: Floats, delta: float) -> Floats:
    """The same by the textbook formula, never smaller than :func:`epsilon_at` at useful orders."""
    if delta <= 0:
        return np.full_like(orders, np.inf)
    penalty = -np.log(delta) / (orders - 1)
    return _up(divergences, penalty, penalty)


@_QUIET
def delta_at(divergences: Floats, orders: Floats, epsilon: float) -> Floats:
    """The delta each order vouches for at ``epsilon``, rounded up; at most one."""
    exponent = (orders - 1) * (divergences - epsilon)
    factor = orders * np.log1p(-1 / orders) - np.log(orders - 1)
    return _exp(exponent + factor, np.abs(exponent) + np.abs(factor))


@_QUIET
def textbook_delta_at(divergences: Floats, orders: Floats, epsilon: float) -> Floats:
    """The same by the textbook formula."""
    exponent = (orders - 1) * (divergences - epsilon)
    return _exp(exponent, np.abs(exponent))


def _up(divergences: Floats, penalty: Floats, size: Floats) -> Floats:
    return np.maximum(0.0, divergences * PAD + penalty + _SLACK * (1 + np.abs(size)))


def _exp(exponent: Floats, size: Floats) -> Floats:
    found = np.exp(np.minimum(0.0, exponent + _SLACK * (1 + size)))
    return np.where(np.isnan(found), 1.0, np.maximum(found, 5e-324))
