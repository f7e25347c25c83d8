"""The price of a release and the budget of a ledger from options, refused in the words of the terminal."""

from defocus.errors import InvalidParameterError, Number, positive, probability
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import check_budget

__all__ = ["DELTA", "price_of", "total"]

DELTA = 1e-6
"""The delta that goes with --epsilon, and the one epsilon is given at, by default."""


def price_of(
    *,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    mu: float | None = None,
    usual: float = DELTA,
    choices: str = "--epsilon, --rho and --mu",
) -> Budget:
    """The price in one of the ``choices``; an epsilon without a delta gets the ``usual`` one.

    >>> price_of(epsilon=1, delta=None, rho=None)
    Budget(epsilon=1, delta=1e-06)
    """
    given = [f"--{name}" for name, value in (("epsilon", epsilon), ("rho", rho), ("mu", mu)) if value is not None]
    if len(given) != 1:
        raise InvalidParameterError(
            f"A price is one of {choices}, but got {' and '.join(given) or 'none'}.",
            fix="add for example --epsilon 1 --delta 1e-6, or --rho 0.5.",
        )
    if epsilon is None and delta:
        raise InvalidParameterError(f"A price of {given[0]} has no delta.", fix="leave --delta out.")
    if epsilon is None:
        return Budget(rho=rho, mu=mu)
    return check_budget(Budget(epsilon, usual if delta is None else delta))


def total(budget: Number | None, budget_delta: Number) -> Budget | None:
    """The budget of a ledger, of --budget and --budget-delta; None where none is given.

    >>> total(3, 1e-6)
    Budget(epsilon=3, delta=1e-06)
    """
    if budget is None:
        return None
    return Budget(positive("budget", budget), probability("budget_delta", budget_delta, one=False))
