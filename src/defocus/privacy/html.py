"""Tables on a page, for notebooks and reports; nothing is taken for markup. Every floor above this one has some.

Colours are those of the page, light or dark. Wide tables scroll, numbers stay in one line, and heads say what they are
heads of, for those who listen to a page.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

__all__ = ["html_facts", "html_lines", "html_table"]

_IN_NUMBERS = re.compile(r"(?<=\d) (?=\d{3}(?!\d))")


def html_facts(facts: Mapping[str, str | Sequence[str]]) -> str:
    """Names and what they stand for, one below the other; several sentences in lines of their own.

    >>> html_facts({"unit": "<one row>"})
    '<table><tr><th scope="row" style="text-align:left;vertical-align:top">unit</th><td ...>&lt;one row&gt;...
    """
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{_sentences(said)}</td></tr>'
        for name, said in facts.items()
    )
    return f"<table>{rows}</table>"


def html_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[bool] = (),
    caption: str = "",
    heads: int = 0,
) -> str:
    """Rows under their columns; columns marked ``right`` hold numbers: they end together and are not broken into lines.

    The first ``heads`` columns say what a row is about.

    >>> html_table(["a"], [["1"]], caption="one")
    '<div style="overflow-x:auto"><table><caption ...>one</caption><thead><tr><th scope="col">a</th></tr></thead>...
    """
    kinds = ("text-align:left", "text-align:right;white-space:nowrap")
    sides = [f' style="{kinds[flag]}"' for flag in right] or [""] * len(columns)
    head = "".join(f'<th scope="col"{sides[i]}>{escape(name)}</th>' for i, name in enumerate(columns))
    body = "".join(
        f"<tr>{''.join(_cell(cell, sides[i], head=i < heads) for i, cell in enumerate(row))}</tr>" for row in rows
    )
    about = f'<caption style="text-align:left">{escape(_unbroken(caption))}</caption>' if caption else ""
    table = f"<table>{about}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="overflow-x:auto">{table}</div>'


def html_lines(lines: Iterable[str]) -> str:
    """A paragraph for each line.

    >>> html_lines(["a < b"])
    '<p>a &lt; b</p>'
    """
    return "".join(f"<p>{escape(_unbroken(line))}</p>" for line in lines)


def _cell(text: str, side: str, *, head: bool) -> str:
    if head:
        style = side.replace(' style="', ' style="font-weight:normal;') or ' style="font-weight:normal;text-align:left"'
        return f'<th scope="row"{style}>{escape(_unbroken(text))}</th>'
    return f"<td{side}>{escape(text if 'nowrap' in side else _unbroken(text))}</td>"


def _sentences(said: str | Sequence[str]) -> str:
    return "<br>".join(escape(_unbroken(line)) for line in ([said] if isinstance(said, str) else said))


def _unbroken(text: str) -> str:
    """Text whose numbers stay in one line: the spaces in them are no places to break it."""
    return _IN_NUMBERS.sub("\u00a0", text)
