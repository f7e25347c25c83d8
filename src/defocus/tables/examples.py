"""Private rows for a model: columns of a table as inputs and a target, with what the table knows about them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from defocus.engines.schema import ARROW, Column, Kind, retyped
from defocus.engines.syntax import column, named
from defocus.errors import InvalidParameterError, WrongKindError
from defocus.ledger import Ledger
from defocus.privacy.units import Unit
from defocus.tables.rows import Rows

__all__ = ["Examples", "examples_of"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Rows of a table for a model. Made by :meth:`Table.examples`; nothing is read until a model is fitted.

    Pass it to ``fit`` of an estimator, or to a ``Trainer`` as its data: the ledger, the unit, whose each row is, and
    bounds and classes are the table's.

    >>> from defocus import examples
    >>> visits = examples.visits()
    >>> visits.declare(age=(18, 90)).examples(["age"])
    Examples(age; protects everything about one person, added or removed)
    >>> visits.close()
    """

    rows: Rows
    ledger: Ledger
    inputs: tuple[str, ...]
    target: str | None
    group: str | None = None

    @property
    def unit(self) -> Unit:
        """Whom the ledger protects."""
        return self.ledger.unit

    @property
    def input_bounds(self) -> tuple[list[float], list[float]] | None:
        """The declared least and largest values of the inputs; None if one of them has none."""
        ends = [_ends(self.rows.schema[name]) for name in self.inputs]
        known = [end for end in ends if end is not None]
        return ([low for low, _ in known], [high for _, high in known]) if len(known) == len(ends) else None

    @property
    def target_bounds(self) -> tuple[float, float] | None:
        """The declared least and largest value of the target."""
        return None if self.target is None else _ends(self.rows.schema[self.target])

    @property
    def target_values(self) -> list[Any] | None:
        """The declared values of the target."""
        return None if self.target is None else _values(self.rows.schema[self.target])

    @property
    def group_values(self) -> list[Any] | None:
        """The declared values of the group."""
        return None if self.group is None else _values(self.rows.schema[self.group])

    @property
    def facts(self) -> str:
        """Which rows and columns these are, the same each time they are asked for."""
        return repr((self.rows.facts(), self.inputs, self.target, self.group))

    def empty(self) -> "Examples":
        """The same columns of no rows, by which a fit is planned."""
        return replace(self, rows=self.rows.where("FALSE"))

    def read_examples(self) -> tuple[NDArray[np.float64], Any, list[Any]]:
        """Inputs, targets and persons, as :meth:`read_grouped` has them."""
        inputs, target, _, persons = self.read_grouped()
        return inputs, target, persons

    def read_grouped(self) -> tuple[NDArray[np.float64], Any, Any, list[Any]]:
        """Inputs, with NULL as NaN; target and group, columns of Arrow, or None; and the person of each row.

        The last row is nobody's, so that there always is one. Where each row is a unit of its own, persons are numbers.
        Rows come in the order of what they hold, so that the same rows are read alike each time.
        """
        places = {f"x{place}": name for place, name in enumerate(self.inputs)}
        places |= {} if self.target is None else {"y": self.target}
        places |= {} if self.group is None else {"g": self.group}
        places |= {} if self.rows.unit is None else {"u": self.rows.unit}
        read = self.rows.engine.run(self.rows.select([named(column(name), place) for place, name in places.items()]))
        columns = [
            read.column(place).cast(ARROW[self.rows.schema[name].kind], safe=False)
            for place, name in enumerate(places.values())
        ]
        table = pa.table(columns, names=list(places)).sort_by([(place, "ascending") for place in places])
        number = table.num_rows
        inputs = np.full((number + 1, len(self.inputs)), np.nan)
        for place in range(len(self.inputs)):
            values = table.column(f"x{place}").cast(pa.float64(), safe=False)
            inputs[:number, place] = values.to_numpy() + 0.0
        persons = list(range(number)) if self.rows.unit is None else table.column("u").to_pylist()
        return inputs, _longer(table, "y"), _longer(table, "g"), [*persons, None]

    def __repr__(self) -> str:
        aim = "" if self.target is None else f" for {self.target}"
        return f"Examples({', '.join(self.inputs)}{aim}; protects {self.unit})"


def _longer(table: pa.Table, place: str) -> Any:
    """A column with one missing value more, or None where there is no such column."""
    if place not in table.column_names:
        return None
    own = table.column(place)
    return pa.chunked_array([*own.chunks, pa.nulls(1, own.type)], type=own.type)


def examples_of(rows: Rows, ledger: Ledger, inputs: Sequence[str], target: object, group: object = None) -> Examples:
    """The examples, if these columns can be inputs and a target."""
    for name in inputs:
        chosen = rows.schema.usable(name)
        if not chosen.kind.numeric and chosen.kind is not Kind.BOOLEAN:
            raise WrongKindError(
                f"An input is a number, but {name!r:.60} is of kind {chosen.kind}.",
                fix=f"derive numbers from it: derive(is_a=\"{name:.40} = 'A'\"){retyped(name, chosen.kind)}.",
            )
    target, group = (_column(rows, what, named) for what, named in (("target", target), ("group", group)))
    return Examples(rows, ledger, tuple(inputs), target, group)


def _column(rows: Rows, what: str, named: object) -> str | None:
    if named is not None and not isinstance(named, str):
        raise InvalidParameterError(
            f"The {what} is the name of a column, but it is of type {type(named).__name__}.",
            fix='write examples(["age", "days"], "readmitted").',
        )
    if named is not None:
        rows.schema.usable(named)
    return named


def _values(chosen: Column) -> list[Any] | None:
    """The declared values of a column."""
    if chosen.values is None:
        return [False, True] if chosen.kind is Kind.BOOLEAN else None
    return [value for value in chosen.values if value is not None]


def _ends(chosen: Column) -> tuple[float, float] | None:
    """The declared least and largest value of a column: its bounds, or those of its values."""
    if chosen.kind is Kind.BOOLEAN:
        return 0.0, 1.0
    low, high = chosen.low, chosen.high
    if low is not None and high is not None and not isinstance(low, date) and not isinstance(high, date):
        return float(low), float(high)
    values = [float(value) for value in chosen.values or () if isinstance(value, int | float)]
    return (min(values), max(values)) if chosen.kind.numeric and len(set(values)) > 1 else None
