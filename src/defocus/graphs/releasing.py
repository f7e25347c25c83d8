"""Charge, compute, add noise, show: the one way in which a question becomes an answer."""

import difflib
import hashlib
import warnings
from collections.abc import Callable

import numpy as np

from defocus.errors import DefocusError, InvalidParameterError, MissingExtraError, NotRecordedError, QuestionFailedError
from defocus.graphs.answers import GraphAnswer
from defocus.graphs.recording import from_record, to_record
from defocus.ledger import Ledger, Receipt
from defocus.privacy.events import Event

__all__ = ["allowed", "released"]

_WITHHELD = "The reason is not shown, since it may depend on private values."


def released(
    compute: Callable[[Receipt], GraphAnswer],
    event: Event,
    *,
    ledger: Ledger,
    question: str,
    facts: str,
    purpose: str,
    who: str | None,
    request: str | None,
) -> GraphAnswer:
    """The answer that ``compute`` gives once ``event`` is charged, or the one recorded for the same request.

    ``facts`` is everything public that the answer depends on: the same request with other facts is refused.

    Guarantee:
        The charge is on disk before an edge is looked at. Whatever fails afterwards keeps the charge, and is not
        described.
    """
    recorded = None if request is None else ledger.recall(request)
    if recorded is not None:
        answer = from_record(recorded.value, recorded.receipt)
        if recorded.receipt.event != event or recorded.value.get("facts") != _digest(facts):
            raise InvalidParameterError(
                "An answer to this request was recorded, but to another question or with other noise.",
                fix="give the new request another name.",
            )
        return answer
    receipt = ledger.charge(event, purpose=purpose, who=who, request=request)
    made, failure = _computed(compute, receipt)
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


def _computed(compute: Callable[[Receipt], GraphAnswer], receipt: Receipt) -> tuple[GraphAnswer | None, str]:
    """The answer, or why there is none as far as it may be told. Warnings depend on private values, and are not."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return compute(receipt), ""
    except MissingExtraError as problem:  # about this machine, not about the data
        return None, problem.what
    except Exception:  # noqa: BLE001  # its text may hold private values, so nothing of it may leave
        return None, _WITHHELD
