"""The nearest vector that never falls."""

import numpy as np
from numpy.typing import ArrayLike

from defocus.answers.digits import Floats

__all__ = ["falling", "rising"]


def rising(values: ArrayLike) -> Floats:
    r"""The vector that never falls with the least squared distance to ``values``.

    Error:
        If the true vector never falls, no entry of the sum of squared errors can grow by it: the projection on a
        convex set that holds the truth is nearer to it. For a vector of few different values in long runs, noise
        is averaged over each run: the squared error falls from n to the number of runs times :math:`\log^3 n`.
    Reference:
        Hay, Rastogi, Miklau, Suciu (2010), Boosting the accuracy of differentially private histograms through
        consistency, Theorem 2; Barlow, Bartholomew, Bremner, Brunk (1972) for pooling adjacent violators.

    >>> rising([1, 3, 2, 4]).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415  # slow to load

    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size:
        return numbers
    return np.asarray(isotonic_regression(numbers).x, dtype=np.float64)


def falling(values: ArrayLike) -> Floats:
    """The nearest vector that never rises.

    >>> falling([4, 2, 3, 1]).tolist()
    [4.0, 2.5, 2.5, 1.0]
    """
    return rising(np.asarray(values, dtype=np.float64)[::-1])[::-1]
