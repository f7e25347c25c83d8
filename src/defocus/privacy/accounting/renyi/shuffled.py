r"""The Rényi divergence of shuffled reports, from the polygon that lies above their profile.

With :math:`\delta(l)` the profile of either direction, the moment of order :math:`\alpha` is

.. math:: M = 1 + \alpha(\alpha-1)\int_0^\infty \bigl(e^{(\alpha-1)l} + e^{-\alpha l}\bigr)\,\delta(l)\,dl.

Between corners, h apart, the polygon falls linearly in :math:`e^l` by some d. It exceeds the chord in l by no more
than an eighth of :math:`h^2` times its second derivative, that is :math:`dhe^h/8`. Both ends are raised by so much, and
the integrals of chords against exponentials are positive sums.

Reference:
    Sason, Verdú (2016), f-divergence inequalities, Theorem 11: divergences as integrals of hockey-stick ones.
"""

import numpy as np

from defocus.privacy.accounting.renyi.curves import curve, divergence
from defocus.privacy.accounting.renyi.special import Floats, log_sum
from defocus.privacy.accounting.shuffling import amplification, replaced_only
from defocus.privacy.events import Shuffled
from defocus.privacy.units import Adjacency

__all__: list[str] = []


@curve.register
def _(event: Shuffled, orders: Floats, adjacency: Adjacency) -> Floats:
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
