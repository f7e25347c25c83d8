"""Drafts of dataset files, from a schema and with comments that teach.

A dataset as the text of a dataset file, with comments that teach what may be changed.
"""

import os
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from defocus.engines.schema import Kind, Schema
from defocus.engines.sources import source
from defocus.errors import InvalidParameterError
from defocus.ledger.creation import beside
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Adjacency, Unit
from defocus.tables.contribution import FIND, Bound
from defocus.tables.dataset_file import Dataset, Facts, OtherTable
from defocus.tables.parts import Declared

__all__ = ["budget_lines", "draft", "heading", "key", "likely_units", "top_lines", "unit_lines", "value", "write"]


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def write(dataset: Dataset) -> str:
    """The text of a file that reads as this dataset, except for ``home``.

    Guarantee:
        ``parsed(write(dataset)) == dataset``. No name or value can end its line or its quotes.
    """
    lines = [
        *top_lines(dataset.name, dataset.data, dataset.table),
        *_optional("engine", dataset.engine, "where Spark computes"),
        *_optional("ledger", dataset.ledger, "where charges are kept; beside the data where it is not said"),
        *_optional("anchor_file", dataset.anchor_file, "notices if the ledger is lost; best on another disk"),
        *_optional("purposes", list(dataset.purposes) or None, "a release must name one of them"),
        "",
        *unit_lines(dataset.unit),
        "",
        *budget_lines(dataset.budget),
        *_bound(dataset.bound),
        *_parts(dataset.parts),
        *_columns(dataset.columns, ()),
        *_others("public", dataset.public),
        *_others("private", dataset.private),
    ]
    return "\n".join(lines) + "\n"


def top_lines(name: str, data: Iterable[str], table: str | None) -> list[str]:
    """What the data is called and where it is."""
    paths = list(data)
    seen = "" if any("://" in path for path in paths) else "  # seen from this file"
    return [
        "# What is publicly known about one data set, and what may be asked of it.",
        "# Everything here is public: write down what you know without looking at the rows.",
        f"name = {value(name)}",
        f"data = {value(paths[0] if len(paths) == 1 else paths)}{seen}",
        *_optional("table", table, "in the database"),
    ]


def unit_lines(unit: Unit) -> list[str]:
    """Whom the file protects."""
    who = "rows = true" if unit.column is None else f"column = {value(unit.column)}"
    return [
        "[unit]  # whom to protect: one person's rows together (column), or each row alone (rows = true)",
        who,
        *(["replace = true  # the number of people is public"] if unit.adjacency is Adjacency.REPLACE else []),
    ]


def budget_lines(budget: Budget) -> list[str]:
    """What may be lost."""
    given = {name: getattr(budget, name) for name in ("epsilon", "rho", "mu") if getattr(budget, name) is not None}
    given |= {"delta": budget.delta} if budget.delta else {}
    given |= {"direct": budget.direct} if budget.direct != Budget(1).direct else {}
    return [
        "[budget]  # what all releases together may lose, for ever",
        *(f"{n} = {value(x)}" for n, x in given.items()),
    ]


def value(thing: Any) -> str:
    """A value as TOML."""
    if isinstance(thing, bool):
        return str(thing).lower()
    if isinstance(thing, int | float):
        return repr(thing)
    if isinstance(thing, Fraction):
        return value(f"{thing.numerator}/{thing.denominator}") if thing.denominator > 1 else str(thing.numerator)
    if isinstance(thing, str):
        return _quoted(thing)
    if isinstance(thing, datetime | date):
        return thing.isoformat()
    if isinstance(thing, list | tuple):
        return f"[{', '.join(value(one) for one in thing)}]"
    raise InvalidParameterError(
        f"{type(thing).__name__} cannot be written into a dataset file.", fix="use text, numbers, dates and lists."
    )


def key(name: str) -> str:
    """A key as TOML, quoted where it must be."""
    return name if _BARE.fullmatch(name) else _quoted(name)


def heading(*path: str) -> str:
    """The line that begins a section."""
    return f"[{'.'.join(key(part) for part in path)}]"


def _quoted(text: str) -> str:
    if any(0xD800 <= ord(c) < 0xE000 for c in text):
        raise InvalidParameterError("A text has half of a character in it.", fix="remove it.")
    escaped = "".join(
        f"\\{c}"
        if c in '"\\'
        else f"\\u{ord(c):04x}"
        if ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u2028\u2029"
        else c
        for c in text
    )
    return f'"{escaped}"'


def _optional(name: str, thing: Any, comment: str) -> list[str]:
    return [] if thing is None else [f"{name} = {value(thing)}  # {comment}"]


def _bound(bound: Bound | None) -> list[str]:
    if bound is None:
        return []
    given = {name: getattr(bound, name) for name in ("rows", "groups", "per_group", "most")}
    given["rows"] = FIND if bound.find else bound.rows
    given["by"] = None if bound.by == "weights" else bound.by
    return [
        "",
        "[bound]  # how much one person may count in one question",
        *(f"{name} = {value(one)}" for name, one in given.items() if one is not None),
    ]


def _parts(parts: Declared | None) -> list[str]:
    if parts is None:
        return []
    return [
        "",
        "[parts]  # what divides the data into parts that can be asked about one by one",
        f"column = {value(parts.column)}",
        *_optional("people", parts.people, "a promise about all data, past and to come"),
    ]


def _columns(columns: Mapping[str, Facts], path: tuple[str, ...]) -> list[str]:
    lines = []
    for name, facts in columns.items():
        given = {"kind": None if facts.kind is None else str(facts.kind), "low": facts.low, "high": facts.high}
        given |= {"values": facts.values, "missing": facts.missing or None}  # type: ignore[dict-item]  # written alike
        lines += ["", heading(*path, "columns", name)]
        lines += [f"{fact} = {value(one)}" for fact, one in given.items() if one is not None]
    return lines


def _others(group: str, tables: Mapping[str, OtherTable]) -> list[str]:
    lines = []
    for name, other in tables.items():
        paths = list(other.data)
        lines += ["", heading(group, name), f"data = {value(paths[0] if len(paths) == 1 else paths)}"]
        lines += _optional("table", other.table, "in the database")
        lines += _optional("unit", other.unit, "the column that names the person in this table")
        lines += _columns(other.columns, (group, name))
    return lines


_PERSON = re.compile(
    r"(patient|user|person|people|customer|client|member|subject|participant|employee|student|household|account|visitor"
    r"|respondent|citizen|pupil|donor|device)"
)
_NUMBERED = re.compile(r"(^|_)(id|ids|uid|uuid|key|code|no|nr|number|hash)$")


def likely_units(schema: Schema) -> list[str]:
    """Columns that might name a person, by their names alone, the likeliest first.

    >>> from defocus.engines.schema import Column
    >>> likely_units(Schema(Column(name, Kind.INTEGER) for name in ("id", "age", "patientId")))
    ['patientId', 'id']
    """
    candidates: list[tuple[int, int, str]] = []
    for column in schema:
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column.name).lower().replace("-", "_").replace(" ", "_")
        points = 2 * bool(_PERSON.search(name)) + bool(_NUMBERED.search(name))
        if points and column.kind.countable:
            candidates.append((-points, len(candidates), column.name))
    return [name for *_, name in sorted(candidates)]


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
    untyped = any(re.search(r"\.(csv|tsv)(\.gz)?$", str(path).lower()) for path in given)
    typed = types or {}
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
        "",
        *_what_to_add(untyped=untyped),
        *[
            line
            for column in opened.schema
            for line in _column(column.name, Kind.TEXT if untyped and column.name not in typed else column.kind)
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


def _what_to_add(*, untyped: bool) -> list[str]:
    """What may be said of columns, once for all of them."""
    kinds = "boolean, integer, number, date or timestamp; what cannot be read as such is missing"
    return [
        "# Under the name of a column, say what you know of it without looking at the rows:",
        *([f'#   kind = "text", or {kinds}'] if untyped else []),
        "#   low = 0, and high = 100: bounds of numbers; values beyond are clipped; or the first and last date",
        '#   values = ["first", "second"]: all values there can be, if that is public',
    ]


def _column(name: str, kind: Kind) -> list[str]:
    """A section for one column, with what is known from the schema."""
    if kind is Kind.OTHER:
        return ["", f"# {value(name)} holds values that no question can be about."]
    return ["", heading("columns", name), f"kind = {value(str(kind))}"]


def _ledger_lines(place: Path, home: str | Path | None) -> list[str]:
    """Where charges are kept, and what vouches for them."""
    base = os.path.realpath(home or "")
    ledger = _seen_from(os.path.realpath(place), base)
    return [
        f"ledger = {value(ledger)}  # where charges are kept: the same for all who ask about these people",
        f"anchor_file = {value(f'{ledger}.anchor')}  # notices if the ledger is lost or put back; best on another disk",
    ]


def _seen_from(path: Any, home: str | Path | None) -> str:
    if home is None or "://" in str(path):
        return str(path)
    whole, base = Path(path).expanduser().absolute(), Path(home).absolute()
    return str(whole.relative_to(base) if whole.is_relative_to(base) else whole)
