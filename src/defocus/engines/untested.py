"""Databases on which Defocus was never run: Snowflake, BigQuery, SQL Server and Trino, by a connection of the user's.

Statements are written from the documentation of each, and nothing was ever sent to a server. So every engine here is
asked for by name, ``engine="untested:snowflake"``, and says so in each preview and answer; and it computes only what a
short list allows: the counting, weighing, sampling and rounding of a release, and filters that compare columns with
constants. Everything else is refused by name before the charge, since it would rest on how a server rounds, overflows
or reads a text.

Not promised, unlike on other engines: *a snapshot*. Nobody may write to the table while a release runs. Nor does the
connection become one that can only read: give it a user who can do nothing else.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa
from sqlglot import ErrorLevel, exp
from sqlglot.errors import UnsupportedError

from defocus.engines.engine import WholeResults, quietly
from defocus.engines.kinds import Columns, kind_of, noted, output
from defocus.engines.schema import ARROW, CANONICAL, Column, Kind, Schema, of_kind, unique
from defocus.engines.syntax import (
    Filler,
    Kinds,
    Rule,
    constant,
    is_mild,
    is_native,
    lower,
    native,
    numbered,
    quoted,
    rows_of,
)
from defocus.engines.views import Names, refused
from defocus.errors import EngineError, SourceError

__all__ = ["ALL", "PREFIX", "UntestedEngine", "Words", "lowered"]

PREFIX = "untested:"
_INTEGERS = dict.fromkeys(("tinyint", "smallint", "int", "integer", "bigint", "int64"), Kind.INTEGER)
_NUMBERS = dict.fromkeys(("float", "double", "double precision", "real", "float64"), Kind.NUMBER)
_TEXTS = dict.fromkeys(("text", "varchar", "string"), Kind.TEXT)
_OTHERS = {"boolean": Kind.BOOLEAN, "bool": Kind.BOOLEAN, "date": Kind.DATE}
_DType = exp.DataType.Type


@final
@dataclass(frozen=True, slots=True)
class Words:
    """How one database says what sqlglot does not, as templates of its SQL."""

    name: str
    dialect: str
    quotient: str = "a / b"
    """The whole part of a quotient of integers."""
    digest: str = "LOWER(TO_HEX(SHA256(TO_UTF8(a))))"
    """SHA-256 of a text in hexadecimal, in small letters."""
    number: str = "CASE WHEN NOT IS_NAN(a) THEN a END"
    """A float, and NULL for NaN."""
    infinity: str = "Infinity"
    texts: bool = True
    """Whether texts that differ are different: SQL Server passes over spaces at their ends."""
    truths: bool = True
    """Whether a truth value can be a column."""


ALL = {
    "snowflake": Words(
        "Snowflake",
        "snowflake",
        quotient="CAST((a - MOD(a, b)) / b AS BIGINT)",
        digest="SHA2(a, 256)",
        number="NULLIF(a, CAST('NaN' AS DOUBLE))",
    ),
    "bigquery": Words("BigQuery", "bigquery", quotient="DIV(a, b)", digest="TO_HEX(SHA256(a))"),
    "sqlserver": Words(
        "SQL Server",
        "tsql",
        digest="LOWER(CONVERT(VARCHAR(64), HASHBYTES('SHA2_256', a), 2))",
        number="a",
        infinity="1.7976931348623157e308",
        texts=False,
        truths=False,
    ),
    "trino": Words("Trino", "trino"),
}
_ALLOWED = (
    *(exp.Select, exp.From, exp.Where, exp.Group, exp.Join, exp.Subquery, exp.Table, exp.TableAlias, exp.Alias),
    *(exp.Distinct, exp.Order, exp.Ordered, exp.Union, exp.With, exp.CTE, exp.Star, exp.Column, exp.Identifier),
    *(exp.Literal, exp.Null, exp.Boolean, exp.DataType, exp.DataTypeParam, exp.Var, exp.Paren, exp.Neg, exp.Tuple),
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.In),
    *(exp.Between, exp.Is, exp.Case, exp.If, exp.Coalesce, exp.Count, exp.Sum, exp.Window, exp.RowNumber, exp.Floor),
    *(exp.Cast, exp.IntDiv, exp.SHA2, exp.DPipe, exp.Length, exp.Least, exp.Greatest, exp.Nullif),
)
"""What a release consists of, and filters; sums and products of floats are allowed where they cannot overflow."""


def lowered(tree: exp.Expression, stored: Mapping[str, Columns], words: Words) -> exp.Expression:
    """The same meaning in a database's terms, if the list allows it; the tree that was given stays as it is."""
    known = noted(tree, stored)
    for node in known.walk(prune=is_native):  # type: ignore[arg-type]  # of expressions
        assert isinstance(node, exp.Expression)  # noqa: S101  # what trees are made of
        whole = isinstance(node, exp.Mul | exp.Add | exp.Sub) and kind_of(node) is Kind.INTEGER
        if type(node) not in _ALLOWED and not is_mild(node) and not whole and not is_native(node):
            raise _refusal(words, node.sql_name() if isinstance(node, exp.Func) else node.key.upper())
    return lower(known, _rules(words))


def _refusal(words: Words, what: str) -> EngineError:
    return EngineError(
        f"{what:.60} is not computed in {words.name}, on which nothing was ever tested.",
        fix="store what it computes as a column of the table, or open the table in a database that is tested.",
    )


def _rules(words: Words) -> dict[type[exp.Expression], Rule]:  # noqa: C901  # one function for each rule
    """The changes for one database."""

    def cast(node: exp.Cast, _: Kinds) -> exp.Expression:
        inner = node.this
        if isinstance(inner, exp.Literal) and node.to.this is _DType.DOUBLE:
            text = words.infinity if inner.name == "Infinity" else inner.name
            return exp.Cast(this=exp.Literal.string(text), to=node.to)
        if not isinstance(inner, exp.Literal | exp.Null) and not _sure(kind_of(inner), node.to.this):
            raise _refusal(words, "This cast")
        return node

    def nullif(node: exp.Nullif, _: Kinds) -> exp.Expression:
        unwanted = node.expression
        while isinstance(unwanted, exp.Cast):
            unwanted = unwanted.this
        if isinstance(unwanted, exp.Literal) and unwanted.name == "NaN":  # it was NULL when it was read
            return node.this  # type: ignore[no-any-return]  # a tree
        return node

    def extreme(node: exp.Least | exp.Greatest, _: Kinds) -> exp.Expression:
        """With a constant, which is not NULL, and so is what remains of a NULL."""
        if len(node.expressions) != 1 or constant(node.expressions[0]) is None:
            raise _refusal(words, node.key.upper())
        sign = exp.LT if isinstance(node, exp.Least) else exp.GT
        compared = sign(this=node.this.copy(), expression=node.expressions[0].copy())
        return exp.Case(ifs=[exp.If(this=compared, true=node.this)], default=node.expressions[0])

    def is_null(node: exp.Is, _: Kinds) -> exp.Expression:
        if not isinstance(node.expression, exp.Null):
            raise _refusal(words, "IS TRUE")
        return node

    return {
        exp.Cast: cast,
        exp.Nullif: nullif,
        exp.Least: extreme,
        exp.Greatest: extreme,
        exp.Window: numbered,
        exp.Is: is_null,
        exp.IntDiv: lambda node, _: _filled(words, words.quotient, a=node.this, b=node.expression),
        exp.SHA2: lambda node, _: _filled(words, words.digest, a=node.this),
    }


def _sure(given: Kind | None, to: Any) -> bool:
    """Whether a cast loses nothing and fails on nothing."""
    return (given, to) in {
        *((Kind.INTEGER, type_) for type_ in (_DType.BIGINT, _DType.DOUBLE, _DType.TEXT)),
        *((Kind.NUMBER, type_) for type_ in (_DType.DOUBLE, _DType.BIGINT)),  # of what was rounded down
        (Kind.TEXT, _DType.TEXT),
        (Kind.DATE, _DType.DATE),
        (Kind.DATE, _DType.TEXT),
        (Kind.BOOLEAN, _DType.BOOLEAN),
    }


def _filled(words: Words, template: str, **gaps: Any) -> exp.Expression:
    return native(Filler(words.dialect, 1_000_000, lambda body, _: body)(template, **gaps))


@final
class UntestedEngine(WholeResults):
    """A connection of PEP 249 to a database on which Defocus was never run. It is not closed with the table."""

    reads_once = True

    def __init__(self, connection: Any, database: str) -> None:
        self._words = _words(database)
        self.name = f"{self._words.name}, untested"
        self.dialect = self._words.dialect
        self.warning = (
            f"it is computed by {self._words.name}, on which Defocus was never run: that its integers are exact, and"
            " that no row makes it fail, is not shown by any test"
        )
        self._connection = connection
        self._turn = threading.RLock()
        self._published: dict[str, pa.Table] = {}
        self._read: dict[Names, dict[str, Kind]] = {}

    def named(self, names: Names) -> exp.Table:
        """A stored table; views are refused."""
        literal = exp.Literal.string
        asked = exp.select(*map(quoted, ("table_type",))).from_(_catalogue("tables"))
        at = {"table_schema": names[1], "table_name": names[2]}
        where = [exp.EQ(this=exp.column(key), expression=literal(value)) for key, value in at.items()]
        found = self._ask(asked.where(*where))
        if [str(row[0]).upper() for row in found] != ["BASE TABLE"]:
            raise refused(names[2], "it is a view, and views are not read in a database that was never tested")
        columns = exp.select(*map(quoted, ("column_name", "data_type"))).from_(_catalogue("columns")).where(*where)
        self._read[names] = {str(name): self._kind(str(type_)) for name, type_ in self._ask(columns)}
        parts = [exp.to_identifier(part, quoted=True) for part in names]
        return exp.Table(this=parts[2], db=parts[1], catalog=parts[0])

    def _kind(self, type_: str) -> Kind:
        """What a type holds; text where it is compared by what it is, and nothing that must be converted."""
        word = type_.lower().partition("(")[0].strip()
        kind = {**_INTEGERS, **_NUMBERS, **_TEXTS, **_OTHERS}.get(word, Kind.OTHER)
        if (kind is Kind.TEXT and not self._words.texts) or (kind is Kind.BOOLEAN and not self._words.truths):
            return Kind.OTHER
        return kind

    def _ask(self, select: exp.Expression) -> list[Any]:
        return self._sent("list the tables", select.sql(self.dialect))

    def _sent(self, doing: str, statement: str) -> list[Any]:
        def work() -> list[Any]:
            with contextlib.closing(self._connection.cursor()) as cursor:
                cursor.execute(statement)
                return [tuple(row) for row in cursor.fetchall()]

        with self._turn:
            return quietly(work, lambda _: _failure(self._words, doing))

    def schema(self, relation: exp.Expression) -> Schema:
        """The columns of a relation, from the catalogue and from what is done to them."""
        columns = output(exp.select("*").from_(rows_of(relation)), self._stored(relation))
        return Schema(Column(name, kind or Kind.OTHER) for name, kind in columns.items())

    def canonical(self, relation: exp.Expression, kinds: Mapping[str, Kind]) -> exp.Select:
        """The same rows; a column is of the kind that its type has."""
        schema = self.schema(relation)
        if any(kinds[name] is not schema[name].kind for name in kinds):
            raise _refusal(self._words, "A declared type")
        shown = [exp.alias_(self._converted(one), one.name, quoted=True) for one in schema]
        return exp.select(*shown).from_(rows_of(relation), copy=False)

    def _converted(self, column: Column) -> exp.Expression:
        value: exp.Expression = exp.column(column.name, quoted=True)
        if column.kind is Kind.NUMBER:
            value = _filled(self._words, self._words.number, a=native(of_kind(value, Kind.NUMBER)))
        return value if column.kind is Kind.OTHER else native(of_kind(value, column.kind))

    def finer(self, relation: exp.Expression) -> frozenset[str]:  # noqa: ARG002  # it is so for every relation
        """None: only types that every engine has are read."""
        return frozenset()

    def run(self, select: exp.Expression, *, progress: Callable[[float], None] | None = None) -> pa.Table:
        """Compute."""
        del progress
        columns = output(select, self._stored(select))
        rows = self._sent("compute", self.written(select))
        values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
        return pa.table(
            {
                name: pa.array(list(one), _ARROW.get(kind or Kind.OTHER))
                for (name, kind), one in zip(columns.items(), values, strict=True)
            }
        )

    def written(self, select: exp.Expression) -> str:
        """The statement that :meth:`run` would send, with the public tables that it names."""
        tree = lowered(select, self._stored(select), self._words)
        for table in list(tree.find_all(exp.Table)):
            if not table.args.get("db") and table.name in self._published:
                rows = lower(_rows(self._published[table.name]), _rules(self._words))
                assert isinstance(rows, exp.Query)  # noqa: S101  # what it was
                table.replace(rows.subquery(quoted(table.alias or table.name)))
        with contextlib.suppress(UnsupportedError):
            return tree.sql(self.dialect, identify=True, unsupported_level=ErrorLevel.RAISE)
        raise _refusal(self._words, "A part of this question")

    def _stored(self, tree: exp.Expression) -> dict[str, Columns]:
        known: dict[str, Columns] = {names[2]: columns for names, columns in self._read.items()}
        for name, table in self._published.items():
            known[name] = {field.name: _kind_of(field.type) for field in table.schema}
        return {one.name: known[one.name] for one in tree.find_all(exp.Table) if one.name in known}

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Nothing is promised: nobody may write to the table meanwhile."""
        yield

    @contextlib.contextmanager
    def kept(self, select: exp.Select) -> Iterator[exp.Select]:
        """The query itself."""
        yield select

    def publish(self, name: str, table: pa.Table) -> exp.Table:
        """Keep a table that travels with every statement that names it, until it is withdrawn."""
        published = unique(name)
        self._published[published] = table
        return exp.Table(this=quoted(published))

    def withdraw(self, table: exp.Table) -> None:
        """Forget a table that was published."""
        self._published.pop(table.name, None)

    def cancel(self) -> None:
        """Not known how."""

    def close(self) -> None:
        """Forget the tables; the connection is the user's."""
        self._published.clear()


def _words(database: str) -> Words:
    if database not in ALL:
        raise SourceError(
            f"There is no engine {PREFIX + database!r:.60}.", fix=f"use {', '.join(PREFIX + name for name in ALL)}."
        )
    return ALL[database]


def _catalogue(name: str) -> exp.Table:
    return exp.table_(name, db="information_schema")


_ARROW: dict[Kind, pa.DataType] = {kind: type_ for kind, type_ in ARROW.items() if kind is not Kind.TIMESTAMP}


def _kind_of(type_: pa.DataType) -> Kind:
    return next((kind for kind, arrow in _ARROW.items() if arrow == type_), Kind.TEXT)


def _rows(table: pa.Table) -> Any:
    """The rows of a public table, written out."""
    types = {
        name: exp.DataType.build(CANONICAL[_kind_of(table.schema.field(name).type)]) for name in table.column_names
    }

    def line(row: Mapping[str, Any]) -> exp.Select:
        cells = {name: exp.null() if value is None else exp.Literal.string(str(value)) for name, value in row.items()}
        shown = [
            exp.alias_(exp.Cast(this=cell, to=types[name].copy()), name, quoted=True) for name, cell in cells.items()
        ]
        return exp.select(*shown)

    lines = [line(row) for row in table.to_pylist()] or [line(dict.fromkeys(table.column_names)).where("1 = 0")]
    return lines[0] if len(lines) == 1 else exp.union(*lines, distinct=False)


def _failure(words: Words, doing: str) -> EngineError:
    return EngineError(
        f"{words.name} could not {doing}. What it said is not repeated, because it may quote the data.",
        fix="check that the table can be read by this connection; this engine was never tested.",
    )
