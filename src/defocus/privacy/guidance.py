r"""Which delta to choose.

A mechanism that publishes one random record in full is (0, 1/n)-DP: delta must lie well below one over the number of
people. The default is :math:`n^{-1.1}`; for a million people it needs 4.8 % more Gaussian noise than 1/n would.
"""

import math

from defocus.errors import InvalidParameterError, Number, count, finite, probability

__all__ = ["check_delta", "delta_for"]


def delta_for(n: int, *, exponent: Number = 1.1) -> float:
    """A delta for a data set of about ``n`` people; ``n`` must be public, so round it if it is not.

    >>> delta_for(10**6)
    2.51...e-07
    """
    people = count("n", n)
    power = float(finite("exponent", exponent))
    if people < 2 or not power > 1:
        raise InvalidParameterError(
            f"No delta below 1/n is sensible for n = {people} and exponent {exponent}.",
            fix="pass n >= 2 and an exponent above 1, or use pure privacy with delta 0.",
        )
    return math.pow(people, -power)


def check_delta(delta: Number, n: int) -> float:
    """Return ``delta`` if it protects each of ``n`` people; refuse one that would allow publishing records at random.

    >>> check_delta(1e-6, 1000)
    1e-06
    """
    value = float(probability("delta", delta, one=False))
    if value * count("n", n) >= 1:
        raise InvalidParameterError(
            f"delta = {value:g} is at least 1/n = {1 / n:g}: publishing one random record in full would be allowed.",
            fix=f"choose delta well below 1/n, for example {delta_for(max(2, n)):.3g}.",
        )
    return value
