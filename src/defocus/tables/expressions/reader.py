"""The way from text to an expression: parsed, checked node by node against what is allowed, typed, made total."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import final

from sqlglot import exp

from defocus.engines.schema import Kind, Schema, Value
from defocus.errors import InvalidParameterError, Number, UnknownColumnError, UnsupportedSqlError
from defocus.tables.expressions import conditions
from defocus.tables.expressions.casts import CASTS
from defocus.tables.expressions.dates import MOMENTS, date_part
from defocus.tables.expressions.guards import cast, settled
from defocus.tables.expressions.numbers import NUMBERS, bucket
from defocus.tables.expressions.operators import OPERATORS
from defocus.tables.expressions.parser import EXPRESSIONS, at, only, parsed, refusal, refuse_unwritable
from defocus.tables.expressions.ranges import domain, interval
from defocus.tables.expressions.terms import Term, known
from defocus.tables.expressions.texts import TEXTS

__all__ = ["Expression", "expression", "squeezed", "typed"]

_ALLOWED = {**OPERATORS, **NUMBERS, **TEXTS, **MOMENTS, **CASTS}
_BY_NAME = {"bucket": bucket, "date_part": date_part, "datepart": date_part}


@final
@dataclass(frozen=True, slots=True)
class Expression:
    """A value of one row: its kind, SQL that never fails, the columns it reads, and how it was written.

    ``condition`` is the SQL to filter with: true on the same rows as ``sql``, and perhaps FALSE where that is NULL,
    so that engines can skip blocks of data. ``growth`` bounds the length of a text as that of a column does; a column
    derived from it has to keep it, or a chain of columns could grow without end.
    """

    kind: Kind
    sql: exp.Expression
    columns: frozenset[str]
    text: str
    condition: exp.Expression
    growth: tuple[int, int]
    bounds: tuple[Number, Number] | None = None
    """Between which numbers it lies, as far as declared columns and constants tell."""
    values: tuple[Value, ...] | None = None
    """All that it can be besides NULL, where that is known."""
    ends: Mapping[str, tuple[Number, Number]] = field(default_factory=dict)
    """Between which ends columns of numbers lie where it is true."""


def expression(text: str, schema: Schema, *, aliases: Collection[str] = ()) -> Expression:
    r"""Read an expression; ``aliases`` are the names by which the table may be called before a dot.

    A text that is the name of a column is that column, also where it could be read as an expression.

    >>> from defocus.engines.schema import Column
    >>> people = Schema([Column("age", Kind.INTEGER), Column("pay", Kind.NUMBER)])
    >>> expression("age >= 18", people).sql.sql("duckdb")
    '"age" >= 18'
    >>> expression("pay / age", people).sql.sql("duckdb")
    'NULLIF(CAST("pay" AS DOUBLE) / NULLIF(CAST("age" AS DOUBLE), CAST(\'0.0\' AS DOUBLE)), CAST(\'NaN\' AS DOUBLE))'
    """
    if text in schema:
        return _finished(exp.column(text, quoted=True), text, schema, aliases)
    tree, written = parsed(text), text.strip()
    if not isinstance(tree, exp.Column):
        _refuse_ambiguous(written, schema)
    return _finished(tree, written, schema, aliases)


def _refuse_ambiguous(text: str, schema: Schema) -> None:
    """Refuse an expression that is the name of a column but for spaces and case: nobody can tell which is meant."""
    folded = squeezed(text)
    for column in schema:
        if squeezed(column.name) == folded:
            raise InvalidParameterError(
                f"{text!r:.60} may be an expression, or the column {column.name!r:.60}.",
                fix=f'write "{column.name:.60}" in double quotes for the column, or ({text:.60}) for the expression.',
            )


def squeezed(text: str) -> str:
    """The text without spaces and in lower case, as people compare names."""
    return "".join(text.split()).casefold()


def typed(node: exp.Expr, schema: Schema, *, aliases: Collection[str] = ()) -> Expression:
    """The same for a node that sqlglot has parsed already, in the dialect of DuckDB."""
    if not isinstance(node, exp.Expression):
        raise InvalidParameterError(
            f"A parsed expression is needed, but got {type(node).__name__}.", fix="pass text to expression()."
        )
    read = _finished(node, "", schema, aliases)
    return replace(read, text=node.sql("duckdb"))


def _finished(node: exp.Expression, text: str, schema: Schema, aliases: Collection[str]) -> Expression:
    EXPRESSIONS.check_tree(node)
    term = settled(_Reader(schema, frozenset(aliases)).term(node))
    if term.kind is None:
        raise InvalidParameterError("NULL alone has no kind.", fix="write CAST(NULL AS DOUBLE), say.")
    condition = term.sql if term.where is None else term.where
    growth, bounds = (term.texts, term.extra), interval(node, schema)
    values = domain(node, term.kind, schema) if term.kind.countable else None
    told = conditions.ends(node, schema) if term.kind is Kind.BOOLEAN else {}
    return Expression(term.kind, term.sql, term.columns, text, condition, growth, bounds, values, told)


@final
@dataclass(frozen=True, slots=True)
class _Reader:
    """Makes terms of the nodes of one tree."""

    schema: Schema
    aliases: frozenset[str]

    def term(self, node: exp.Expression) -> Term:
        with at(node):
            return self._term(node)

    def _term(self, node: exp.Expression) -> Term:
        if node.comments:
            raise UnsupportedSqlError(
                "A comment", why="it may hide a part of the expression from its reader", fix="remove the comment."
            )
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Anonymous) and node.name.lower() in _BY_NAME:
            return _BY_NAME[node.name.lower()](node.expressions, self.term)
        handler = _ALLOWED.get(type(node))
        if handler is None:
            raise refusal(node)
        return handler(node, self.term)

    def _column(self, node: exp.Column) -> Term:
        only(node, "this", "table")
        if not isinstance(node.this, exp.Identifier):
            raise refusal(node.this)
        table = node.args.get("table")
        if table is not None and table.name not in self.aliases:
            raise UnsupportedSqlError(
                f"The name {table.name[:40]!r} before a dot",
                why="it is neither this table nor one that was joined, and fields of structs are not read",
                fix=f"write {node.name[:40]} alone, or put a name that holds a dot in double quotes.",
            )
        return self._read(node.name)

    def _read(self, name: str) -> Term:
        refuse_unwritable("The name of a column", name)
        if name not in self.schema:
            raise UnknownColumnError(name, self.schema.names)
        declared = self.schema.usable(name)
        kind, (texts, extra) = declared.kind, (declared.growth or (1, 0)) if declared.kind is Kind.TEXT else (0, 0)
        sql = exp.column(name, quoted=True)
        column = Term(kind, sql, columns=frozenset({name}), texts=texts, extra=extra)
        match kind:
            case Kind.NUMBER:
                number = cast(column, kind)
                return known(number, nan=True, infinite=True, bare=number.sql)
            case _:  # also dates: relations of an engine hold those of the years 1 to 9999 alone
                return column
