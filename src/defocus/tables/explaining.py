"""An answer in plain words, for a privacy officer: what was asked, protected, bounded, added, paid and left."""

from collections.abc import Sequence

import numpy as np

from defocus.errors import UnsupportedEventError
from defocus.ledger import Receipt, Terms
from defocus.ledger.guards import Guard
from defocus.privacy.events import Event
from defocus.privacy.expressions import unparse
from defocus.privacy.units import Adjacency, Unit
from defocus.release.promises import Promise, promise
from defocus.tables.answer_columns import AnswerColumn
from defocus.tables.digits import brief

__all__ = ["alone", "cost", "exactness", "facts", "odds", "one", "owed", "protection"]

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
) -> dict[str, list[str]]:
    """What there is to say, by topic; each topic has one or more sentences."""
    terms = receipt.terms
    promised = alone(receipt.event, terms)
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
            cost(promised),
            f"charged beforehand as entry {receipt.sequence}: {receipt.purpose} ({receipt.who}, {receipt.time[:10]})",
            owed(receipt.event),
        ],
        "left": [f"after this answer: {left}; the whole budget is {terms.budget}"],
    }
    return {name: sentences for name, sentences in said.items() if sentences}


def alone(event: Event, terms: Terms) -> Promise | None:
    """(epsilon, delta) and posterior odds of one event alone, or None if no accountant expresses it."""
    try:
        return promise(event, terms.budget, terms.unit.adjacency)
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


def cost(promised: Promise | None) -> str:
    """What a release costs by itself."""
    return "in epsilon: not known for this answer alone" if promised is None else f"{promised} for this answer alone"


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


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"
