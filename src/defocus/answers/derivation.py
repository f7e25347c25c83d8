"""New columns from released ones: SQL text over the released table, with errors and intervals. Free of charge."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from defocus.answers.columns import AnswerColumn
from defocus.answers.propagation import Propagation, numbers
from defocus.answers.released_table import ReleasedTable
from defocus.errors import InvalidParameterError, UnknownColumnError, UnsupportedSqlError, WrongKindError

__all__ = ["computed", "derived", "remarks"]

_LONGEST = 10_000


def computed(
    table: ReleasedTable, columns: Mapping[str, AnswerColumn], wanted: Mapping[str, exp.Expression]
) -> list[AnswerColumn]:
    """The formulas over released columns, as columns of their own; ``columns`` are by the names that trees use."""
    propagation = Propagation(table, columns)
    made = []
    for (name, tree), values in zip(wanted.items(), table.values(list(wanted.values())), strict=True):
        if not _is_numeric(values.type):
            raise WrongKindError(
                f"{name!r:.60} is of kind {str(values.type)[:40]}, but an answer holds numbers for each entry.",
                fix="compute a number: CASE WHEN visits > 100 THEN 1 ELSE 0 END, say.",
            )
        made.append(propagation.column(name, tree, numbers(values)))
    return made


def derived(
    keys: Mapping[str, Any], columns: Sequence[AnswerColumn], formulas: Mapping[str, object]
) -> tuple[tuple[AnswerColumn, ...], tuple[str, ...]]:
    """The columns with more that are computed from them and from each other in turn, and remarks in sentences."""
    if not formulas:
        raise InvalidParameterError("Nothing is derived.", fix='write for example derive(double="2 * visits").')
    held = tuple(columns)
    for name, text in formulas.items():
        tree = _read(text, [*keys, *(column.name for column in held)])
        by_name = {column.name: column for column in held}
        with ReleasedTable({**keys, **{each: column.values for each, column in by_name.items()}}) as table:
            held = (*held, *computed(table, by_name, {name: tree}))
    return held, remarks(held[len(columns) :])


def remarks(columns: Sequence[AnswerColumn]) -> tuple[str, ...]:
    """What must be said of computed columns beside their numbers: where intervals are missing, or too short."""
    said = []
    for column in columns:
        if "; no interval" in column.how:
            said.append(f"{column.name} has no interval: {column.how}")
        elif "fewer than 95 %" in column.how:
            said.append(f"{column.name}: {column.how.rpartition('; ')[2]}")
    return tuple(said)


def _is_numeric(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind) or types.is_boolean(kind))


def _read(text: object, names: Sequence[str]) -> exp.Expression:
    """An expression over the columns of an answer, each under its own name."""
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
        raise InvalidParameterError(
            f"A formula must be text of at most {_LONGEST} characters.",
            fix='write "visits / SUM(visits) OVER ()", say.',
        )
    try:
        tree: Any = sqlglot.parse_one(f"SELECT {text}", read="duckdb")
    except Exception:  # noqa: BLE001  # whatever hostile text does to the parser, it ends in a refusal
        tree = None
    items = tree.expressions if isinstance(tree, exp.Select) else []
    plain = len(items) == 1 and not any(value for part, value in tree.args.items() if part != "expressions")
    if not plain or isinstance(items[0], exp.Alias | exp.Star):
        raise InvalidParameterError(
            f"The formula {text[:60]!r} cannot be read.",
            fix='write one SQL expression: "visits / SUM(visits) OVER ()".',
        )
    root = exp.paren(items[0])
    _check(root)
    for column in list(root.find_all(exp.Column)):
        column.replace(exp.column(_meant(column, names), quoted=True))
    made = root.this
    assert isinstance(made, exp.Expression)  # noqa: S101  # what was put there
    return made


def _check(tree: exp.Expression) -> None:
    """Refuse what has no meaning for one entry at a time."""
    for node in tree.walk():
        if isinstance(node, exp.Query | exp.Subquery):
            raise UnsupportedSqlError(
                "A sub-query in a formula",
                why="a formula is about the entries of one answer",
                fix="derive its columns.",
            )
        if isinstance(node, exp.AggFunc) and node.find_ancestor(exp.Window) is None:
            raise UnsupportedSqlError(
                f"{node.sql_name()[:40]} without OVER",
                why="each entry has a number of its own",
                fix=f"write {node.sql('duckdb')[:60]} OVER () for all entries, or OVER (PARTITION BY …).",
            )


def _meant(column: exp.Column, names: Sequence[str]) -> str:
    if column.args.get("table") is None and isinstance(column.this, exp.Identifier):
        if column.name in names:
            return column.name
        for name in names:
            if name.casefold() == column.name.casefold() and not column.this.args.get("quoted"):
                return name
    raise UnknownColumnError(column.sql("duckdb")[:60], list(names))
