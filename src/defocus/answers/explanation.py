"""Answers and previews in plain words, for a privacy officer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from defocus.answers.columns import AnswerColumn, Floats, brief
from defocus.answers.tables import text_facts
from defocus.errors import UnsupportedEventError
from defocus.ledger import Receipt, Remaining, Terms
from defocus.ledger.filter import Guard
from defocus.privacy.accounting import tightest_at
from defocus.privacy.budgets import Budget
from defocus.privacy.composition import single_release_bound
from defocus.privacy.events import Event
from defocus.privacy.expressions import unparse
from defocus.privacy.filters import Cost
from defocus.privacy.html import html_facts
from defocus.privacy.numbers import at_most
from defocus.privacy.units import Adjacency, Unit

__all__ = [
    "Promise",
    "afterwards",
    "alone",
    "cost",
    "entered",
    "exactness",
    "left",
    "odds",
    "one",
    "owed",
    "promise",
    "protection",
    "subject_to",
    "taken",
    "told",
    "topics",
]


def told(said: dict[str, Sequence[str]], *, html: bool) -> str:
    """The topics there is something to say about, as text or for a page."""
    spoken = {name: sentences for name, sentences in said.items() if sentences}
    return html_facts(spoken) if html else text_facts(spoken)


def exactness(
    column: AnswerColumn, threshold: float | None = None, *, thing: str = "group", cut: Sequence[str] = ()
) -> str:
    """How far off a column is, how much of it is drowned in noise, and what is not known about that."""
    errors, half = _known(column.errors if column.absolute else column.spread), _known(column.half)
    said = []
    if errors.size:
        least, most = brief(errors.min()), brief(errors.max())
        size = least if least == most else f"{least} to {most}"
        said.append(f"off by {size} on average" if column.absolute else f"standard error of {column.error_of} {size}")
    if half.size:
        middle = "" if len(column.values) == 1 else f" for the median {thing}"
        said.append(f"95 % within {brief(np.median(half))}{middle}{', or more' if any(column.opened) else ''}")
    if np.isposinf(column.high).any():
        said.append("not counting what is left out; 95 % that the truth is at least the lower end")
    if not said:
        return f"{column.name}: how far off it is in value is not known"
    only = f"; that is the noise alone, and the truth may lie outside: {'; '.join(cut)}" if cut else ""
    noisy = 0 if threshold is None else sum(flag is not True for flag in column.reliable(threshold))
    drowned = f"; in {noisy} of {len(column.values)} it is more than {100 * (threshold or 0):g} % of the value"
    return f"{column.name}: {', '.join(said)}{drowned if noisy else ''}{only}"


def _known(numbers: Floats) -> Floats:
    return numbers[np.isfinite(numbers)]


@final
@dataclass(frozen=True, slots=True)
class Promise:
    """(epsilon, delta) of a single release, and how sure anyone can become who started from even odds.

    >>> from defocus.privacy import Laplace
    >>> print(promise(Laplace(2), Budget(1), Adjacency.ADD_REMOVE))
    epsilon 0.5
    """

    epsilon: float
    delta: float
    odds: float
    posterior: float
    accountant: str
    beyond: float
    """With which probability odds may be larger: delta, or twice that where delta alone leaves them without bound."""

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.4g}" + (f" at delta {self.delta:.3g}" if self.delta else "")


def promise(event: Event, budget: Budget, adjacency: Adjacency) -> Promise:
    """The tightest statement that an accountant can make about ``event`` alone.

    >>> from defocus.privacy import Laplace
    >>> found = promise(Laplace(2), Budget(1), Adjacency.ADD_REMOVE)
    >>> found.epsilon, round(found.odds, 3), round(found.posterior, 3)
    (0.5, 1.649, 0.622)
    """
    bound = single_release_bound(event, budget, adjacency)
    loss, beyond = tightest_at(event, bound.delta, adjacency), bound.delta
    posterior = loss.posterior(0.5, delta=beyond)
    if posterior >= 1:  # of an event that is an epsilon and this delta, and nothing else is known of it
        beyond = min(2 * beyond, 0.5)
        posterior = loss.posterior(0.5, delta=beyond)
    odds = posterior / (1 - posterior) if posterior < 1 else float("inf")
    return Promise(bound.epsilon, bound.delta, odds, posterior, bound.accountant, beyond)


_NEIGHBOURS = {
    Adjacency.ADD_REMOVE: "with or without it",
    Adjacency.REPLACE: "with it or with another in its place",
}
_LONGEST = 300
_RARE = 0.01
"""A prior to speak about: someone believed of one person in a hundred."""


def alone(event: Event, terms: Terms, asked: Budget | None = None) -> Promise | None:
    """(epsilon, delta) and posterior odds of one event alone, or None if no accountant expresses it.

    At the delta that was ``asked`` for, that of the ledger where nobody wrote it down.
    """
    try:
        return promise(event, terms.budget if asked is None else asked, terms.unit.adjacency)
    except UnsupportedEventError:
        return None


def protection(unit: Unit, dataset: str, *, what: str = "every answer") -> str:
    """What stays hidden; of a person's period, also what does not."""
    said = f"{unit}, in {dataset}: {what} comes out almost as often {_NEIGHBOURS[unit.adjacency]}"
    several = f"a {unit.column or 'person'} with several {unit.period}s is protected by the sum of what each loses"
    return said if unit.period is None else f"{said}; {several}, and no better"


def subject_to(exact: Sequence[str], said: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """What is promised where some numbers are exact: only between data that agree in them.

    >>> subject_to(["the total is exact"], {"protected": ["one row"]})["protected"][0]
    'the total is exact'
    """
    if not exact:
        return dict(said)
    rest = "all else comes out almost as often with a row as with another in its place that keeps these totals"
    odds = {name: [f"beyond these totals: {line}" for line in told] for name, told in said.items() if "for one" in name}
    return {**said, "protected": [*exact, rest], **odds}


def one(unit: Unit) -> str:
    """What is protected, in a word: one person, row, edge or node.

    >>> from defocus.privacy.units import edge, rows, user
    >>> one(user("patient_id")), one(rows()), one(edge())
    ('patient_id', 'row', 'edge')
    """
    if unit.per_person is not None:
        return "person"
    if unit.period is not None:
        return f"{unit.column} in one {unit.period}"
    return "row" if unit.kind == "rows" else unit.column or unit.kind


def odds(promised: Promise | None, unit: Unit, *, what: str = "this answer") -> list[str]:
    """What the guarantee means for one person, in odds."""
    if promised is None:
        return [f"no accountant can put {what} alone into odds; the ledger's budget holds all the same"]
    exception = f", except with probability {promised.beyond:.3g}" if promised.beyond else ""
    share = 1 / (1 + (1 - _RARE) / _RARE / promised.odds)
    general = (
        f"whatever someone knows already, {what} multiplies their odds about one {one(unit)} by at most"
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
    own, used = (rule.used(Cost(each), after=Cost(receipt.spent)) for each in (receipt.cost, receipt.spent))
    return f"it takes {own} of the ledger's budget; used with it: {used}"


def entered(receipt: Receipt) -> str:
    """Where the ledger has it, for what, by whom and when."""
    return f"charged beforehand as entry {receipt.sequence}: {receipt.purpose} ({receipt.who}, {receipt.time[:10]})"


def owed(event: Event) -> str:
    """The same as the ledger writes it."""
    text = unparse(event)
    return f"as an event: {text if len(text) <= _LONGEST else f'{text[: _LONGEST - 1]}…'}"


def afterwards(receipt: Receipt) -> str:
    """What the charge left of the budget."""
    remaining = Guard.of(receipt.terms).remaining(receipt.spent)
    return f"after this answer: {remaining}; the whole budget is {receipt.terms.budget}"


def topics(receipt: Receipt, asked: Budget | None) -> dict[str, list[str]]:
    """What was protected, what that means for one person, and what was paid, for an explanation."""
    terms = receipt.terms
    promised = alone(receipt.event, terms, asked)
    return {
        "protected": [protection(terms.unit, terms.dataset)],
        f"for one {one(terms.unit)}": odds(promised, terms.unit),
        "cost": [cost(promised, asked), taken(receipt), entered(receipt), owed(receipt.event)],
        "left": [afterwards(receipt)],
    }


def left(remaining: Remaining) -> str:
    """What is left, with the delta that releases may spend outright."""
    return f"{remaining}, and delta {at_most(remaining.delta, 3)}" if remaining.delta else str(remaining)
