"""Rows under other column names."""

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from defocus.tables.columns import Schema
from defocus.tables.rows import Rows, named

__all__ = ["renamed"]


def renamed(rows: Rows, names: Mapping[str, str]) -> Rows:
    """The same rows with some columns only, under new names; the one that names the person must be among them."""
    kept = [column for column in rows.schema if column.name in names]
    relation = rows.select([named(exp.column(column.name, quoted=True), names[column.name]) for column in kept])
    schema = Schema(replace(column, name=names[column.name]) for column in kept)
    return replace(rows, relation=relation, schema=schema, unit=None if rows.unit is None else names[rows.unit])
