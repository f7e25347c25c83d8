"""Refusals of the ledger: the budget is gone, someone else is writing, or the record cannot be trusted."""

from defocus.errors.base import DefocusError

__all__ = [
    "BudgetExceededError",
    "LedgerBusyError",
    "LedgerDamagedError",
    "LedgerError",
    "LedgerMismatchError",
    "LedgerUnavailableError",
]


class LedgerError(DefocusError):
    """A ledger refused. No receipt was given, so nothing may be sampled."""


class BudgetExceededError(LedgerError):
    """A charge does not fit in what is left of the budget. Nothing was charged.

    ``requested``, ``remaining`` and ``difference`` are in ``measure`` (for example "epsilon at
    delta 1e-06"); ``detail`` says the same in the units the filter counts in.

    >>> print(BudgetExceededError(requested=0.5, remaining=0.25, difference=0.25, measure="epsilon",
    ...                           budget="Budget(epsilon=1)", detail=""))
    The budget does not cover this release; nothing was charged.
      requested   0.5      epsilon
      remaining   0.25     epsilon
      difference  0.25     epsilon  (of Budget(epsilon=1))
    To fix: add noise until the release costs at most 0.25 epsilon, or ask the owner of the data for a larger budget.
    """

    def __init__(
        self, *, requested: float, remaining: float, difference: float, measure: str, budget: str, detail: str
    ) -> None:
        super().__init__(
            "The budget does not cover this release; nothing was charged.\n"
            f"  requested   {requested:<8.6g} {measure}\n"
            f"  remaining   {remaining:<8.6g} {measure}\n"
            f"  difference  {difference:<8.6g} {measure}  (of {budget})" + (f"\n  {detail}" if detail else ""),
            fix=f"add noise until the release costs at most {remaining:.6g} {measure},"
            " or ask the owner of the data for a larger budget."
            if remaining > 0
            else "nothing is left to spend; read what was already released, which is free,"
            " or ask the owner of the data for a larger budget.",
        )
        self.requested = requested
        self.remaining = remaining
        self.difference = difference
        self.measure = measure
        self.detail = detail


class LedgerBusyError(LedgerError):
    """Another process held the ledger for longer than the timeout. Nothing was charged."""

    def __init__(self, where: str, *, seconds: float) -> None:
        super().__init__(
            f"The ledger {where} was held by someone else for more than {seconds:g} seconds; nothing was charged.",
            fix="try again, or open the ledger with a larger timeout=.",
        )


class LedgerMismatchError(LedgerError):
    """A ledger was opened with a unit, budget or data set that contradicts the one it was made for."""


class LedgerDamagedError(LedgerError):
    """The record is not the one that was written: edited, truncated, rolled back or unreadable."""


class LedgerUnavailableError(LedgerError):
    """The ledger cannot be reached, read or written."""
