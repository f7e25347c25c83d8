"""One paid computation: recalled by its request, or charged, computed in silence and recorded."""

import hashlib
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np

from defocus.answers.progress import shown
from defocus.errors import (
    DefocusError,
    EngineError,
    InvalidParameterError,
    MissingExtraError,
    NotRecordedError,
    QuestionFailedError,
)
from defocus.ledger import Ledger, Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.release.charge import Replan, charge, payable

__all__ = ["perform", "silence"]


_EVERYTHING = ("ignore", re.compile(""), Warning, None, 0)
"""A filter of our own, which simplefilter("ignore") of others neither finds nor replaces."""


@contextmanager
def silence() -> Iterator[None]:
    """Show no warning, of Python or numpy, until the end of the block.

    Filters of warnings belong to the whole process. Each block adds a line to them and takes one such line away, so
    that of several threads none ends the silence of another, and after the last nothing is left behind.

    >>> with silence():
    ...     warnings.warn("the largest value is 12", stacklevel=1)
    """
    filters: Any = warnings.filters  # a list, which the next catch_warnings() copies
    filters.insert(0, _EVERYTHING)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        with suppress(ValueError):
            filters.remove(_EVERYTHING)


_Made = TypeVar("_Made")

_WITHHELD = "The reason is not shown, since it may depend on private values."


@final
@dataclass(frozen=True, slots=True)
class _Failure:
    """That there is no result: why, as far as it may be told, or what interrupted it."""

    why: str
    stopped: KeyboardInterrupt | SystemExit | None = None


def perform(
    event: Event,
    compute: Callable[[Receipt], _Made],
    *,
    ledger: Ledger,
    purpose: str,
    description: str,
    written: Callable[[_Made], Any],
    read: Callable[[Any, Receipt], _Made] | None = None,
    facts: str | None = None,
    who: str | None = None,
    request: str | None = None,
    asked: Budget | None = None,
    replan: Replan | None = None,
    check: Callable[[], object] | None = None,
    failed: Callable[[int, str], DefocusError] | None = None,
    what: str = "question",
    bar: bool = True,
) -> _Made:
    """What ``compute`` makes once ``event`` is charged, or what was recorded for the same request.

    Guarantee:
        The charge is on disk before ``compute`` is called, with the receipt. Whatever fails afterwards keeps the
        charge. Warnings are not shown. Of a failure no more is told than that an engine failed, in the engine room's
        own words, or that a package is missing; the exception is attached to nothing. The ledger notes a digest of
        the result before it is shown; where it cannot, the error holds the result, which is paid for.
    Assumes:
        That it failed, and whether for want of memory, of a file or of time, may depend on the data. It is told to
        whoever runs the release and has been charged for.

    Args:
        event: what it owes.
        compute: makes the result of the receipt.
        ledger: what to charge.
        purpose: why, in one line.
        description: what is released, for the record.
        written: makes JSON of a result for the ledger, which keeps it under the name of the request.
        read: makes a result of that again; without it nothing is recalled.
        facts: everything public that the result depends on, in one text: the same request with other facts is refused.
        who: by whom; the account's name by default.
        request: a name for this request.
        asked: what it may cost, if it was asked for as a pair; see :func:`.charge`.
        replan: what it would owe with another delta.
        check: refuses what cannot be computed, before the charge and if nothing was recalled.
        failed: the error for a charge and a reason; by default, that the question could not be answered.
        what: what was charged, in a word.
        bar: whether a terminal or notebook shows that it is at work, where that takes long; False where ``compute``
            shows it itself.
    """
    recorded = None if request is None or read is None else ledger.recall(request)
    if recorded is not None and read is not None:
        paid = recorded.receipt
        same = paid.parts == ledger.parts and any(paid.event == owed for owed in payable(event, asked, ledger))
        if recorded.facts is None and not isinstance(recorded.value, dict):  # by an older version, of a mechanism
            same = same and recorded.description == description
        elif recorded.facts != _digest(facts):
            same = False
        if not same:
            raise InvalidParameterError(
                "An answer to this request was recorded, but to another question or with other noise.",
                fix="give the new request another name.",
            )
        return read(recorded.value, paid)
    if check is not None:
        check()
    receipt = charge(
        event,
        ledger=ledger,
        purpose=purpose,
        who=who,
        request=request,
        question=description,
        asked=asked,
        replan=replan,
    )
    with shown(None) if bar else nullcontext():
        made = _attempted(compute, receipt)
    # Raised out here, so that the private failure is not attached to it as its context.
    if isinstance(made, _Failure):
        if made.stopped is not None:
            made.stopped.add_note(
                f"The {what} was charged (entry {receipt.sequence}) before it was interrupted; that stays."
            )
            raise made.stopped
        raise (failed or _unanswered)(receipt.sequence, made.why)
    try:
        ledger.record(receipt, written(made), description=description, keep=request is not None, facts=_digest(facts))
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
        return _Failure("", KeyboardInterrupt())
    except SystemExit:  # of a handler of signals
        return _Failure("", SystemExit(1))
    except BaseException:  # noqa: BLE001  # its text may hold private values, so nothing of it may leave
        return _Failure(_WITHHELD)


def _unanswered(charge: int, why: str) -> DefocusError:
    return QuestionFailedError(charge=charge, why=why)


def _digest(facts: str | None) -> str | None:
    return None if facts is None else hashlib.sha256(facts.encode("utf-8", "backslashreplace")).hexdigest()
