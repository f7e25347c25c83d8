"""Silence while private values are computed on: what is warned of may depend on them."""

import hashlib
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np

from defocus.errors import (
    DefocusError,
    EngineError,
    InvalidParameterError,
    MissingExtraError,
    NotDeclaredError,
    NotRecordedError,
    QuestionFailedError,
)
from defocus.ledger import Ledger, Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.release.charge import Replan, charged, pair

__all__ = ["noted", "released", "settled", "silence"]


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


_Answer = TypeVar("_Answer")


def released(
    compute: Callable[[Receipt], _Answer],
    event: Event,
    *,
    asked: Budget,
    replan: Replan,
    ledger: Ledger,
    question: str,
    facts: str,
    purpose: str,
    who: str | None,
    request: str | None,
    written: Callable[[_Answer], dict[str, Any]],
    read: Callable[[Any, Receipt], _Answer],
) -> _Answer:
    """The answer that ``compute`` gives once ``event`` is charged, or the one recorded for the same request.

    ``asked`` is what it may cost, and ``replan`` what it would owe with another delta: see :mod:`.charge`.
    ``facts`` is everything public that the answer depends on, in one text: the same request with other facts is
    another question, and refused. ``written`` makes JSON of an answer for the ledger, and ``read`` makes an answer
    of it again.

    Guarantee:
        The charge is on disk before ``compute`` is called. Whatever fails afterwards keeps the charge, and what it
        says about private values is not repeated: see :func:`.settled`.
    """
    if asked.delta and ledger.budget.epsilon is not None and not ledger.budget.delta:
        raise NotDeclaredError(
            "The budget of this ledger has no delta, so nothing that needs one can be released.",
            fix="leave delta= out, and name the keys of groups; a budget with a delta is given when a ledger is made.",
        )
    recorded = None if request is None else ledger.recall(request)
    if recorded is not None:
        answer = read(recorded.value, recorded.receipt)
        paid = recorded.receipt.event
        same = paid == event or paid == pair(event, asked, ledger.unit.adjacency)
        if not same or recorded.value.get("facts") != _digest(facts):
            raise InvalidParameterError(
                "An answer to this request was recorded, but to another question or with other noise.",
                fix="give the new request another name.",
            )
        return answer
    receipt = charged(event, asked, ledger, replan, purpose=purpose, who=who, request=request)

    def failed(why: str) -> QuestionFailedError:
        return QuestionFailedError(charge=receipt.sequence, why=why)

    made = settled(compute, receipt, failed=failed, what="question")
    value = {**written(made), "facts": _digest(facts)}
    return noted(made, value, receipt, ledger=ledger, description=question[:400], keep=request is not None)


def _digest(facts: str) -> str:
    return hashlib.sha256(facts.encode("utf-8", "backslashreplace")).hexdigest()
