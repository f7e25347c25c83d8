"""Tables for terminals and pages. Keys are written by strangers: nothing in them may act on either."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rich.cells import cell_len, set_cell_size

from defocus.answers.spelling import spelt
from defocus.privacy.pages import html_lines, html_table

__all__ = [
    "Cells",
    "html_page",
    "line",
    "plain",
    "shortened",
    "text_facts",
    "text_page",
    "text_table",
    "visible",
]

Cells: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]], Sequence[bool]]
"""Heads, rows, and which columns end together on the right."""

_WIDEST = 40
_ROWS = 30


def visible(text: object) -> str:
    r"""The text with everything that could move a cursor or turn the reading direction spelt out.

    >>> visible("erase\x1b[2J and \u202eturn")
    'erase\\x1b[2J and \\u202eturn'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in spelt(text))


def plain(value: Any, *, widest: int = _WIDEST) -> str:
    r"""A key as one line of visible text, cut if it is long; what is missing or empty is told.

    >>> plain("ward\x1b[2J\u202e"), plain(None), plain("")
    ('ward\\x1b[2J\\u202e', 'NULL', "''")
    """
    if value is None:
        return "NULL"
    text = spelt(value)
    seen = visible(text if text.strip() else repr(text))
    return seen if len(seen) <= widest else f"{seen[: widest - 1]}…"


def line(text: str) -> str:
    """A sentence as one line, with nothing left in it that acts on a terminal."""
    return plain(text, widest=20_000)


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
    widths = [max(cell_len(cells[i]) for cells in lines) for i in range(len(head))]
    lines.insert(1, ["─" * width for width in widths])

    def cell(text: str, i: int) -> str:
        return " " * (widths[i] - cell_len(text)) + text if right[i] else set_cell_size(text, widths[i])

    return "\n".join("  ".join(cell(text, i) for i, text in enumerate(cells)).rstrip() for cells in lines)


def text_facts(facts: Mapping[str, Sequence[str]]) -> str:
    """Names with one or more sentences each, the sentences below each other."""
    width = max(map(len, facts), default=0) + 2
    return "\n".join(
        f"{name + ':' if i == 0 else '':<{width}}{line(sentence)}"
        for name, sentences in facts.items()
        for i, sentence in enumerate(sentences)
    )


def text_page(cells: Cells, notes: Sequence[str], *, title: str | None = None) -> str:
    """A title, a table and what is to be known beside it, for a terminal."""
    head, rows, right = cells
    above = [] if title is None else [line(title)]
    return "\n".join([*above, text_table(head, rows, right=right), *map(line, notes)])


def html_page(cells: Cells, notes: Sequence[str], *, title: str | None = None) -> str:
    """The same for a page, escaped."""
    head, rows, right = cells
    above = "" if title is None else html_lines([title])
    return f"<div>{above}{html_table(head, rows, right=right)}{html_lines(notes)}</div>"
