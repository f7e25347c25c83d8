"""Features of a person in SQL: sub-queries that GROUP BY the person, and windows whose partition contains the person.

Why they keep what one person can change is said in :mod:`defocus.tables.person_features`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from defocus.engines.schema import Kind
from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.person_features import aggregate_above, aggregated, is_of_group, outside_groups, replaced, windowed
from defocus.tables.sql.grouping import Key, grouped
from defocus.tables.sql.parser import canonical
from defocus.tables.sql.query import Named, Scope, matching, unused

__all__ = ["first_of_each_person", "inside_aggregates", "of_each_person", "with_windows"]


def with_windows(
    scope: Scope, trees: Sequence[exp.Expression], *, in_groups: bool = False
) -> tuple[Scope, list[exp.Expression]]:
    """The trees with columns in the place of window functions, or of those inside aggregates; and a scope with them.

    The trees are all that is shown of the rows, so the columns in them are all that can tell two rows apart.
    """
    windows = [
        node
        for tree in trees
        for node in tree.find_all(exp.Window)
        if not in_groups or aggregate_above(node) is not None
    ]
    if not windows:
        return scope, list(trees)
    taken = [name.casefold() for name in scope.rows.schema.names]
    names: list[str] = []
    for node in windows:
        wanted = node.parent.alias if isinstance(node.parent, exp.Alias) else ""
        names.append("" if wanted.casefold() in [*taken, *(name.casefold() for name in names)] else wanted)
    rows, finished = windowed(scope.rows, [scope.resolved(node) for node in windows], _seen(scope, trees), names=names)
    made = Named("", {own.name: own.name for own in rows.schema if own.name not in scope.rows.schema})
    instead = {id(node): tree for node, tree in zip(windows, finished, strict=True)}
    return replace(scope, rows=rows, tables=(*scope.tables, made)), [replaced(tree, instead) for tree in trees]


def _seen(scope: Scope, trees: Sequence[exp.Expression]) -> list[str]:
    """The columns of the rows that trees show or read; a star shows all."""
    found = [node for tree in trees for node in tree.walk()]
    stars = (node for node in found if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count))
    if any(stars):
        return [own.name for own in scope.rows.schema if own.kind is not Kind.OTHER]
    columns = (scope.find(node) for node in found if isinstance(node, exp.Column))
    return list(dict.fromkeys(own.name for own in columns if own is not None))


def inside_aggregates(scope: Scope, select: exp.Select) -> tuple[Scope, exp.Select]:
    """The outer SELECT with columns in the place of window functions inside its aggregates; and a scope with them."""
    parts = [part for part in (select.args.get("having"), select.args.get("order")) if part is not None]
    trees = [*select.expressions, *parts]
    extended, made = with_windows(scope, trees, in_groups=True)
    if extended is scope:
        return scope, select
    shown = select.copy()
    shown.set("expressions", made[: len(select.expressions)])
    for part in made[len(select.expressions) :]:
        shown.set(str(part.key), part)
    return extended, shown


def of_each_person(scope: Scope, select: exp.Select, name: str) -> Scope:
    """The rows of a sub-query with GROUP BY, of which each is made of rows of one person."""
    having = select.args.get("having")
    clauses = [*select.expressions, *([] if having is None else [having.this])]
    windowed_scope, trees = with_windows(scope, clauses, in_groups=True)
    shown = select.copy()
    shown.set("expressions", trees[: len(select.expressions)])
    scope, keys = grouped(shown, windowed_scope)
    person = scope.rows.unit
    by = [key.physical for key in keys]
    if person is None or person not in by:
        raise UnsupportedSqlError(
            "GROUP BY in a sub-query without the person",
            why="its rows would mix people and depend on noise-free counts",
            fix=f"add the person, GROUP BY {person or 'person'}, …; or group in the outer SELECT."[:300]
            if person is not None
            else 'protect people, with unit=dp.user("…"), or group in the outer SELECT.',
        )
    names: dict[str, exp.Expression] = {}
    for item in shown.expressions:
        called, inner = _item(item)
        if matching(exp.to_identifier(called), list(names)):
            raise InvalidParameterError(
                f"The sub-query has two columns called {called!r:.60}.", fix="rename one with AS."
            )
        names[called] = inner
    features = {called: _over_keys(scope, inner, keys, person) for called, inner in names.items()}
    condition = unused("having", list(names))
    if having is not None:
        features[condition] = _over_keys(scope, _unaliased(scope, trees[-1], names), keys, person)
    wanted: dict[str, exp.Expression] = {}
    for called, tree in features.items():  # a key may be called as a feature is
        wanted[unused(called, [*by, *wanted])] = tree
    rows, finished = aggregated(scope.rows, [one for one in by if one != person], wanted)
    made = dict(zip(features, finished, strict=True))
    kept = tuple(one for one in scope.conditions if all(own.name in by for own in one.find_all(exp.Column)))
    plain = Named("", {own: own for own in rows.schema.names})
    after = Scope(rows, (plain,), scope.own, kept)
    if having is not None:
        after = after.where(made.pop(condition))
    physical: dict[str, str] = {}
    for called, tree in made.items():
        if isinstance(tree, exp.Column):
            physical[called] = tree.name
        else:
            after, column = after.derived(called, tree)
            physical[called] = column.name
    return replace(after, tables=(Named(name, physical),))


def first_of_each_person(select: exp.Select, rows: Callable[[exp.Select], Scope], bare: Scope) -> Scope:
    """SELECT DISTINCT ON (person) … ORDER BY …: the first row of each person, and so one row at most."""
    keys = select.args["distinct"].args["on"].expressions
    person = bare.rows.unit
    columns = [bare.column(key).name for key in keys if isinstance(key, exp.Column)]
    if person is None or columns != [person] or len(keys) != 1 or select.args.get("group") is not None:
        raise UnsupportedSqlError(
            "DISTINCT ON anything but the person",
            why="which row is kept would depend on other people",
            fix=f"write DISTINCT ON ({person or 'person'})."[:200],
        )
    order = select.args.get("order")
    orders = [
        one.copy() for one in ([] if order is None else order.expressions) if canonical(one.this) != canonical(keys[0])
    ]
    number = exp.Window(
        this=exp.RowNumber(),
        partition_by=[keys[0].copy()],
        order=exp.Order(expressions=orders) if orders else None,
        over="OVER",
    )
    known = [name for table in bare.tables for name in table.columns]
    place = unused("place", [*bare.rows.schema.names, *known, *select.named_selects])
    plain = select.copy()
    for part in ("distinct", "order"):
        plain.set(part, None)
    plain.append("expressions", exp.alias_(number, place, quoted=True))
    scope = rows(plain)
    (shown,) = scope.tables
    kept = scope.where(exp.EQ(this=exp.column(place, quoted=True), expression=exp.Literal.number(1)))
    left = {name: physical for name, physical in shown.columns.items() if name != place}
    return replace(kept, rows=replace(kept.rows, single=True), tables=(replace(shown, columns=left),))


def _item(item: exp.Expression) -> tuple[str, exp.Expression]:
    """What a column of a sub-query is called, and what it is."""
    inner, alias = (item.this, str(item.args["alias"].name)) if isinstance(item, exp.Alias) else (item, "")
    if isinstance(inner, exp.Star) or (isinstance(inner.this, exp.Star) and isinstance(inner, exp.Column)):
        raise UnsupportedSqlError(
            "A star beside GROUP BY",
            why="columns may have several values for one person",
            fix="name keys and aggregates: SELECT patient, COUNT(*) AS visits.",
        )
    if not alias and not isinstance(inner, exp.Column):
        raise InvalidParameterError(
            f"The expression {inner.sql('duckdb')[:60]} in a sub-query has no name.", fix="name it with AS."
        )
    return alias or inner.name, inner


def _over_keys(scope: Scope, tree: exp.Expression, keys: Sequence[Key], person: str) -> exp.Expression:
    """The tree over the columns of the rows, with the columns of keys wherever it says what they are."""
    if any(aggregate_above(node) is None for node in tree.find_all(exp.Window)):
        raise outside_groups(person)

    def keyed(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Expression) and not is_of_group(node):
            text = canonical(node)
            for key in keys:
                if text == key.text:
                    return exp.column(key.physical, quoted=True)
        return node

    made = scope.resolved(tree).transform(keyed)
    assert isinstance(made, exp.Expression)  # noqa: S101  # what transform gives
    return made


def _unaliased(scope: Scope, tree: exp.Expression, names: dict[str, exp.Expression]) -> exp.Expression:
    """The condition of HAVING with expressions in the place of their aliases."""

    def meant(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.args.get("table") is None and scope.find(node) is None:
            for called in matching(node.this, list(names)):
                return exp.paren(names[called].copy())
        return node

    made = tree.copy().transform(meant)
    assert isinstance(made, exp.Expression)  # noqa: S101  # what transform gives
    return made
