"""Rows under other column names."""

from collections.abc import Mapping
from dataclasses import replace

from defocus.engines.columns import Schema
from defocus.engines.syntax import column, named
from defocus.tables.rows import Rows

__all__ = ["renamed"]


def renamed(rows: Rows, names: Mapping[str, str]) -> Rows:
    """The same rows with some columns only, under new names; the one that names the person must be among them."""
    kept = [each for each in rows.schema if each.name in names]
    relation = rows.select([named(column(each.name), names[each.name]) for each in kept])
    schema = Schema(replace(each, name=names[each.name]) for each in kept)
    return replace(rows, relation=relation, schema=schema, unit=None if rows.unit is None else names[rows.unit])
