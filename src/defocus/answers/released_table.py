"""Released numbers as a table that SQL can be asked about: in a DuckDB of its own, which sees nothing else.

Guarantee:
    The database is empty but for the keys and noisy numbers of one answer, lives in memory, and may open no file: what
    it computes is post-processing.

What happens at the edges: a number that is not finite is NULL, and so are a division by zero, the logarithm of a
negative number, and whatever else fails on single entries. Functions that depend on the order of entries that tie take
them in the order of the answer.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, final

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import ErrorLevel

from defocus.answers.tables import arrow_key
from defocus.errors import InvalidParameterError

__all__ = ["ReleasedTable", "window_parts", "written"]

_SAFE = (
    exp.AggFunc, exp.RowNumber, exp.Try, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.And,
    exp.Or, exp.Abs,
)  # fmt: skip
"""Functions that fail on no entry, or that no TRY may stand around."""
_IN_ORDER = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue)
"""Functions that take one entry after the other, also those that tie."""
_CONFIG: dict[str, Any] = {"enable_external_access": "false", "python_enable_replacements": "false", "threads": "1"}


def written(tree: exp.Expression) -> str:
    """A tree as DuckDB reads it."""
    return str(tree.sql("duckdb", comments=False, unsupported_level=ErrorLevel.IGNORE))


def window_parts(window: exp.Window) -> tuple[Any, exp.Expression | None, bool]:
    """The function of a window, the condition in its FILTER, and whether it passes over NULL."""
    function, condition, ignores = window.this, None, False
    while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        if isinstance(function, exp.Filter):
            condition = function.expression.this
        ignores |= isinstance(function, exp.IgnoreNulls)
        function = function.this
    return function, condition, ignores


@final
class ReleasedTable:
    """The keys and columns of an answer, by name; trees name them as they are."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.size = len(next(iter(columns.values())))
        self._free = "w"
        while any(name.casefold().startswith(self._free) for name in columns):
            self._free += "_"
        self.entry = f"{self._free}i"
        held = {self.entry: pa.array(np.arange(self.size), pa.int64())}
        held |= {name: _array(values) for name, values in columns.items()}
        self._database: Any = duckdb.connect(":memory:", config=_CONFIG)
        for setting in ("error_on_division_by_zero", "ieee_floating_point_ops"):
            self._database.execute(f"SET {setting} = false")
        self._database.register("released", pa.table(held))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._database.close()

    @property
    def place(self) -> exp.Column:
        """The column that numbers the entries."""
        return exp.column(self.entry, quoted=True)

    def values(self, trees: Sequence[exp.Expression]) -> list[Any]:
        """The value of each tree for each entry, as Arrow arrays."""
        if not trees:
            return []
        inner, windows = exp.select("*").from_("released"), dict[str, str]()
        shown = []
        for number, tree in enumerate(trees):
            root = exp.paren(tree.copy())
            for window in [node for node in root.find_all(exp.Window) if node.find_ancestor(exp.Window) is None]:
                text = written(self._steady(window))
                name = windows.setdefault(text, f"{self._free}{len(windows)}")
                window.replace(exp.column(name, quoted=True))
            shown.append(exp.alias_(_total(root), f"o{number}", quoted=True))
        for text, name in windows.items():
            inner = inner.select(f'{text} AS "{name}"', dialect="duckdb")
        table = self.run(exp.select(*shown).from_(inner.subquery("t")).order_by(self.place))
        return [table.column(number) for number in range(len(trees))]

    def run(self, select: exp.Expression) -> pa.Table:
        """What the database answers."""
        try:
            return self._database.sql(written(select)).to_arrow_table()
        except duckdb.Error as problem:
            why = str(problem).partition("\n")[0][:200]
        raise InvalidParameterError(
            f"DuckDB cannot compute this from the released numbers: {why}",
            fix="write an expression over the keys and columns of the answer, as DuckDB knows it.",
        )

    def _steady(self, window: exp.Window) -> exp.Expression:
        """The window with what can fail guarded, and ties in the order of the answer where they matter."""
        made = window.copy()
        function, _, _ = window_parts(made)
        spec = made.args.get("spec")
        rows = spec is not None and str(spec.args.get("kind")).upper() == "ROWS"
        order = made.args.get("order")
        if rows or isinstance(function, _IN_ORDER):
            last = exp.Ordered(this=self.place, nulls_first=False)
            made.set("order", exp.Order(expressions=[*([] if order is None else order.expressions), last]))
        return _total(made)


def _array(values: Any) -> Any:
    """A column without numbers that are not finite."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return pa.array(values, mask=~np.isfinite(values))
    return arrow_key(values)


def _total(tree: exp.Expression) -> exp.Expression:
    """The tree with TRY around what can fail on single entries."""
    root = exp.paren(tree)
    functions = [window_parts(window)[0] for window in root.find_all(exp.Window)]
    for node in reversed(list(root.find_all(exp.Func, exp.Mod, exp.IntDiv))):
        if not isinstance(node, _SAFE) and not any(node is function for function in functions):
            inner = node.copy()
            node.replace(exp.Try(this=inner))
    made = root.this
    assert isinstance(made, exp.Expression)  # noqa: S101  # what stood there before
    return made
