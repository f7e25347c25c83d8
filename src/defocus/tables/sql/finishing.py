"""What is done to a released answer: formulas, HAVING, ORDER BY and LIMIT. All of it is post-processing, and free."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from defocus.answers.columns import AnswerColumn
from defocus.engines.columns import Column, Schema
from defocus.engines.engine import Engine
from defocus.engines.kinds import Kind
from defocus.engines.syntax import column, named
from defocus.errors import WrongKindError
from defocus.tables.answers import PICKED, Answer
from defocus.tables.expressions import typed
from defocus.tables.sql.formulas import computed

__all__ = ["Finish", "Order", "Output"]


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

    def checked(self) -> None:
        """Refuse formulas of a wrong kind; depends on the query alone."""
        for output in self.outputs:
            kind = typed(output.tree, self._schema).kind
            if not kind.numeric:
                raise WrongKindError(
                    f"{output.text[:60]} is of kind {kind}, but an answer holds numbers for each group.",
                    fix="select the number, and derive the rest from the answer.",
                )
        if self.having is not None and typed(self.having[0], self._schema).kind is not Kind.BOOLEAN:
            raise WrongKindError("HAVING needs a condition.", fix="compare something: HAVING COUNT(*) > 100.")
        for order in self.orders:
            typed(order.tree, self._schema)

    def apply(self, answer: Answer, engine: Engine, question: str) -> Answer:
        """The answer as the query wants it."""
        released = {reference: answer[name] for reference, name in self.held.items()}
        made = self._made(answer, released, engine)
        numbers = {f"k{i}": made[f"k{i}"] for i, (_, kind) in enumerate(self.keys) if kind.numeric and f"k{i}" in made}
        columns = []
        for i, output in enumerate(self.outputs):
            if output.reference is not None:
                columns.append(replace(released[output.reference], name=output.name))
            else:
                columns.append(computed(output.name, output.tree, made[f"o{i}"], released, numbers))
        keys = answer.keys.rename_columns([name for name, _ in self.keys])
        finished = replace(
            answer, keys=keys, columns=tuple(columns), question=question, rules=(*answer.rules, *self.notes)
        )
        return self._arranged(finished, made)

    @property
    def _schema(self) -> Schema:
        keys = [Column(f"k{i}", kind) for i, (_, kind) in enumerate(self.keys)]
        return Schema([*keys, *(Column(reference, Kind.NUMBER) for reference in self.held)])

    def _made(self, answer: Answer, released: Mapping[str, AnswerColumn], engine: Engine) -> dict[str, Any]:
        """Every formula, condition and order, computed by the engine from the released table alone."""
        trees = {f"o{i}": output.tree for i, output in enumerate(self.outputs) if output.reference is None}
        trees |= {} if self.having is None else {"having": self.having[0]}
        trees |= {f"s{i}": order.tree for i, order in enumerate(self.orders)}
        if not trees or not len(answer):
            return {name: np.zeros(0) for name in trees}
        columns: dict[str, Any] = {"i": pa.array(np.arange(len(answer)), pa.int64())}
        columns |= {f"k{i}": each for i, each in enumerate(answer.keys.columns)}
        columns |= {reference: pa.array(each.values) for reference, each in released.items()}
        published = engine.publish("released", pa.table(columns))
        wanted = [named(typed(tree, self._schema).sql, name) for name, tree in trees.items()]
        select = exp.select(named(column("i"), "i"), *wanted).from_(published, copy=False)
        try:
            table = engine.run(select.order_by(column("i"), copy=False))
        finally:
            engine.withdraw(published)
        made: dict[str, Any] = {name: table.column(name) for name in trees}
        for i, (_, kind) in enumerate(self.keys):
            if kind.numeric:
                made[f"k{i}"] = answer.keys.column(i).cast(pa.float64()).to_numpy()
        return {name: _floats(value) if name.startswith("o") else value for name, value in made.items()}

    def _arranged(self, answer: Answer, made: Mapping[str, Any]) -> Answer:
        if not len(answer):
            return answer
        kept = np.arange(len(answer))
        if self.having is not None:
            kept = np.flatnonzero(pc.fill_null(made["having"], False).to_numpy())
            answer = answer.take(kept, f"only groups with {self.having[1]} kept; {PICKED}")
        if self.orders:
            order = pa.array(np.arange(len(kept)))
            for i, each in reversed(list(enumerate(self.orders))):
                values = made[f"s{i}"].take(pa.array(kept)).take(order)
                order = order.take(_sorted(values, each))
            picked = f"; {PICKED}" if self.limit is not None or self.offset else ""
            answer = answer.take(order.to_numpy(), f"ordered by {', '.join(map(_words, self.orders))}{picked}")
        if self.offset:
            answer = answer.take(
                np.arange(min(self.offset, len(answer)), len(answer)), f"the first {self.offset} groups skipped"
            )
        return answer if self.limit is None else answer.head(self.limit)


def _sorted(values: Any, order: Order) -> Any:
    """Indices of a stable sort, with missing values at the end that was asked for."""
    way = "descending" if order.descending else "ascending"
    indices = pc.sort_indices(pa.table({"x": values}), sort_keys=[("x", way)])
    present = len(values) - values.null_count
    return pa.concat_arrays([indices[present:], indices[:present]]) if order.missing_first else indices


def _words(order: Order) -> str:
    return f"{order.text}{', largest first' if order.descending else ''}"


def _floats(values: Any) -> Any:
    return values.cast(pa.float64()).to_numpy()
