"""A question asked in SQL, and the names that are in scope.

A question asked in SQL: previewed, planned and released like any other.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, final

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from defocus.answers import Preview, PreviewColumn, Released
from defocus.answers.rules import Effect, Rule, rules_of
from defocus.engines.schema import Column, Kind, Schema
from defocus.errors import (
    DefocusError,
    InvalidParameterError,
    NotDeclaredError,
    NotFinishedError,
    NotRecordedError,
    Number,
    UnknownColumnError,
    UnsupportedSqlError,
)
from defocus.noise import Bits
from defocus.tables.aggregates import Aggregate
from defocus.tables.expressions import expression, squeezed, typed
from defocus.tables.expressions.parser import at
from defocus.tables.expressions.ranges import is_whole
from defocus.tables.grouping_sets import GroupingSets
from defocus.tables.keys import Keys
from defocus.tables.planner import Plan
from defocus.tables.query import Query, printable
from defocus.tables.rows import Rows
from defocus.tables.sql.bounds import conjuncts
from defocus.tables.sql.parser import DIALECT, canonical, written
from defocus.tables.sql.postprocessing import PUBLIC, Finish, Output, Regroup, linear, references

__all__ = ["Ask", "Named", "Scope", "SqlQuery", "matching", "plain", "unused"]


Ask: TypeAlias = Callable[
    [Rows, bool, tuple[str, ...], Keys | None, Mapping[str, Aggregate], GroupingSets | None], Query
]
"""Makes a question of rows, whether they are the table's own, keys, aggregates, and perhaps several sets of groups."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class SqlQuery:
    """One SELECT: a question that is released as one event, and what is done to its answer. Made by ``sql_query``.

    Guarantee:
        The release is that of :attr:`query`, charged before it is computed. HAVING, ORDER BY, LIMIT and formulas
        see released numbers and keys only.
    """

    query: Query
    finish: Finish
    text: str
    unknown: tuple[str, ...] = ()
    """Keys of which nobody said what values they have."""
    outer: tuple[tuple[Regroup, Finish], ...] = ()
    """SELECTs over the released groups, the innermost first."""

    @property
    def question(self) -> str:
        """The SELECT in one line."""
        return self.text

    def __repr__(self) -> str:
        return f"SqlQuery({printable(self.text)})"

    def _repr_html_(self) -> str:
        return self.query.page(self.text)

    def plan(self, *, epsilon: Number | None = None, delta: Number | None = None) -> Plan:
        """Which measurements would be made, with which noise."""
        self._check_keys(delta)
        return self.query.plan(epsilon=epsilon, delta=delta)

    def preview(self, *, epsilon: Number | None = None, delta: Number | None = None) -> Preview:
        """How exact each column would be and what it would cost. Free: no row is looked at."""
        self._check_keys(delta)
        seen = self.query.preview(epsilon=epsilon, delta=delta)
        by_name = {column.name: column for column in seen.columns}
        columns = tuple(self._foreseen(output, by_name) for output in self.finish.outputs)
        for regroup, finish in self.outer:
            columns = tuple(_computed(output, finish.held, regroup.aggregates, columns) for output in finish.outputs)
        return replace(seen, columns=columns, question=self.text, rules=rules_of((*seen.rules, *self.finish.notes)))

    def release(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
        request: str | None = None,
        bits: Bits | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Released:
        """Charge, compute, add noise, finish and show; the arguments are those of :meth:`Query.release`."""
        self._check_keys(delta)
        if purpose is None and self.query.ledger.purposes is None:
            purpose = printable(self.text)[:200]
        try:
            answer = replace(self.query, text=self.text).release(
                epsilon=epsilon, delta=delta, purpose=purpose, who=who, request=request, bits=bits, progress=progress
            )
        except NotRecordedError as problem:
            problem.release = self._finished(problem.release)
            raise
        return self._finished(answer)

    def _finished(self, answer: Released) -> Released:
        try:
            finished = self.finish.apply(self._pooled(answer), self.text)
            for regroup, finish in self.outer:
                finished = finish.apply(regroup.apply(finished), self.text)
        except Exception as problem:  # noqa: BLE001  # whatever it is, what was paid for is not lost
            why = problem.what if isinstance(problem, DefocusError) else type(problem).__name__
        else:
            return finished
        raise NotFinishedError(answer, why=why)

    def _pooled(self, answer: Released) -> Released:
        """The answer; where groups are added up, it tells below the numbers that rows of other groups are not."""
        windows = any(output.tree.find(exp.Window) is not None for output in self.finish.outputs)
        left_out = None if self.query.keys is None or not (windows or self.outer) else self.query.keys.rule
        if left_out is None:
            return answer
        told = tuple(Rule(str(rule), Effect.TOLD) if rule == left_out else rule for rule in answer.rules)
        return replace(answer, rules=told)

    def _foreseen(self, output: Output, by_name: Mapping[str, PreviewColumn]) -> PreviewColumn:
        """What is known beforehand of one column, also of a multiple of one."""
        scaled = linear(output.tree)
        if scaled is None:
            names = [self.finish.held[reference] for reference in references(output.tree)]
            return PreviewColumn(output.name, f"computed from {' and '.join(names)}" if names else PUBLIC)
        column, factor = by_name[self.finish.held[scaled.reference]], abs(scaled.factor)
        return PreviewColumn(
            output.name,
            column.how,
            None if column.error is None else factor * column.error,
            None if column.interval is None else factor * column.interval,
            tuple((size, factor * error, factor * width) for size, error, width in column.by_size),
            column.rank,
        )

    def _check_keys(self, delta: Number | None) -> None:
        if self.query.keys is None and not delta:
            names = ", ".join(self.unknown)
            raise NotDeclaredError(
                f"Nobody said which values of {names} there are, and whether one exists depends on single people.",
                fix=f"list them, WHERE {self.unknown[0]} IN ('a', 'b') or keys=[…]; declare the domain of the"
                " column, declare(ward=[…]) or in the dataset file; or pass delta=, for example 1e-6, to find them."[
                    :600
                ],
            )


def _computed(
    output: Output,
    held: Mapping[str, str],
    aggregates: Mapping[str, exp.Expression] | None,
    columns: Sequence[PreviewColumn],
) -> PreviewColumn:
    """What is known beforehand of a column of a SELECT over released groups: as it was, or what it is computed from."""
    by_name = {column.name: column for column in columns}
    if aggregates is None and output.reference is not None:
        return replace(by_name[held[output.reference]], name=output.name)
    names = [held[reference] for reference in references(output.tree)]
    return PreviewColumn(output.name, f"computed from {' and '.join(names) or 'released groups'}")


_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@final
@dataclass(frozen=True, slots=True)
class Named:
    """One table of a FROM clause: its alias, and for each column it shows the column of the rows that holds it."""

    name: str
    columns: Mapping[str, str]
    hidden: tuple[str, ...] = ()
    """Join columns of the right side of a LEFT JOIN: NULL where nothing matched, which the left one is not."""


@final
@dataclass(frozen=True, slots=True)
class Scope:
    """The rows of a FROM clause and the names that they have there."""

    rows: Rows
    tables: tuple[Named, ...]
    own: bool = True
    """Whether the rows are those of the table that was asked, rather than of another one beside it."""
    conditions: tuple[exp.Expression, ...] = ()
    """What all rows fulfil, in terms of the columns of the rows."""

    @property
    def schema(self) -> Schema:
        """The columns of the rows."""
        return self.rows.schema

    def find(self, node: exp.Column) -> Column | None:
        """The column that is meant, or None if there is none; two of that name are refused."""
        if node.args.get("db") is not None or not isinstance(node.this, exp.Identifier):
            return None
        names = dict.fromkeys(
            table.columns[match] for table in self._tables(node) for match in matching(node.this, list(table.columns))
        )
        if len(names) > 1:
            raise InvalidParameterError(
                f"Several tables have a column {node.name!r:.60}.",
                fix=f"write which one, as in {self.tables[0].name}.{node.name}."[:200],
            )
        return next((self.rows.schema.usable(name) for name in names), None)

    def column(self, node: exp.Column) -> Column:
        """The column that is meant."""
        with at(node):
            return self._column(node)

    def _column(self, node: exp.Column) -> Column:
        column = self.find(node)
        if column is not None:
            return column
        for table in self._tables(node):
            if isinstance(node.this, exp.Identifier) and matching(node.this, table.hidden):
                raise UnsupportedSqlError(
                    f"The column {node.name!r:.60} of the right side of a LEFT JOIN",
                    why="only the left one is kept, and it is never NULL for want of a match",
                    fix="use the column of the left table; test another column of the right one for NULL.",
                )
        raise UnknownColumnError(node.name, [name for table in self.tables for name in table.columns])

    def resolved(self, node: exp.Expression) -> exp.Expression:
        """The tree with every column under the name that the rows have for it."""

        def renamed(part: exp.Expression) -> exp.Expression:
            if isinstance(part, exp.Column):
                column = plain(self.column(part).name)
                column.meta.update(part.meta)
                column.this.meta.update(part.this.meta)
                return column
            if not _is_clamp(part):
                return part
            if any(inner is not part and _is_clamp(inner) for inner in part.walk()):
                raise UnsupportedSqlError(
                    "CLAMP inside CLAMP", why="each level would double the work", fix="clamp once."
                )
            return _clamped(*map(self.resolved, part.expressions))

        return node.copy().transform(renamed, copy=False)

    def text(self, node: exp.Expression) -> str:
        """The tree as text about the columns of the rows, which is read as exactly this tree.

        What is refused is refused of the tree as it was written. In parentheses a text is not the name of a column.
        """
        tree = self.resolved(node)
        text, meant = written(tree), typed(tree, self.rows.schema)
        names = {squeezed(column.name) for column in self.rows.schema}
        while squeezed(text) in names and not (isinstance(tree, exp.Column) and text == tree.name):
            text = f"({text})"
        if expression(text, self.rows.schema).sql != meant.sql:
            raise UnsupportedSqlError(
                f"{canonical(node)[:60]}", why="it cannot be written for every engine", fix="write it in other words."
            )
        return text

    def derived(self, name: str, node: exp.Expression) -> tuple["Scope", Column]:
        """The scope with one more column of the rows, called as wanted if that is free.

        What its form tells about its values counts as declared: the constants of a CASE, the months of a year.
        """
        free = unused(name, self.rows.schema.names)
        rows = self.rows.derive({free: self.text(node)})
        return replace(self, rows=rows), rows.schema[free]

    def key(self, name: str, node: exp.Expression) -> tuple["Scope", Column]:
        """Likewise, to group by: whole numbers that are held as floats, such as FLOOR(x / 500) * 500, are integers."""
        tree, schema = self.resolved(node), self.rows.schema
        floats = typed(tree, schema).kind is Kind.NUMBER and is_whole(tree, schema)
        return self.derived(name, exp.Cast(this=node.copy(), to=exp.DataType.build("BIGINT")) if floats else node)

    def where(self, node: exp.Expression) -> "Scope":
        """Only the rows for which a condition holds."""
        held = tuple(self.resolved(part) for part in conjuncts(node))
        return replace(self, rows=self.rows.where(self.text(node)), conditions=(*self.conditions, *held))

    def shown(self) -> list[tuple[str, str]]:
        """Every column that a star stands for, with the column of the rows; those of a join once."""
        pairs = {physical: name for table in reversed(self.tables) for name, physical in table.columns.items()}
        order = dict.fromkeys(physical for table in self.tables for physical in table.columns.values())
        return [(pairs[physical], physical) for physical in order]

    def _tables(self, node: exp.Column) -> Sequence[Named]:
        wanted = node.args.get("table")
        if wanted is None:
            return self.tables
        names = matching(wanted, [table.name for table in self.tables])
        if not names:
            tables = ", ".join(table.name for table in self.tables)
            raise UnsupportedSqlError(
                f"The name {wanted.name!r:.60} before a dot",
                why="it is no table of this FROM clause, and fields of structs are not read",
                fix=f"write one of {tables}, or leave it out; names that hold a dot go in double quotes."[:400],
            )
        return [table for table in self.tables if table.name in names]


def matching(identifier: exp.Expression, names: Sequence[str]) -> list[str]:
    """The names that an identifier means: exactly that one if it is quoted, else also in other case."""
    exact = [name for name in names if name == identifier.name]
    if exact or identifier.args.get("quoted"):
        return exact
    return [name for name in names if name.casefold() == identifier.name.casefold()]


def plain(name: str) -> exp.Column:
    """A column, quoted where its name could be read as anything else."""
    return exp.column(name, quoted=not _is_word(name))


def unused(name: str, taken: Sequence[str]) -> str:
    """The name, or with a number behind it if it is taken."""
    folded = {word.casefold() for word in taken}
    number, free = 1, name
    while free.casefold() in folded:
        number += 1
        free = f"{name}_{number}"
    return free


def _is_word(name: str) -> bool:
    if not _SIMPLE.fullmatch(name):
        return False
    tokens = sqlglot.tokenize(name, read=DIALECT)
    return len(tokens) == 1 and tokens[0].token_type is TokenType.VAR


def _is_clamp(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "clamp" and len(node.expressions) == 3


def _clamped(x: exp.Expression, low: exp.Expression, high: exp.Expression) -> exp.Expression:
    """CLAMP(x, low, high), which engines lack, in words that they have; NULL stays NULL."""
    above = exp.Greatest(this=x.copy(), expressions=[low], ignore_nulls=True)
    inner = exp.Least(this=above, expressions=[high], ignore_nulls=True)
    return exp.Case(ifs=[exp.If(this=exp.Not(this=exp.Is(this=exp.Paren(this=x), expression=exp.Null())), true=inner)])
