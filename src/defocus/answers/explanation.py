"""An answer in plain words, for a privacy officer: what was asked, protected, bounded, added, paid and left."""

from collections.abc import Sequence

import numpy as np

from defocus.answers.columns import AnswerColumn, Floats, brief
from defocus.answers.tables import text_facts
from defocus.ledger import Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.html import html_facts
from defocus.release import guarantee

__all__ = ["exactness", "facts", "told"]


def facts(
    *,
    question: str,
    columns: Sequence[AnswerColumn],
    receipt: Receipt,
    rules: Sequence[str],
    processing: Sequence[str],
    asked: Budget | None,
    thing: tuple[str, str] = ("group", "groups"),
    found: Sequence[str] = (),
    threshold: float | None = None,
    biased: Sequence[str] = (),
) -> dict[str, Sequence[str]]:
    """What there is to say, by topic; each topic has one or more sentences.

    ``thing`` is what one entry and several are called, ``found`` are sentences that became known by paying, and
    ``biased`` are the rules whose bias no error and no interval tells.
    """
    terms, count = receipt.terms, len(columns[0].values)
    promised = guarantee.alone(receipt.event, terms, asked)
    return {
        "question": [question],
        "answer": [f"{count} {thing[count != 1]} with {', '.join(column.name for column in columns)}"],
        "protected": [guarantee.protection(terms.unit, terms.dataset)],
        f"for one {guarantee.one(terms.unit)}": guarantee.odds(promised, terms.unit),
        "by rule": rules or ["nothing was bounded or clipped"],
        "noise": [f"{column.name}: {column.how}" for column in columns],
        "exactness": [exactness(column, threshold, thing=thing[0], biased=biased) for column in columns],
        "found": found,
        "afterwards": processing or ["nothing but scaling and rounding was done to the noisy numbers"],
        "cost": [
            guarantee.cost(promised, asked),
            guarantee.taken(receipt),
            guarantee.entered(receipt),
            guarantee.owed(receipt.event),
        ],
        "left": [guarantee.afterwards(receipt)],
    }


def told(said: dict[str, Sequence[str]], *, html: bool) -> str:
    """The topics there is something to say about, as text or for a page."""
    spoken = {name: sentences for name, sentences in said.items() if sentences}
    return html_facts(spoken) if html else text_facts(spoken)


def exactness(
    column: AnswerColumn, threshold: float | None = None, *, thing: str = "group", biased: Sequence[str] = ()
) -> str:
    """How far off a column is, how much of it is drowned in noise, and what is not known about that."""
    errors, half = _known(column.errors if column.absolute else column.spread), _known(column.half)
    said = []
    if errors.size:
        least, most = brief(errors.min()), brief(errors.max())
        size = least if least == most else f"{least} to {most}"
        said.append(f"off by {size} on average" if column.absolute else f"standard error of the noise {size}")
    if half.size:
        middle = "" if len(column.values) == 1 else f" for the median {thing}"
        said.append(f"95 % within {brief(np.median(half))}{middle}")
    if not said:
        return f"{column.name}: how far off it is in value is not known"
    only = f"; that is the noise alone, and the truth may lie outside: {'; '.join(biased)}" if biased else ""
    noisy = 0 if threshold is None else sum(flag is not True for flag in column.reliable(threshold))
    drowned = f"; in {noisy} of {len(column.values)} it is more than {100 * (threshold or 0):g} % of the value"
    return f"{column.name}: {', '.join(said)}{drowned if noisy else ''}{only}"


def _known(numbers: Floats) -> Floats:
    return numbers[np.isfinite(numbers)]
