"""Tables and questions as a page shows them: what they are, what is declared, what is left. Nothing private is read."""

from collections.abc import Mapping, Sequence

from defocus.answers.tables import line, plain
from defocus.engines.schema import Column, Schema
from defocus.ledger import Ledger
from defocus.privacy.html import html_facts, html_lines, html_table
from defocus.tables.contribution import Bound
from defocus.tables.keys import Keys, StoredKeys
from defocus.tables.parts import whats_left
from defocus.tables.rows import Rows

__all__ = ["columns_page", "groups_words", "question_page"]

_SHOWN = 12
"""So many declared values of a column, or keys, are named."""
_FREE = "nothing was charged for this: preview(epsilon=…) says how exact an answer would be, release(epsilon=…) pays"


def columns_page(name: str, rows: Rows, ledger: Ledger, bound: Bound | None) -> str:
    """A table: its columns with what is declared about them, what was done to its rows, whom it protects."""
    facts = {"steps": list(rows.words), **_known(rows, ledger, bound)}
    cells = [[plain(column.name), str(column.kind), _declared(column, rows)] for column in _shown(rows.schema)]
    table = html_table(["column", "kind", "declared"], cells, caption=f"private table {plain(name)}", heads=1)
    more = len(rows.schema.names) - len(cells)
    rest = html_lines([f"{more} more columns are not shown"] if more else [])
    return f"<div>{table}{rest}{_facts(facts)}</div>"


def question_page(question: str, rows: Rows, ledger: Ledger, bound: Bound | None, groups: str) -> str:
    """A question: what is asked, in which groups, of whom, and what is left to pay for it."""
    said = {"question": [question], "groups": [groups] if groups else []}
    return f"<div>{_facts({**said, **_known(rows, ledger, bound)})}{html_lines([_FREE])}</div>"


def groups_words(by: Sequence[str], keys: Keys | StoredKeys | None) -> str:
    """Which groups are asked about, in words."""
    if not by:
        return ""
    names = ", ".join(map(plain, by))
    if keys is None:
        return f"by {names}; found privately, which needs a delta"
    if isinstance(keys, StoredKeys):
        return f"by {names}: those of {plain(keys.description)}"
    rows = [", ".join(map(plain, row.values())) for row in keys.table.slice(0, _SHOWN).to_pylist()]
    return f"by {names}: {_some(rows, keys.number)}"


_COLUMNS = 200


def _shown(schema: Schema) -> Sequence[Column]:
    return list(schema)[:_COLUMNS]


def _known(rows: Rows, ledger: Ledger, bound: Bound | None) -> dict[str, list[str]]:
    most = [] if bound is None or rows.unit is None else [f"at most {bound}"]
    return {f"one {plain(rows.unit or 'row')} counts with": most, "budget": whats_left(rows.division, ledger)}


def _facts(facts: Mapping[str, Sequence[str]]) -> str:
    return html_facts({name: [line(text) for text in said] for name, said in facts.items() if said})


def _declared(column: Column, rows: Rows) -> str:
    said = ["names whom it is about"] if column.name == rows.unit else []
    ends = {"from": column.low, "to": column.high}
    if column.low is not None or column.high is not None:
        said.append(" ".join(f"{word} {end}" for word, end in ends.items() if end is not None))
    if column.values is not None:
        said.append(_some([plain(value) for value in column.values[:_SHOWN]], len(column.values)))
    return "; ".join(said)


def _some(words: Sequence[str], number: int) -> str:
    more = f" and {number - len(words)} more" if number > len(words) else ""
    return f"{', '.join(words)}{more}"
