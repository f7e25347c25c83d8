"""Looking before spending: what a release would cost and how far off it would be, free of charge."""

from collections.abc import Sequence
from typing import Any

from defocus.answers import explanation
from defocus.answers.columns import CONFIDENCE
from defocus.answers.preview import Preview, PreviewColumn, Prospect
from defocus.errors import Number, probability
from defocus.ledger import Ledger
from defocus.mechanisms import Grid, Mechanism
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.filters import Cost
from defocus.release.charge import Replan, admitted, advice
from defocus.release.release import checked_mechanism, in_units, named

__all__ = ["planned", "preview", "previewed", "prospect"]


def prospect(event: Event, *, asked: Budget | None, replan: Replan, ledger: Ledger) -> Prospect:
    """The prospect of charging ``event``; ``replan`` says what it would be with another delta than was ``asked``.

    Where nothing was asked but the event itself, nothing else is charged instead.
    """
    account = ledger.account()  # one look: every number of the preview is of one moment
    guard, spent = account.guard, account.most()
    owed = admitted(event, asked, ledger, account)
    after = None if owed is None else guard.add(spent, guard.cost(owed))
    return Prospect(
        event=event if owed is None else owed,
        asked=asked,
        promise=explanation.alone(event, ledger.terms, asked),
        unit=ledger.unit,
        dataset=ledger.dataset,
        fits=after is not None,
        remaining=guard.remaining(spent),
        after=None if after is None else guard.remaining(after),
        used=(guard.filter.used(Cost(spent)), guard.filter.used(Cost(spent if after is None else after))),
        remedy="" if owed is not None or asked is None else advice(asked, ledger, replan),
    )


def previewed(
    columns: Sequence[PreviewColumn],
    event: Event,
    *,
    question: str,
    asked: Budget | None,
    replan: Replan,
    ledger: Ledger,
    **more: Any,
) -> Preview:
    """The preview of a release of ``event`` charged to ``ledger``, which is asked and not changed.

    ``replan`` says what the same question would owe with another delta than was ``asked`` for.
    """
    found = prospect(event, asked=asked, replan=replan, ledger=ledger)
    return Preview(tuple(columns), question, found.event, found, **more)


def planned(
    columns: Sequence[PreviewColumn], event: Event, *, question: str, ledger: Ledger | None, **more: Any
) -> Preview:
    """The preview of a release that is charged as ``event`` and as nothing else; also without a ledger."""
    if ledger is None:
        return Preview(tuple(columns), question, event, **more)
    return previewed(columns, event, question=question, asked=None, replan=lambda _: event, ledger=ledger, **more)


def preview(
    mechanism: Mechanism, *, ledger: Ledger | None = None, grid: Grid | None = None, confidence: Number = CONFIDENCE
) -> Preview:
    """Say what a release with ``mechanism`` would cost and how exact it would be.

    Guarantee:
        Depends on public parameters only, and charges nothing.

    >>> from defocus.mechanisms import Laplace
    >>> seen = preview(Laplace(scale=2))
    >>> round(seen.error, 3), seen.interval, seen.event
    (1.919, 6.0, DiscreteLaplace(scale=2, sensitivity=1))
    """
    event = checked_mechanism(mechanism, grid)
    level = float(probability("confidence", confidence, zero=False, one=False))
    how, error, half = named(mechanism), in_units(mechanism.error, grid), in_units(mechanism.interval(level), grid)
    column = PreviewColumn("value", how, error, half)
    about: dict[str, Any] = {"question": how, "confidence": level, "absolute": True, "thing": "entry"}
    return planned([column], event, ledger=ledger, **about)
