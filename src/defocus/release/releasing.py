"""Charge, then sample, then show."""

from typing import Any

import numpy as np

from defocus.errors import InvalidParameterError, ReleaseFailedError
from defocus.ledger import Ledger, Receipt
from defocus.mechanisms import Grid, Mechanism
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.release.checks import answers_with, checked_mechanism, checked_neighbours, in_units, named
from defocus.release.results import CONFIDENCE, Release
from defocus.release.settling import noted, settled

__all__ = ["release"]


def release(
    mechanism: Mechanism,
    value: Any,
    *,
    ledger: Ledger,
    purpose: str,
    who: str | None = None,
    bits: Bits | None = None,
    grid: Grid | None = None,
    request: str | None = None,
) -> Release:
    """Release ``value`` through ``mechanism``, charged to ``ledger`` before the first random bit is drawn.

    Guarantee:
        Everything public is validated first, and a refusal then costs nothing. The charge is on
        disk before noise is drawn. Whatever fails afterwards keeps the charge and says nothing
        about private values. The ledger notes a digest of what is shown before it is shown.
    Assumes:
        ``value`` was computed from the data of this ledger, and its sensitivity under the
        ledger's unit and adjacency is the one the mechanism was made for.

    Args:
        mechanism: what to release through.
        value: the private value, in integers.
        ledger: what to charge.
        purpose: why, in one line.
        who: by whom; the account's name unless told.
        bits: the source of random bits; the system's unless told.
        grid: brings the noisy integers back to the units of the data.
        request: a name for this request. If an answer to it was recorded, that answer is
            returned again, free of charge and without looking at ``value``.

    >>> import tempfile
    >>> from defocus import Budget, rows
    >>> from defocus.mechanisms import Laplace
    >>> home = tempfile.TemporaryDirectory()
    >>> with Ledger.open(f"{home.name}/a.ledger", budget=Budget(1), unit=rows(), dataset="visits") as book:
    ...     result = release(Laplace(scale=2), 1041, ledger=book, purpose="number of visits")
    >>> result.error, result.interval
    (1.919..., 6.0)
    >>> home.cleanup()
    """
    event = checked_mechanism(mechanism, grid)
    if not isinstance(ledger, Ledger):
        raise InvalidParameterError(
            f"A release is charged to a Ledger, but got {type(ledger).__name__}.", fix="open one: Ledger.open(path, …)."
        )
    checked_neighbours(mechanism, value, ledger.unit)
    drawn_from = source(bits)
    error, interval = in_units(mechanism.error, grid), in_units(mechanism.interval(CONFIDENCE), grid)

    def shown(result: Any, receipt: Receipt) -> Release:
        return Release(result, event, error, interval, receipt, named(mechanism), answers_with(mechanism))

    def compute(receipt: Receipt) -> Release:
        noisy = mechanism.sample(value, drawn_from)
        if grid is None:
            return shown(noisy, receipt)
        return shown(grid.decimal(noisy if isinstance(noisy, np.ndarray) else int(noisy)), receipt)

    def failed(_why: str) -> ReleaseFailedError:
        return ReleaseFailedError(charge=receipt.sequence, mechanism=type(mechanism).__name__)

    recorded = None if request is None else ledger.recall(request)
    if recorded is not None:
        if recorded.receipt.event != event:
            raise InvalidParameterError(
                "An answer to this request was recorded, but with other noise.",
                fix="give the new request another name.",
            )
        return shown(_arrayed(recorded.value), recorded.receipt)
    mechanism.check(value)
    receipt = ledger.charge(event, purpose=purpose, who=who, request=request)
    made = settled(compute, receipt, failed=failed, what="release")
    return noted(made, made.value, receipt, ledger=ledger, description=named(mechanism), keep=request is not None)


def _arrayed(kept: Any) -> Any:
    """A kept vector of numbers as the array it was."""
    numbers = isinstance(kept, list) and all(type(x) in {int, float} for x in kept)
    return np.array(kept) if numbers else kept
