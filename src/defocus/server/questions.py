"""Questions as JSON: a SELECT, or the steps of a table; lowered to the same questions as in a program.

``{"sql": "SELECT …", "epsilon": 0.5}`` or ``{"steps": [["where", "age >= 18"], ["group_by", "ward"], …],
"aggregates": {"visits": {"function": "count"}}, "epsilon": 0.5}``. What forms send is the short form of the latter:
``filter``, ``group_by`` and ``aggregates``.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import sqlglot
from sqlglot import exp

from defocus import tables
from defocus.errors import DefocusError, InvalidParameterError, Number, positive, probability
from defocus.tables.aggregates import Aggregate

__all__ = ["FUNCTIONS", "Question", "spelled", "written"]

_LARGEST = 100_000
_COMMON = frozenset({"epsilon", "delta"})
_SQL = frozenset({"sql", "dialect", "bounds", "at_most", "keys", "rows", "groups", "part"})
_STEPS = frozenset({"steps", "filter", "group_by", "keys", "aggregates", "rows", "groups", "part"})
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


@final
@dataclass(frozen=True, slots=True)
class Question:
    """A question and its price. Made by :meth:`read`; everything in it is public.

    >>> asked = Question.read({"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.5})
    >>> asked.epsilon, asked.delta
    (0.5, None)
    """

    said: Mapping[str, Any]
    epsilon: Number
    delta: Number | None

    @classmethod
    def read(cls, said: Any) -> "Question":
        """The question that is written as these JSON types."""
        if not isinstance(said, Mapping):
            raise _unread("it is not an object", 'write {"sql": "SELECT …", "epsilon": 0.5}.')
        known = _COMMON | (_SQL if "sql" in said else _STEPS)
        for key in said:
            if key not in known:
                raise _unread(f"{key!r:.40} means nothing", f"it can be {', '.join(sorted(known))}.")
        if "sql" in said and (not isinstance(said["sql"], str) or not said["sql"].strip()):
            raise _unread("sql is not text", "write a SELECT.")
        if "sql" not in said and not said.get("aggregates"):
            raise _unread("nothing is asked", 'write sql, or aggregates such as {"visits": {"function": "count"}}.')
        try:
            size = len(json.dumps(said, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            raise _unread("it is not plain JSON", "leave out numbers that are not finite.") from None
        if size > _LARGEST:
            raise _unread(f"it is longer than {_LARGEST} characters", "ask a smaller question.")
        if said.get("epsilon") is None:
            raise _unread("it has no price", "write what it may cost: epsilon.")
        epsilon, delta = positive("epsilon", _number(said["epsilon"])), said.get("delta")
        return cls(dict(said), epsilon, None if delta in {None, 0} else probability("delta", _number(delta), one=False))

    def priced(self, epsilon: Number) -> "Question":
        """The same question for another epsilon."""
        return Question.read({**self.said, "epsilon": epsilon})

    def of(self, table: Any) -> Any:
        """The question to a table, to preview or release. What does not fit the table is refused."""
        try:
            return self._of(table)
        except DefocusError:
            raise
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
            raise _unread(
                "its parts do not fit together", "compare it with the examples in the documentation."
            ) from None

    def _of(self, table: Any) -> Any:
        said = self.said
        if "part" in said:
            table = table.part(*_listed(said["part"]))
        if said.get("rows") is not None or said.get("groups") is not None:
            table = table.bound(rows=said.get("rows"), groups=said.get("groups"))
        if "sql" in said:
            how = {name: said[name] for name in ("dialect", "bounds", "at_most", "keys") if name in said}
            return table.sql_query(said["sql"], **how)
        for condition in _listed(said.get("filter", [])):
            table = table.where(condition)
        steps = said.get("steps", [])
        for step in steps if isinstance(steps, list) else ():
            table = _taken(table, step)
        if said.get("group_by"):
            how = {"keys": _keys(said["keys"])} if "keys" in said else {}
            table = table.group_by(*_listed(said["group_by"]), **how)
        return table.agg(**{name: _aggregate(name, one) for name, one in _aggregates(said["aggregates"])})

    @property
    def conditions(self) -> tuple[frozenset[str], str]:
        """The conditions on rows, each in one spelling, and everything else in one text; see :mod:`.policy`."""
        return _conditions(json.dumps(self.said, sort_keys=True))


@lru_cache(4096)
def _conditions(question: str) -> tuple[frozenset[str], str]:
    """Read once for each question, since each preview compares all earlier ones."""
    said = json.loads(question)
    if "sql" not in said:
        steps = [step for step in said.get("steps", []) if isinstance(step, list) and step]
        filters = [*_listed(said.get("filter", [])), *(step[1] for step in steps if step[0] == "where")]
        rest = {key: said.get(key) for key in ("group_by", "keys", "aggregates", "part")}
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
    listed = [dict(one) for one in _listed(said) if isinstance(one, Mapping)]
    return [(str(one.pop("name", one.get("function", ""))), one) for one in listed]


def _aggregate(name: str, said: Any) -> Aggregate:
    given = dict(said) if isinstance(said, Mapping) else {"function": said}
    function = given.pop("function", None)
    make = FUNCTIONS.get(function) if isinstance(function, str) else None
    if make is None:
        raise _unread(f"{name!r:.40} has no function", f"choose among {', '.join(FUNCTIONS)}.")
    given = {key: _number(value) for key, value in given.items() if value is not None and value != ""}
    try:
        return make(**given)
    except TypeError:
        raise _unread(
            f"{function} of {name!r:.40} does not take {', '.join(given) or 'nothing'}",
            "compare the reference of this function.",
        ) from None


def _taken(table: Any, step: Any) -> Any:
    """The table after one step: the name of a method and what it takes."""
    name, *given = step if isinstance(step, list) and step else ("",)
    fewest, most = _ARGUMENTS.get(name, (1, 0)) if isinstance(name, str) else (1, 0)
    if not fewest <= len(given) <= most:
        raise _unread(
            f"{str(name)!r:.40} is no step, or not with {len(given)} arguments", f"steps are {', '.join(_ARGUMENTS)}."
        )
    if name == "join":
        other, on, how = (*given, None, None)[:3]
        if not isinstance(other, str) or (other not in table.others and other not in table.public):
            raise _unread("it joins a table that was not declared", "name a table of the dataset file.")
        return table.join(other, on=on, **({} if how is None else {"how": how}))
    if name == "group_by":
        columns, keys, sets = (*given, None, None)[:3]
        how = {} if len(given) < 2 or keys == "declared" else {"keys": _keys(keys)}
        return table.group_by(*_listed(columns), **how, sets=sets)
    if name in {"derive", "bound"}:
        return getattr(table, name)(**_object(given[0]))
    if name == "per_person":
        return table.per_person(*given[:-1], **_object(given[-1]))
    return getattr(table, name)(*given)


def _keys(keys: Any) -> Any:
    """Keys of groups: none to find them, a list, or a list by column; never a path."""
    if isinstance(keys, str):
        raise _unread("its keys are text", "write a list of values, or null to find them.")
    return [tuple(one) if isinstance(one, list) else one for one in keys] if isinstance(keys, list) else keys


def _object(said: Any) -> dict[str, Any]:
    if not isinstance(said, Mapping):
        raise _unread("a step takes an object here", 'write for example ["derive", {"decade": "age // 10"}].')
    return dict(said)


def _listed(said: Any) -> list[Any]:
    return list(said) if isinstance(said, list | tuple) else [said]


def _number(value: Any) -> Any:
    """Fractions are written as text, since JSON has none."""
    if isinstance(value, str) and _FRACTION.fullmatch(value):
        return Fraction(value)
    return [_number(one) for one in value] if isinstance(value, list) else value


def _conjuncts(text: str) -> list[str]:
    try:
        return [_spelt(one) for one in _flat(sqlglot.parse_one(text, read="duckdb"))]
    except (sqlglot.errors.SqlglotError, ValueError, RecursionError):
        return [text]


def _flat(tree: exp.Expr) -> list[exp.Expr]:
    return [*tree.flatten()] if isinstance(tree, exp.And) else [tree]


def _spelt(tree: exp.Expr) -> str:
    return tree.sql("duckdb", normalize=True, comments=False)


def _unread(what: str, fix: str) -> InvalidParameterError:
    return InvalidParameterError(f"The question is not understood: {what}.", fix=fix)
