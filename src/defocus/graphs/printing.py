"""Text for terminals and pages. Names of nodes are written by strangers: nothing in them may act on either."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rich.cells import cell_len, set_cell_size

__all__ = ["brief", "facts_html", "facts_text", "line", "plain", "shortened", "table_html", "table_text", "written"]

_WIDEST = 40
_ROWS = 20


def plain(value: Any, *, widest: int = _WIDEST) -> str:
    r"""A name as one line of visible text: control characters and those that turn the reading direction are spelt out.

    >>> plain("node\x1b[2J\u202e"), plain(None), plain("")
    ('node\\x1b[2J\\u202e', 'NULL', "''")
    """
    if value is None:
        return "NULL"
    text = str(value)
    if not text.strip():
        text = repr(text)
    seen = "".join(c if unicodedata.category(c)[0] not in "CZ" or c == " " else ascii(c)[1:-1] for c in text)
    return seen if len(seen) <= widest else f"{seen[: widest - 1]}…"


def line(text: str) -> str:
    """A sentence as one line, with nothing left in it that acts on a terminal."""
    return plain(text, widest=20_000)


def written(value: float, places: int = 0) -> str:
    """One number for people, groups of three digits set apart.

    >>> written(1612010.0), written(0.12345, 3), written(float("nan"))
    ('1 612 010', '0.123', '–')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    text = f"{value:,.{places}f}".replace(",", " ")
    return text.removeprefix("-") if not float(f"{value:.{places}f}") else text


def brief(value: float) -> str:
    """An error for people: two digits are enough to know how large it is.

    >>> brief(24.49), brief(0.003721), brief(123456.0)
    ('24', '0.0037', '120 000')
    """
    if not math.isfinite(value) or value == 0:
        return written(value)
    places = 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, places):,.{max(places, 0)}f}".replace(",", " ")


def shortened(count: int, *, most: int = _ROWS) -> tuple[list[int], int]:
    """Which of ``count`` rows to show, the first and the last, and how many are left out between them."""
    if count <= most:
        return list(range(count)), 0
    half = most // 2
    return [*range(half), *range(count - half, count)], count - 2 * half


def table_text(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool]) -> str:
    """A table in fixed width; columns marked ``right`` end together."""
    lines = [list(head), *map(list, rows)]
    widths = [max(cell_len(cells[i]) for cells in lines) for i in range(len(head))]
    lines.insert(1, ["─" * width for width in widths])

    def cell(text: str, i: int) -> str:
        return " " * (widths[i] - cell_len(text)) + text if right[i] else set_cell_size(text, widths[i])

    return "\n".join("  ".join(cell(text, i) for i, text in enumerate(cells)).rstrip() for cells in lines)


def table_html(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool]) -> str:
    """The same for a page, with every cell escaped."""
    sides = ["right" if flag else "left" for flag in right]
    top = "".join(f"<th>{escape(text)}</th>" for text in head)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="text-align:{sides[i]}">{escape(text)}</td>' for i, text in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def facts_text(facts: Mapping[str, Sequence[str]]) -> str:
    """Names with one or more sentences each, the sentences below each other."""
    width = max(map(len, facts), default=0) + 2
    return "\n".join(
        f"{name + ':' if i == 0 else '':<{width}}{line(sentence)}"
        for name, sentences in facts.items()
        for i, sentence in enumerate(sentences)
    )


def facts_html(facts: Mapping[str, Sequence[str]]) -> str:
    """The same for a page, escaped."""
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{"<br>".join(map(escape, sentences))}</td></tr>'
        for name, sentences in facts.items()
    )
    return f"<table>{rows}</table>"
