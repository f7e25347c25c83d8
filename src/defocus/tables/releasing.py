"""Charge, compute, add noise, show: the one way in which a question becomes an answer."""

import difflib
import hashlib
from collections.abc import Callable

from defocus.errors import DefocusError, EngineError, InvalidParameterError, NotRecordedError, QuestionFailedError
from defocus.ledger import Ledger, Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.tables.answers import Answer
from defocus.tables.charging import Replan, charged, pair
from defocus.tables.recording import from_record, to_record

__all__ = ["allowed", "released"]

_WITHHELD = "The reason is not shown, since it may depend on private values."


def released(
    compute: Callable[[Receipt], Answer],
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
) -> Answer:
    """The answer that ``compute`` gives once ``event`` is charged, or the one recorded for the same request.

    ``asked`` is what it may cost, and ``replan`` what it would owe with another delta: see :mod:`.charging`.
    ``facts`` is everything public that the answer depends on, in one text: the same request with other facts is
    another question, and refused.

    Guarantee:
        The charge is on disk before the engine is asked. Whatever fails afterwards keeps the charge, and nothing that
        the engine said is repeated.
    Assumes:
        That the engine failed, and whether for want of memory, of a file or of time, may depend on the data. It is told
        to whoever runs the query and has been charged for.
    """
    recorded = None if request is None else ledger.recall(request)
    if recorded is not None:
        answer = from_record(recorded.value, recorded.receipt)
        paid = recorded.receipt.event
        same = paid == event or paid == pair(event, asked, ledger.unit.adjacency)
        if not same or recorded.value.get("facts") != _digest(facts):
            raise InvalidParameterError(
                "An answer to this request was recorded, but to another question or with other noise.",
                fix="give the new request another name.",
            )
        return answer
    receipt = charged(event, asked, ledger, replan, purpose=purpose, who=who, request=request)
    made, failure = _computed(compute, receipt)
    if made is None and not failure:
        stopped = KeyboardInterrupt()
        stopped.add_note(f"The question was charged (entry {receipt.sequence}) before it was interrupted; that stays.")
        raise stopped
    if made is None:
        # Raised out here, so that the private failure is not attached to it as its context.
        raise QuestionFailedError(charge=receipt.sequence, why=failure)
    try:
        kept = {**to_record(made), "facts": _digest(facts)}
        ledger.record(receipt, kept, description=question[:400], keep=request is not None)
    except DefocusError as problem:
        raise NotRecordedError(made, charge=receipt.sequence, why=problem.what) from problem
    return made


def allowed(purpose: str | None, purposes: tuple[str, ...] | None, question: str) -> str:
    """The purpose to write in the ledger, if the owner of the data allows it."""
    if purposes is None:
        return purpose if purpose is not None else question[:200]
    if purpose not in purposes:
        near = difflib.get_close_matches(purpose or "", purposes, n=1)
        hint = f"did you mean {near[0]!r}? The" if near else "the"
        raise InvalidParameterError(
            "This data may be used for named purposes only, and "
            + (f"{purpose!r:.60} is none of them." if purpose else "none was named."),
            fix=f"{hint} purposes are {'; '.join(purposes)}."[:1000],
        )
    return str(purpose)


def _digest(facts: str) -> str:
    return hashlib.sha256(facts.encode("utf-8", "backslashreplace")).hexdigest()


def _computed(compute: Callable[[Receipt], Answer], receipt: Receipt) -> tuple[Answer | None, str]:
    """The answer, or why there is none as far as it may be told; nothing to tell where somebody interrupted it."""
    try:
        return compute(receipt), ""
    except EngineError as problem:
        return None, problem.what
    except KeyboardInterrupt:
        return None, ""
    except Exception:  # noqa: BLE001  # its text may hold private values, so nothing of it may leave
        return None, _WITHHELD
