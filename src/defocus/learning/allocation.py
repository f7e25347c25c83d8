r"""What is gained when each unit falls into one secret step of an epoch, uniformly and independently of the others.

Let t be the number of steps, z the ratio of noise, and consider a unit that is removed (law P) or added (law Q without
it). With :math:`L_j` the likelihood ratio of step j if the unit is in it, given what was released before,

.. math:: \frac{dP}{dQ}\Big|_{i \text{ steps}} = 1 - \frac{M_i}{t}, \qquad M_i = \sum_{j \le i} (1 - L_j).

Given the steps before, step i holds the unit with probability :math:`\lambda_i = 1/(t - M_{i-1})`, and is a Gaussian
release on such a sample. Under Q, M is a martingale whose increments x are at most one and have variance at most
:math:`v = e^{1/z^2} - 1`. Since :math:`(e^{sx} - 1 - sx)/x^2` grows with x, and by Doob's inequality,

.. math:: Q(\max_i M_i > \gamma t) \le \big((1 + v(e^s - 1 - s))\, e^{-s\gamma}\big)^t \quad\text{for every } s > 0.

Let B be this event, β the bound of its probability. P(B) is smaller still, since the ratio above is below one on B.
Outside of B every :math:`\lambda_i` is at most :math:`\lambda = 1/(t(1-\gamma))`. So up to B, in either direction, the
epoch is a run of t Poisson-sampled releases at rate λ, and with any other releases beside it

.. math:: \delta(\varepsilon) \le \delta_{\text{Poisson at } \lambda}(\varepsilon) + \beta.

It is charged as that run and ``Approximate(0, 2β)``: where accountants multiply the first term by 1 − 2β, twice β
makes up for it in every statement with a delta of at most 1/2.

Reference:
    Chua et al. (2025), Balls-and-bins sampling for DP-SGD; Feldman, Shenfeld (2025), Privacy amplification by random
    allocation (the decomposition into Poisson steps; the tail bound here is
    simpler); Bennett (1962), Probability inequalities for the sum of independent random variables.
"""

import math

import numpy as np

__all__ = ["allocated_rate"]

_TILTS = np.geomspace(1e-3, 30, 600)
_PAD = 1 + 1e-9
_HALF = 0.5


def allocated_rate(ratio: float, steps: int, failing: float) -> float | None:
    """The rate λ at which an epoch of ``steps`` steps counts as Poisson-sampled, except with probability ``failing``.

    None where that is no clear gain over counting the epoch as one release: with much noise and many steps it is one.

    >>> round(1000 * allocated_rate(2.0, 1000, 1e-8), 3)
    1.121
    >>> allocated_rate(0.5, 10, 1e-8)
    """
    if steps < 2 or not failing > 0 or ratio < 0.05:
        return None
    variance = math.expm1(1 / ratio**2) * _PAD
    exponents = np.log1p(variance * (np.expm1(_TILTS) - _TILTS)) + math.log(1 / failing) / steps * _PAD
    gamma = float((exponents / _TILTS).min()) * _PAD
    if not gamma < 1:
        return None
    rate = 1 / (steps * (1 - gamma)) * _PAD
    gains = steps * rate**2 * variance < _HALF / ratio**2
    return rate if gains and rate < 1 else None
