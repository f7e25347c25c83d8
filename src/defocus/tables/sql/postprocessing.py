"""What is done to released numbers: formulas, windows, HAVING, QUALIFY, ORDER BY, LIMIT, and SELECTs over them.

All of it is post-processing. The released table goes into a DuckDB of its own
(:mod:`defocus.answers.released_table`), and errors and intervals follow as :mod:`defocus.answers.propagation` says.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from defocus.answers import PICKED, AnswerColumn, Released
from defocus.answers.derivation import computed, remarks
from defocus.answers.propagation import Affine, Propagation, affine, counted_entries, entry_matrix, numbers
from defocus.answers.propagation import references as referred
from defocus.answers.released_table import ReleasedTable, window_parts
from defocus.answers.rules import rules_of
from defocus.engines.schema import Column, Kind, Schema
from defocus.errors import InvalidParameterError, WrongKindError
from defocus.tables.expressions import typed
from defocus.tables.grouping_sets import are_totals

__all__ = ["PUBLIC", "Finish", "Order", "Output", "Regroup", "kind_of", "linear", "references"]

PUBLIC = "exact, since it follows from the keys"

_TYPES = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}


def references(tree: exp.Expression) -> list[str]:
    """The released columns a0, a1, … in a formula, each once."""
    return referred(tree, _released_in(tree))


def linear(tree: exp.Expression) -> Affine | None:
    """The formula as a multiple of one released column, if it is one."""
    return affine(tree, _released_in(tree))


def _released_in(tree: exp.Expression) -> list[str]:
    return [column.name for column in tree.find_all(exp.Column) if column.name.startswith("a")]


@final
@dataclass(frozen=True, slots=True)
class Output:
    """One column of the answer: its name, its formula over released columns, and how it was written."""

    name: str
    tree: exp.Expression
    text: str

    @property
    def reference(self) -> str | None:
        """The released column that it is, if it is one as it stands."""
        return self.tree.name if isinstance(self.tree, exp.Column) else None


@final
@dataclass(frozen=True, slots=True)
class Order:
    """One item of ORDER BY, over released columns and keys."""

    tree: exp.Expression
    descending: bool
    missing_first: bool
    text: str


@final
@dataclass(frozen=True, slots=True)
class Finish:
    """Everything that happens after the noise. Released columns are a0, a1, …, keys k0, k1, … in all trees."""

    keys: tuple[tuple[str, Kind], ...]
    held: Mapping[str, str]
    """For each released column, what it is called in the answer before this."""
    outputs: tuple[Output, ...]
    having: tuple[exp.Expression, str] | None
    orders: tuple[Order, ...]
    limit: int | None
    offset: int
    notes: tuple[str, ...]
    qualify: tuple[exp.Expression, str] | None = None
    summed: tuple[int, ...] = ()
    """The keys that may be totals; g0, g1, … are 1 where they are, and else 0."""

    def checked(self) -> None:
        """Refuse formulas of a wrong kind; depends on the query alone."""
        for output in self.outputs:
            kind = self._kind(output.tree)
            if not kind.numeric:
                raise WrongKindError(
                    f"{output.text[:60]} is of kind {kind}, but an answer holds numbers for each group.",
                    fix="select the number, and derive the rest from the answer.",
                )
        for word, condition in (("HAVING", self.having), ("QUALIFY", self.qualify)):
            if condition is not None and self._kind(condition[0]) is not Kind.BOOLEAN:
                raise WrongKindError(f"{word} needs a condition.", fix=f"compare something: {word} COUNT(*) > 100.")
        for order in self.orders:
            self._kind(order.tree)
        trees = [output.tree for output in self.outputs] + [order.tree for order in self.orders]
        trees += [] if self.qualify is None else [self.qualify[0]]
        if any(tree.find(exp.Window) for tree in trees):
            _tried(self._schema, trees)

    def apply(self, answer: Released, question: str) -> Released:
        """The answer as the query wants it."""
        if self.having is not None and len(answer):
            with self._table(answer) as table:
                (kept,) = table.values([self.having[0]])
            rows = np.flatnonzero(pc.fill_null(kept, False).to_numpy())
            answer = answer.take(rows, f"only groups with {self.having[1]} kept; {PICKED}")
        released = self._released(answer)
        made = {f"o{i}": output.tree for i, output in enumerate(self.outputs) if output.reference is None}
        columns, sorts, chosen = dict[str, AnswerColumn](), list[Any](), None
        if made or self.orders or self.qualify is not None:
            with self._table(answer) as table:
                columns = dict(zip(made, computed(table, released, made), strict=True))
                sorts = table.values([order.tree for order in self.orders])
                chosen = None if self.qualify is None else table.values([self.qualify[0]])[0]
        shown = [
            replace(columns[f"o{i}"] if output.reference is None else released[output.reference], name=output.name)
            for i, output in enumerate(self.outputs)
        ]
        shown = [
            column if references(output.tree) else replace(column, how=PUBLIC, error_of="")
            for column, output in zip(shown, self.outputs, strict=True)
        ]
        keys = dict(zip((name for name, _ in self.keys), answer.keys.values(), strict=True))
        rules = rules_of((*answer.rules, *self.notes))
        fresh = [column for column, output in zip(shown, self.outputs, strict=True) if output.reference is None]
        processing = (*answer.processing, *remarks(fresh))
        finished = replace(
            answer, keys=keys, columns=tuple(shown), question=question, rules=rules, processing=processing
        )
        return self._arranged(finished, chosen, sorts)

    @property
    def _schema(self) -> Schema:
        keys = [Column(f"k{i}", kind) for i, (_, kind) in enumerate(self.keys)]
        keys += [Column(f"g{i}", Kind.INTEGER) for i in range(len(self.keys)) if self.summed]
        return Schema([*keys, *(Column(reference, Kind.NUMBER) for reference in self.held)])

    def _kind(self, tree: exp.Expression) -> Kind:
        return kind_of(tree, self._schema)

    def _released(self, answer: Released) -> dict[str, AnswerColumn]:
        return {reference: answer[name] for reference, name in self.held.items()}

    def _table(self, answer: Released) -> ReleasedTable:
        keys = {f"k{i}": values for i, values in enumerate(answer.keys.values())} | self._totals(answer)
        return ReleasedTable({**keys, **{name: column.values for name, column in self._released(answer).items()}})

    def _totals(self, answer: Released) -> dict[str, Any]:
        """For each key, where it is that of a total; nothing where there is one set of groups."""
        if not self.summed:
            return {}
        none = np.zeros(len(answer), np.int64)
        columns = enumerate(answer.keys.values())
        return {f"g{i}": pa.array(are_totals(keys.to_pylist()) if i in self.summed else none) for i, keys in columns}

    def _arranged(self, answer: Released, chosen: Any, sorts: Sequence[Any]) -> Released:
        if not len(answer):
            return answer
        kept = np.arange(len(answer))
        if self.qualify is not None:
            kept = np.flatnonzero(pc.fill_null(chosen, False).to_numpy())
            answer = answer.take(kept, f"only groups with {self.qualify[1]} kept; {PICKED}")
        if self.orders:
            order = pa.array(np.arange(len(kept)))
            for by, sort in reversed(list(zip(self.orders, sorts, strict=True))):
                values = sort.take(pa.array(kept)).take(order)
                order = order.take(_sorted(values, by))
            picked = f"; {PICKED}" if self.limit is not None or self.offset else ""
            answer = answer.take(order.to_numpy(), f"ordered by {', '.join(map(_words, self.orders))}{picked}")
        if self.offset:
            answer = answer.take(
                np.arange(min(self.offset, len(answer)), len(answer)), f"the first {self.offset} groups skipped"
            )
        return answer if self.limit is None else answer.head(self.limit)


@final
@dataclass(frozen=True, slots=True)
class Regroup:
    """WHERE, GROUP BY and aggregates of a SELECT over released groups; trees name these as those of a Finish do."""

    condition: tuple[exp.Expression, str] | None
    keys: tuple[tuple[str, exp.Expression], ...]
    aggregates: Mapping[str, exp.Expression] | None
    """By the name of the column; None where the groups stay as they are."""

    def checked(self, schema: Schema) -> None:
        """Refuse what has no meaning; depends on the query alone."""
        if self.condition is not None and kind_of(self.condition[0], schema) is not Kind.BOOLEAN:
            raise WrongKindError("WHERE needs a condition.", fix="compare something: WHERE n > 100.")
        for tree in (self.aggregates or {}).values():
            for part in _parts_of(exp.Window(this=tree, over="OVER")):
                kind_of(part, schema)
        with ReleasedTable(_empty(schema)) as table:
            self._grouped(table)

    def apply(self, answer: Released) -> Released:
        """The answer with the groups and aggregates that the SELECT asks for."""
        released = {f"a{i}": column for i, column in enumerate(answer.columns)}
        if self.condition is not None and len(answer):
            with self._table(answer) as table:
                (kept,) = table.values([self.condition[0]])
            rows = np.flatnonzero(pc.fill_null(kept, False).to_numpy())
            noisy = f"; {PICKED}" if referred(self.condition[0], list(released)) else ""
            answer = answer.take(rows, f"only groups with {self.condition[1]} kept{noisy}")
        if self.aggregates is None:
            return answer
        released = {f"a{i}": column for i, column in enumerate(answer.columns)}
        with self._table(answer) as table:
            found = self._grouped(table)
            propagation, columns = Propagation(table, released), []
            for i, (name, tree) in enumerate(self.aggregates.items()):
                function, _, _ = window_parts(exp.Window(this=tree, over="OVER"))
                weights = entry_matrix(found.column(f"l{i}"), len(answer))
                column = propagation.aggregated(name, function, numbers(found.column(f"v{i}")), weights)
                columns.append(_of_picked(column, answer) if not referred(tree, list(released)) else column)
        keys = {name: found.column(f"g{i}") for i, (name, _) in enumerate(self.keys)}
        why = f"computed from {len(answer)} released groups"
        processing = (*answer.processing, why, *remarks(columns))
        return replace(answer, keys=keys, columns=tuple(columns), processing=processing, figure="bars")

    def _table(self, answer: Released) -> ReleasedTable:
        keys = {f"k{i}": values for i, values in enumerate(answer.keys.values())}
        return ReleasedTable({**keys, **{f"a{i}": column.values for i, column in enumerate(answer.columns)}})

    def _grouped(self, table: ReleasedTable) -> pa.Table:
        """Keys g0, …, values v0, … of the aggregates, and lists l0, … of the entries in each."""
        shown = [exp.alias_(tree.copy(), f"g{i}", quoted=True) for i, (_, tree) in enumerate(self.keys)]
        for i, tree in enumerate((self.aggregates or {}).values()):
            counted = exp.Where(this=counted_entries(exp.Window(this=tree, over="OVER")))
            listed = exp.Filter(this=exp.ArrayAgg(this=table.place), expression=counted)
            shown += [exp.alias_(tree.copy(), f"v{i}", quoted=True), exp.alias_(listed, f"l{i}", quoted=True)]
        if not shown:
            return pa.table({})
        places = [exp.column(f"g{i}", quoted=True) for i in range(len(self.keys))]
        select = exp.select(*shown).from_("released")
        return table.run(select.group_by(*places).order_by(*places) if places else select)


def _of_picked(column: AnswerColumn, answer: Released) -> AnswerColumn:
    """A number of groups: exact, but where noise decided which groups there are, and then without an interval."""
    if not any(PICKED in line for line in answer.processing):
        return column
    unknown = np.full(len(column.values), np.nan)
    how = f"{column.how}; no interval, since noise decided which groups there are"
    return replace(column, errors=unknown, low=unknown, high=unknown, how=how)


def kind_of(tree: exp.Expression, schema: Schema) -> Kind:
    """The kind of a formula, in which each window function is a number; what is inside of it is checked as well."""
    root = exp.paren(tree.copy())
    for window in list(root.find_all(exp.Window)):
        for part in _parts_of(window):
            typed(part, schema)
        window.replace(exp.column("w", quoted=True))
    return typed(root.this, Schema([*schema, Column("w", Kind.NUMBER)])).kind


def _parts_of(window: exp.Window) -> Iterator[exp.Expression]:
    """The expressions over one entry in a window function."""
    function, condition, _ = window_parts(window)
    arguments = [part for name, part in function.args.items() if name != "offset"]
    order = window.args.get("order")
    parts = [*arguments, *(window.args.get("partition_by") or []), condition]
    parts += [] if order is None else [each.this for each in order.expressions]
    for part in parts:
        for each in part if isinstance(part, list) else [part]:
            inner = each.expressions[0] if isinstance(each, exp.Distinct) else each
            if isinstance(inner, exp.Expression) and not isinstance(inner, exp.Star | exp.Literal):
                yield inner.copy()


def _empty(schema: Schema) -> dict[str, Any]:
    return {column.name: pa.array([], _TYPES.get(column.kind, pa.string())) for column in schema}


def _tried(schema: Schema, trees: Sequence[exp.Expression]) -> None:
    """Refuse what DuckDB cannot compute of released numbers, before anything is charged."""
    with ReleasedTable(_empty(schema)) as table:
        try:
            table.values(trees)
        except InvalidParameterError as problem:
            why = problem.what
        else:
            return
    raise InvalidParameterError(why, fix="write window functions over keys and aggregates, as DuckDB knows them.")


def _sorted(values: Any, order: Order) -> Any:
    """Indices of a stable sort, with missing values at the end that was asked for."""
    way = "descending" if order.descending else "ascending"
    indices = pc.sort_indices(pa.table({"x": values}), sort_keys=[("x", way)])
    present = len(values) - values.null_count
    return pa.concat_arrays([indices[present:], indices[:present]]) if order.missing_first else indices


def _words(order: Order) -> str:
    return f"{order.text}{', largest first' if order.descending else ''}"
