"""GROUP BY: columns, expressions, aliases and ordinals, each as a column of the rows."""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from sqlglot import exp

from defocus.engines.schema import Column
from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.sql.aggregates import is_aggregate
from defocus.tables.sql.parser import canonical, only
from defocus.tables.sql.query import Scope, matching

__all__ = ["Key", "grouped", "in_sets", "ordinal"]


_MOST_PARTS = 10
_MOST_SETS = 1 << _MOST_PARTS


@final
@dataclass(frozen=True, slots=True)
class Key:
    """One key: what it is called, the column of the rows that holds it, and its tree over the columns of the rows."""

    name: str
    column: Column
    tree: exp.Expression

    @property
    def physical(self) -> str:
        """The column of the rows."""
        return self.column.name

    @property
    def text(self) -> str:
        """The tree as text, by which it is recognised elsewhere in the query."""
        return canonical(self.tree)


def grouped(tree: exp.Select, scope: Scope) -> tuple[Scope, tuple[Key, ...]]:
    """The keys of a query, and the scope with columns for those that are expressions."""
    clause = tree.args.get("group")
    if clause is None:
        return scope, ()
    only(clause, "GROUP BY", "expressions", "all", "rollup", "cube")
    items = list(tree.expressions)
    wanted = _flat(clause)
    if clause.args.get("all"):
        wanted = [_inner(item) for item in items if not any(map(_is_of_groups, item.walk()))]
    extended, keys = scope, list[Key]()
    for node in wanted:
        name, expression = _meant(node, items, scope)
        key_tree = scope.resolved(expression)
        if isinstance(expression, exp.Column):
            column = scope.column(expression)
            name = column.name if column.name.casefold() == name.casefold() else name
        else:
            extended, column = extended.key(name, expression)
        key = Key(name, column, key_tree)
        if any(key.text == other.text for other in keys):
            raise InvalidParameterError(f"{name!r:.60} is twice in GROUP BY.", fix="name each key once.")
        keys.append(key)
    return extended, tuple(keys)


def _is_of_groups(node: exp.Expr) -> bool:
    return is_aggregate(node) or isinstance(node, exp.Window)


def in_sets(tree: exp.Select, scope: Scope, keys: Sequence[Key]) -> tuple[tuple[int, ...], ...] | None:
    """The sets of groups of ROLLUP, CUBE and GROUPING SETS, by places of keys; None if there is one."""
    clause = tree.args.get("group")
    if clause is None or not _several(clause):
        return None
    items = list(tree.expressions)

    def place(node: exp.Expression) -> int:
        text = canonical(scope.resolved(_meant(node, items, scope)[1]))
        return next(i for i, key in enumerate(keys) if key.text == text)

    listed = [
        tuple(sorted({place(node) for part in way for node in part})) for way in itertools.product(*_elements(clause))
    ]
    return tuple(dict.fromkeys(listed))


_KINDS = (exp.Rollup, exp.Cube, exp.GroupingSets)


def _several(clause: exp.Expression) -> bool:
    return any(isinstance(node, _KINDS) for node in clause.expressions) or any(
        clause.args.get(word) for word in ("rollup", "cube")
    )


def _flat(clause: exp.Expression) -> list[exp.Expression]:
    """Everything that is grouped by, in any set, each once."""
    if not _several(clause):
        return list(clause.expressions)
    nodes = [node for choices in _elements(clause) for part in choices for node in part]
    return list({canonical(node): node for node in nodes}.values())


def _elements(clause: exp.Expression) -> list[list[list[exp.Expression]]]:
    """For each part of GROUP BY the sets that it stands for; one of each part is chosen in every way."""
    plain = [node for node in clause.expressions if not isinstance(node, _KINDS)]
    for word in ("rollup", "cube"):
        if clause.args.get(word):  # GROUP BY a, b WITH ROLLUP
            return [_ways(word, [[node] for node in plain])]
    elements = [[plain]]
    for node in clause.expressions:
        if isinstance(node, exp.GroupingSets):
            elements.append([way for one in node.expressions for way in _sets(one)])
        elif isinstance(node, _KINDS):
            elements.append(_sets(node))
    if math.prod(map(len, elements)) > _MOST_SETS:
        raise InvalidParameterError("These are too many sets of groups.", fix=f"ask for at most {_MOST_SETS}.")
    return elements


def _sets(node: exp.Expression) -> list[list[exp.Expression]]:
    if isinstance(node, exp.Rollup | exp.Cube):
        return _ways(node.key, [_parts(part) for part in node.expressions])
    if isinstance(node, exp.GroupingSets):
        return [way for one in node.expressions for way in _sets(one)]
    return [_parts(node)]


def _ways(word: str, parts: list[list[exp.Expression]]) -> list[list[exp.Expression]]:
    if len(parts) > _MOST_PARTS:
        raise InvalidParameterError(f"{word.upper()} has {len(parts)} parts.", fix=f"use at most {_MOST_PARTS}.")
    if word == "rollup":
        chosen = [parts[:number] for number in range(len(parts), -1, -1)]
    else:
        chosen = [list(way) for number in range(len(parts), -1, -1) for way in itertools.combinations(parts, number)]
    return [[node for part in way for node in part] for way in chosen]


def _parts(node: exp.Expression) -> list[exp.Expression]:
    """A column, or several that are kept together."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.this if isinstance(node, exp.Paren) else node]


def ordinal(node: exp.Literal, items: Sequence[exp.Expression], word: str) -> exp.Expression:
    """The item that a number in GROUP BY or ORDER BY stands for."""
    place = int(node.name) if node.name.isdecimal() and len(node.name) < 6 else 0
    if not 1 <= place <= len(items):
        raise InvalidParameterError(
            f"{word} {node.name[:20]} names no selected column.", fix=f"write a number from 1 to {len(items)}."
        )
    return items[place - 1]


def _meant(node: exp.Expression, items: Sequence[exp.Expression], scope: Scope) -> tuple[str, exp.Expression]:
    """What an item of GROUP BY is called, and the expression that it stands for."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return _named(ordinal(node, items, "GROUP BY"))
    if isinstance(node, exp.Column) and node.args.get("table") is None and scope.find(node) is None:
        for item in items:
            if isinstance(item, exp.Alias) and matching(node.this, [item.args["alias"].name]):
                return _named(item)
    if isinstance(node, exp.Tuple):
        raise UnsupportedSqlError("A tuple in GROUP BY", why="keys are single values", fix="write GROUP BY a, b.")
    return _named(node)


def _named(node: exp.Expression) -> tuple[str, exp.Expression]:
    inner = _inner(node)
    if any(is_aggregate(part) for part in inner.walk()):
        raise UnsupportedSqlError(
            "An aggregate in GROUP BY", why="groups are made of single rows", fix="group by columns or expressions."
        )
    if not any(isinstance(part, exp.Column) for part in inner.walk()):
        raise UnsupportedSqlError(
            f"GROUP BY {canonical(inner)[:40]}", why="a constant makes no groups", fix="leave it out."
        )
    if isinstance(node, exp.Alias):
        return node.args["alias"].name, inner
    if isinstance(inner, exp.Column):
        return inner.name, inner
    return re.sub(r"\W+", "_", canonical(inner).lower()).strip("_")[:60] or "key", inner


def _inner(node: exp.Expression) -> exp.Expression:
    inner = node.this if isinstance(node, exp.Alias) else node
    while isinstance(inner, exp.Paren):
        inner = inner.this
    return inner
