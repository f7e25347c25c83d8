"""One page for a reader: tables, pictures, words, and where the budget went. It needs no other file and no network."""

from collections.abc import Iterable
from html import escape
from pathlib import Path

from defocus.answers import Answer, explanation, export, plots, tables
from defocus.answers.columns import written
from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger
from defocus.ledger.entries import CHARGE
from defocus.ledger.filter import Guard
from defocus.privacy.html import html_table
from defocus.privacy.numbers import at_most

__all__ = ["page", "report"]

_STYLE = """
:root{color-scheme:light dark;--ink:#222;--paper:#fff;--rule:#ddd;--accent:#1f6c64}
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--paper:#14181b;--rule:#3a4147;--accent:#6fc4ba}}
@media print{:root{--ink:#000;--paper:#fff;--rule:#bbb;--accent:#000}details>summary{list-style:none}}
body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
body{color:var(--ink);background:var(--paper)}
h1{font-size:1.7rem}h2{font-size:1.25rem;margin-top:2.5rem;border-top:1px solid var(--rule);padding-top:1rem}
h1,h2,p,td,caption{overflow-wrap:anywhere}
table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}caption{padding:.25rem 0}
th,td{padding:.25rem .75rem;border-bottom:1px solid var(--rule);vertical-align:top}
thead th{border-bottom:2px solid var(--accent)}
img{max-width:100%;height:auto}details{margin:1rem 0}summary{cursor:pointer;color:var(--accent)}p{margin:.3rem 0}
"""
_WIDE, _NARROW = 760, 400
"""How wide pictures are, in pixels: on most screens, and on narrow ones."""
_MOST = 100
"""So many charges are listed at most."""


def report(answers: Answer | Iterable[Answer], path: str | Path, *, title: str, ledger: Ledger | None = None) -> Path:
    """Write one HTML file with every answer: its table, its plot and its explanation, and the budget if given a ledger.

    Guarantee:
        Made of released answers and the ledger, which are public; reads no data. Every text is escaped, and the page
        loads nothing.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> people = pa.table({"person": range(1000), "age": [30 + i % 40 for i in range(1000)]})
    >>> visits = dp.open(people, unit=dp.user("person"), budget=dp.Budget(1), ledger=f"{home.name}/a", name="visits")
    >>> answer = visits.agg(people=dp.count_units()).release(epsilon=0.5)
    >>> report([answer], f"{home.name}/report.html", title="Visits").name
    'report.html'
    >>> visits.close(); home.cleanup()
    """
    export.write_bytes(path, page(answers, title=title, ledger=ledger).encode("utf-8", "replace"))
    return Path(path)


def page(answers: Answer | Iterable[Answer], *, title: str, ledger: Ledger | None = None) -> str:
    """The same as text."""
    every = [answers] if isinstance(answers, Answer) else list(answers)
    if not all(isinstance(answer, Answer) for answer in every) or not (every or ledger):
        raise InvalidParameterError("A report is made of answers.", fix="pass what release() returned, one or several.")
    parts = [_section(answer) for answer in every]
    if ledger is not None:
        parts.append(_budget(ledger))
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; img-src data:;"
        " style-src 'unsafe-inline'\">"
        f"<meta name='viewport' content='width=device-width,initial-scale=1'><title>{escape(title)}</title>"
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{''.join(parts)}</body></html>\n"
    )


def _section(answer: Answer) -> str:
    picture = answer.plot(width=_WIDE).tag(narrow=answer.plot(width=_NARROW))
    heading = answer.question if answer.receipt is None else answer.receipt.purpose
    return (
        f"<h2>{escape(tables.line(heading))}</h2>{answer._repr_html_()}{picture}"
        f"<details open><summary>What this means</summary>{answer.explain(html=True)}</details>"
    )


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
