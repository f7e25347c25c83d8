"""The answer to a question about a graph: noisy numbers, with everything needed to read them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa

from defocus.errors import InvalidParameterError, UnknownColumnError
from defocus.graphs import exporting, plotting, printing, wording
from defocus.graphs.columns import Column
from defocus.graphs.questions import Result
from defocus.ledger import Receipt
from defocus.ledger.guards import Guard
from defocus.privacy.events import Event
from defocus.release.promises import Promise

__all__ = ["GraphAnswer", "checked_result"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GraphAnswer:
    """Released statistics of a graph. Noise was added and paid for, so all of it may be shown to anyone.

    Guarantee:
        Everything here is post-processing of a charged release: it depends on the graph through the noisy numbers only.

    Args:
        result: the columns, what their entries are about, and what was done to them.
        question: what was asked, in one line.
        receipt: the charge that paid for it.
        rules: sentences about how edges were read, and on what guesses errors rest.
        method: which method was used.
    """

    result: Result
    question: str
    receipt: Receipt
    rules: tuple[str, ...] = ()
    method: str = ""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The released numbers."""
        return self.result.columns

    @property
    def keys(self) -> Mapping[str, Sequence[Any]]:
        """What each entry is about; empty for single numbers."""
        return self.result.keys

    @property
    def event(self) -> Event:
        """What the answer owed."""
        return self.receipt.event

    @property
    def value(self) -> Any:
        """The number, where one was asked for; else the numbers of the first column."""
        first = self.columns[0]
        if len(self.columns) > 1 or self.keys:
            return first.values
        number = float(first.values[0])
        return round(number) if first.integral else number

    @property
    def error(self) -> float:
        """The expected absolute error of an entry of the first column; NaN where it is not known."""
        return float(self.columns[0].errors[0]) if len(self) else math.nan

    def promise(self) -> Promise | None:
        """(epsilon, delta) and posterior odds of this answer alone; None if no accountant can say."""
        return wording.alone(self.event, self.receipt.terms)

    def __len__(self) -> int:
        return len(self.columns[0].values)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise UnknownColumnError(name, [column.name for column in self.columns])

    def to_arrow(self) -> pa.Table:
        """The keys, then x, x_error, x_low and x_high for each column x."""
        made = exporting.arrow(self.keys, self.columns)
        about = {"question": self.question, "rules": "\n".join(self.rules), "charge": str(self.receipt)}
        return made.replace_schema_metadata({f"defocus.{name}": text.encode() for name, text in about.items()})

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame (extra ``frames``)."""
        return exporting.frame(self.to_arrow(), "pandas")

    def to_polars(self) -> Any:
        """The table as a polars DataFrame (extra ``frames``)."""
        return exporting.frame(self.to_arrow(), "polars")

    def to_parquet(self, path: str | Path) -> None:
        """The table as a Parquet file."""
        exporting.write(path, exporting.parquet_bytes(self.to_arrow()))

    def to_csv(self, path: str | Path | None = None) -> str:
        """The table as CSV text, written to ``path`` if given. Names are disarmed: see :func:`exporting.disarmed`."""
        text = exporting.csv_text(self.to_arrow())
        if path is not None:
            exporting.write(path, text.encode())
        return text

    def to_dict(self) -> dict[str, Any]:
        """The whole answer with JSON types only; numbers that are not finite as null."""
        rows = [{name: _json(value) for name, value in row.items()} for row in self.to_arrow().to_pylist()]
        return {
            "question": self.question,
            "rows": rows,
            "keys": list(self.keys),
            "columns": {column.name: column.how for column in self.columns},
            "method": self.method,
            "confidence": 0.95,
            "rules": list(self.rules),
            "processing": list(self.result.processing),
            "notes": list(self.result.notes),
            "receipt": self.receipt.to_dict(),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """The whole answer as JSON text, written to ``path`` if given."""
        text = exporting.json_text(self.to_dict())
        if path is not None:
            exporting.write(path, text.encode())
        return text

    def explain(self, *, html: bool = False) -> str:
        """The answer in plain words: question, protection, odds, rules, noise, exactness, cost and what is left."""
        terms = self.receipt.terms
        promised = self.promise()
        left = Guard.of(terms).remaining(self.receipt.spent)
        said = {
            "question": [self.question],
            "protected": [wording.protection(terms.unit, terms.dataset)],
            f"for one {terms.unit.kind}": wording.odds(promised, terms.unit),
            "by rule": list(self.rules),
            "noise": [f"{column.name}: {column.how}" for column in self.columns],
            "exactness": [_exactness(column) for column in self.columns],
            "found": list(self.result.notes),
            "afterwards": list(self.result.processing) or ["nothing was done to the noisy numbers"],
            "cost": [
                wording.cost(promised),
                (
                    f"charged beforehand as entry {self.receipt.sequence}: {self.receipt.purpose}"
                    f" ({self.receipt.who}, {self.receipt.time[:10]})"
                ),
                wording.owed(self.event),
            ],
            "left": [f"after this answer: {left}; the whole budget is {terms.budget}"],
        }
        spoken = {name: sentences for name, sentences in said.items() if sentences}
        return printing.facts_html(spoken) if html else printing.facts_text(spoken)

    def plot(self, column: str | None = None) -> Any:
        """A matplotlib figure with 95 % intervals (extra ``plot``)."""
        chosen = self.columns[0] if column is None else self[column]
        return plotting.drawn(chosen, self.keys, title=self.question)

    def __str__(self) -> str:
        head, rows, right = self._cells()
        return "\n".join([printing.table_text(head, rows, right=right), *map(printing.line, self._notes())])

    def __repr__(self) -> str:
        return f"<answer: {self.question}>"

    def _repr_html_(self) -> str:
        head, rows, right = self._cells()
        notes = "".join(f"<p>{printing.facts_html({'': [note]})}</p>" for note in self._notes())
        return f"<div>{printing.table_html(head, rows, right=right)}{notes}</div>"

    def _cells(self) -> tuple[list[str], list[list[str]], list[bool]]:
        shown, left_out = printing.shortened(len(self))
        heads = [*map(printing.plain, self.keys)]
        right = [isinstance(values, range) for values in self.keys.values()]
        body = [[printing.plain(_at(values, i)) for values in self.keys.values()] for i in shown]
        for column in self.columns:
            heads += [printing.plain(column.name), "95 % interval"]
            right += [True, True]
            places = 0 if column.integral else (1 if float(np.max(np.abs(column.values), initial=0)) >= 10 else 3)
            for cells, i in zip(body, shown, strict=True):
                value, low, high = (
                    printing.written(float(part[i]), places) for part in (column.values, column.low, column.high)
                )
                cells += [value, f"{low} to {high}"]
        if left_out:
            body.insert(len(shown) // 2, ["⋮"] * len(heads))
        return heads, body, right

    def _notes(self) -> list[str]:
        left_out = printing.shortened(len(self))[1]
        hidden = [f"{len(self)} entries, {left_out} of them not shown"] if left_out else []
        guesses = [rule for rule in self.rules if "guess" in rule]
        return [*hidden, *self.result.notes, *guesses, *wording.biased(self.rules), self.receipt.purpose]


def checked_result(result: object) -> Result:
    """Return ``result`` if it is one whose columns and keys agree in length."""
    if not isinstance(result, Result) or not result.columns:
        raise InvalidParameterError("A method gave no result.", fix="let run() return a Result with columns.")
    lengths = {len(column.values) for column in result.columns} | {len(values) for values in result.keys.values()}
    if len(lengths) != 1:
        raise InvalidParameterError(
            "The columns and keys of a result differ in length.", fix="give one key for each entry."
        )
    return result


def _at(values: Sequence[Any], i: int) -> Any:
    value = values[i]
    return value.as_py() if isinstance(value, pa.Scalar) else value


def _json(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _exactness(column: Column) -> str:
    """How far off a column is."""
    known = column.errors[np.isfinite(column.errors)]
    half = (column.high - column.low)[np.isfinite(column.high - column.low)] / 2
    size = f"off by {printing.brief(float(known.mean()))} on average, " if known.size else ""
    if not half.size:
        return f"{column.name}: {size}an interval is not known"
    middle = " in the middle" if len(column.values) > 1 else ""
    return f"{column.name}: {size}95 % within {printing.brief(float(np.median(half)))}{middle}"
