"""A dataset as the text of a dataset file, with comments that teach what may be changed."""

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from defocus.errors import InvalidParameterError
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Adjacency, Unit
from defocus.tables.bounding import FIND, Bound
from defocus.tables.datasets import Dataset, Facts, OtherTable
from defocus.tables.dividing import Declared

__all__ = ["budget_lines", "heading", "key", "top_lines", "unit_lines", "value", "write"]

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
    given = {name: getattr(bound, name) for name in ("rows", "groups", "per_group")}
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
