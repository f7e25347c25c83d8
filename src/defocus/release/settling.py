"""What follows a charge: compute in silence, tell nothing of a failure, and have the ledger note what is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, final

from defocus.errors import DefocusError, EngineError, MissingExtraError, NotRecordedError
from defocus.ledger import Ledger, Receipt
from defocus.release.silence import silence

__all__ = ["noted", "settled"]

_Made = TypeVar("_Made")

_WITHHELD = "The reason is not shown, since it may depend on private values."


@final
@dataclass(frozen=True, slots=True)
class _Failure:
    """That there is no result: why, as far as it may be told, or that somebody interrupted it."""

    why: str
    interrupted: bool = False


def settled(
    compute: Callable[[Receipt], _Made], receipt: Receipt, *, failed: Callable[[str], DefocusError], what: str
) -> _Made:
    """What ``compute`` makes of the receipt that paid for it, else what ``failed`` makes of the reason.

    Guarantee:
        Warnings are not shown. Of a failure no more is told than that an engine failed, in the engine room's own
        words, or that a package is missing; the exception is attached to nothing.
    Assumes:
        That it failed, and whether for want of memory, of a file or of time, may depend on the data. It is told to
        whoever runs the release and has been charged for.
    """
    made = _attempted(compute, receipt)
    if not isinstance(made, _Failure):
        return made
    # Raised out here, so that the private failure is not attached to it as its context.
    if made.interrupted:
        stopped = KeyboardInterrupt()
        stopped.add_note(f"The {what} was charged (entry {receipt.sequence}) before it was interrupted; that stays.")
        raise stopped
    raise failed(made.why)


def noted(made: _Made, value: Any, receipt: Receipt, *, ledger: Ledger, description: str, keep: bool) -> _Made:
    """Return ``made`` once the ledger has noted its ``value``, which it keeps under the name of the request if asked.

    Where the ledger cannot, the error holds the result: it is paid for.
    """
    try:
        ledger.record(receipt, value, description=description, keep=keep)
    except DefocusError as problem:
        raise NotRecordedError(made, charge=receipt.sequence, why=problem.what) from problem
    return made


def _attempted(compute: Callable[[Receipt], _Made], receipt: Receipt) -> _Made | _Failure:
    try:
        with silence():
            return compute(receipt)
    except (EngineError, MissingExtraError) as problem:  # worded by us, about the machine
        return _Failure(problem.what)
    except KeyboardInterrupt:
        return _Failure("", interrupted=True)
    except Exception:  # noqa: BLE001  # its text may hold private values, so nothing of it may leave
        return _Failure(_WITHHELD)
