"""SELECTs over the groups that another SELECT releases: which those are, and what their names mean.

``SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)`` releases the counts, with noise and at
their price; the average is computed from them and free. A sub-query that groups by the person is no release: it makes
rows of that person, exactly (:mod:`defocus.tables.sql.person_features`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from sqlglot import exp

from defocus.engines.schema import Column, Kind, Schema
from defocus.errors import UnknownColumnError, UnsupportedSqlError
from defocus.tables.sql.aggregates import free, is_aggregate
from defocus.tables.sql.grouping import Key, grouped
from defocus.tables.sql.parser import canonical, only
from defocus.tables.sql.postprocessing import Finish, Regroup, kind_of
from defocus.tables.sql.query import matching
from defocus.tables.sql.relations import Catalogue, from_clause

__all__ = ["ReleasedAsked", "ReleasedCalls", "ReleasedScope", "released_source"]


def released_source(tree: exp.Select, catalogue: Catalogue) -> tuple[exp.Select, str] | None:
    """The SELECT in FROM whose groups are released, and what it is called; None where FROM is about rows."""
    source = _source(tree, _named(tree))
    if source is None or not _is_release(source[0], source[1], catalogue):
        return None
    select, parts, called = source
    return _alone(select, parts), called


def _named(select: exp.Select) -> list[exp.Expression]:
    """The parts of its WITH clause."""
    clause = select.args.get("with_")
    return [] if clause is None else list(clause.expressions)


def _source(tree: exp.Select, parts: list[exp.Expression]) -> tuple[exp.Select, list[exp.Expression], str] | None:
    """The one SELECT in FROM, which parts of WITH it can name, and what it is called, where ``tree`` can name these."""
    source = tree.args.get("from_")
    if source is None or tree.args.get("joins"):
        return None
    table = source.this
    alias = table.args.get("alias")
    inner = table.this if isinstance(table, exp.Subquery) else None
    if isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier) and table.args.get("db") is None:
        for place, part in reversed(list(enumerate(parts))):
            if inner is None and matching(table.this, [part.args["alias"].name]):
                inner, parts = part.this, parts[:place]
                alias = alias or part.args["alias"]
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    if not isinstance(inner, exp.Select):
        return None
    return inner, [*parts, *_named(inner)], "" if alias is None else str(alias.name)


def _alone(select: exp.Select, parts: list[exp.Expression]) -> exp.Select:
    """A copy that brings the parts of WITH along."""
    made = select.copy()
    if parts:
        made.set("with_", exp.With(expressions=[part.copy() for part in parts]))
    return made


def _is_release(select: exp.Select, parts: list[exp.Expression], catalogue: Catalogue) -> bool:
    """Whether a SELECT has aggregates of many people, or is itself over one that has."""
    source = _source(select, parts)
    if source is not None and _is_release(source[0], source[1], catalogue):
        return True
    having = select.args.get("having")
    items = [*select.expressions, *([] if having is None else [having])]
    if not any(_aggregates(item) for item in items):
        return False
    if select.args.get("group") is None:
        return True
    own = _alone(select, parts)
    scope, _ = from_clause(own, catalogue)
    _, keys = grouped(own, scope)
    return scope.rows.unit is None or scope.rows.unit not in [key.physical for key in keys]


def _aggregates(item: exp.Expression) -> bool:
    """Whether an expression has an aggregate that is not the function of a window."""
    return any(
        is_aggregate(node)
        and not (isinstance(node.parent, exp.Window) and node.parent.this is node)
        and not (isinstance(node.parent, exp.Filter) and isinstance(node.parent.parent, exp.Window))
        for node in item.walk()
    )


@final
@dataclass(frozen=True, slots=True)
class ReleasedScope:
    """The keys and columns that a SELECT releases, by name; k0, k1, … and a0, a1, … in trees over them."""

    called: str
    columns: Mapping[str, Column]
    """By what they are called: the column as trees name it."""

    @classmethod
    def of(cls, finish: Finish, called: str) -> "ReleasedScope":
        """The names that another SELECT shows, with or without its alias before them."""
        keys = {name: Column(f"k{i}", kind) for i, (name, kind) in enumerate(finish.keys)}
        outputs = {output.name: Column(f"a{i}", Kind.NUMBER) for i, output in enumerate(finish.outputs)}
        return cls(called, keys | outputs)

    @property
    def schema(self) -> Schema:
        """All columns."""
        return Schema(self.columns.values())

    def find(self, node: exp.Column) -> Column | None:
        """The column that is meant, or None if there is none."""
        table = node.args.get("table")
        if not isinstance(node.this, exp.Identifier) or (table is not None and not matching(table, [self.called])):
            return None
        names = matching(node.this, list(self.columns))
        return self.columns[names[0]] if names else None

    def column(self, node: exp.Column) -> Column:
        """The column that is meant."""
        found = self.find(node)
        if found is None:
            raise UnknownColumnError(canonical(node)[:60], list(self.columns))
        return found

    def resolved(self, node: exp.Expression) -> exp.Expression:
        """The tree with every column as trees name it."""
        root = exp.paren(node.copy())
        for part in list(root.find_all(exp.Column)):
            part.replace(exp.column(self.column(part).name, quoted=True))
        made = root.this
        assert isinstance(made, exp.Expression)  # noqa: S101  # what was put there
        return made

    def key(self, name: str, node: exp.Expression) -> tuple["ReleasedScope", Column]:
        """A key that is an expression; it is computed where groups are made."""
        return self, Column(name, kind_of(self.resolved(node), self.schema))

    def opened(self, tree: exp.Select) -> tuple[exp.Select, tuple[exp.Expression, str] | None]:
        """The SELECT with columns in the place of stars, and the condition of its WHERE."""
        made = tree.copy()
        items = []
        for item in made.expressions:
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                only(star, "A star")
                items += [exp.column(name, quoted=True) for name in self.columns]
            else:
                items.append(item)
        made.set("expressions", items)
        where = made.args.get("where")
        if where is None:
            return made, None
        if where.find(exp.Window) is not None or any(is_aggregate(node) for node in where.walk()):
            raise UnsupportedSqlError(
                "An aggregate or a window function in WHERE",
                why="WHERE is about single groups",
                fix="write HAVING, or QUALIFY.",
            )
        return made, (self.resolved(where.this), canonical(where.this))

    def regrouped(
        self, tree: exp.Select, condition: tuple[exp.Expression, str] | None
    ) -> tuple[Regroup, tuple[Key, ...]]:
        """What is done before the columns of the SELECT are computed, and its keys."""
        clauses = (tree.args.get(part) for part in ("having", "qualify", "order"))
        parts = [*tree.expressions, *(clause for clause in clauses if clause is not None)]
        if tree.args.get("group") is None and not any(map(_aggregates, parts)):
            keys = [(name, column) for name, column in self.columns.items() if column.name.startswith("k")]
            groups = tuple(Key(name, column, exp.column(column.name, quoted=True)) for name, column in keys)
            return Regroup(condition, (), None), groups
        _, groups = grouped(tree, self)  # type: ignore[arg-type]  # it asks of a scope what this one knows
        return Regroup(condition, tuple((key.name, key.tree) for key in groups), {}), groups


@final
@dataclass(frozen=True, slots=True)
class ReleasedCalls:
    """Reads aggregates over released groups: those of DuckDB."""

    scope: ReleasedScope

    def read(self, node: exp.Expression) -> tuple[exp.Expression, str, tuple[str, ...]]:
        """The aggregate over released columns, and a name for it."""
        tree = self.scope.resolved(node)
        inner = tree.this if isinstance(tree, exp.Filter) else tree
        if any(is_aggregate(part) for part in inner.walk() if part is not inner):
            raise UnsupportedSqlError(
                "An aggregate inside an aggregate",
                why="aggregates are about single groups",
                fix="ask for each by itself.",
            )
        columns = dict.fromkeys(column.name for column in node.find_all(exp.Column))
        return tree, "_".join([inner.key.lower(), *list(columns)[:3]])[:60], ()


@final
@dataclass(slots=True)
class ReleasedAsked:
    """Collects aggregates over released groups under a0, a1, …; or knows the released columns themselves."""

    as_they_are: bool
    before: Finish
    wanted: dict[str, tuple[str, str, exp.Expression]] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.before.outputs) if self.as_they_are else len(self.wanted)

    def reference(self, aggregate: exp.Expression, name: str, notes: Sequence[str]) -> str:  # noqa: ARG002
        """By what the column will be known."""
        return self.wanted.setdefault(canonical(aggregate), (f"a{len(self.wanted)}", name, aggregate))[0]

    def known(self, name: str) -> exp.Column | None:
        """The released column that a name stands for."""
        return exp.column(name, quoted=True) if self.as_they_are else None

    def arranged(self, keys: Sequence[str]) -> tuple[dict[str, exp.Expression], dict[str, str]]:
        """The aggregates by name, and for each reference the column that holds it."""
        if self.as_they_are:
            return {}, {f"a{i}": output.name for i, output in enumerate(self.before.outputs)}
        taken = [key.casefold() for key in keys]
        asked: dict[str, exp.Expression] = {}
        held: dict[str, str] = {}
        for reference, name, tree in self.wanted.values():
            called = free(name, taken)
            taken.append(called.casefold())
            asked[called], held[reference] = tree, called
        return asked, held
