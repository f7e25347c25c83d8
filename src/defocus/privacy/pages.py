"""Tables on a page, for notebooks. Here because mechanisms and ledgers both show some; nothing is taken for markup."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

__all__ = ["html_facts", "html_table"]


def html_facts(facts: Mapping[str, str]) -> str:
    """Names and what they stand for, one below the other.

    >>> html_facts({"unit": "<one row>"})
    "<table><tr><th align='left'>unit</th><td>&lt;one row&gt;</td></tr></table>"
    """
    rows = "".join(f"<tr><th align='left'>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in facts.items())
    return f"<table>{rows}</table>"


def html_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows under their columns.

    >>> html_table(["a"], [["1"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
