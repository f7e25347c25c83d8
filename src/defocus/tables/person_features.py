r"""Features of a person: what a person's own rows tell together, as one row of that person or beside each of them.

``GROUP BY`` the person, and window functions whose partition contains the person. The aggregates here are exact and
stay inside the engine: they are columns of private rows, not releases.

Guarantee:
    *A person's rows are made of that person's rows alone.* Let :math:`D_u` be the rows of person u in D. Every step is
    of the form :math:`T(D)=\biguplus_u t(D_u)`, where all rows of :math:`t(D_u)` belong to u: rows without a person are
    left out first, and then groups and partitions that contain the person hold rows of one person only. Filters,
    derived columns and joins on the person are of that form, too, and so is one such step after another. If D and D'
    differ in the rows of v only, so do T(D) and T(D'). Whatever bounds what one person contributes therefore bounds it
    after these steps as before them.

    *One row for each person needs no bound.* Where the person alone is the key, :math:`t(D_u)` has at most one row, so
    a person who is added or removed moves one row of weight one.

    *The same value on every engine.* t is a function of :math:`D_u` as a multiset: sums of integers are exact, and
    saturate at the ends of 64 bits; floats are added as multiples of 2**-20, and those beyond 2**43 are missing. Where
    the order of rows matters, rows that tie in the order that was asked are ordered by all columns that can be seen;
    those that tie still are interchangeable. Windows that order rows differently share one numbering of them, so that a
    row has one place among its equals in all of them.

    *Every row has a meaning.* Arguments are expressions that fail on no row, and no aggregate fails.
Assumes:
    An engine computes all functions over one partition and order in one pass, as PostgreSQL promises, and DuckDB and
    Spark do: each sorts the rows once for all of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from sqlglot import exp

from defocus.engines.schema import Column, Kind, Schema
from defocus.engines.syntax import BIGINT, column, named, over, sub, typed, whole, wide
from defocus.errors import InvalidParameterError, UnsupportedSqlError, WrongKindError
from defocus.tables.expressions import Expression, constant
from defocus.tables.expressions import typed as read
from defocus.tables.expressions.parser import EXPRESSIONS, only, parsed
from defocus.tables.expressions.terms import SMALLEST_INTEGER
from defocus.tables.rows import Rows

__all__ = [
    "aggregate_above",
    "aggregated",
    "derived",
    "is_of_group",
    "outside_groups",
    "per_person",
    "replaced",
    "windowed",
]

_STEP = 2.0**-20
"""On which grid floats are added."""
_AGGREGATES = "COUNT, COUNT(DISTINCT x), COUNT_IF, SUM, AVG, MIN, MAX, ANY_VALUE, BOOL_OR and BOOL_AND"
_WINDOWS = "LAG, LEAD, ROW_NUMBER, RANK, DENSE_RANK, FIRST_VALUE, LAST_VALUE, COUNT, SUM, AVG, MIN, MAX"
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)
_NEIGHBOURS = (exp.Lag, exp.Lead)
_ENDS = (exp.FirstValue, exp.LastValue)
_LAYERS = 5
"""How many layers of SQL one step makes at most."""
_FARTHEST_ROW = 1_000_000


def per_person(rows: Rows, by: Sequence[str], features: Mapping[str, str]) -> Rows:
    """One row for each person, or for each person and value of other columns, with features as aggregates in text."""
    _person(rows)
    for name, text in features.items():
        if not isinstance(text, str):
            raise InvalidParameterError(
                f"The feature {name!r:.60} is of type {type(text).__name__}, not a text.",
                fix=f'write an exact aggregate of a person\'s rows as text: per_person({name:.60}="COUNT(*)"). What is'
                " released, such as dp.count(), is asked of the table that this makes.",
            )
    trees = {name: _parsed(text) for name, text in features.items()}
    keys = [_person(rows), *(name for name in dict.fromkeys(by) if name != rows.unit)]
    _check_names(features, keys)
    known = [own.name for own in rows.schema if own.kind is not Kind.OTHER]
    inner, hoisted = windowed(rows, list(trees.values()), known, in_groups=True, explicit=False)
    made, finished = aggregated(inner, keys[1:], dict(zip(trees, hoisted, strict=True)))
    return _shown(made, [*keys, *features], dict(zip(features, finished, strict=True)), features)


def derived(rows: Rows, columns: Mapping[str, str]) -> Rows:
    """More columns, each computed from the same row, or by window functions from the rows of the same person."""
    if not any("over" in str(text).lower() for text in columns.values()):
        return rows.derive(columns)
    trees = {name: _parsed(text) for name, text in columns.items()}
    if not any(tree.find(exp.Window) for tree in trees.values()):
        return rows.derive(columns)
    _check_names(columns, rows.schema.names)
    known = [own.name for own in rows.schema if own.kind is not Kind.OTHER]
    made, finished = windowed(rows, list(trees.values()), known, names=list(columns), explicit=False)
    return _shown(made, [*rows.schema.names, *columns], dict(zip(columns, finished, strict=True)), columns)


def _parsed(text: str) -> exp.Expression:
    tree = parsed(text)
    EXPRESSIONS.check_tree(tree)
    return tree


def _check_names(names: Iterable[str], taken: Iterable[str]) -> None:
    seen = {name.casefold() for name in taken}
    for name in names:
        if not name or name.casefold() in seen:
            raise InvalidParameterError(
                f"A derived column cannot be called {name!r:.60}.", fix="give it a name that the table does not have."
            )
        seen.add(name.casefold())


def _shown(rows: Rows, kept: Sequence[str], trees: Mapping[str, exp.Expression], texts: Mapping[str, str]) -> Rows:
    """The rows with some columns only, of which those with another tree than their name are yet to be computed."""
    later = {name: tree for name, tree in trees.items() if not isinstance(tree, exp.Column) or tree.name != name}
    values = {name: replace(read(tree, rows.schema), text=texts[name]) for name, tree in later.items()}
    words = tuple(f"{name} is {texts[name]}" for name in trees if name not in later)
    rows = replace(rows, words=(*rows.words, *words))
    if not values:
        return rows
    known = {name: rows.schema[tree.name] for name, tree in later.items() if isinstance(tree, exp.Column)}
    made = rows.derive(values, kept=kept)
    schema = Schema(replace(known[own.name], name=own.name) if own.name in known else own for own in made.schema)
    return replace(made, schema=schema)


def is_of_group(node: exp.Expr) -> bool:
    """Whether a node is an aggregate, which looks at all rows of a group."""
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls)


def aggregated(
    rows: Rows, by: Sequence[str], features: Mapping[str, exp.Expression]
) -> tuple[Rows, list[exp.Expression]]:
    """One row for each person and value of the columns ``by``, and each feature in terms of the columns of that row.

    A feature is a tree over aggregates, the person and the columns ``by``. It is a column of its name where it is one
    aggregate, and nobody has that already.
    """
    person = _person(rows)
    keys = [person, *by]
    made = _Parts(rows.schema, [*keys, *features])
    for name in keys:
        if not rows.schema.usable(name).kind.countable:
            raise WrongKindError(
                f"Rows cannot be grouped by {name!r:.60}, which is of kind {rows.schema[name].kind}.",
                fix="group by whole numbers, text, dates or truth values; floats are never quite equal.",
            )

    def finished(name: str, tree: exp.Expression) -> exp.Expression:
        def turned(node: exp.Expr) -> exp.Expr:
            if is_of_group(node):
                return made.aggregate(node, _same, name if node is root else "")
            if isinstance(node, exp.Window):
                raise outside_groups(person)
            if isinstance(node, exp.Column) and node.name not in keys:
                rows.schema.usable(node.name)
                raise UnsupportedSqlError(
                    f"The column {node.name[:60]} beside GROUP BY",
                    why="it may have several values for one person",
                    fix=f"write ANY_VALUE({node.name[:60]}), MAX({node.name[:60]}) or another aggregate of it.",
                )
            return node

        root = tree.copy()
        result = root.transform(turned, copy=False)
        assert isinstance(result, exp.Expression)  # noqa: S101  # what transform gives
        return result

    trees = [finished(name, tree) for name, tree in features.items()]
    groups = [made.argument(column(name))[0] for name in keys]
    inner = rows.select([*made.plain(), *made.arguments])
    select = exp.select(*groups, *made.sql()).from_(sub(inner, "a"), copy=False).group_by(*groups, copy=False)
    schema = Schema((*(rows.schema[name] for name in keys), *made.columns))
    words = f"one row for each {' and '.join(keys)}"
    after = rows.made(made.finished(select, keys), schema, made.read, [words], layers=_LAYERS)
    # A column of the name that divides the table need not be that column any more.
    division = rows.division if rows.division is not None and rows.division.chosen else None
    return replace(after, division=division, single=rows.single or not by), trees


def windowed(
    rows: Rows,
    trees: Sequence[exp.Expression],
    ties: Sequence[str],
    *,
    names: Sequence[str] = (),
    in_groups: bool = False,
    explicit: bool = True,
) -> tuple[Rows, list[exp.Expression]]:
    """The rows with a column for each window function, and the trees with these columns in the place of the functions.

    Args:
        rows: whose columns the trees are about.
        trees: expressions with window functions in them.
        ties: all columns that can be seen beside the window functions, by which rows that tie are ordered.
        names: what to call the column of a tree that is one window function.
        in_groups: whether window functions outside aggregates stay where they are.
        explicit: whether a window must name the person itself; else the person is always part of the partition.
    """
    wanted = {
        id(node): node
        for tree in trees
        for node in tree.find_all(exp.Window)
        if not in_groups or aggregate_above(node) is not None
    }
    if not wanted:
        return rows, list(trees)
    made = _Parts(rows.schema, [*rows.schema.names, *names])
    windows = _Windows(_person(rows), made, explicit)
    finished: dict[int, exp.Expression] = {}
    for place, tree in enumerate(trees):
        for node in tree.find_all(exp.Window):
            if id(node) in wanted:
                name = names[place] if names and node is tree else ""
                finished[id(node)] = windows.read(node, name)
    relation, numbered = windows.select(rows, ties)
    schema = Schema((*rows.schema, *made.columns))
    after = rows.made(
        made.finished(relation, [*rows.schema.names, windows.counted]),
        schema,
        made.read,
        [],
        layers=_LAYERS + numbered,
    )
    # What a window sees depends on the files of all parts, so none may be left out for the sake of time.
    division = None if rows.division is None else replace(rows.division, files=None)
    after = replace(after, division=division, counted=windows.counted)
    return after, [replaced(tree, finished) for tree in trees]


def replaced(tree: exp.Expression, finished: Mapping[int, exp.Expression]) -> exp.Expression:
    """A copy of a tree with others in the place of some nodes."""
    if id(tree) in finished:
        return finished[id(tree)].copy()
    copied = tree.copy()
    for old, new in zip(list(tree.walk()), list(copied.walk()), strict=True):
        if id(old) in finished:
            new.replace(exp.paren(finished[id(old)].copy()))
    return copied


def aggregate_above(window: exp.Expression) -> exp.Expression | None:
    """The aggregate that a window function stands in, if it does."""
    above: Any = window.parent
    while above is not None and not isinstance(above, exp.Query):
        if is_of_group(above):
            found: exp.Expression = above
            return found
        above = above.parent
    return None


def _person(rows: Rows) -> str:
    if rows.unit is None:
        raise UnsupportedSqlError(
            "A feature of a person, where each row is protected alone",
            why="no column names the person, so nothing tells which rows belong together",
            fix='open the table with unit=dp.user("patient"), the column that names the person, and a ledger of that'
            " unit.",
        )
    return rows.unit


def outside_groups(person: str) -> UnsupportedSqlError:
    """Why a window function cannot stand beside aggregates."""
    return UnsupportedSqlError(
        "A window function beside GROUP BY",
        why="windows are about single rows, which are gone after the groups are made",
        fix=f"write it inside an aggregate, MAX(LAG(x) OVER (PARTITION BY {person} ORDER BY t)), or in a sub-query.",
    )


def _same(function: exp.Expression) -> exp.Expression:
    return function


@final
class _Parts:
    """Collects what one statement computes: arguments of aggregates, and columns made of them."""

    def __init__(self, schema: Schema, taken: Iterable[str]) -> None:
        self.schema = schema
        self.read: list[Expression] = []
        self._plain: dict[str, exp.Expression] = {}
        self._taken = {name.casefold() for name in (*schema.names, *taken)}
        self._arguments: dict[str, tuple[str, exp.Expression]] = {}
        self._held: dict[str, tuple[Column, exp.Expression, bool]] = {}
        self._later: dict[str, tuple[Column, exp.Expression]] = {}
        self._shown: dict[str, Column] = {}

    def plain(self, names: Iterable[str] | None = None) -> list[exp.Expression]:
        """Columns under their names, or all that are arguments: as they are read, which no expression can tell."""
        chosen = self._plain if names is None else names
        return [named(self._plain[name].copy(), name) if name in self._plain else column(name) for name in chosen]

    @property
    def arguments(self) -> list[exp.Expression]:
        """What aggregates are applied to, each under its name."""
        return [named(sql.copy(), name) for name, sql in self._arguments.values()]

    @property
    def columns(self) -> list[Column]:
        """The columns that are made."""
        return list(self._shown.values())

    def sql(self) -> list[exp.Expression]:
        """What makes them, or what they are made of."""
        return [named(sql, own.name) for own, sql, _ in self._held.values()]

    def finished(self, select: exp.Select, others: Sequence[str]) -> exp.Select:
        """The columns, beside others, out of the statement that makes them or what they are made of."""
        if any(big for _, _, big in self._held.values()):
            kept = [
                named(_saturated(own.name), own.name) if big else column(own.name)
                for own, _, big in self._held.values()
            ]
            select = exp.select(*map(column, others), *kept).from_(sub(select, "b"), copy=False)
        if not self._later:
            return select
        schema = Schema(own for own, _, _ in self._held.values())
        values = {own.name: read(tree, schema).sql for own, tree in self._later.values()}
        shown = [named(values[name], name) if name in values else column(name) for name in self._shown]
        return exp.select(*map(column, others), *shown).from_(sub(select, "c"), copy=False)

    def name(self, wanted: str) -> str:
        """A name that no column has yet."""
        number, free = 1, wanted
        while free.casefold() in self._taken:
            number += 1
            free = f"{wanted}_{number}"
        self._taken.add(free.casefold())
        return free

    def argument(self, tree: exp.Expression) -> tuple[exp.Column, Expression]:
        """An expression over one row, as a column that can be named later."""
        value = read(tree, self.schema)
        self.read.append(value)
        if isinstance(tree, exp.Column):
            self._plain[tree.name] = value.sql
            return column(tree.name), value
        key = value.sql.sql("duckdb")
        if key not in self._arguments:
            self._arguments[key] = self.name("argument"), value.sql
        return column(self._arguments[key][0]), value

    def hold(
        self, sql: exp.Expression, own: Column, wanted: str, *, big: bool = False, inner: bool = False
    ) -> exp.Column:
        """A column that is computed so, under the name that is wanted or one like that of ``own``.

        ``big`` sums are beyond 64 bits, perhaps; others may be made of ``inner`` columns, which are not shown.
        """
        key = f"{sql.sql('duckdb')} {own.kind}"
        if key not in self._held:
            self._held[key] = replace(own, name=wanted or self.name(own.name)), sql, big
        held = self._held[key][0]
        if not inner:
            self._shown[held.name] = held
        return column(held.name)

    def later(self, tree: exp.Expression, own: Column, wanted: str) -> exp.Column:
        """A column that is computed of columns that are held."""
        key = tree.sql("duckdb")
        if key not in self._later:
            self._later[key] = replace(own, name=wanted or self.name(own.name)), tree
        made = self._later[key][0]
        self._shown[made.name] = made
        return column(made.name)

    def aggregate(
        self, node: Any, over: Callable[[exp.Expression], exp.Expression], wanted: str = ""
    ) -> exp.Expression:
        """An aggregate in terms of columns; ``over`` makes of a function the one that is computed."""
        condition = None
        if isinstance(node, exp.Filter):
            only(node, "this", "expression")
            condition, node = node.expression.this, node.this
        if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue):  # as DuckDB's is read
            node = node.this
        if isinstance(node, exp.Count | exp.CountIf):
            return self._count(node, condition, over, wanted)
        make = _MAKERS.get(type(node))
        if make is None:
            called = node.sql_name() if isinstance(node, exp.Func) else str(node.key).upper()
            raise UnsupportedSqlError(
                f"{called[:40]} of one person's rows",
                why="it is not among those that every engine computes alike",
                fix=f"use {_AGGREGATES}; the first or last value is"
                " ANY_VALUE(FIRST_VALUE(x) OVER (PARTITION BY person ORDER BY t)).",
            )
        only(node, "this")
        if isinstance(node.this, exp.Distinct | exp.Order):
            raise UnsupportedSqlError(
                f"DISTINCT or ORDER BY inside {node.key.upper()}", why="only COUNT takes it", fix="leave it out."
            )
        return make(self, node, _where(node.this, condition), over, wanted)

    def _count(self, node: Any, condition: Any, over: Any, wanted: str) -> exp.Expression:
        only(node, "this", "big_int")
        inner = node.this
        if isinstance(node, exp.CountIf):
            condition = inner if condition is None else exp.and_(exp.paren(condition.copy()), exp.paren(inner.copy()))
            inner = None
        if isinstance(inner, exp.Distinct):
            return self._distinct(inner, condition, over, wanted)
        if inner is None or isinstance(inner, exp.Star | exp.Literal):
            if isinstance(inner, exp.Star):
                only(inner)
            if condition is None:
                every = exp.Count(this=exp.Star(), big_int=True)
                return self.hold(over(every), Column("count", Kind.INTEGER), wanted)
            inner = exp.Literal.number(1)
        value, _ = self.argument(_where(inner, condition))
        named_ = Column(_called("count", inner), Kind.INTEGER)
        return self.hold(over(exp.Count(this=value, big_int=True)), named_, wanted)

    def _distinct(self, inner: exp.Distinct, condition: Any, over: Any, wanted: str) -> exp.Expression:
        only(inner, "expressions")
        if len(inner.expressions) != 1 or over is not _same:
            raise UnsupportedSqlError(
                "COUNT(DISTINCT …) of several values or over a window",
                why="engines do not count them alike",
                fix="count one value, with GROUP BY the person.",
            )
        (counted,) = inner.expressions
        value, found = self.argument(_where(counted, condition))
        if not found.kind.countable:
            raise WrongKindError(
                "COUNT(DISTINCT …) was given floats, which are never quite equal.",
                fix="round them to whole numbers: CAST(x AS BIGINT).",
            )
        values = None if not isinstance(counted, exp.Column) else self.schema[counted.name].values
        own = Column(_called("count_distinct", counted), Kind.INTEGER)
        if values:
            own = replace(own, low=0, high=len(values))
        return self.hold(exp.Count(this=exp.Distinct(expressions=[value]), big_int=True), own, wanted)

    def sum(self, node: Any, tree: exp.Expression, over: Any, wanted: str) -> exp.Expression:
        """SUM: integers exactly, floats on a grid."""
        value, step = self._summed(tree, node.key)
        name, total = _called("sum", node.this), wide(exp.Sum(this=value))
        if step is None:
            return self.hold(over(total), Column(name, Kind.INTEGER), wanted, big=True)
        steps = self.hold(over(total), Column(f"steps_{name}", Kind.INTEGER), "", big=True, inner=True)
        return self.later(exp.Mul(this=steps, expression=step), Column(name, Kind.NUMBER), wanted)

    def mean(self, node: Any, tree: exp.Expression, over: Any, wanted: str) -> exp.Expression:
        """AVG: the quotient of a sum and a count."""
        value, step = self._summed(tree, node.key)
        name = _called("avg", node.this)
        total: exp.Expression = self.hold(
            over(wide(exp.Sum(this=value))), Column(f"sum_{name}", Kind.INTEGER), "", big=True, inner=True
        )
        counted = exp.Count(this=value.copy(), big_int=True)
        number = self.hold(over(counted), Column(f"count_{name}", Kind.INTEGER), "", inner=True)
        if step is not None:
            total = exp.paren(exp.Mul(this=total, expression=step))
        own = self.like(name, node.this, read(node.this, self.schema))
        ends = (0, 1) if own.kind is Kind.BOOLEAN else (own.low, own.high)
        known = Column(name, Kind.NUMBER, *ends)
        return self.later(exp.Div(this=total, expression=number), known, wanted)

    def extreme(self, node: Any, tree: exp.Expression, over: Any, wanted: str) -> exp.Expression:
        """MIN, MAX, and ANY_VALUE, which is the least; of truth values FALSE is the least."""
        value, found = self.argument(tree)
        most = isinstance(node, exp.Max)
        if found.kind is Kind.BOOLEAN:
            function: exp.Expression = exp.LogicalOr(this=value) if most else exp.LogicalAnd(this=value)
        else:
            function = exp.Max(this=value) if most else exp.Min(this=value)
        return self.hold(over(function), self.like(_called(node.key, node.this), node.this, found), wanted)

    def truth(self, node: Any, tree: exp.Expression, over: Any, wanted: str) -> exp.Expression:
        """BOOL_OR and BOOL_AND."""
        value, found = self.argument(tree)
        if found.kind is not Kind.BOOLEAN:
            raise WrongKindError(
                f"{node.sql_name()} needs a condition, but was given {found.kind}.", fix="compare it: x <> 0, say."
            )
        word = "any" if isinstance(node, exp.LogicalOr) else "all"
        return self.hold(over(type(node)(this=value)), Column(_called(word, node.this), Kind.BOOLEAN), wanted)

    def like(self, name: str, tree: exp.Expression, value: Expression) -> Column:
        """A column that holds values of an expression, with what was declared about them."""
        growth = value.growth if value.kind is Kind.TEXT else None
        if not isinstance(tree, exp.Column):
            return Column(name, value.kind, growth=growth)
        return replace(self.schema[tree.name], name=name, kind=value.kind, growth=growth)

    def _summed(self, tree: exp.Expression, word: str) -> tuple[exp.Column, exp.Expression | None]:
        """What is added, in integers: truth values as 0 and 1, and floats in steps of the grid, then with that step."""
        kind = read(tree, self.schema).kind
        if not kind.numeric and kind is not Kind.BOOLEAN:
            raise WrongKindError(
                f"{word.upper()} needs numbers, but was given {kind}.",
                fix="write CAST(x AS DOUBLE), or DATE_DIFF('day', a, b).",
            )
        if kind is Kind.BOOLEAN:
            tree = exp.Cast(this=exp.paren(tree.copy()), to=exp.DataType.build("BIGINT"))
        if kind is not Kind.NUMBER:
            return self.argument(tree)[0], None
        return self.argument(_on_grid(tree))[0], exp.Literal.number(repr(_STEP))


_MAKERS: dict[type[Any], Callable[[_Parts, Any, exp.Expression, Any, str], exp.Expression]] = {
    exp.Sum: _Parts.sum,
    exp.Avg: _Parts.mean,
    exp.Min: _Parts.extreme,
    exp.Max: _Parts.extreme,
    exp.AnyValue: _Parts.extreme,
    exp.LogicalOr: _Parts.truth,
    exp.LogicalAnd: _Parts.truth,
}


def _saturated(name: str) -> exp.Expression:
    """A sum as a 64-bit integer: beyond these, the last of them."""
    low, high, value = constant(SMALLEST_INTEGER, Kind.INTEGER), whole(2**63 - 1), column(name)
    return (
        exp.case()
        .when(exp.GT(this=value.copy(), expression=high.copy()), high.copy())
        .when(exp.LT(this=value.copy(), expression=low.copy()), low.copy())
        .else_(typed(value.copy(), BIGINT))
    )


def _where(tree: exp.Expression, condition: Any) -> exp.Expression:
    """The value where a condition holds, and NULL elsewhere."""
    if condition is None:
        return tree
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=tree.copy())])


def _on_grid(tree: exp.Expression) -> exp.Expression:
    """A float as the nearest multiple of the grid's step, in integers; beyond 64 bits it is missing."""
    steps = exp.Mul(this=exp.paren(tree.copy()), expression=exp.Literal.number(repr(1 / _STEP)))
    return exp.Cast(this=steps, to=exp.DataType.build("BIGINT"))


def _called(word: str, *nodes: exp.Expression | None) -> str:
    """A readable name: the function and the first columns it is about."""
    names = dict.fromkeys(own.name for node in nodes if node is not None for own in node.find_all(exp.Column))
    return "_".join([word, *list(names)[:2]])[:60]


@final
@dataclass(frozen=True, slots=True)
class _Order:
    """Rows of one partition in an order; ``tied`` where it matters which of those that tie comes first."""

    partition: tuple[str, ...]
    keys: tuple[tuple[str, bool, bool], ...]
    tied: bool

    def sql(self, ties: Sequence[str]) -> tuple[list[exp.Expression], exp.Order | None]:
        """The partition and the order as SQL."""
        seen = {*self.partition, *(name for name, _, _ in self.keys)}
        more = [(name, False, True) for name in ties if name not in seen] if self.tied else []
        ordered = [
            exp.Ordered(this=column(name), desc=desc, nulls_first=first) for name, desc, first in (*self.keys, *more)
        ]
        return [column(name) for name in self.partition], exp.Order(expressions=ordered) if ordered else None


class _Windows:
    """Reads the window functions of one statement."""

    def __init__(self, person: str, made: _Parts, explicit: bool) -> None:
        self._person, self._made, self._explicit = person, made, explicit
        self._waiting: list[tuple[exp.Window, _Order]] = []
        self.counted = made.name("rows of the person")
        """The column that says beside each row how many the person has, which the engine counts on the way."""

    def read(self, node: exp.Window, wanted: str) -> exp.Expression:
        """A window function in terms of columns."""
        only(node, "this", "partition_by", "order", "spec", "over")
        function: Any = node.this
        partition = self._partition(node)
        keys = self._keys(node)
        frame = self._frame(node, keys)
        if isinstance(function, _RANKS):
            return self._rank(function, _Order(partition, keys, isinstance(function, exp.RowNumber)), frame, wanted)
        if isinstance(function, _NEIGHBOURS):
            return self._neighbour(function, _Order(partition, keys, tied=True), frame, wanted)
        if isinstance(function, _ENDS):
            return self._end(function, _Order(partition, keys, tied=True), frame, wanted)
        within = function.this if isinstance(function, exp.Filter) else function
        if not isinstance(within, exp.Count | exp.CountIf) and type(within) not in _MAKERS:
            called = within.sql_name() if isinstance(within, exp.Func) else str(within.key).upper()
            raise UnsupportedSqlError(
                f"The window function {called[:40]}",
                why="it is not among those that every engine computes alike",
                fix=f"use {_WINDOWS}.",
            )
        order = _Order(partition, keys, tied=frame is not None and frame.args["kind"] == "ROWS")
        return self._made.aggregate(function, lambda plain: self._over(plain, order, frame), wanted)

    def select(self, rows: Rows, ties: Sequence[str]) -> tuple[exp.Select, bool]:
        """The statement that computes all of them beside the rows, and whether it numbers the rows first."""
        seen = [self._made.argument(column(name))[0].name for name in dict.fromkeys(ties) if name != self._person]
        several = len({(order.partition, order.keys) for _, order in self._waiting if order.tied}) > 1
        number = self._made.name("place") if several else None
        names = [column(own.name) for own in rows.schema]
        inner = rows.select([*self._made.plain(rows.schema.names), *self._made.arguments])
        if number is not None:
            parts, ordered = _Order((self._person,), (), tied=True).sql(seen)
            place = exp.Window(this=exp.RowNumber(), partition_by=parts, order=ordered)
            kept = [*names, *(column(one.alias) for one in self._made.arguments)]
            inner = exp.select(*(one.copy() for one in kept), named(place, number)).from_(sub(inner, "n"), copy=False)
        for window, order in self._waiting:
            partition, ordered = order.sql(seen if number is None else [number])
            window.set("partition_by", partition)
            window.set("order", ordered)
        counted = named(over(exp.Count(this=exp.Star(), big_int=True), self._person), self.counted)
        select = exp.select(*(one.copy() for one in names), counted, *self._made.sql()).from_(
            sub(inner, "a"), copy=False
        )
        return select, several

    def _partition(self, node: exp.Window) -> tuple[str, ...]:
        parts: list[Any] = list(node.args.get("partition_by") or [])
        persons = [part for part in parts if isinstance(part, exp.Column) and part.name == self._person]
        if self._explicit and not persons:
            raise UnsupportedSqlError(
                f"A window function whose partition does not contain {self._person[:60]}",
                why="it would mix the rows of different people",
                fix=f"write OVER (PARTITION BY {self._person[:60]} ORDER BY …), with other columns behind if need be.",
            )
        names = [self._person]
        for part in parts:
            name, value = self._made.argument(part)
            if not value.kind.countable:
                raise WrongKindError(
                    f"A partition is by values that are equal or not, and not by {value.kind}.",
                    fix="partition by whole numbers, text, dates or truth values.",
                )
            names.append(name.name)
        return tuple(dict.fromkeys(names))

    def _keys(self, node: exp.Window) -> tuple[tuple[str, bool, bool], ...]:
        clause = node.args.get("order")
        keys = []
        for one in [] if clause is None else clause.expressions:
            only(one, "this", "desc", "nulls_first")
            if one.this.find(exp.Column) is None:
                raise UnsupportedSqlError(
                    "ORDER BY a constant in a window", why="it orders nothing", fix="order by a column."
                )
            name = self._made.argument(one.this)[0].name
            keys.append((name, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))))
        return tuple(keys)

    def _frame(self, node: exp.Window, keys: tuple[Any, ...]) -> exp.WindowSpec | None:
        """The frame, if one is written."""
        spec = node.args.get("spec")
        if spec is None:
            return None
        only(spec, "kind", "start", "start_side", "end", "end_side")
        kind = str(spec.args.get("kind") or "").upper()
        ends = [self._edge(spec.args.get(end)) for end in ("start", "end")]
        if kind not in {"ROWS", "RANGE"} or None in ends or (kind == "RANGE" and any(map(_is_number, ends))):
            raise UnsupportedSqlError(
                "This frame of a window",
                why="engines do not agree about it",
                fix="write ROWS BETWEEN 3 PRECEDING AND CURRENT ROW, with whole numbers or UNBOUNDED.",
            )
        if not keys:
            raise _unordered("A frame")
        sides = {f"{end}_side": spec.args.get(f"{end}_side") for end in ("start", "end")}
        return exp.WindowSpec(kind=kind, start=ends[0], end=ends[1], **sides)

    @staticmethod
    def _edge(edge: Any) -> Any:
        """An edge of a frame: words, a number of rows, or None where it is something else."""
        if edge is None:
            return "CURRENT ROW"
        if isinstance(edge, str):
            return edge.upper() if edge.upper() in {"UNBOUNDED", "CURRENT ROW"} else None
        return exp.Literal.number(edge.name) if _small(edge) else None

    def _over(self, function: exp.Expression, order: _Order, frame: exp.WindowSpec | None) -> exp.Expression:
        """The function over a window, whose order is completed once it is known what can be seen."""
        partition, ordered = order.sql(["\0 ties"] if order.tied else [])  # unlike the same window without ties
        spec = None if frame is None else frame.copy()
        window = exp.Window(this=function, partition_by=partition, order=ordered, spec=spec)
        self._waiting.append((window, order))
        return window

    def _rank(self, function: Any, order: _Order, frame: Any, wanted: str) -> exp.Expression:
        only(function)
        if not isinstance(function, exp.RowNumber) and not order.keys:
            raise _unordered(function.sql_name())
        _refuse_frame(function, frame)
        place = typed(self._over(type(function)(), order, None), BIGINT)
        return self._made.hold(place, Column(function.key, Kind.INTEGER), wanted)

    def _neighbour(self, function: Any, order: _Order, frame: Any, wanted: str) -> exp.Expression:
        only(function, "this", "offset")
        _refuse_frame(function, frame)
        offset = function.args.get("offset")
        if not order.keys:
            raise _unordered(function.sql_name())
        if offset is not None and not _small(offset):
            raise UnsupportedSqlError(
                f"{function.sql_name()} by anything but a whole number of rows",
                why="it must be public",
                fix=f"write {function.sql_name()}(x, 2).",
            )
        value, found = self._made.argument(function.this)
        moved = type(function)(this=value, offset=exp.Literal.number(1 if offset is None else offset.name))
        own = self._made.like(_called(function.key, function.this), function.this, found)
        return self._made.hold(self._over(moved, order, None), own, wanted)

    def _end(self, function: Any, order: _Order, frame: exp.WindowSpec | None, wanted: str) -> exp.Expression:
        only(function, "this")
        if not order.keys:
            raise _unordered(function.sql_name())
        by_rows = frame is not None and frame.args["kind"] == "ROWS"
        if not by_rows and (frame is not None or isinstance(function, exp.LastValue)):
            raise UnsupportedSqlError(
                f"{function.sql_name()} without a frame of ROWS",
                why="which of the rows that tie is meant is not defined",
                fix="write ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING, or FIRST_VALUE with ORDER BY …"
                " DESC.",
            )
        value, found = self._made.argument(function.this)
        own = self._made.like(_called(function.sql_name().lower(), function.this), function.this, found)
        return self._made.hold(self._over(type(function)(this=value), order, frame), own, wanted)


def _small(node: Any) -> bool:
    """Whether a node is a whole number of rows."""
    digits = isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()
    return bool(digits and len(node.name) < 9 and int(node.name) <= _FARTHEST_ROW)


def _is_number(edge: Any) -> bool:
    return isinstance(edge, exp.Literal)


def _refuse_frame(function: Any, frame: object) -> None:
    if frame is not None:
        raise UnsupportedSqlError(
            f"A frame for {function.sql_name()}", why="it is about the whole partition", fix="leave the frame out."
        )


def _unordered(what: str) -> UnsupportedSqlError:
    return UnsupportedSqlError(
        f"{what} without ORDER BY", why="a person's rows have no order of their own", fix="write OVER (… ORDER BY day)."
    )
