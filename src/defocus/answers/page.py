"""One HTML file for a reader, which needs no other file and no network."""

from html import escape

from defocus.answers import tables
from defocus.answers.answer import Answer

__all__ = ["document", "section"]

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


def document(title: str, body: str) -> str:
    r"""A whole page around a body in HTML. It loads nothing, and no script runs in it.

    >>> document("Visits", "<p>12</p>").endswith("<h1>Visits</h1><p>12</p></body></html>\n")
    True
    """
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; img-src data:;"
        " style-src 'unsafe-inline'\">"
        f"<meta name='viewport' content='width=device-width,initial-scale=1'><title>{escape(title)}</title>"
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def section(answer: Answer) -> str:
    """An answer with its table, its plot and what it means."""
    picture = answer.plot(width=_WIDE).tag(narrow=answer.plot(width=_NARROW))
    heading = answer.question if answer.receipt is None else answer.receipt.purpose
    return (
        f"<h2>{escape(tables.line(heading))}</h2>{answer._repr_html_()}{picture}"
        f"<details open><summary>What this means</summary>{answer.explain(html=True)}</details>"
    )
