r"""Noisy second moments of rows on an integer grid.

The sum of :math:`x x^T` is symmetric, so only entries on and above its diagonal are released, and an error off the
diagonal counts twice. Scaled by :math:`\sqrt2`, entries off the diagonal make a vector of norm exactly
:math:`\|x\|^2`, and deserve noise smaller by :math:`\sqrt2`. On integers, 7/5 stands for :math:`\sqrt2`: with
:math:`v = (5x_i^2,\ 7x_ix_j)_{i<j}`,

.. math:: \|v\|^2 = 25\sum_i x_i^4 + 49\sum_{i<j} x_i^2x_j^2
    \le 25\Big(\sum_i x_i^4 + 2\sum_{i<j} x_i^2x_j^2\Big) = 25\|x\|^4 .
"""

import math

import numpy as np
from numpy.typing import NDArray

from defocus.learning.estimators.balls import Matrix, tallied
from defocus.learning.estimators.spending import Sum
from defocus.mechanisms import Gaussian
from defocus.mechanisms.values import IntVector
from defocus.noise import Bits

__all__ = ["moment_error", "moment_sum", "moments", "noisy_moments"]

_ON, _OFF = 5, 7


def moment_sum(width: int, bits: int, share: float) -> Sum:
    """The release of second moments of rows of norm at most 2**bits."""
    return Sum(_ON * 4**bits, width * (width + 1) // 2, share)


def moments(rows: Matrix) -> IntVector:
    """The weighted entries on and above the diagonal of the sum of x xᵀ, exactly."""
    dense = rows.toarray() if hasattr(rows, "toarray") else rows
    upper = np.triu_indices(rows.shape[1])
    return tallied(rows, dense)[upper] * np.where(upper[0] == upper[1], _ON, _OFF)


def noisy_moments(rows: Matrix, noise: Gaussian, bits: Bits) -> NDArray[np.float64]:
    """The whole symmetric matrix, with noise, in squared steps."""
    width = rows.shape[1]
    upper = np.triu_indices(width)
    noisy = np.asarray(noise.sample(moments(rows), bits)) / np.where(upper[0] == upper[1], _ON, _OFF)
    found = np.zeros((width, width))
    found[upper] = noisy
    return found + np.triu(found, 1).T


def moment_error(noise: Gaussian, width: int) -> float:
    r"""How far the noise moves eigenvalues: about :math:`2\sqrt{d}` times the error of one entry."""
    return 2 * float(noise.sigma) / _OFF * math.sqrt(width)
