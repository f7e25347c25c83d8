"""One page for a reader: tables, pictures, words, and where the budget went. It needs no other file and no network."""

from collections.abc import Iterable
from html import escape
from pathlib import Path

from defocus.answers import Answer, explanation, export, plots, tables
from defocus.answers.columns import written
from defocus.answers.page import document, section
from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger
from defocus.ledger.entries import CHARGE
from defocus.ledger.filter import Guard
from defocus.privacy.html import html_table
from defocus.privacy.numbers import at_most

__all__ = ["page", "report"]

_MOST = 100
"""So many charges are listed at most."""


def report(answers: Answer | Iterable[Answer], path: str | Path, *, title: str, ledger: Ledger | None = None) -> Path:
    """Write one HTML file with every answer: its table, its plot and its explanation, and the budget if given a ledger.

    Guarantee:
        Made of released answers and the ledger, which are public; reads no data. Every text is escaped, and the page
        loads nothing.

    >>> import defocus as dp
    >>> from defocus import examples
    >>> home = examples.folder()
    >>> visits = examples.visits()
    >>> answer = visits.agg(people=dp.count_units()).release(epsilon=0.5)
    >>> report([answer], f"{home}/report.html", title="Visits").name
    'report.html'
    >>> visits.close()
    """
    export.write_bytes(path, page(answers, title=title, ledger=ledger).encode("utf-8", "replace"))
    return Path(path)


def page(answers: Answer | Iterable[Answer], *, title: str, ledger: Ledger | None = None) -> str:
    """The same as text."""
    every = [answers] if isinstance(answers, Answer) else list(answers)
    if not all(isinstance(answer, Answer) for answer in every) or not (every or ledger):
        raise InvalidParameterError("A report is made of answers.", fix="pass what release() returned, one or several.")
    parts = [section(answer) for answer in every]
    if ledger is not None:
        parts.append(_budget(ledger))
    return document(title, "".join(parts))


def _budget(ledger: Ledger) -> str:
    guard = Guard.of(ledger.terms)
    charges = [entry for entry in ledger.entries() if entry.kind == CHARGE]
    left = [guard.remaining(entry.spent) for entry in charges]
    picture = plots.burn_down(
        [guard.remaining(guard.start), *left], ["start", *(tables.plain(entry.purpose) for entry in charges)]
    )
    rows = [
        [
            *(str(entry.sequence), entry.time[:16].replace("T", " "), entry.who, entry.purpose),
            *(written(after.epsilon, 3), at_most(after.delta, 3)),
        ]
        for entry, after in zip(charges, left, strict=True)
    ][-_MOST:]
    heads = ["entry", "time (UTC)", "who", "purpose", "epsilon left", "delta left"]
    note = f"The newest {_MOST} of {len(charges)} charges." if len(charges) > _MOST else ""
    return (
        f"<h2>Where the budget went</h2><p>{escape(f'{ledger.dataset}: {ledger.unit}; {ledger.budget}')}</p>"
        f"<p>Left: {escape(explanation.left(ledger.remaining()))}. {note}</p>"
        f"{picture.tag()}"
        f"{html_table(heads, rows, right=[True, False, False, False, True, True], caption='charges')}"
    )
