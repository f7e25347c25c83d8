"""A SELECT or the steps of a table as JSON, lowered to the same questions as in a program; and aggregates as JSON.

``{"sql": "SELECT …"}`` or ``{"steps": [["where", "age >= 18"], ["group_by", "ward"], …], "aggregates": {"visits":
{"function": "count"}}}``. What forms send is the short form of the latter: ``filter``, ``group_by`` and ``aggregates``.
"""

import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

from defocus import tables
from defocus.errors import InvalidParameterError
from defocus.tables.aggregates import Aggregate

__all__ = [
    "FUNCTIONS",
    "conditions",
    "few_apart",
    "listed",
    "lowered",
    "number_of",
    "spelled",
    "stepped",
    "unread",
    "written",
]

_BESIDE = frozenset({"epsilon", "delta", "rows", "groups", "filter", "steps"})
"""What two questions about nearly the same people may differ in."""
_ARGUMENTS = {
    "where": (1, 1),
    "derive": (1, 1),
    "rename": (1, 1),
    "join": (1, 3),
    "part": (1, 100),
    "bound": (1, 1),
    "per_person": (1, 100),
    "other": (1, 1),
    "group_by": (1, 3),
}
"""The steps of a table that a question may have, and how many arguments each takes."""
FUNCTIONS: dict[str, Callable[..., Aggregate]] = {
    name: getattr(tables, name)
    for name in (
        *("count", "count_units", "count_distinct", "sum", "mean", "median", "quantile", "quantiles", "min", "max"),
        *("variance", "std", "histogram", "ratio", "covariance", "correlation", "weighted_mean"),
    )
}
"""The aggregates that a question may have, by name."""
_FRACTION = re.compile(r"-?\d{1,30}/[1-9]\d{0,29}")


def lowered(table: Any, said: Mapping[str, Any]) -> Any:
    """The question to a table that is written as these JSON types, to preview or release."""
    if "sql" in said:
        beside = next((name for name in ("filter", "steps", "group_by", "aggregates") if name in said), None)
        if beside is not None or not isinstance(said["sql"], str) or not said["sql"].strip():
            raise unread(
                "sql is not text" if beside is None else f"{beside} means nothing beside sql", "write a SELECT."
            )
        how = {name: said[name] for name in ("dialect", "bounds", "at_most", "intervals", "keys") if name in said}
        return stepped(table, said).sql_query(said["sql"], **how)
    if not said.get("aggregates"):
        raise unread("nothing is asked", 'write sql, or aggregates such as {"visits": {"function": "count"}}.')
    table = stepped(table, said)
    if said.get("group_by"):
        how = {"keys": _keys(said["keys"])} if "keys" in said else {}
        table = table.group_by(*listed(said["group_by"]), **how)
    return table.agg(**{name: _aggregate(name, one) for name, one in _aggregates(said["aggregates"])})


def stepped(table: Any, said: Mapping[str, Any]) -> Any:
    """The table after the steps that come before a question of any kind: part, bound, conditions and the like."""
    if "part" in said:
        table = table.part(*listed(said["part"]))
    if said.get("rows") is not None or said.get("groups") is not None:
        table = table.bound(rows=said.get("rows"), groups=said.get("groups"))
    for condition in listed(said.get("filter") or []):
        table = table.where(condition)
    steps = said.get("steps") or []
    for step in steps if isinstance(steps, list) else ():
        table = _taken(table, step)
    return table


@lru_cache(4096)
def conditions(question: str) -> tuple[frozenset[str], str]:
    """The conditions on rows of a question, each in one spelling, and everything else but the price in one text.

    Read once for each question, since each preview compares all earlier ones.
    """
    said = json.loads(question)
    if "sql" not in said:
        steps = [step for step in said.get("steps") or [] if isinstance(step, list) and step]
        filters = [*listed(said.get("filter") or []), *(step[1] for step in steps if step[0] == "where")]
        rest = {key: value for key, value in said.items() if key not in _BESIDE}
        rest["steps"] = [step for step in steps if step[0] != "where"]
        spelt = frozenset(one for text in filters for one in _conjuncts(str(text)))
        return spelt, json.dumps(rest, sort_keys=True)
    try:
        tree = sqlglot.parse_one(said["sql"], read=str(said.get("dialect") or "duckdb"))
    except (sqlglot.errors.SqlglotError, ValueError, RecursionError):
        return frozenset(), str(said["sql"])
    where = tree.args.get("where")
    held = frozenset() if where is None else frozenset(_spelt(one) for one in _flat(where.this))
    if where is not None:
        where.pop()
    return held, _spelt(tree)


def few_apart(
    one: tuple[frozenset[str], str], other: tuple[frozenset[str], str]
) -> tuple[frozenset[str], frozenset[str]] | None:
    """The conditions that each of two questions has alone, where they ask the same and differ in one at most.

    >>> few_apart((frozenset({"age > 30"}), "count"), (frozenset({"age > 31"}), "count"))
    (frozenset({'age > 30'}), frozenset({'age > 31'}))
    """
    here, there = one[0] - other[0], other[0] - one[0]
    return (here, there) if one[1] == other[1] and len(here) <= 1 and len(there) <= 1 else None


def spelled(aggregate: object) -> dict[str, Any]:
    """An aggregate as a question writes it.

    >>> spelled(tables.mean("age", 0, 120))
    {'function': 'mean', 'column': 'age', 'bounds': [0, 120]}
    """
    function, given = aggregate.call if isinstance(aggregate, Aggregate) else ("", {})
    if function not in FUNCTIONS:
        raise InvalidParameterError(
            f"{type(aggregate).__name__} cannot be asked of a server.", fix=f"choose among {', '.join(FUNCTIONS)}."
        )
    return {"function": function, **{name: written(value) for name, value in given.items()}}


def written(number: Any) -> Any:
    """A number as JSON has it, or several; a fraction as text."""
    if isinstance(number, tuple):
        return [written(one) for one in number]
    if isinstance(number, Fraction):
        return int(number) if number.denominator == 1 else str(number)
    return number


def _aggregates(said: Any) -> list[tuple[str, Any]]:
    """Aggregates by name: an object, or a list of objects with names."""
    if isinstance(said, Mapping):
        return list(said.items())
    given = [dict(one) for one in listed(said) if isinstance(one, Mapping)]
    return [(str(one.pop("name", one.get("function", ""))), one) for one in given]


def _aggregate(name: str, said: Any) -> Aggregate:
    given = dict(said) if isinstance(said, Mapping) else {"function": said}
    function = given.pop("function", None)
    make = FUNCTIONS.get(function) if isinstance(function, str) else None
    if make is None:
        raise unread(f"{name!r:.40} has no function", f"choose among {', '.join(FUNCTIONS)}.")
    given = {key: number_of(value) for key, value in given.items() if value is not None and value != ""}
    try:
        return make(**given)
    except TypeError:
        raise unread(
            f"{function} of {name!r:.40} does not take {', '.join(given) or 'nothing'}",
            "compare the reference of this function.",
        ) from None


def _taken(table: Any, step: Any) -> Any:
    """The table after one step: the name of a method and what it takes."""
    name, *given = step if isinstance(step, list) and step else ("",)
    fewest, most = _ARGUMENTS.get(name, (1, 0)) if isinstance(name, str) else (1, 0)
    if not fewest <= len(given) <= most:
        raise unread(
            f"{str(name)!r:.40} is no step, or not with {len(given)} arguments", f"steps are {', '.join(_ARGUMENTS)}."
        )
    if name == "join":
        other, on, how = (*given, None, None)[:3]
        if not isinstance(other, str) or (other not in table.others and other not in table.public):
            raise unread("it joins a table that was not declared", "name a table of the dataset file.")
        return table.join(other, on=on, **({} if how is None else {"how": how}))
    if name == "group_by":
        columns, keys, sets = (*given, None, None)[:3]
        how = {} if len(given) < 2 or keys == "declared" else {"keys": _keys(keys)}
        return table.group_by(*listed(columns), **how, sets=sets)
    if name in {"derive", "bound"}:
        return getattr(table, name)(**_object(given[0]))
    if name == "per_person":
        return table.per_person(*given[:-1], **_object(given[-1]))
    return getattr(table, name)(*given)


def _keys(keys: Any) -> Any:
    """Keys of groups: none to find them, a list, or a list by column; never a path."""
    if isinstance(keys, str):
        raise unread("its keys are text", "write a list of values, or null to find them.")
    return [tuple(one) if isinstance(one, list) else one for one in keys] if isinstance(keys, list) else keys


def _object(said: Any) -> dict[str, Any]:
    if not isinstance(said, Mapping):
        raise unread("a step takes an object here", 'write for example ["derive", {"decade": "age // 10"}].')
    return dict(said)


def listed(said: Any) -> list[Any]:
    """One value, or several, as a list."""
    return list(said) if isinstance(said, list | tuple) else [said]


def number_of(value: Any) -> Any:
    """Fractions are written as text, since JSON has none."""
    if isinstance(value, str) and _FRACTION.fullmatch(value):
        return Fraction(value)
    return [number_of(one) for one in value] if isinstance(value, list) else value


def _conjuncts(text: str) -> list[str]:
    try:
        return [_spelt(one) for one in _flat(sqlglot.parse_one(text, read="duckdb"))]
    except (sqlglot.errors.SqlglotError, ValueError, RecursionError):
        return [text]


def _flat(tree: exp.Expr) -> list[exp.Expr]:
    return [*tree.flatten()] if isinstance(tree, exp.And) else [tree]


def _spelt(tree: exp.Expr) -> str:
    return tree.sql("duckdb", normalize=True, comments=False)


def unread(what: str, fix: str) -> InvalidParameterError:
    """That a question is not understood."""
    return InvalidParameterError(f"The question is not understood: {what}.", fix=fix)
