"""A first draft of a dataset file, made from the schema alone."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from defocus.engines.columns import Schema
from defocus.engines.kinds import Kind
from defocus.engines.sources import source
from defocus.ledger.beside import beside
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Unit
from defocus.tables.writing import budget_lines, heading, top_lines, unit_lines, value

__all__ = ["draft", "likely_units"]

_PERSON = re.compile(
    r"(patient|user|person|people|customer|client|member|subject|participant|employee|student|household|account|visitor"
    r"|respondent|citizen|pupil|donor|device)"
)
_NUMBERED = re.compile(r"(^|_)(id|ids|uid|uuid|key|code|no|nr|number|hash)$")


def likely_units(schema: Schema) -> list[str]:
    """Columns that might name a person, by their names alone, the likeliest first.

    >>> from defocus.engines.columns import Column
    >>> likely_units(Schema(Column(name, Kind.INTEGER) for name in ("id", "age", "patientId")))
    ['patientId', 'id']
    """
    found: list[tuple[int, int, str]] = []
    for column in schema:
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column.name).lower().replace("-", "_").replace(" ", "_")
        points = 2 * bool(_PERSON.search(name)) + bool(_NUMBERED.search(name))
        if points and column.kind.countable:
            found.append((-points, len(found), column.name))
    return [name for *_, name in sorted(found)]


def draft(
    data: str | Path | list[str | Path],
    *,
    table: str | None = None,
    name: str | None = None,
    unit: Unit | None = None,
    budget: Budget | None = None,
    types: Mapping[str, Kind | str] | None = None,
    home: str | Path | None = None,
) -> str:
    """The text of a dataset file for ``data``, with a place for every fact that its owner should declare.

    Guarantee:
        The draft depends on names and types of columns, never on a row; statistics in Parquet footers and the
        number of rows are not looked at. Whom to protect and what may be lost are asked in comments, not guessed:
        until they are answered, the draft is refused when it is read.

    ``home`` is the folder where the file will be; paths are written as seen from there.
    """
    opened = source(data, table=table, types=types)
    given: list[str | Path] = [data] if isinstance(data, str | Path) else list(data)
    called = re.sub(r"[^A-Za-z0-9_-]+", "_", name or opened.name).strip("_-")[:64]
    called = called if re.match(r"[A-Za-z_]", called) else f"data_{called}"[:64]
    untyped = _is_text(given)
    people = likely_units(opened.schema)
    lines = [
        *top_lines(called, [_seen_from(path, home) for path in given], table),
        *_ledger_lines(beside(data, table=table) or Path(home or "") / f"{called}.ledger", home),
        '# purposes = ["monthly report"]  # if there are any, a release must name one of them',
        "",
        *(unit_lines(unit) if unit else _ask_unit(opened.schema)),
        "",
        *(budget_lines(budget) if budget else _ASK_BUDGET),
        "",
        "# [bound]  # how much one person may count in one question",
        "# rows = 5",
        *[
            line
            for column in opened.schema
            for line in _column(column.name, column.kind, people, untyped=untyped and column.name not in (types or {}))
        ],
    ]
    opened.engine.close()
    return "\n".join(lines) + "\n"


_ASK_BUDGET = [
    "[budget]  # what all releases together may lose, for ever: remove the # where you decide",
    "# epsilon = 1",
    "# delta = 1e-6  # far below one over the number of people",
]


def _ask_unit(schema: Schema) -> list[str]:
    return [
        "[unit]  # whom to protect? Remove the # of one line.",
        *(
            f"# column = {value(name)}  # everything about one of these: a guess from the name"
            for name in likely_units(schema)
        ),
        "# rows = true  # each row alone: only if nobody has two rows",
    ]


def _column(name: str, kind: Kind, people: list[str], *, untyped: bool) -> list[str]:
    """A section for one column; what is known from the schema is said, everything else is a question."""
    if kind is Kind.OTHER:
        return ["", f"# {value(name)} holds values that no question can be about."]
    lines = ["", heading("columns", name)]
    if untyped:
        lines += [
            'kind = "text"  # or boolean, integer, number, date, timestamp: what cannot be read as such is missing'
        ]
    else:
        lines += [f"kind = {value(str(kind))}"]
    if name in people:
        return lines
    if kind.numeric or untyped:
        lines += [
            "# low = 0  # bounds you know without looking at the rows;",
            "# high = 100  # values beyond are clipped",
        ]
    if kind in {Kind.TEXT, Kind.BOOLEAN}:
        sample = "[true, false]" if kind is Kind.BOOLEAN else '["first", "second"]'
        lines += [f"# values = {sample}  # all values there can be, if that is public"]
    return lines


def _ledger_lines(place: Path, home: str | Path | None) -> list[str]:
    """Where charges are kept, and what vouches for them."""
    base = os.path.realpath(home or "")
    ledger = _seen_from(os.path.realpath(place), base)
    return [
        f"ledger = {value(ledger)}  # where charges are kept: the same for all who ask about these people",
        f"anchor_file = {value(f'{ledger}.anchor')}  # notices if the ledger is lost or put back; best on another disk",
    ]


def _is_text(given: list[str | Path]) -> bool:
    """Whether the format says nothing about types."""
    return any(re.search(r"\.(csv|tsv)(\.gz)?$", str(path).lower()) for path in given)


def _seen_from(path: Any, home: str | Path | None) -> str:
    if home is None or "://" in str(path):
        return str(path)
    whole, base = Path(path).expanduser().absolute(), Path(home).absolute()
    return str(whole.relative_to(base) if whole.is_relative_to(base) else whole)
