"""Refusals of the ledger: the budget is gone, someone else is writing, or the record cannot be trusted."""

import math

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

    ``requested``, ``remaining`` and ``difference`` are in ``measure``, the one of the filter's units in which the
    charge comes closest to fitting. ``requested_epsilon`` is what the release costs by itself, at
    ``requested_delta``, and ``remaining_epsilon`` the largest pure epsilon that still fits. ``left`` says so in words,
    empty if nothing of use is left; ``remedy`` is how the release can be made to fit.

    >>> print(BudgetExceededError(requested=0.5, remaining=0.25, difference=0.25, measure="epsilon",
    ...     budget="Budget(epsilon=1)", left="one release of epsilon 0.25",
    ...     requested_epsilon=0.5, remaining_epsilon=0.25))
    The budget does not cover this release; nothing was charged.
      requested   0.5 in epsilon (by itself the release has epsilon 0.5)
      remaining   0.25 in epsilon, of Budget(epsilon=1)
      difference  0.25 in epsilon
    To fix: add noise until it fits in what is left, one release of epsilon 0.25, or ask the owner of the data for more.
    """

    def __init__(
        self,
        *,
        requested: float,
        remaining: float,
        difference: float,
        measure: str,
        budget: str,
        left: str,
        requested_epsilon: float,
        remaining_epsilon: float,
        requested_delta: float = 0.0,
        part: str = "",
        remedy: str = "add noise until it fits",
    ) -> None:
        alone = f"epsilon {requested_epsilon:.6g}" + (f" at delta {requested_delta:.3g}" if requested_delta else "")
        alone = alone if math.isfinite(requested_epsilon) else "no epsilon at the delta of the budget"
        super().__init__(
            f"The budget does not cover this release{f' from the part {part}' if part else ''}; nothing was charged.\n"
            f"  requested   {requested:.6g} in {measure} (by itself the release has {alone})\n"
            f"  remaining   {remaining:.6g} in {measure}, of {budget}\n"
            f"  difference  {difference:.6g} in {measure}",
            fix=f"{remedy} in what is left, {left}, or ask the owner of the data for more."
            if left
            else "read again what was already released, which is free, or ask the owner of the data for more budget.",
        )
        self.requested = requested
        self.remaining = remaining
        self.difference = difference
        self.measure = measure
        self.requested_epsilon = requested_epsilon
        self.requested_delta = requested_delta
        self.remaining_epsilon = remaining_epsilon


class LedgerBusyError(LedgerError):
    """Someone else held the ledger for longer than the timeout: a writer, or a child forked in mid-transaction.

    Nothing was charged.
    """

    def __init__(self, where: str, *, seconds: float) -> None:
        super().__init__(
            f"The ledger {where} was held by someone else for more than {seconds:g} seconds; nothing was charged.",
            fix="try again, or open the ledger with a larger timeout=. A process forked while a thread was using the"
            " ledger may still hold it: end that process, and open ledgers after forking.",
        )


class LedgerMismatchError(LedgerError):
    """A ledger was opened with a unit, budget or data set that contradicts the one it was made for."""


class LedgerDamagedError(LedgerError):
    """The record is not the one that was written: edited, truncated, rolled back or unreadable."""


class LedgerUnavailableError(LedgerError):
    """The ledger cannot be reached, read or written."""
