"""Joins that keep every row with its person: public tables by unique keys, private tables by the person."""

import hashlib
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from defocus.engines.schema import Column, Kind, Schema
from defocus.engines.sources import source
from defocus.engines.syntax import column, quoted, sub
from defocus.errors import InvalidParameterError, SourceError, WrongKindError, choice
from defocus.tables.rows import Rows

__all__ = ["join_private", "join_public"]

_HOW = ("left", "inner")


def join_public(rows: Rows, other: Any, on: object, how: object) -> Rows:
    """The rows with the columns of a public table in which each key appears once.

    Every row then has at most one match, so it stays one row of the same person.
    """
    names, side, steps = _on(on), choice("join", how, _HOW), rows.joinable()
    opened = source(other)
    try:
        table = opened.engine.run(opened.relation)
    finally:
        opened.engine.close()
    for name in names:
        _matching(rows.schema.usable(name), opened.schema.usable(name))
    if table.group_by(names).aggregate([]).num_rows != table.num_rows:
        raise SourceError(
            f"The public table has several rows for the same {', '.join(names)}, so one row would become many.",
            fix="keep one row for each key of the public table.",
        )
    added = [column for column in opened.schema if column.name not in names and column.kind is not Kind.OTHER]
    kept = table.select([*names, *(column.name for column in added)])
    # Its content is part of the name, so that two questions about different public tables can be told apart.
    published = rows.engine.publish(f"joined {_digest(kept)}", kept)
    words = f"joined with {opened.description} on {', '.join(names)}"
    return _joined(rows, published, added, on=names, side=side, words=words, steps=steps)


def join_private(rows: Rows, other: Rows, on: object, how: object) -> Rows:
    """The rows with those of another private table of the same people, matched by the person.

    A row may meet several of the same person's rows; bounds on contributions are held after the join.
    """
    names, side = _on(on), choice("join", how, _HOW)
    if rows.unit is None or other.unit is None or rows.unit not in names:
        raise InvalidParameterError(
            "Private tables can be joined only on the column that names the person in both.",
            fix='protect people with unit=user("…"), and put that column in on=.',
        )
    if rows.unit != other.unit:
        raise InvalidParameterError(
            f"One table calls the person {rows.unit!r}, the other {other.unit!r}.", fix="rename one of the columns."
        )
    if rows.engine is not other.engine:
        raise InvalidParameterError(
            "The two private tables were not opened together.",
            fix='open both at once, dp.open(data, private={"patients": …}), and join them by that name.',
        )
    steps = rows.joinable(other.steps)
    for name in names:
        _matching(rows.schema.usable(name), other.schema.usable(name))
    added = [each for each in other.schema if each.name not in names and each.kind is not Kind.OTHER]
    relation = other.select([column(name) for name in (*names, *(each.name for each in added))])
    words = "; ".join(("joined with another private table of the same people", *other.words))
    return _joined(rows, relation.subquery(), added, on=names, side=side, words=words, steps=steps)


def _joined(
    rows: Rows, right: exp.Expression, added: Sequence[Column], *, on: Sequence[str], side: str, words: str, steps: int
) -> Rows:
    schema = Schema((*rows.schema, *added))
    left = rows.select([column(name) for name in rows.schema.names])
    columns = [column(name, "l") for name in rows.schema.names]
    columns += [column(each.name, "j") for each in added]
    same = [exp.EQ(this=column(name, "l"), expression=column(name, "j")) for name in on]
    other = exp.alias_(right, quoted("j"), table=True)
    relation = (
        exp.select(*columns)
        .from_(sub(left, "l"), copy=False)
        .join(other, on=exp.and_(*same), join_type=side, copy=False)
    )
    return rows.joined(relation, schema, words, steps)


def _digest(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()[:16]


def _on(on: object) -> list[str]:
    names = [on] if isinstance(on, str) else on
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InvalidParameterError("A join needs columns.", fix='pass on="department" or on=["ward", "year"].')
    return list(dict.fromkeys(names))


def _matching(mine: Column, theirs: Column) -> None:
    if mine.kind is not theirs.kind or not mine.kind.countable:
        raise WrongKindError(
            f"{mine.name!r} is of kind {mine.kind} here and {theirs.kind} there.",
            fix="join on columns of the same kind, and not on floats.",
        )
