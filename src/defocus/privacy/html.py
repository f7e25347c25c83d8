"""Tables on a page, for notebooks and reports; nothing is taken for markup. Every floor above this one has some."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

__all__ = ["html_facts", "html_lines", "html_table"]


def html_facts(facts: Mapping[str, str | Sequence[str]]) -> str:
    """Names and what they stand for, one below the other; several sentences in lines of their own.

    >>> html_facts({"unit": "<one row>"})
    '<table><tr><th style="text-align:left;vertical-align:top">unit</th><td style="text-align:left">&lt;one row&gt;...
    """
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{_sentences(said)}</td></tr>'
        for name, said in facts.items()
    )
    return f"<table>{rows}</table>"


def html_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[bool] = ()) -> str:
    """Rows under their columns; columns marked ``right`` hold numbers: they end together and are not broken into lines.

    >>> html_table(["a"], [["1"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>'
    """
    kinds = ("text-align:left", "text-align:right;white-space:nowrap")
    sides = [f' style="{kinds[flag]}"' for flag in right] or [""] * len(columns)
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td{sides[i]}>{escape(cell)}</td>" for i, cell in enumerate(row)) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_lines(lines: Iterable[str]) -> str:
    """A paragraph for each line.

    >>> html_lines(["a < b"])
    '<p>a &lt; b</p>'
    """
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _sentences(said: str | Sequence[str]) -> str:
    return escape(said) if isinstance(said, str) else "<br>".join(map(escape, said))
