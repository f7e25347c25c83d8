"""Which groups a query shows: those that somebody named, or None if they are to be found."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from defocus.engines.kinds import Kind
from defocus.errors import InvalidParameterError
from defocus.tables.keys import DECLARED, EVERYTHING, Keys, declared_keys, key_columns, public_keys
from defocus.tables.sql.domains import listed
from defocus.tables.sql.grouping import Key

__all__ = ["chosen_keys"]


def chosen_keys(
    keys: Sequence[Key], names: Sequence[str], conditions: Sequence[exp.Expression], given: Any
) -> tuple[Keys | None, tuple[str, ...]]:
    """The groups, and the keys of which nobody said what values they have.

    What was given beside the query comes first, then what WHERE lists, then domains of columns and expressions.
    """
    by_rule = isinstance(given, str) and given == DECLARED
    if not keys:
        if given is not None and not by_rule:
            raise InvalidParameterError("keys= was given, but there is no GROUP BY.", fix="leave keys= out.")
        return EVERYTHING, ()
    checked = key_columns(key.column for key in keys)
    columns = [replace(column, name=name) for column, name in zip(checked, names, strict=True)]
    if not by_rule:
        return (None, tuple(names)) if given is None else (public_keys(columns, given), ())
    shown = [listed(key.tree, key.column.kind, conditions) for key in keys]
    if any(values == [] for values in shown):
        raise InvalidParameterError(
            "No group can fulfil the conditions in WHERE.", fix="check the lists that a key is compared with."
        )
    known = [
        column if values is None else replace(column, values=tuple(values))
        for column, values in zip(columns, shown, strict=True)
    ]
    unknown = tuple(column.name for column in known if column.values is None and column.kind is not Kind.BOOLEAN)
    return declared_keys(known), unknown
