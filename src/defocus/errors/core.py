"""Errors of noise, privacy, mechanisms, the ledger and releases. They name public facts only."""

import math
from typing import Any

from defocus.errors.base import DefocusError, InvalidParameterError

__all__ = [
    "BudgetExceededError",
    "BudgetOutOfReachError",
    "CannotCalibrateError",
    "ExpressionError",
    "FormulaOutOfRangeError",
    "LedgerBusyError",
    "LedgerDamagedError",
    "LedgerError",
    "LedgerMismatchError",
    "LedgerUnavailableError",
    "NoiseOverflowError",
    "NotBitsError",
    "NotExactError",
    "NotRecordedError",
    "QualityNotReachedError",
    "QuestionFailedError",
    "ReleaseFailedError",
    "UnfitDataError",
    "UnsupportedEventError",
]


class NotBitsError(InvalidParameterError):
    """Something that is not a source of random bits was passed as one."""

    def __init__(self, given: object) -> None:
        super().__init__(
            f"bits must be a source of cryptographic random bits, but it is of type {type(given).__name__}.",
            fix="leave bits out; a test that needs repeatable noise passes defocus.noise.testing.seeded(seed).",
        )


class NoiseOverflowError(DefocusError, OverflowError):
    """A sample does not fit the 64-bit integers in which noise is returned."""

    def __init__(self, digits: int) -> None:
        super().__init__(
            f"A noise sample of {digits} bits does not fit a 64-bit integer.",
            fix="use a smaller scale or a coarser grid; at scales up to 2**40 this has probability below "
            "exp(-2**22), so check the source of random bits as well.",
        )


class FormulaOutOfRangeError(InvalidParameterError):
    """A textbook formula was asked for outside the range in which its theorem holds."""


class UnsupportedEventError(DefocusError):
    """An accountant, a filter or group privacy was given an event it cannot express; nothing is approximated.

    ``accountant`` is the name of an accountant; ``who`` replaces it by whoever else refuses.
    """

    def __init__(self, event: object, *, why: str, fix: str, accountant: str = "", who: str = "") -> None:
        name = type(event).__name__
        super().__init__(f"{who or f'The {accountant} accountant'} cannot express {name}: {why}.", fix=fix)


class CannotCalibrateError(DefocusError):
    """No parameter in the searched range meets the budget, or the family is not monotone."""


class BudgetOutOfReachError(CannotCalibrateError):
    """No parameter in the searched range meets the budget."""


class ExpressionError(DefocusError, ValueError):
    """A privacy expression could not be read; the text shows where.

    >>> print(ExpressionError("An event is missing", text="2 * ", position=4, fix="add one."))
    An event is missing, at position 5:
        2 *
            ^
    To fix: add one.
    """

    def __init__(self, what: str, *, text: str, position: int, fix: str) -> None:
        super().__init__(f"{what}, at position {position + 1}:\n{_pointing_at(text, position)}", fix=fix)
        self.position = position


_AROUND = 32
"""How many characters are shown on each side of a position."""


def _pointing_at(text: str, position: int) -> str:
    """The neighbourhood of ``position`` on one line with a caret under it; odd characters become question marks."""
    start, end = max(0, position - _AROUND), min(len(text), position + _AROUND)
    shown = "".join(c if " " <= c <= "~" else " " if c.isspace() else "?" for c in text[start:end])
    before, after = "..." if start else "", "..." if end < len(text) else ""
    return f"    {before}{shown}{after}\n    {' ' * (len(before) + position - start)}^"


class UnfitDataError(InvalidParameterError):
    """Data has the wrong type, shape or length for a mechanism. The text never quotes the data."""


class NotExactError(UnfitDataError):
    """Fractional data was given to a mechanism that adds noise to integers."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"Exact noise is added to integers, but the data has type {kind}.",
            fix="put every record on an integer grid first, for example Grid('0.01').total(values, low=0, high=100), "
            "and scale the result back with Grid.decimal.",
        )


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
      requested   epsilon 0.5
      remaining   one release of epsilon 0.25, of Budget(epsilon=1)
      difference  0.25 in epsilon (0.5 requested, 0.25 left)
    To fix: add noise until it fits in what is left, or ask the owner of the data for more.
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
            f"  requested   {alone}\n"
            f"  remaining   {left or 'next to nothing'}, of {budget}\n"
            f"  difference  {difference:.6g} in {measure} ({requested:.6g} requested, {remaining:.6g} left)",
            fix=f"{remedy} in what is left, or ask the owner of the data for more."
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


class ReleaseFailedError(DefocusError):
    """Sampling failed after its cost was charged. The reason is withheld: it could depend on private values."""

    def __init__(self, *, charge: int, mechanism: str) -> None:
        super().__init__(
            f"The {mechanism} mechanism failed after its cost was charged (entry {charge}). The charge stays, since"
            " the failure itself may tell something; the reason is not shown, since it may depend on private values.",
            fix="run the mechanism on synthetic data of the same type and shape, where every error may be seen.",
        )
        self.charge = charge


class QuestionFailedError(DefocusError):
    """What a question asks for could not be computed after it was charged. The charge stays."""

    def __init__(self, *, charge: int, why: str) -> None:
        super().__init__(
            f"The question was charged (entry {charge}), but it could not be answered. {why}"
            " The charge stays, since the failure itself may tell something.",
            fix="mend the cause and ask again, which costs again; try it on synthetic data of the same kind first.",
        )
        self.charge = charge


class QualityNotReachedError(DefocusError):
    """Synthetic data were charged and made, but are worse than was asked for.

    ``generator`` holds them: they are paid for and may be used.
    """

    def __init__(
        self, generator: Any, *, charge: int, wanted: float, distance: float | None = None, auc: float | None = None
    ) -> None:
        said = (
            f"pairs of columns are off by {distance:.4f} on average, and at most {wanted:.4f} was asked for"
            if distance is not None
            else f"the area under the curve of the prediction is {auc:.4f}, and at least {wanted:.4f} was asked for"
        )
        super().__init__(
            f"The synthetic data were charged (entry {charge}) and made, but {said}.",
            fix="spend more, leave columns out with only=[…], or use the `generator` attribute of this error, which is"
            " paid for.",
        )
        self.generator = generator


class NotRecordedError(DefocusError):
    """A value was charged and sampled, but the ledger could not note what was released.

    ``release`` holds the result: it is paid for and may be used.
    """

    def __init__(self, release: Any, *, charge: int, why: str) -> None:
        super().__init__(
            f"The release was charged (entry {charge}) and sampled, but the ledger could not record it: {why}",
            fix="use the value in the `release` attribute of this error, and record it by hand when the ledger is back:"
            " ledger.record(release.receipt, release.value).",
        )
        self.release = release
