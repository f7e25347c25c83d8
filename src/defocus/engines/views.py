"""What a view may be: a plain selection, in which no row decides about another and none can fail."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, final

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from defocus.engines.syntax import bare
from defocus.errors import EngineError, SourceError

__all__ = ["Names", "Selection", "changed", "constant", "plain", "query_of", "refused", "selected", "single", "stars"]

Names: TypeAlias = tuple[str, str, str]
"""Catalog, schema and name."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_FIX = (
    "store its rows as a table with declared types, CREATE TABLE … AS SELECT TRY_CAST(…) AS … FROM …, and open that;"
    " or open the file, the frame or the table below it, with types=, and use .where, .derive and .join."
)


def refused(name: str, what: str) -> SourceError:
    """That a relation is not read, before anything is charged."""
    return SourceError(f"{name!r:.80} is neither a stored table nor a plain selection of one: {what}.", fix=_FIX)


def changed(engine: str) -> EngineError:
    """That a relation is another than the one that was looked at."""
    return EngineError(
        f"{engine} could not compute: a table or view is not what it was when it was opened.",
        fix="open the table again.",
    )


def query_of(name: str, text: str, dialect: str) -> exp.Expression:
    """The statement that defines a view, as a tree."""
    tree: exp.Expression | None = None
    try:
        tree = parse_one(text, dialect=dialect)  # type: ignore[assignment]  # an Expression is what it makes
    except (SqlglotError, RecursionError):
        tree = None
    if tree is None:
        raise refused(name, "its definition is not understood")
    return tree


def plain(name: str, query: exp.Expression | None) -> exp.Expression:
    """A query without brackets around it; anything else than SELECT … FROM … WHERE is refused.

    Guarantee:
        Nothing that samples, counts, orders and cuts, groups, joins, puts together or calls is accepted: a row is in
        the view at most once, and whether it is and what it is there depends on this row alone.
    """
    while isinstance(query, exp.Subquery | exp.Paren):
        _only(name, query, "this")
        query = query.this
    if not isinstance(query, exp.Select):
        raise refused(name, f"it holds {_word(query)}")
    _only(name, query, "expressions", "from_", "where")
    return query


def single(name: str, select: exp.Expression) -> exp.Table | exp.Subquery:
    """The one table or query that a query reads, if it reads one as it is."""
    origin = select.args.get("from_")
    table = None if origin is None else origin.this
    if not isinstance(table, exp.Table | exp.Subquery):
        raise refused(name, f"it reads {_word(table)}")
    _only(name, table, "this", "db", "catalog", "alias")
    return table


def selected(view: str, tree: exp.Expression, selection: "Selection") -> exp.Table:
    """The stored relation that a plain selection reads."""
    query = plain(view, tree)
    table = single(view, query)
    if isinstance(table, exp.Subquery):
        table = selected(view, table.this, selection)
    if not isinstance(table.this, exp.Identifier) or not table.db:
        raise refused(view, "it calls a function for its rows, or reads the catalogue")
    for column in query.find_all(exp.Column):
        column.set("db", None)  # MariaDB writes it before every column, and only one table is read
    for one in query.expressions:
        value = one.this if isinstance(one, exp.Alias) else one
        if not stars(view, value):
            selection.item(value)
    where = query.args.get("where")
    if where is not None:
        selection.condition(where.this)
    return table


def _only(name: str, node: exp.Expression, *parts: str) -> None:
    """Refuse a node that has parts beyond these."""
    for part, value in node.args.items():
        if value and part not in parts:
            held = next(iter(value), None) if isinstance(value, list) else value
            raise refused(name, f"it holds {_word(held) if isinstance(held, exp.Expression) else part}")


@final
@dataclass(frozen=True, slots=True)
class Selection:
    """What may stand in a SELECT list and in WHERE of a view, and what becomes of it."""

    view: str
    column: Callable[[exp.Column], exp.Expression]
    """A column that the table below has, or a refusal."""
    cast: Callable[[exp.Cast], exp.Expression]
    """A column in another type, or a refusal."""
    tried: Callable[[exp.Expression], exp.Expression]
    """A comparison, or a cast to a truth value, made one that cannot fail where it could."""

    def item(self, node: exp.Expression) -> exp.Expression:
        """A column, a constant, a column in another type, or a condition."""
        node = bare(node)
        is_value = isinstance(node, exp.Column | exp.Cast) or constant(node)
        return self._value(node) if is_value else self.condition(node)

    def condition(self, node: exp.Expression) -> exp.Expression:
        """A condition on one row.

        Guarantee:
            It is made of AND, OR, NOT, IS, comparisons of columns and constants, and columns as truth values. These
            and comparisons are tried one by one, so one that fails is NULL whatever order an engine takes them in.
        """
        node = bare(node)
        condition: exp.Expr
        if isinstance(node, exp.And | exp.Or):
            parts = [self.condition(one) for one in node.flatten()]  # type: ignore[arg-type]  # of expressions
            condition = exp.and_(*parts) if isinstance(node, exp.And) else exp.or_(*parts)
        elif isinstance(node, exp.Not):
            condition = exp.Not(this=self.condition(node.this))
        elif isinstance(node, exp.Is) and isinstance(node.expression, exp.Null | exp.Boolean):
            _only(self.view, node, "this", "expression", "negate")
            condition = node.copy()
            inner = self._value if isinstance(node.expression, exp.Null) else self.condition
            condition.set("this", inner(node.this))
        elif isinstance(node, _COMPARISONS):
            condition = self._compared(type(node), node.this, node.expression)
        elif isinstance(node, exp.In):
            _only(self.view, node, "this", "expressions")
            condition = exp.or_(*(self._compared(exp.EQ, node.this, one) for one in node.expressions))
        elif isinstance(node, exp.Between):
            _only(self.view, node, "this", "low", "high")
            ends = ((exp.GTE, node.args["low"]), (exp.LTE, node.args["high"]))
            condition = exp.and_(*(self._compared(sign, node.this, end) for sign, end in ends))
        else:
            return self.tried(exp.cast(self._value(node), "boolean"))
        return exp.paren(condition, copy=False)

    def _compared(self, sign: type[exp.Expression], one: exp.Expression, other: exp.Expression) -> exp.Expression:
        return self.tried(sign(this=self._value(one), expression=self._value(other)))

    def _value(self, node: exp.Expression) -> exp.Expression:
        node = bare(node)
        if constant(node):
            return node.copy()
        if isinstance(node, exp.Column):
            _only(self.view, node, "this", "table")
            return self.column(node)
        if isinstance(node, exp.Cast) and isinstance(bare(node.this), exp.Column):
            _only(self.view, node, "this", "to", "safe")
            converted = node.copy()
            converted.set("this", self._value(node.this))
            return self.cast(converted)
        raise refused(self.view, f"it holds {_word(node)}")


def stars(view: str, node: exp.Expression) -> bool:
    """Whether this stands for all columns, as they are."""
    is_star = isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
    if is_star:
        _only(view, node, "this", "table")
    if is_star and isinstance(node.this, exp.Star):
        _only(view, node.this)
    return is_star


def constant(node: exp.Expression) -> bool:
    """Whether this is a literal, negative, of a type or in a list perhaps: nothing to compute from a row."""
    if isinstance(node, exp.Literal | exp.Null | exp.Boolean | exp.CurrentUser | exp.SessionUser):
        return True
    if isinstance(node, exp.Array) or (isinstance(node, exp.Anonymous) and node.name.upper() == "ALL"):
        return all(constant(one) for one in node.expressions)
    if isinstance(node, exp.Cast):
        inner = bare(node.this)
        again = not isinstance(inner, exp.Cast | exp.Array) or node.to.is_type("text", "array<text>")
        return again and constant(inner)
    return isinstance(node, exp.Neg | exp.Paren | exp.Any) and constant(node.this)


def _word(node: object) -> str:
    """What a part of a definition is, without the constants in it."""
    if isinstance(node, exp.Func) and not isinstance(node, exp.Cast):
        return f"the function {(node.name if isinstance(node, exp.Anonymous) else node.sql_name())!r:.60}"
    if isinstance(node, exp.Cast):
        return "a cast that can fail"
    return type(node).__name__.upper() if isinstance(node, exp.Expression) else "no table"
