"""Tables for terminals and pages. Keys are written by strangers: nothing in them may act on either."""

import unicodedata
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rich.cells import cell_len, set_cell_size

__all__ = ["escaped", "html_facts", "html_table", "line", "plain", "shortened", "text_facts", "text_table"]

_WIDEST = 40
_ROWS = 30


def plain(value: Any, *, widest: int = _WIDEST) -> str:
    r"""A key as one line of visible text: control characters and those that turn the reading direction are spelt out.

    >>> plain("ward\x1b[2J\u202e"), plain(None), plain("")
    ('ward\\x1b[2J\\u202e', 'NULL', "''")
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


def escaped(text: str) -> str:
    """Text that a page shows and never obeys."""
    return escape(text)


def shortened(count: int, *, most: int = _ROWS) -> tuple[list[int], int]:
    """Which of ``count`` rows to show, the first and the last, and how many are left out between them.

    >>> shortened(5), shortened(1000, most=4)
    (([0, 1, 2, 3, 4], 0), ([0, 1, 998, 999], 996))
    """
    if count <= most:
        return list(range(count)), 0
    half = most // 2
    return [*range(half), *range(count - (most - half), count)], count - most


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool]) -> str:
    """A table in fixed width, aware of characters that take two cells; columns marked ``right`` end together."""
    lines = [list(head), *map(list, rows)]
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(head))]
    lines.insert(1, ["─" * width for width in widths])

    def cell(text: str, i: int) -> str:
        return " " * (widths[i] - cell_len(text)) + text if right[i] else set_cell_size(text, widths[i])

    return "\n".join("  ".join(cell(text, i) for i, text in enumerate(line)).rstrip() for line in lines)


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool]) -> str:
    """The same for a page, with every cell escaped."""
    top = "".join(f"<th>{escape(text)}</th>" for text in head)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{"right" if right[i] else "left"}">{escape(text)}</td>'
            for i, text in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def text_facts(facts: Mapping[str, Sequence[str]]) -> str:
    """Names with one or more sentences each, the sentences below each other."""
    width = max(map(len, facts), default=0) + 2
    return "\n".join(
        f"{name + ':' if i == 0 else '':<{width}}{line(sentence)}"
        for name, sentences in facts.items()
        for i, sentence in enumerate(sentences)
    )


def html_facts(facts: Mapping[str, Sequence[str]]) -> str:
    """The same for a page, escaped."""
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{"<br>".join(map(escape, sentences))}</td></tr>'
        for name, sentences in facts.items()
    )
    return f"<table>{rows}</table>"
