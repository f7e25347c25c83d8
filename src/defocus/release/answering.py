"""Charge, compute, add noise, show: the one way in which a question becomes an answer."""

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

from defocus.errors import InvalidParameterError, NotDeclaredError, QuestionFailedError
from defocus.ledger import Ledger, Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.release.charging import Replan, charged, pair
from defocus.release.settling import noted, settled

__all__ = ["released"]

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

    ``asked`` is what it may cost, and ``replan`` what it would owe with another delta: see :mod:`.charging`.
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
