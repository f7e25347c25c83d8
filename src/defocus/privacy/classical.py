r"""One release, by formula: the Laplace scale, and the Gaussian in its exact and in its textbook form.

With :math:`\mu` the sensitivity over the standard deviation, :math:`a = \varepsilon/\mu - \mu/2` and
:math:`b = \varepsilon/\mu + \mu/2`, Gaussian noise is :math:`(\varepsilon, \delta)`-DP exactly when

.. math:: \delta \ge \Phi(-a) - e^\varepsilon \Phi(-b) = \varphi(a)\,[R(a) - R(b)],

where R is the Mills ratio. The right-hand form keeps its digits where the left one is a difference of
nearly equal numbers, so every function here is accurate for :math:`\delta` far below 1e-100.

Reference:
    Balle, Wang (2018), Improving the Gaussian mechanism for differential privacy, Theorem 8.
"""

import math
from fractions import Fraction

import numpy as np
from scipy.special import erfcx, ndtr

from defocus.errors import FormulaOutOfRangeError, InvalidParameterError, Number, non_negative, positive, probability
from defocus.privacy.numbers import above, below, bisect

__all__ = [
    "classical_gaussian_sigma",
    "epsilon_of",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_log_delta",
    "gaussian_sigma",
    "laplace_scale",
    "log_delta",
    "mu_for",
]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_LOG_ROOT_TWO_PI = math.log(2 * math.pi) / 2
_ROOT_HALF_PI = math.sqrt(math.pi / 2)
_U = 2.0**-52


def gaussian_log_delta(sigma: Number, epsilon: Number, *, sensitivity: Number = 1) -> float:
    r"""The logarithm of the least delta of Gaussian noise at ``epsilon``, rounded up.

    >>> round(gaussian_log_delta(0.5, 100), 3)
    -1208.551
    """
    return log_delta(_mu(sigma, sensitivity), below(non_negative("epsilon", epsilon)))


def gaussian_delta(sigma: Number, epsilon: Number, *, sensitivity: Number = 1) -> float:
    """The least delta of Gaussian noise at ``epsilon``, rounded up; never zero.

    >>> round(gaussian_delta(1, 1), 6)
    0.126937
    """
    return max(5e-324, math.exp(gaussian_log_delta(sigma, epsilon, sensitivity=sensitivity)))


def gaussian_epsilon(sigma: Number, delta: Number, *, sensitivity: Number = 1) -> float:
    """The least epsilon of Gaussian noise at ``delta``, rounded up; infinite at delta zero.

    >>> round(gaussian_epsilon(1, 1e-5), 6)
    4.377178
    """
    return epsilon_of(_mu(sigma, sensitivity), below(probability("delta", delta, one=False)))


def gaussian_sigma(epsilon: Number, delta: Number, *, sensitivity: Number = 1) -> float:
    """The least standard deviation of Gaussian noise that is (epsilon, delta)-DP, rounded up.

    >>> round(gaussian_sigma(1, 1e-5), 6)
    3.730632
    """
    mu = mu_for(below(non_negative("epsilon", epsilon)), below(probability("delta", delta, zero=False, one=False)))
    if mu == 0:
        raise InvalidParameterError(
            f"No finite Gaussian noise is ({epsilon}, {delta})-DP within floating-point range.",
            fix="choose a larger epsilon or delta.",
        )
    return above(Fraction(positive("sensitivity", sensitivity)) / Fraction(mu))


def classical_gaussian_sigma(epsilon: Number, delta: Number, *, sensitivity: Number = 1) -> float:
    r"""The textbook standard deviation :math:`\Delta\sqrt{2\ln(1.25/\delta)}/\varepsilon`, for comparison.

    Guarantee:
        (epsilon, delta)-DP for epsilon at most 1; refused beyond, where it can be too little noise.

    Error:
        At delta = 1e-5, 30 % more noise than :func:`gaussian_sigma` at epsilon 1 and 58 % more at epsilon 0.1.
    Reference:
        Dwork, Roth (2014), The algorithmic foundations of differential privacy, Theorem A.1; its proof
        needs :math:`\sqrt{2\ln(1.25/\delta)} \ge 3/2`, that is delta at most 0.4.

    >>> round(classical_gaussian_sigma(0.5, 1e-5), 4)
    9.6896
    """
    e = below(positive("epsilon", epsilon))
    d = below(probability("delta", delta, zero=False, one=False))
    if epsilon > 1 or d > 0.4 or not (e and d):
        raise FormulaOutOfRangeError(
            f"The classical Gaussian formula is proven for epsilon <= 1 and delta <= 0.4, not for "
            f"({epsilon}, {delta}): beyond, its noise can be too small.",
            fix="use gaussian_sigma(epsilon, delta), which is exact for every epsilon and needs less noise.",
        )
    return _textbook_ratio(e, d) * above(positive("sensitivity", sensitivity))


def laplace_scale(epsilon: Number, *, sensitivity: Number = 1) -> float:
    """The scale of Laplace noise that is epsilon-DP for a statistic of this L1 sensitivity, rounded up.

    >>> laplace_scale(0.8)
    1.25
    """
    return above(Fraction(positive("sensitivity", sensitivity)) / Fraction(positive("epsilon", epsilon)))


def log_delta(mu: float, epsilon: float) -> float:
    """The logarithm of delta for Gaussian noise with sensitivity ``mu`` standard deviations, rounded up."""
    if mu == 0:
        return -math.inf
    if not math.isfinite(mu):
        return 0.0
    mu = max(mu, 1e-150)  # delta grows with mu, and below this it underflows anyway
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a > 1e100 and a > 1e-3 * b:  # log delta is below -a²/2, whose square may overflow
        return -1e199
    if not math.isfinite(b):
        return 0.0
    # a is a difference: its rounding error moves log delta by at most |a| + 2 times as much.
    slack = 8 * _U * (b + 1) * (abs(a) + 2)
    if a < -5:
        missing = float(ndtr(a)) + math.exp(-a * a / 2 - _LOG_ROOT_TWO_PI) * _mills(b)
        return min(0.0, math.log1p(-missing) + slack * missing + _U)
    # Where R(a) and R(b) are one float, R(a) alone bounds their difference.
    drop = _mills_drop(a, b, mu) or _mills(a)
    return min(0.0, -a * a / 2 - _LOG_ROOT_TWO_PI + math.log(drop) + slack + 1e-13)


def epsilon_of(mu: float, delta: float) -> float:
    r"""The least epsilon at which Gaussian noise of ``mu`` has at most ``delta``, found from above.

    :math:`\delta(\varepsilon)` is the probability that a normal variable less an exponential one exceeds
    :math:`\varepsilon`, so its logarithm is concave: every Newton step from above ends above the root.
    """
    if mu == 0:
        return 0.0
    if delta <= 0 or mu * mu == math.inf:
        return math.inf
    mu = max(mu, 1e-150)  # as log_delta takes it
    target = math.log(delta)
    if log_delta(mu, 0.0) <= target:
        return 0.0
    high = (mu * mu / 2 + mu * math.sqrt(-2 * target)) * (1 + 1e-9)
    while log_delta(mu, high) > target:
        high *= 2
    low, tried = 0.0, high
    for _ in range(100):
        tried = high + (log_delta(mu, high) - target) / _fall(mu, high) * (1 - 1e-9)
        if not tried < high * (1 - 2**-46):
            return high
        if log_delta(mu, tried) > target:  # rounding carried the last step too far
            low = max(0.0, tried)
            break
        high = tried
    return bisect(lambda e: log_delta(mu, e) <= target, low, high, relative=2**-46).yes


def _fall(mu: float, epsilon: float) -> float:
    """How fast log delta falls at ``epsilon``: e^ε Φ(−b)/δ."""
    mu = max(mu, 1e-150)
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a < -5:
        return max(math.exp(-a * a / 2 - _LOG_ROOT_TWO_PI) * _mills(b), 1e-300)
    return _mills(b) / _mills_drop(a, b, mu)


def mu_for(epsilon: float, delta: float) -> float:
    """The largest mu whose Gaussian noise is (epsilon, delta)-DP, found from below."""
    if delta <= 0:
        return 0.0
    epsilon = min(epsilon, 1e300)
    target = math.log(delta)
    reach = math.sqrt(-2 * target)
    # Two bounds that are always feasible: the tail of the loss, and the total variation distance.
    low = max(2 * epsilon / (math.sqrt(reach * reach + 2 * epsilon) + reach), delta * math.sqrt(2 * math.pi))
    low *= 1 - 1e-9
    while low > 0 and log_delta(low, epsilon) > target:
        low /= 2
    if low == 0:  # the mu that would do is too small for this formula
        return 0.0
    high = 2 * low
    while high < math.inf and log_delta(high, epsilon) <= target:
        low, high = high, 2 * high
    return bisect(lambda mu: log_delta(mu, epsilon) <= target, high, low, relative=2**-46).yes


def _textbook_ratio(epsilon: float, delta: float) -> float:
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon * (1 + 8 * _U)


def _mu(sigma: Number, sensitivity: Number) -> float:
    return above(Fraction(positive("sensitivity", sensitivity)) / Fraction(positive("sigma", sigma)))


def _mills(x: float) -> float:
    """The Mills ratio: the upper tail of the normal law over its density."""
    return float(_ROOT_HALF_PI * erfcx(x / math.sqrt(2)))


def _mills_drop(a: float, b: float, width: float) -> float:
    """R(a) − R(b): near each other as the integral of −R' = 1 − xR(x), which does not cancel there."""
    if width > 0.5:
        return _mills(a) - _mills(b)
    x = (a + b) / 2 + width / 2 * _NODES
    far = x > 50
    safe = np.where(far, 1.0, x)
    near_slope = 1 - safe * _ROOT_HALF_PI * erfcx(safe / math.sqrt(2))
    with np.errstate(over="ignore"):
        inverse = 1 / np.where(far, x, 50.0) ** 2
    # The asymptotic series, cut after a positive term: an upper bound, off by less than 1e-12.
    far_slope = inverse * (1 - inverse * (3 - inverse * (15 - inverse * (105 - inverse * 945))))
    return float(width / 2 * np.dot(_WEIGHTS, np.where(far, far_slope, near_slope)))
