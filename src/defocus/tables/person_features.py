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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from sqlglot import exp

from defocus.engines.schema import Column, Kind, Schema
from defocus.engines.syntax import BIGINT, column, named, over, sub, typed
from defocus.errors import InvalidParameterError, UnsupportedSqlError, WrongKindError
from defocus.tables.expressions import typed as read
from defocus.tables.expressions.parser import EXPRESSIONS, only, parsed
from defocus.tables.person_aggregates import MAKERS, Parts, feature_name, plainly
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
    made = Parts(rows.schema, [*keys, *features])
    for name in keys:
        if not rows.schema.usable(name).kind.countable:
            raise WrongKindError(
                f"Rows cannot be grouped by {name!r:.60}, which is of kind {rows.schema[name].kind}.",
                fix="group by whole numbers, text, dates or truth values; floats are never quite equal.",
            )

    def finished(name: str, tree: exp.Expression) -> exp.Expression:
        def turned(node: exp.Expr) -> exp.Expr:
            if is_of_group(node):
                return made.aggregate(node, plainly, name if node is root else "")
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
    made = Parts(rows.schema, [*rows.schema.names, *names])
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

    def __init__(self, person: str, made: Parts, explicit: bool) -> None:
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
        if not isinstance(within, exp.Count | exp.CountIf) and type(within) not in MAKERS:
            word = within.sql_name() if isinstance(within, exp.Func) else str(within.key).upper()
            raise UnsupportedSqlError(
                f"The window function {word[:40]}",
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
        own = self._made.like(feature_name(function.key, function.this), function.this, found)
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
        own = self._made.like(feature_name(function.sql_name().lower(), function.this), function.this, found)
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
