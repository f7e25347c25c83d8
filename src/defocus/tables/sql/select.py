"""A SELECT as a question: its columns, its filters and the groups that it shows.

Which groups a query shows: those that somebody named, or None if they are to be found.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, final

from sqlglot import exp

from defocus.answers.columns import checked_names
from defocus.engines.schema import Kind
from defocus.errors import InvalidParameterError, UnsupportedSqlError, count
from defocus.tables.aggregates import Aggregate
from defocus.tables.contribution import FIND
from defocus.tables.expressions.parser import at
from defocus.tables.expressions.ranges import may_be_null
from defocus.tables.grouping_sets import GroupingSets
from defocus.tables.keys import DECLARED, EVERYTHING, Keys, declared_keys, key_columns, public_keys
from defocus.tables.sql.aggregates import Asked, Calls, free, is_aggregate
from defocus.tables.sql.bounds import listed
from defocus.tables.sql.grouping import Key, grouped, in_sets, ordinal
from defocus.tables.sql.parser import canonical, only, select, window_refusal
from defocus.tables.sql.person_features import inside_aggregates
from defocus.tables.sql.postprocessing import Finish, Order, Output, references
from defocus.tables.sql.query import Ask, Scope, SqlQuery, matching
from defocus.tables.sql.relations import Catalogue, from_clause
from defocus.tables.sql.released import ReleasedAsked, ReleasedCalls, ReleasedScope, released_source
from defocus.tables.statistics import count as rows_counted

__all__ = ["chosen_keys", "read"]


def chosen_keys(
    keys: Sequence[Key], names: Sequence[str], conditions: Sequence[exp.Expression], given: Any
) -> tuple[Keys | None, tuple[str, ...]]:
    """The groups, and the keys of which nobody said what values they have.

    What was given beside the query comes first, then what WHERE lists, then domains of columns and expressions. Where a
    CASE has no ELSE, those for whom no branch holds are a group, as in SQL.
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
    grouping = [
        column if values is None else replace(column, values=tuple(values))
        for column, values in zip(columns, shown, strict=True)
    ]
    grouping = [
        replace(column, values=(*column.values, None))
        if column.values and values is None and may_be_null(key.tree)
        else column
        for column, values, key in zip(grouping, shown, keys, strict=True)
    ]
    unknown = tuple(column.name for column in grouping if column.values is None and column.kind is not Kind.BOOLEAN)
    return declared_keys(grouping), unknown


_MOST_ITEMS = 1_000
_CLAUSES = (
    "expressions", "from_", "joins", "where", "with_", "group", "having", "qualify", "order", "limit", "offset",
)  # fmt: skip
_LONGEST_NAME = 200


def read(
    text: object,
    catalogue: Catalogue,
    ask: Ask,
    *,
    keys: Any = DECLARED,
    bounds: object = None,
    at_most: object = None,
    intervals: object = False,
    dialect: object = "duckdb",
) -> SqlQuery:
    """Read a SELECT; ``ask`` makes the question once it is known of which rows, in which groups and for what.

    Nothing here looks at a private row, so whatever is refused is refused for every table of this schema.
    """
    if bounds not in (None, FIND):
        raise InvalidParameterError(
            f"bounds is {bounds!r:.40}.", fix='leave it out, write CLAMP(x, low, high), or pass bounds="find".'
        )
    try:
        tree = select(text, dialect)
        how = (bounds == FIND, None if at_most is None else count("at_most", at_most), bool(intervals))
        return _read(tree, catalogue, ask, keys, how)
    except InvalidParameterError as problem:
        if isinstance(text, str):
            problem.placed(text)
        raise


def _read(tree: exp.Select, catalogue: Catalogue, ask: Ask, keys: Any, how: tuple[bool, int | None, bool]) -> SqlQuery:
    distinct = ["distinct"] if tree.args.get("group") else []
    only(tree, "SELECT", *_CLAUSES, *distinct)
    if not tree.expressions or len(tree.expressions) > _MOST_ITEMS:
        raise InvalidParameterError(f"A query selects 1 to {_MOST_ITEMS} columns.", fix="name them.")
    source = released_source(tree, catalogue)
    if source is not None:
        inner = _read(source[0], catalogue, ask, keys, how)
        return _over(inner, tree, source[1])
    scope, _ = from_clause(tree, catalogue)
    scope, asked = inside_aggregates(scope, tree)
    before, (scope, groups) = scope, grouped(asked, scope)
    _refuse_merging(tree, len(groups))
    reader = _Reader(scope, groups, Calls(scope, *how), Asked(), in_sets(asked, before, groups))
    finish, names, aggregates = reader.finish(asked)
    by = tuple(key.physical for key in groups)
    shown, unknown = chosen_keys(groups, names, scope.conditions, keys)
    sets = _whole(reader.grouping_sets, aggregates)
    return SqlQuery(ask(scope.rows, scope.own, by, shown, aggregates, sets), finish, canonical(tree), unknown)


def _whole(sets: GroupingSets | None, aggregates: Mapping[str, Aggregate]) -> GroupingSets | None:
    """Several sets of groups; nested ones of which only the rows are counted are a hierarchy of whole counts."""
    if sets is not None and sets.nested and list(aggregates.values()) == [rows_counted()]:
        return replace(sets, whole=True)
    return sets


def _over(inner: SqlQuery, tree: exp.Select, called: str) -> SqlQuery:
    """A SELECT over the groups that another one releases: what it shows is computed from released numbers."""
    before = inner.outer[-1][1] if inner.outer else inner.finish
    scope = ReleasedScope.of(before, called)
    opened, condition = scope.opened(tree)
    regroup, groups = scope.regrouped(opened, condition)
    reader = _Reader(scope, groups, ReleasedCalls(scope), ReleasedAsked(regroup.aggregates is None, before))
    finish, _, aggregates = reader.finish(opened)
    made = replace(regroup, aggregates=None if regroup.aggregates is None else aggregates)
    made.checked(scope.schema)
    return replace(inner, text=canonical(tree), outer=(*inner.outer, (made, finish)))


def _refuse_merging(tree: exp.Select, keys: int) -> None:
    """Refuse DISTINCT after GROUP BY, unless every key is shown: then no two groups are the same."""
    distinct = tree.args.get("distinct")
    if distinct is None:
        return
    only(distinct, "DISTINCT")
    if sum(not any(is_aggregate(node) for node in item.walk()) for item in tree.expressions) < keys:
        raise UnsupportedSqlError(
            "DISTINCT without all keys", why="groups that look the same would become one", fix="select every key."
        )


@final
@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the parts of one SELECT that are about groups."""

    scope: Scope | ReleasedScope
    keys: tuple[Key, ...]
    calls: Calls | ReleasedCalls
    asked: Asked | ReleasedAsked
    sets: tuple[tuple[int, ...], ...] | None = None

    def finish(self, tree: exp.Select) -> tuple[Finish, list[str], dict[str, Any]]:
        """What is done after the noise, the names of the keys, and the aggregates to ask by name."""
        outputs, names = self._outputs(tree.expressions)
        aliases = {output.name: output.tree for output in outputs}
        having, qualify = (self._condition(tree, part, aliases) for part in ("having", "qualify"))
        if having is not None and having[0].find(exp.Window) is not None:
            raise UnsupportedSqlError(
                "A window function in HAVING", why="HAVING comes before windows", fix="write QUALIFY instead."
            )
        orders = self._orders(tree, names, aliases)
        if not len(self.asked):
            if any(output.tree.find(exp.Window) for output in outputs):
                raise window_refusal()
            raise UnsupportedSqlError(
                "A SELECT without an aggregate",
                why="keys alone would show which groups exist",
                fix="add COUNT(*), say.",
            )
        checked_names(names, [output.name for output in outputs])
        aggregates, held = self.asked.arranged([*names, *(key.physical for key in self.keys)])
        sets, by = self.grouping_sets, [key.physical for key in self.keys]
        summed = () if sets is None else tuple(by.index(name) for name in sets.summed)
        kinds = [Kind.TEXT if i in summed else key.column.kind for i, key in enumerate(self.keys)]
        finish = Finish(
            keys=tuple(zip(names, kinds, strict=True)),
            held=held,
            outputs=tuple(outputs),
            having=having,
            orders=tuple(orders),
            limit=_number(tree.args.get("limit"), "LIMIT"),
            offset=_number(tree.args.get("offset"), "OFFSET") or 0,
            notes=tuple(self.asked.notes),
            qualify=qualify,
            summed=summed,
        )
        finish.checked()
        return finish, names, dict(aggregates)

    @property
    def grouping_sets(self) -> GroupingSets | None:
        """The sets of groups, where there are several."""
        return None if self.sets is None else GroupingSets.placed(tuple(key.physical for key in self.keys), self.sets)

    def _condition(
        self, tree: exp.Select, part: str, aliases: dict[str, exp.Expression]
    ) -> tuple[exp.Expression, str] | None:
        clause = tree.args.get(part)
        if clause is None:
            return None
        return self._released(clause.this, aliases, part.upper()), canonical(clause.this)

    def _outputs(self, items: Sequence[exp.Expression]) -> tuple[list[Output], list[str]]:
        """The columns of the answer, and the names of its keys."""
        names = [key.name for key in self.keys]
        chosen: set[int] = set()
        shown: list[tuple[str, exp.Expression, exp.Expression]] = []
        for item in items:
            inner, alias = _item(item)
            _refuse_star(inner)
            place = self._key(inner)
            if place is not None:
                if place in chosen:
                    raise InvalidParameterError(
                        f"The key {names[place]!r:.60} is selected twice.", fix="select it once."
                    )
                chosen.add(place)
                names[place] = alias or names[place]
                continue
            tree = self._released(inner, {}, "SELECT", alias)
            shown.append((alias, inner, tree))
        taken = [name.casefold() for name in names] + [alias.casefold() for alias, _, _ in shown if alias]
        outputs = []
        for alias, inner, tree in shown:
            name = alias or free(self._default(inner), taken)
            taken.append(name.casefold())
            outputs.append(Output(name, self._statistic(tree, inner), canonical(inner)))
        return outputs, names

    def _default(self, node: exp.Expression) -> str:
        if is_aggregate(node):
            return self.calls.read(node)[1]
        return re.sub(r"\W+", "_", canonical(node).lower()).strip("_")[:60] or "value"

    def _statistic(self, tree: exp.Expression, item: exp.Expression) -> exp.Expression:
        totals = [column.name.startswith("g") for column in tree.find_all(exp.Column)]
        if not references(tree) and tree.find(exp.Window) is None and not (totals and all(totals)):
            raise UnsupportedSqlError(
                f"{canonical(item)[:60]} among the selected columns",
                why="it is neither a key nor made of aggregates",
                fix="GROUP BY that expression itself, or compute it from the answer.",
            )
        return tree

    def _key(self, node: exp.Expression) -> int | None:
        """The number of the key that an expression is, if it is one."""
        try:
            wanted = canonical(self.scope.resolved(node))
        except InvalidParameterError:
            return None
        return next((i for i, key in enumerate(self.keys) if wanted == key.text), None)

    def _released(
        self, node: exp.Expression, aliases: dict[str, exp.Expression], place: str, name: str = ""
    ) -> exp.Expression:
        """The tree in terms of released columns a0, a1, … and keys k0, k1, …; anything else of the rows is refused."""
        keys_first = place != "ORDER BY"

        def made(part: exp.Expression) -> exp.Expression:
            if isinstance(part, exp.Grouping | exp.GroupingId) or (is_aggregate(part) and not _of_window(part)):
                return self._called(part, name if part is root else "")
            if not keys_first and (alias := self._alias(part, aliases)) is not None:
                return alias
            if any(type(part) is type(key.tree) or isinstance(part, exp.Column) for key in self.keys):
                key = self._key(part)
                if key is not None:
                    return exp.column(f"k{key}", quoted=True)
            if keys_first and (alias := self._alias(part, aliases)) is not None:
                return alias
            if isinstance(part, exp.Column):
                with at(part):
                    _refuse_star(part)
                    known = self.asked.known(self.scope.column(part).name)
                if known is not None:
                    return known
                with at(part):
                    raise _raw(part, root, place)
            return part

        root = node.copy()
        return root.transform(made, copy=False)

    def _called(self, node: exp.Expression, name: str) -> exp.Expression:
        """A released column, or whether keys are totals."""
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return self._grouping(node)
        aggregate: Any
        aggregate, default, notes = self.calls.read(node)
        return exp.column(self.asked.reference(aggregate, name or default, notes), quoted=True)

    def _grouping(self, node: exp.Expression) -> exp.Expression:
        """GROUPING(a, b): a bit for each key, the last the lowest, set where it is that of a total."""
        places = [self._key(part) for part in node.expressions]
        if self.sets is None or not places or len(places) > len(self.keys) or None in places:
            raise UnsupportedSqlError(
                canonical(node)[:60],
                why="it tells totals apart, of keys in several sets of groups",
                fix="write GROUPING(ward) of a key, and GROUP BY ROLLUP (ward, …), CUBE or GROUPING SETS.",
            )
        bits: list[exp.Expression] = [
            exp.Mul(this=exp.column(f"g{place}", quoted=True), expression=exp.Literal.number(1 << i))
            for i, place in enumerate(reversed(places))
        ]
        return exp.paren(reduce(lambda a, b: exp.Add(this=a, expression=b), bits))

    def _alias(self, part: exp.Expression, aliases: dict[str, exp.Expression]) -> exp.Expression | None:
        if not isinstance(part, exp.Column) or part.args.get("table") is not None:
            return None
        matches = matching(part.this, list(aliases))
        return exp.paren(aliases[matches[0]].copy()) if matches else None

    def _orders(self, tree: exp.Select, names: Sequence[str], aliases: dict[str, exp.Expression]) -> list[Order]:
        clause = tree.args.get("order")
        if clause is None:
            return []
        only(clause, "ORDER BY", "expressions")
        targets = aliases | {name: exp.column(f"k{i}", quoted=True) for i, name in enumerate(names)}
        orders = []
        for order in clause.expressions:
            only(order, "ORDER BY", "this", "desc", "nulls_first")
            node = order.this
            if isinstance(node, exp.Literal) and not node.is_string:
                node = ordinal(node, tree.expressions, "ORDER BY")
                node = node.this if isinstance(node, exp.Alias) else node
            elif isinstance(node, exp.Literal | exp.Null | exp.Boolean | exp.Var) or (
                isinstance(node, exp.Column) and node.name.lower() == "all" and self.scope.find(node) is None
            ):
                raise UnsupportedSqlError(
                    f"ORDER BY {canonical(node)[:40]}", why="it names no column", fix="order by a released column."
                )
            orders.append(
                Order(
                    self._released(node, targets, "ORDER BY"),
                    bool(order.args.get("desc")),
                    bool(order.args.get("nulls_first")),
                    canonical(node),
                )
            )
        return orders


def _item(item: exp.Expression) -> tuple[exp.Expression, str]:
    """A selected expression and its alias, if it has one."""
    inner, alias = (item.this, str(item.args["alias"].name)) if isinstance(item, exp.Alias) else (item, "")
    if len(alias) > _LONGEST_NAME:
        raise InvalidParameterError(
            f"The alias {alias[:40]!r}… has {len(alias)} characters.", fix=f"use at most {_LONGEST_NAME}."
        )
    while isinstance(inner, exp.Paren):
        inner = inner.this
    return inner, alias


def _of_window(node: exp.Expression) -> bool:
    """Whether a function is that of a window, and so one of released numbers."""
    while isinstance(node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls) and node is node.parent.this:
        node = node.parent
    return isinstance(node.parent, exp.Window) and node is node.parent.this


def _raw(part: exp.Column, root: exp.Expression, place: str) -> UnsupportedSqlError:
    if part.find_ancestor(exp.Window) is not None:
        return window_refusal()
    around = root.find(exp.Anonymous)
    other = f"; {around.name[:40].upper()} is not an aggregate here" if around is not None else ""
    return UnsupportedSqlError(
        f"The raw column {part.name[:60]} in {place}",
        why="it would show values of single rows",
        fix=f"put it into GROUP BY, or into an aggregate such as AVG({part.name[:60]}){other}.",
    )


def _refuse_star(node: exp.Expression) -> None:
    if isinstance(node, exp.Star | exp.Columns) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        raise UnsupportedSqlError(
            "SELECT *", why="it would show the rows themselves", fix="name keys and aggregates: SELECT ward, COUNT(*)."
        )


def _number(clause: exp.Expression | None, word: str) -> int | None:
    """The constant of LIMIT, FETCH or OFFSET."""
    if clause is None:
        return None
    only(clause, word, "expression", "count", "direction", "limit_options")
    options = clause.args.get("limit_options")
    if options is not None:
        only(options, word, "rows")
    value = clause.args.get("expression") or clause.args.get("count")
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdecimal() or len(value.name) > 18:
        raise UnsupportedSqlError(
            f"{word} with anything but a whole number", why="how much is shown must be public", fix=f"write {word} 10."
        )
    return int(value.name)
