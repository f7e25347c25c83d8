r"""Which delta to choose.

A mechanism that publishes one random record in full is (0, 1/n)-DP: delta must lie well below one over the number of
people. The default is :math:`n^{-1.1}`; for a million people it needs 4.8 % more Gaussian noise than 1/n would.
"""

import math

from defocus.errors import InvalidParameterError, Number, count, finite, probability
from defocus.privacy.budgets import Budget
from defocus.privacy.rounding import above

__all__ = ["check_budget", "check_delta", "delta_for", "spoken_delta"]

_LARGEST_DELTA = 0.01
"""One in a hundred: with it, publishing one record in a hundred in full would be allowed."""
_CUSTOMARY = 1e-6
"""The delta to speak in when the budget is in rho or mu and names none."""


def check_budget(budget: Budget) -> Budget:
    """Return ``budget`` if it may be promised to people; refuse a delta above 1/100, which is most often a slip.

    >>> check_budget(Budget(1e-6, 0.9))
    Traceback (most recent call last):
    ...
    defocus.errors.base.InvalidParameterError: A budget with delta 0.9 may be broken altogether with that probability.
    To fix: did you mean Budget(0.9, 1e-06)? Epsilon comes first.
    """
    if budget.delta <= _LARGEST_DELTA:
        return budget
    epsilon, delta = above(budget.epsilon or 0), float(budget.delta)
    raise InvalidParameterError(
        f"A budget with delta {delta:g} may be broken altogether with that probability.",
        fix=f"did you mean Budget({delta:g}, {epsilon:g})? Epsilon comes first."
        if epsilon < _LARGEST_DELTA
        else f"choose delta well below one over the number of people, for example Budget({epsilon:g}, 1e-06).",
    )


def spoken_delta(budget: Budget) -> float:
    """The delta at which epsilons are told beside ``budget``: its own, or the customary 1e-6 for rho and mu.

    >>> spoken_delta(Budget(1, 1e-9)), spoken_delta(Budget(rho=1))
    (1e-09, 1e-06)
    """
    return float(budget.delta) if budget.epsilon is not None else _CUSTOMARY


def delta_for(n: int, *, exponent: Number = 1.1) -> float:
    """A delta for a data set of about ``n`` people; ``n`` must be public, so round it if it is not.

    >>> delta_for(10**6)
    2.51...e-07
    """
    people = count("n", n)
    power = above(finite("exponent", exponent))
    if people < 2 or not power > 1:
        raise InvalidParameterError(
            f"No delta below 1/n is sensible for n = {people} and exponent {power:g}.",
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
