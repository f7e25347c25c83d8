"""One page about one signed release, for people: what was asked, the answer, what it cost and whether it is true."""

import io
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from defocus.answers import Answer
from defocus.answers.page import document, section
from defocus.answers.plots import blank, in_every_script, literal
from defocus.answers.tables import plain
from defocus.graphs.question import from_record as graph_answer
from defocus.ledger import Bundle, Evidence, Receipt, Terms
from defocus.ledger.entries import read_body
from defocus.privacy.html import html_facts
from defocus.privacy.wire import from_wire, read_unit
from defocus.tables.answers import from_record as table_answer

__all__ = ["answer_in", "pdf_report", "release_report"]

_SHOWN = ("data set", "question", "purpose", "asked by", "approved by", "when", "protects", "not protected")
_PAPER = (8.27, 11.69)
"""A4, in inches."""
_LINE, _LETTERS = 0.0117, 112
"""How high a line of the table is, as a share of the paper, and how many letters it holds."""
_PROOF = ("noise", "plan", "budget", "ledger", "key", "witnesses", "software")


def answer_in(bundle: Bundle) -> Answer | None:
    """The answer that a bundle holds; None where it is a plain value, or lies in files.

    >>> import defocus as dp
    >>> from defocus import examples
    >>> home = examples.folder()
    >>> visits = examples.visits()
    >>> answer = visits.agg(people=dp.count_units()).release(epsilon=0.5, request="people")
    >>> bundle = answer.bundle(f"{home}/people.bundle", ledger=visits.ledger, key=f"{home}/key")
    >>> answer_in(bundle).value == answer.value
    True
    >>> visits.close()
    """
    charge, release = (read_body(bundle.body[kind]["entry"]) for kind in ("charge", "release"))
    record = release.content["value"][0]
    if not isinstance(record, dict) or "columns" not in record:
        return None
    terms = Terms.read(bundle.body["terms"])
    if "data" in charge.content:  # one of several data sets about the same persons
        unit = read_unit(bundle.body["unit"])
        terms = replace(terms, dataset=charge.content["data"], unit=unit, parts=None, person=terms.unit)
    receipt = Receipt.of(charge, from_wire(charge.content["event"]), terms)
    return (graph_answer if record.get("kind") == "graph" else table_answer)(record, receipt)


def release_report(bundle: Bundle, *, title: str | None = None) -> str:
    """One HTML page with the answer, its plot, its explanation and what verifying the bundle found.

    Guarantee:
        Made of the bundle alone. Every text is escaped, and the page loads nothing.

    >>> from defocus import examples
    >>> bundle = examples.bundle()
    >>> "epsilon 0.25" in release_report(bundle)
    True
    """
    evidence = bundle.verify()
    facts = evidence.facts
    answer = answer_in(bundle) if evidence.ok else None
    body = [
        f"<p><strong>{escape(_verdict(evidence))}</strong></p>",
        html_facts(_told(facts, _SHOWN) | _price(facts)),
        "" if answer is None else section(answer),
        f"<h2>How this can be checked</h2>{html_facts(_told(facts, _PROOF))}",
        "<p>Offline and without the data: defocus verify FILE --key KEY</p>",
    ]
    if answer is None and evidence.ok:
        kept = facts["value"]
        shown = f"kept in the bundle as {kept['format']}" if isinstance(kept, dict) and "format" in kept else str(kept)
        body.insert(2, html_facts({"answer": shown[:400]}))
    return document(title or str(facts.get("purpose", "A signed release")), "".join(body))


def pdf_report(bundle: Bundle, path: str | Path, *, title: str | None = None) -> Path:
    """The same on one page of paper, as a PDF file (extra ``plot``).

    >>> from defocus import examples
    >>> home = examples.folder()
    >>> bundle = examples.bundle()
    >>> pdf_report(bundle, f"{home}/may.pdf").name
    'may.pdf'
    """
    evidence = bundle.verify()
    facts, answer = evidence.facts, answer_in(bundle) if evidence.ok else None
    told = {"verdict": _verdict(evidence), **_told(facts, _SHOWN), **_price(facts)}
    heading = title or str(facts.get("purpose", "A signed release"))
    sheet = blank(*_PAPER)
    sheet.alt = "; ".join(f"{name}: {text}" for name, text in told.items())
    sheet.text(0.08, 0.95, literal(plain(heading, widest=70)), fontsize=15, va="top")
    lines = [row for name, text in told.items() for row in _wrapped(name, text)]
    sheet.text(0.08, 0.915, literal("\n".join(lines)), fontsize=8, va="top", family="monospace", linespacing=1.4)
    below = 0.90 - 0.0133 * len(lines)
    if answer is not None:
        picture = io.BytesIO()
        drawn = answer.plot(width=700)
        drawn.savefig(picture, format="png", dpi=200)
        picture.seek(0)
        below = _placed(sheet, picture, top=below, least=0.55)
        table = answer.to_text().split("\n")[: max(0, int((below - 0.20) / _LINE))]
        small = {"fontsize": 7, "va": "top", "family": "monospace", "linespacing": 1.4}
        sheet.text(0.08, below - 0.02, literal("\n".join(row[:_LETTERS] for row in table)), **small)
    proof = [row for name, text in _told(facts, _PROOF).items() for row in _wrapped(name, text)]
    sheet.text(0.08, 0.04, literal("\n".join(proof)), fontsize=6.5, va="bottom", family="monospace", linespacing=1.4)
    in_every_script(sheet).savefig(path, format="pdf")
    return Path(path)


def _placed(sheet: Any, picture: io.BytesIO, *, top: float, least: float) -> float:
    """The picture below the facts, as wide as the paper allows; where it ends."""
    from matplotlib.image import imread  # noqa: PLC0415  # slow to load

    pixels = imread(picture)
    height, width = pixels.shape[:2]
    tall = min(top - least, 0.84 * _PAPER[0] / _PAPER[1] * height / width)
    axes = sheet.add_axes((0.08, top - tall, 0.84, tall))
    axes.imshow(pixels)
    axes.set_axis_off()
    return float(top - tall)


def _wrapped(name: str, text: str) -> list[str]:
    rows = textwrap.wrap(text, 88)[:4] or [""]
    return [f"{name if i == 0 else '':<12} {row}" for i, row in enumerate(rows)]


def _verdict(evidence: Evidence) -> str:
    if evidence.ok:
        return "Verified: signature, ledger, cost and epsilon are as this file says."
    return f"Not verified: {'; '.join(evidence.problems)}."


def _told(facts: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, str]:
    return {name: str(facts[name]) for name in names if name in facts}


def _price(facts: Mapping[str, Any]) -> dict[str, str]:
    if "epsilon" not in facts:
        return {}
    delta = f", delta {facts['delta']:.3g}" if facts["delta"] else ""
    return {"cost": f"epsilon {facts['epsilon']:.4g}{delta}, for this release alone"}
