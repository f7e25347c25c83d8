r"""The one charge of a release: as what it is charged, and what to ask where it does not fit.

What a release is charged as, so that what was asked for fits whenever it can, and what to ask where it cannot.

A planned release is charged as what it does, which lets a ledger count many releases tightly. Where its filter does not
admit that, for want of a measure or by a little, the release may still be charged as what was asked for: an
:math:`(\varepsilon, \delta)` pair, which is added up with others.

Guarantee:
    A pair is charged only if an accountant vouches for it: the release alone is
    :math:`(\varepsilon, \delta)`-DP, and charged as that and nothing better (:func:`pair`).
"""

from collections.abc import Callable, Iterator
from typing import Any

from defocus.errors import (
    BudgetExceededError,
    DefocusError,
    NotDeclaredError,
    UnsupportedEventError,
    positive,
    probability,
)
from defocus.ledger import Ledger, Receipt
from defocus.ledger.receipts import Account
from defocus.privacy.accounting import tightest_at
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Approximate, Event
from defocus.privacy.numbers import above, at_most, roughly
from defocus.privacy.units import Adjacency

__all__ = ["Replan", "admitted", "advice", "charge", "pair", "payable", "spendable"]


Replan = Callable[[float | None], Event]
"""What the same question would owe with another delta, or without one."""

_HARDLY = 1e-3
"""With so small a part of the delta that was asked for, hardly a key would be found."""
_ROUNDING = 1 + 1e-9
"""An account may exceed what was planned by its rounding; filters forgive as much."""


def spendable(epsilon: Any, delta: Any, ledger: Ledger | None = None) -> Budget:
    """What a question may cost, as its two parameters say; a ledger whose budget has no delta refuses one.

    >>> spendable(None, None)
    Traceback (most recent call last):
    ...
    defocus.errors.rooms.NotDeclaredError: Nothing says what this may cost.
    To fix: pass epsilon=, for example epsilon=0.5; with preview(epsilon=0.5) you see the errors first, free of charge.
    """
    if epsilon is None:
        raise NotDeclaredError(
            "Nothing says what this may cost.",
            fix="pass epsilon=, for example epsilon=0.5; with preview(epsilon=0.5) you see the errors first, free of"
            " charge.",
        )
    asked = Budget(positive("epsilon", epsilon), 0 if delta is None else probability("delta", delta, one=False))
    if ledger is not None and asked.delta and ledger.budget.epsilon is not None and not ledger.budget.delta:
        raise NotDeclaredError(
            "The budget of this ledger has no delta, so nothing that needs one can be released.",
            fix="leave delta= out, and name the keys of groups; a budget with a delta is given when a ledger is made.",
        )
    return asked


def pair(event: Event, asked: Budget, adjacency: Adjacency) -> Event | None:
    """What was ``asked`` for, as an event to charge instead of ``event``; None if nobody vouches for it.

    >>> from defocus.privacy.events import Gaussian
    >>> pair(Gaussian(10), Budget(1, 1e-6), Adjacency.ADD_REMOVE)
    Approximate(epsilon=1, delta=1e-06)
    >>> pair(Gaussian(1), Budget(1, 1e-6), Adjacency.ADD_REMOVE)
    """
    if asked.epsilon is None or not asked.delta:
        return None
    try:
        found = tightest_at(event, asked.delta, adjacency).epsilon(asked.delta)
    except UnsupportedEventError:
        return None
    if not found <= above(asked.epsilon) * _ROUNDING:
        return None
    return Approximate(max(asked.epsilon, found), asked.delta)


def payable(event: Event, asked: Budget | None, ledger: Ledger) -> Iterator[Event]:
    """What may be charged for a release: its event, else the pair that was ``asked`` for, if there is one."""
    yield event
    plain = None if asked is None else pair(event, asked, ledger.unit.adjacency)
    if plain is not None:
        yield plain


def admitted(event: Event, asked: Budget | None, ledger: Ledger, account: Account | None = None) -> Event | None:
    """What the ledger would be charged with now: the event, or the pair it was asked as; None if neither fits.

    ``account`` is where the ledger stands, for who has looked already. Where nothing was asked, an event that no filter
    counts is refused.
    """
    stands = ledger.account() if account is None else account
    if asked is None:
        return event if stands.admits(event) else None
    return next((owed for owed in payable(event, asked, ledger) if _admits(stands, owed)), None)


def charge(
    event: Event,
    *,
    ledger: Ledger,
    purpose: str,
    who: str | None = None,
    request: str | None = None,
    question: str | None = None,
    asked: Budget | None = None,
    replan: Replan | None = None,
) -> Receipt:
    """Charge the event, or the pair that was ``asked`` for; or refuse before any charge, with what fits.

    Every room charges here, directly where a run computes afterwards, else through :func:`.perform`. ``replan`` says
    what the release would owe with another delta; by default the same. ``question`` says what is asked, for the record.

    Guarantee:
        The charge is on disk when this returns.
    """
    refusals: list[DefocusError] = []
    for owed in payable(event, asked, ledger):
        try:
            return ledger.charge(owed, purpose=purpose, who=who, request=request, question=question)
        except (BudgetExceededError, UnsupportedEventError) as problem:
            refusals.append(problem)
    # That the pair does not fit says most; that nobody counts it, least.
    refused = next((each for each in reversed(refusals) if isinstance(each, BudgetExceededError)), refusals[0])
    if asked is not None:
        refused.fix = advice(asked, ledger, replan or (lambda _: event)) or refused.fix
    raise refused


def advice(asked: Budget, ledger: Ledger, replan: Replan) -> str:
    """Which delta, if any, would let the question be released for the same epsilon. Tried, so that it holds."""
    if asked.epsilon is None or not asked.delta:
        return ""
    remaining = ledger.remaining()
    left = remaining.delta
    if remaining.epsilon and left < asked.delta * _HARDLY and _needs_delta(replan):
        return "name the keys: finding them spends delta outright, and hardly any is left for that."
    for written in dict.fromkeys((roughly(left, 3), at_most(left, 3))) if 0 < left < asked.delta else ():
        if _fits(Budget(asked.epsilon, float(written)), ledger, replan):
            return (
                f"ask with delta={float(written):g}: of the delta of {ledger.budget}, so much is left for releases"
                " that spend some of it outright."
            )
    if _fits(Budget(asked.epsilon), ledger, replan):
        return "leave delta= out: without one this question fits in what is left."
    return ""


def _needs_delta(replan: Replan) -> bool:
    try:
        replan(None)
    except NotDeclaredError:
        return True
    return False


def _fits(asked: Budget, ledger: Ledger, replan: Replan) -> bool:
    try:
        event = replan(float(asked.delta) or None)
    except DefocusError:  # what cannot be planned without a delta, or with so small a one
        return False
    return admitted(event, asked, ledger) is not None


def _admits(account: Account, event: Event) -> bool:
    try:
        return account.admits(event)
    except UnsupportedEventError:
        return False
