"""An answer in plain words, for a privacy officer: what was asked, protected, bounded, added, paid and left."""

import math
from collections.abc import Sequence

import numpy as np

from defocus.errors import UnsupportedEventError
from defocus.ledger import Receipt, Terms
from defocus.ledger.guards import Guard
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.expressions import unparse
from defocus.privacy.filters import Cost
from defocus.privacy.units import Adjacency, Unit
from defocus.release.promises import Promise, promise
from defocus.tables.answer_columns import AnswerColumn
from defocus.tables.digits import brief

__all__ = ["alone", "cost", "exactness", "facts", "odds", "one", "owed", "protection", "taken"]

_NEIGHBOURS = {
    Adjacency.ADD_REMOVE: "with or without it",
    Adjacency.REPLACE: "with it or with another in its place",
}
_LONGEST = 300
_RARE = 0.01
"""A prior to speak about: someone believed of one person in a hundred."""


def facts(
    *,
    question: str,
    groups: int,
    columns: Sequence[AnswerColumn],
    receipt: Receipt,
    rules: Sequence[str],
    processing: Sequence[str],
    threshold: float,
    asked: Budget | None = None,
) -> dict[str, list[str]]:
    """What there is to say, by topic; each topic has one or more sentences."""
    terms = receipt.terms
    promised = alone(receipt.event, terms, asked)
    left = Guard.of(terms).remaining(receipt.spent)
    said = {
        "question": [question],
        "answer": [f"{_number(groups, 'group')} with {', '.join(column.name for column in columns)}"],
        "protected": [protection(terms.unit, terms.dataset)],
        f"for one {one(terms.unit)}": odds(promised, terms.unit),
        "by rule": list(rules) or ["nothing was bounded or clipped"],
        "noise": [f"{column.name}: {column.how}" for column in columns],
        "exactness": [exactness(column, threshold) for column in columns],
        "afterwards": list(processing) or ["nothing but scaling and rounding was done to the noisy numbers"],
        "cost": [
            cost(promised, asked),
            taken(receipt),
            f"charged beforehand as entry {receipt.sequence}: {receipt.purpose} ({receipt.who}, {receipt.time[:10]})",
            owed(receipt.event),
        ],
        "left": [f"after this answer: {left}; the whole budget is {terms.budget}"],
    }
    return {name: sentences for name, sentences in said.items() if sentences}


def alone(event: Event, terms: Terms, asked: Budget | None = None) -> Promise | None:
    """(epsilon, delta) and posterior odds of one event alone, or None if no accountant expresses it.

    At the delta that was ``asked`` for, that of the ledger where nobody wrote it down.
    """
    try:
        return promise(event, terms.budget if asked is None else asked, terms.unit.adjacency)
    except UnsupportedEventError:
        return None


def protection(unit: Unit, dataset: str) -> str:
    """What stays hidden."""
    return f"{unit}, in {dataset}: every answer comes out almost as often {_NEIGHBOURS[unit.adjacency]}"


def one(unit: Unit) -> str:
    """What a person is called here."""
    return "row" if unit.kind == "rows" else unit.column or unit.kind


def odds(promised: Promise | None, unit: Unit) -> list[str]:
    """What the guarantee means for one person, in odds."""
    if promised is None:
        return ["no accountant can put this answer alone into odds; the ledger's budget holds all the same"]
    exception = f", except with probability {promised.delta:.3g}" if promised.delta else ""
    share = promised.odds * _RARE / (1 - _RARE + promised.odds * _RARE)
    general = (
        f"whatever someone knows already, this answer multiplies their odds about one {one(unit)} by at most"
        f" {promised.odds:.4g}{exception}"
    )
    example = (
        f"who was 50 % sure of something about it is at most {100 * promised.posterior:.3g} % sure afterwards,"
        f" and who was {100 * _RARE:g} % sure at most {100 * share:.3g} %"
    )
    return [general, example]


def cost(promised: Promise | None, asked: Budget | None = None) -> str:
    """What a release costs by itself, and what it was allowed to."""
    found = "in epsilon: not known for this answer alone" if promised is None else f"{promised} for this answer alone"
    if asked is None or asked.epsilon is None:
        return found
    least = f" at delta {float(asked.delta):.3g}" if asked.delta else ""
    return f"{found}; asked for were epsilon {float(asked.epsilon):.4g}{least}"


def taken(receipt: Receipt) -> str:
    """What a release takes from the ledger: its part of the whole budget, and what is used together with it."""
    rule = Guard.of(receipt.terms).filter
    share, used = (rule.used(Cost(each), after=Cost(receipt.spent)) for each in (receipt.cost, receipt.spent))
    return f"it takes {_percent(share)} of the budget of the ledger, of which {_percent(used)} is used with it"


def owed(event: Event) -> str:
    """The same as the ledger writes it."""
    text = unparse(event)
    return f"as an event: {text if len(text) <= _LONGEST else f'{text[: _LONGEST - 1]}…'}"


def exactness(column: AnswerColumn, threshold: float) -> str:
    """How far off a column is, and how much of it is drowned in noise."""
    spread = column.spread[np.isfinite(column.spread)]
    if not spread.size:
        return f"{column.name}: how far off it is in value is not known"
    least, most = brief(spread.min()), brief(spread.max())
    size = least if least == most else f"{least} to {most}"
    half = column.half[np.isfinite(column.half)]
    middle = "" if len(column.values) == 1 else " in the middle group"
    width = f", 95 % within {brief(np.median(half))}{middle}" if half.size else ""
    noisy = sum(flag is not True for flag in column.reliable(threshold))
    drowned = (
        f"; in {noisy} of {len(column.values)} it is more than {100 * threshold:g} % of the value" if noisy else ""
    )
    return f"{column.name}: standard error of the noise {size}{width}{drowned}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %" if math.isfinite(share) else "an unknown part"


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"
