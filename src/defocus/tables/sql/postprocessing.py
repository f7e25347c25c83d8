"""Arithmetic over released columns: post-processing, with intervals where they follow from those of the columns.

Error:
    A formula a*x + b of one released column has its error and its interval, scaled. For more columns, each interval
    is widened by 1 + ln k / ln 20 for k columns, and the formula is evaluated over intervals. Noise whose density is
    log-concave and symmetric has P(|X| > c h) <= P(|X| > h)^c, so that each widened interval fails with
    probability at most 0.05/k, and all hold together with 95 %. This counts for counts and sums; quotients such as
    means come with intervals that are themselves approximate. No standard error is given.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from defocus.answers import PICKED, AnswerColumn, Released
from defocus.answers.columns import Floats
from defocus.answers.rules import rules_of
from defocus.engines.engine import Engine
from defocus.engines.schema import Column, Kind, Schema
from defocus.engines.syntax import column, named
from defocus.errors import WrongKindError
from defocus.tables.expressions import typed
from defocus.tables.grouping_sets import are_totals
from defocus.tables.sql.bounds import number

__all__ = ["PUBLIC", "Finish", "Linear", "Order", "Output", "computed", "linear", "references"]


_Ends: TypeAlias = tuple[Floats, Floats]
_MOST_PLACES = 15
PUBLIC = "exact, since it follows from the keys"


@final
@dataclass(frozen=True, slots=True)
class Linear:
    """``factor`` times one released column, plus ``shift``."""

    reference: str
    factor: float
    shift: float


def references(tree: exp.Expression) -> list[str]:
    """The released columns in a formula, each once."""
    return list(dict.fromkeys(column.name for column in tree.find_all(exp.Column) if column.name.startswith("a")))


def linear(tree: exp.Expression) -> Linear | None:
    """The formula as a multiple of one released column, if it is one."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Column):
        return Linear(tree.name, 1.0, 0.0) if tree.name.startswith("a") else None
    if isinstance(tree, exp.Neg):
        return _scaled(linear(tree.this), -1.0)
    return _with_constant(tree) if isinstance(tree, exp.Add | exp.Sub | exp.Mul | exp.Div) else None


def _with_constant(tree: exp.Binary) -> Linear | None:
    """A sum, difference, product or quotient of a linear formula and a constant."""
    left, right = number(tree.this), number(tree.expression)
    constant = right if left is None else left
    inner = linear(tree.this if left is None else tree.expression)
    if constant is None or inner is None or (isinstance(tree, exp.Div) and not right):
        return None
    if isinstance(tree, exp.Mul | exp.Div):
        return _scaled(inner, float(constant) if isinstance(tree, exp.Mul) else 1 / float(constant))
    if isinstance(tree, exp.Sub):
        negative = Linear(inner.reference, -inner.factor, -inner.shift)
        inner, constant = (inner, -constant) if left is None else (negative, constant)
    return Linear(inner.reference, inner.factor, inner.shift + float(constant))


def computed(
    name: str, tree: exp.Expression, values: Floats, columns: Mapping[str, AnswerColumn], keys: Mapping[str, Floats]
) -> AnswerColumn:
    """A column of an answer that is a formula of released ones; its values were computed already."""
    scaled = linear(tree)
    with np.errstate(all="ignore"):
        return _multiple(name, scaled, values, columns) if scaled else _combined(name, tree, values, columns, keys)


def _multiple(name: str, scaled: Linear, values: Floats, columns: Mapping[str, AnswerColumn]) -> AnswerColumn:
    column = columns[scaled.reference]
    ends = np.sort(np.stack([scaled.factor * end + scaled.shift for end in (column.low, column.high)]), axis=0)
    how = f"computed from {column.name}: {column.how}"
    errors, tails = abs(scaled.factor) * column.errors, column.tails
    return AnswerColumn(name, values, errors, ends[0], ends[1], integral=False, how=how, tails=tails)


def _combined(
    name: str, tree: exp.Expression, values: Floats, columns: Mapping[str, AnswerColumn], keys: Mapping[str, Floats]
) -> AnswerColumn:
    used = references(tree)
    if not used:  # of keys alone, as GROUPING(x) is
        return AnswerColumn(name, values, 0 * values, values, values, integral=True, how=PUBLIC, error_of="")
    ends = _widened([columns[reference] for reference in used], used) | {
        key: (exact, exact) for key, exact in keys.items()
    }
    low, high = _ends(tree, ends)
    holds = np.isfinite(low) & np.isfinite(high) & (low <= values) & (values <= high)
    together = f"; the interval holds for all {len(used)} together" if len(used) > 1 else ""
    return AnswerColumn(
        name,
        values,
        np.full(len(values), np.nan),
        np.where(holds, low, np.nan),
        np.where(holds, high, np.nan),
        integral=False,
        how=f"computed from {' and '.join(columns[reference].name for reference in used)}{together}",
    )


def _widened(columns: Sequence[AnswerColumn], names: Sequence[str]) -> dict[str, _Ends]:
    wider = 1 + math.log(max(1, len(columns))) / math.log(20)
    return {
        name: (
            column.values - wider * (column.values - column.low),
            column.values + wider * (column.high - column.values),
        )
        for name, column in zip(names, columns, strict=True)
    }


def _scaled(inner: Linear | None, factor: float) -> Linear | None:
    return None if inner is None else Linear(inner.reference, inner.factor * factor, inner.shift * factor)


def _ends(tree: exp.Expression, ends: Mapping[str, _Ends]) -> _Ends:
    """The formula over intervals; NaN where nothing is known."""
    size = len(next(iter(ends.values()))[0])
    if isinstance(tree, exp.Column):
        return ends.get(tree.name, _unknown(size))
    constant = number(tree)
    if constant is not None:
        return np.full(size, float(constant)), np.full(size, float(constant))
    if isinstance(tree, exp.Round):
        return _rounded(tree, ends, size)
    rule = _RULES.get(type(tree))
    if rule is None:
        return _unknown(size)
    low, high = rule(*(_ends(part, ends) for part in _operands(tree)))
    return low, high


def _rounded(tree: exp.Round, ends: Mapping[str, _Ends], size: int) -> _Ends:
    """Rounding keeps order; what is rounded may move by one unit of the last place at most."""
    places = number(tree.args["decimals"]) if tree.args.get("decimals") is not None else 0
    if not isinstance(places, int) or abs(places) > _MOST_PLACES:
        return _unknown(size)
    low, high = _ends(tree.this, ends)
    unit = 10.0**-places
    return np.floor(low / unit) * unit, np.ceil(high / unit) * unit


def _operands(tree: exp.Expression) -> list[exp.Expression]:
    """What a rule works on: both sides of an operator, the argument of a function."""
    return [tree.this, tree.expression] if isinstance(tree, exp.Binary) else [tree.this]


def _times(a: _Ends, b: _Ends) -> _Ends:
    products = np.stack([x * y for x in a for y in b])
    return products.min(axis=0), products.max(axis=0)


def _over(a: _Ends, b: _Ends) -> _Ends:
    crosses = (b[0] <= 0) & (b[1] >= 0)
    low, high = _times(a, (1 / b[1], 1 / b[0]))
    return np.where(crosses, np.nan, low), np.where(crosses, np.nan, high)


def _same(a: _Ends) -> _Ends:
    """Of NULLIF(x, 0) and COALESCE(x, 0) too: where x is missing, so is the interval, or it misses the value."""
    return a


def _absolute(a: _Ends) -> _Ends:
    nearest = np.clip(0.0, a[0], a[1])
    return np.abs(nearest), np.maximum(np.abs(a[0]), np.abs(a[1]))


_RULES: dict[type[exp.Expression], Callable[..., Any]] = {
    exp.Paren: _same,
    exp.Neg: lambda a: (-a[1], -a[0]),
    exp.Add: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    exp.Sub: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    exp.Mul: _times,
    exp.Div: _over,
    exp.Nullif: _same,
    exp.Coalesce: _same,
    exp.Sqrt: lambda a: (np.sqrt(np.maximum(a[0], 0)), np.sqrt(a[1])),
    exp.Exp: lambda a: (np.exp(a[0]), np.exp(a[1])),
    exp.Ln: lambda a: (np.log(a[0]), np.log(a[1])),
    exp.Abs: _absolute,
}


def _unknown(size: int) -> _Ends:
    return np.full(size, np.nan), np.full(size, np.nan)


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
    summed: tuple[int, ...] = ()
    """The keys that may be totals; g0, g1, … are 1 where they are, and else 0."""

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

    def apply(self, answer: Released, engine: Engine, question: str) -> Released:
        """The answer as the query wants it."""
        released = {reference: answer[name] for reference, name in self.held.items()}
        arrays = self._made(answer, released, engine)
        numbers = {
            f"k{i}": arrays[f"k{i}"] for i, (_, kind) in enumerate(self.keys) if kind.numeric and f"k{i}" in arrays
        } | {f"g{i}": arrays[f"g{i}"] for i in self.summed if f"g{i}" in arrays}
        columns = []
        for i, output in enumerate(self.outputs):
            if output.reference is not None:
                columns.append(replace(released[output.reference], name=output.name))
            else:
                columns.append(computed(output.name, output.tree, arrays[f"o{i}"], released, numbers))
        keys = dict(zip((name for name, _ in self.keys), answer.keys.values(), strict=True))
        finished = replace(
            answer, keys=keys, columns=tuple(columns), question=question, rules=rules_of((*answer.rules, *self.notes))
        )
        return self._arranged(finished, arrays)

    @property
    def _schema(self) -> Schema:
        keys = [Column(f"k{i}", kind) for i, (_, kind) in enumerate(self.keys)]
        keys += [Column(f"g{i}", Kind.INTEGER) for i in range(len(self.keys)) if self.summed]
        return Schema([*keys, *(Column(reference, Kind.NUMBER) for reference in self.held)])

    def _made(self, answer: Released, released: Mapping[str, AnswerColumn], engine: Engine) -> dict[str, Any]:
        """Every formula, condition and order, computed by the engine from the released table alone."""
        trees = {f"o{i}": output.tree for i, output in enumerate(self.outputs) if output.reference is None}
        trees |= {} if self.having is None else {"having": self.having[0]}
        trees |= {f"s{i}": order.tree for i, order in enumerate(self.orders)}
        if not trees or not len(answer):
            return {name: np.zeros(0) for name in trees}
        columns: dict[str, Any] = {"i": pa.array(np.arange(len(answer)), pa.int64())}
        columns |= {f"k{i}": values for i, values in enumerate(answer.keys.values())}
        totals = self._totals(answer)
        columns |= {name: pa.array(flags, pa.int64()) for name, flags in totals.items()}
        columns |= {reference: pa.array(noisy.values) for reference, noisy in released.items()}
        published = engine.publish("released", pa.table(columns))
        wanted = [named(typed(tree, self._schema).sql, name) for name, tree in trees.items()]
        select = exp.select(named(column("i"), "i"), *wanted).from_(published, copy=False)
        try:
            table = engine.run(select.order_by(column("i"), copy=False))
        finally:
            engine.withdraw(published)
        arrays: dict[str, Any] = {name: table.column(name) for name in trees}
        for i, ((_, kind), key) in enumerate(zip(self.keys, answer.keys.values(), strict=True)):
            if kind.numeric:
                arrays[f"k{i}"] = key.cast(pa.float64()).to_numpy()
        arrays |= {name: flags.astype(np.float64) for name, flags in totals.items()}
        outputs = {name: values for name, values in arrays.items() if name.startswith("o")}
        return arrays | {name: values.cast(pa.float64()).to_numpy() for name, values in outputs.items()}

    def _totals(self, answer: Released) -> dict[str, Any]:
        """For each key, where it is that of a total; nothing where there is one set of groups."""
        if not self.summed:
            return {}
        none = np.zeros(len(answer), np.int64)
        columns = enumerate(answer.keys.values())
        return {f"g{i}": are_totals(keys.to_pylist()) if i in self.summed else none for i, keys in columns}

    def _arranged(self, answer: Released, arrays: Mapping[str, Any]) -> Released:
        if not len(answer):
            return answer
        kept = np.arange(len(answer))
        if self.having is not None:
            kept = np.flatnonzero(pc.fill_null(arrays["having"], False).to_numpy())
            answer = answer.take(kept, f"only groups with {self.having[1]} kept; {PICKED}")
        if self.orders:
            order = pa.array(np.arange(len(kept)))
            for i, by in reversed(list(enumerate(self.orders))):
                values = arrays[f"s{i}"].take(pa.array(kept)).take(order)
                order = order.take(_sorted(values, by))
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
