r"""The laws of the noise, for previews: expected absolute error, variance, tails and half-widths.

Nothing here decides a random outcome. Discrete Laplace with :math:`q = e^{-1/b}` has
:math:`P(x) = \frac{1-q}{1+q} q^{|x|}`; discrete Gaussian has :math:`P(x) \propto e^{-x^2/2\sigma^2}`.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from defocus.errors import Number
from defocus.mechanisms.mechanism import outside

__all__ = [
    "gaussian_error",
    "gaussian_tail",
    "gaussian_variance",
    "half_width",
    "laplace_error",
    "laplace_largest",
    "laplace_tail",
    "laplace_variance",
    "sum_error",
    "sum_tail",
]

_WIDE = 200.0
"""From this standard deviation on, the discrete Gaussian is summed by its expansion, exact to 1e-11."""
_NARROW = 1 / 700
"""Below this scale the noise is zero but for a chance under e^-700."""


def laplace_error(scale: Number) -> float:
    r""":math:`E|X| = 2q/(1-q^2) = 1/\sinh(1/b)`."""
    return 0.0 if scale <= _NARROW else 1 / math.sinh(1 / float(scale))


def laplace_variance(scale: Number) -> float:
    r""":math:`E X^2 = 2q/(1-q)^2 = 1/(2\sinh^2(1/2b))`."""
    return 0.0 if scale <= _NARROW else 1 / (2 * math.sinh(1 / (2 * float(scale))) ** 2)


def laplace_tail(scale: Number, width: int) -> float:
    r""":math:`P(|X| > t) = 2q^{t+1}/(1+q)` for integers :math:`t \ge 0`."""
    if scale <= _NARROW:
        return 0.0
    rate = 1 / float(scale)
    return 2 * math.exp(-rate * (width + 1)) / (1 + math.exp(-rate))


def laplace_largest(scale: Number, n: int) -> float:
    r"""An upper bound on the expected largest of ``n`` independent discrete Laplace variables, exact below scale 1000.

    :math:`E \max = \sum_{k \ge 0} (1 - F(k)^n) - \sum_{k > 0} F(-k)^n`. Wide noise is summed in
    strides, each counted with the end that makes the sum larger.
    """
    if scale <= _NARROW:
        return 0.0
    rate = 1 / float(scale)
    reach = (math.log(n) + 45) / rate + 2
    stride = max(1, math.floor(reach / 50_000))
    steps = np.arange(0, math.ceil(reach / stride) + 1, dtype=np.float64) * stride
    above = np.exp(-rate * (steps + 1)) / (1 + math.exp(-rate))
    upper = -np.expm1(n * np.log1p(-above)).sum()
    lower = np.exp(n * (-rate * steps[1:] - math.log1p(math.exp(-rate)))).sum()
    return max(0.0, float(stride * (upper - lower)))


def gaussian_error(sigma: Number) -> float:
    r""":math:`E|X|`; for wide noise :math:`\sigma\sqrt{2/\pi}\,(1 - 1/12\sigma^2)`, by Euler and Maclaurin."""
    s = float(sigma)
    if s > _WIDE:
        return s * math.sqrt(2 / math.pi) * (1 - 1 / (12 * s * s))
    x, weights, total = _gaussian(s)
    return float(2 * (x * weights).sum() / total)


def gaussian_variance(sigma: Number) -> float:
    r""":math:`E X^2`, at most :math:`\sigma^2`; for wide noise the two agree to the last digit."""
    s = float(sigma)
    if s > _WIDE:
        return s * s
    x, weights, total = _gaussian(s)
    return float(2 * (x * x * weights).sum() / total)


def gaussian_tail(sigma: Number, width: int) -> float:
    r""":math:`P(|X| > t)`, summed for narrow noise and bounded from above for wide noise.

    The normaliser is at least :math:`\sigma\sqrt{2\pi}` (Poisson summation). A term
    :math:`e^{-x^2/2\sigma^2}` is at most its integral over the unit interval centred at
    :math:`x` where the density is convex (:math:`|x| \ge \sigma + 1/2`), and over the unit interval that ends
    at :math:`x` elsewhere.
    """
    s = float(sigma)
    if s > _WIDE:
        start = width + 0.5 if width + 0.5 >= s else float(width)
        return math.erfc(start / (s * math.sqrt(2)))
    _, weights, total = _gaussian(s)
    return float(2 * weights[width:][::-1].sum() / total)


def sum_error(first: Number, second: Number) -> float:
    r"""Expected absolute value of the sum of two independent discrete Laplace variables.

    With :math:`q_1 \ne q_2` the law of the sum is the signed mixture
    :math:`A\,\mathrm{Lap}_{q_1} + (1-A)\,\mathrm{Lap}_{q_2}`,
    :math:`A = \frac{q_1 (1-q_2)^2}{(q_1-q_2)(1-q_1q_2)}` (partial fractions of the generating
    functions); with :math:`q_1 = q_2` it is
    :math:`P(k) = (\frac{1-q}{1+q})^2 q^{|k|} (|k| + \frac{1+q^2}{1-q^2})`.
    """
    if first != second:
        share = _share(first, second)
        return share * laplace_error(first) + (1 - share) * laplace_error(second)
    if first <= _NARROW:
        return 0.0
    q = math.exp(-1 / float(first))
    gap, square = -math.expm1(-1 / float(first)), -math.expm1(-2 / float(first))
    # sum k^2 q^k = q(1+q)/(1-q)^3 and sum k q^k = q/(1-q)^2, times 2((1-q)/(1+q))^2
    return 2 * q * ((1 + q) / gap + (1 + q * q) / square) / (1 + q) ** 2


def sum_tail(first: Number, second: Number, width: int) -> float:
    r"""The chance :math:`P(|X + Y| > t)` for independent discrete Laplace variables; see :func:`sum_error`."""
    if first != second:
        share = _share(first, second)
        return share * laplace_tail(first, width) + (1 - share) * laplace_tail(second, width)
    if first <= _NARROW:
        return 0.0
    q, start = math.exp(-1 / float(first)), width + 1
    gap, square = -math.expm1(-1 / float(first)), -math.expm1(-2 / float(first))
    inner = start * gap + q + (1 + q * q) / square * gap
    return 2 * math.exp(-start / float(first)) * inner / (1 + q) ** 2


def half_width(tail: Callable[[int], float], confidence: Number) -> int:
    """The least integer t with tail(t) <= 1 − confidence, kept on the covering side of rounding errors."""
    allowed = outside(confidence) * (1 - 1e-12)
    if tail(0) <= allowed:
        return 0
    low, high = 0, 1
    while tail(high) > allowed:
        low, high = high, 2 * high
    while high - low > 1:  # in whole numbers, unlike privacy.searching
        middle = (low + high) // 2
        low, high = (middle, high) if tail(middle) > allowed else (low, middle)
    return high


def _gaussian(s: float) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    s = max(s, 0.02)  # there, as below, every weight is zero in floating point
    x = np.arange(1, math.ceil(40 * s) + 2, dtype=np.float64)
    weights = np.exp(-0.5 * (x / s) ** 2)
    return x, weights, float(1 + 2 * weights[::-1].sum())


def _share(first: Number, second: Number) -> float:
    if min(first, second) <= _NARROW:
        return float(first > second)
    a, b = 1 / float(first), 1 / float(second)
    return math.exp(-a) * math.expm1(-b) ** 2 / (math.exp(-b) * math.expm1(b - a) * -math.expm1(-a - b))
