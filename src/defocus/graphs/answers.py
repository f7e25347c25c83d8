"""Rules that take edges away, which no interval tells: how they are worded, and how they are known again."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa

from defocus.answers import explanation, export, plots
from defocus.answers import tables as answer_tables
from defocus.answers.columns import AnswerColumn, named
from defocus.answers.record import asked_in, asked_out, columns_in, columns_out, reading
from defocus.answers.tables import spelt
from defocus.errors import InvalidParameterError
from defocus.graphs.question import TIME, Result
from defocus.ledger import Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.release import guarantee
from defocus.release.guarantee import Promise

__all__ = [
    "INTERVAL",
    "NOISE_ONLY",
    "WEIGHTS_CUT",
    "GraphAnswer",
    "beyond",
    "biased",
    "cap_found",
    "capped",
    "checked_result",
    "covered",
    "from_record",
    "projected",
    "to_record",
]


INTERVAL = "95 % interval"
NOISE_ONLY = "95 % of the noise only"
"""What stands above intervals, and above those that do not hold the truth as often, since edges are left out."""
WEIGHTS_CUT = "weights are cut to their declared range"

_CAPPED = "at each node, at most"
_CAP_FOUND = "count up to a cap at each node, which is found"
_PROJECTED = "are left out where a node would have more than"


def capped(most: int, what: str) -> str:
    """A cap on what counts at a node."""
    return f"{_CAPPED} {most} of its {what} count"


def cap_found(what: str) -> str:
    """The same, where the cap is found."""
    return f"{what} {_CAP_FOUND}; what is beyond it is lost"


def projected(most: object) -> str:
    """Edges beyond a largest degree."""
    return f"edges {_PROJECTED} {most}"


def biased(rules: Sequence[str]) -> list[str]:
    """What takes edges away by rule, which no interval tells: a line, if there is anything.

    Answers keep their rules as sentences, so they are known by the words that the functions above put into them.

    >>> biased(["an edge from a node to itself is left out", capped(9, "edges")])
    ['not in the intervals: at each node, at most 9 of its edges count']
    """
    found = beyond(rules)
    return [f"not in the intervals: {'; '.join(found)}"] if found else []


def beyond(rules: Sequence[str]) -> list[str]:
    """The rules that take edges or parts of weights away: how much that is stays private."""
    return [rule for rule in rules if any(words in rule for words in (_CAPPED, _CAP_FOUND, _PROJECTED, WEIGHTS_CUT))]


def covered(rules: Sequence[str]) -> str:
    """What intervals hold, and how often.

    >>> covered([capped(9, "edges")])
    'the noise only, with 95 %; the truth may lie outside: at each node, at most 9 of its edges count'
    """
    found = beyond(rules)
    return (
        f"the noise only, with 95 %; the truth may lie outside: {'; '.join(found)}" if found else "the truth, with 95 %"
    )


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
        asked: what it was allowed to cost; None where nobody wrote it down.

    >>> import tempfile
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> ring = [(i, (i + 1) % 100) for i in range(100)]
    >>> g = dp.open_graph(ring, unit=dp.edge(), budget=dp.Budget(2), nodes=range(100), ledger=f"{home.name}/g")
    >>> answer = g.edges().release(epsilon=1)
    >>> 80 < answer.value < 120, round(answer.error, 2)
    (True, 0.85)
    >>> g.close(); home.cleanup()
    """

    result: Result
    question: str
    receipt: Receipt
    rules: tuple[str, ...] = ()
    method: str = ""
    asked: Budget | None = None

    @property
    def columns(self) -> tuple[AnswerColumn, ...]:
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
        """(epsilon, delta) and posterior odds of this answer alone, at the delta that was asked for, if one was.

        None if no accountant can say.
        """
        return guarantee.alone(self.event, self.receipt.terms, self.asked)

    def __len__(self) -> int:
        return len(self.columns[0].values)

    def __getitem__(self, name: str) -> AnswerColumn:
        return named(self.columns, name)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Entry by entry, as :meth:`to_arrow` has them."""
        return iter(self.to_arrow().to_pylist())

    def to_arrow(self) -> pa.Table:
        """The keys, then x, x_error, x_low and x_high for each column x."""
        made = answer_tables.arrow(self.keys, self.columns, None, exact=True)
        holds = covered(self.rules)
        return export.described(made, question=self.question, rules=self.rules, receipt=self.receipt, intervals=holds)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame (extra ``frames``)."""
        return export.frame(self.to_arrow(), "pandas")

    def to_polars(self) -> Any:
        """The table as a polars DataFrame (extra ``frames``)."""
        return export.frame(self.to_arrow(), "polars")

    def to_parquet(self, path: str | Path) -> None:
        """The table as a Parquet file."""
        export.write_parquet(self.to_arrow(), path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """The table as CSV text, written to ``path`` if given. Names are disarmed: see :func:`exporting.disarmed`."""
        return export.csv_text(self.to_arrow(), path)

    def to_dict(self) -> dict[str, Any]:
        """The whole answer with JSON types only; numbers that are not finite as null."""
        return {
            "question": self.question,
            "rows": export.json_rows(self.to_arrow()),
            "keys": list(self.keys),
            "columns": {column.name: column.how for column in self.columns},
            "method": self.method,
            "confidence": 0.95,
            "intervals": covered(self.rules),
            "rules": list(self.rules),
            "processing": list(self.result.processing),
            "notes": list(self.result.notes),
            "receipt": self.receipt.to_dict(),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """The whole answer as JSON text, written to ``path`` if given."""
        return export.json_text(self.to_dict(), path)

    def explain(self, *, html: bool = False) -> str:
        """The answer in plain words: question, protection, odds, rules, noise, exactness, cost and what is left."""
        said = explanation.facts(
            question=self.question,
            columns=self.columns,
            receipt=self.receipt,
            rules=self.rules,
            processing=self.result.processing,
            asked=self.asked,
            thing=("entry", "entries"),
            found=self.result.notes,
            biased=beyond(self.rules),
        )
        return explanation.told(said, html=html)

    def plot(self, column: str | None = None) -> Any:
        """A matplotlib figure with intervals, and what they do not hold (extra ``plot``).

        Single numbers are points, numbers along time are steps, numbers along many degrees or ranks a curve, and all
        others bars. All single numbers are drawn unless a ``column`` is named.
        """
        chosen = self.columns[0] if column is None else self[column]
        figure = self._drawn(chosen, self.columns if column is None else (chosen,))
        figure.suptitle(plots.literal("\n".join((self.question, *biased(self.rules)))), fontsize=10)
        return figure

    def _drawn(self, chosen: AnswerColumn, all_of_them: Sequence[AnswerColumn]) -> Any:
        if not self.keys:
            return plots.points([each.name for each in all_of_them], all_of_them)
        if list(self.keys) == [TIME] and len(self) > 1:
            return plots.series(self.keys[TIME], chosen, by=TIME)
        along = [name for name, values in self.keys.items() if isinstance(values, range) and name != "node"]
        if along and len(self) > plots.MOST:
            return plots.curve(self.keys[along[0]], chosen, by=along[0])
        shown = plots.drawn(chosen)
        labels = answer_tables.labels(self.keys, shown, whole=chosen.name)
        return plots.bars(labels, [chosen], shown, by=", ".join(self.keys), things="entries")

    def __str__(self) -> str:
        return answer_tables.text_page(self._cells(), self._notes())

    def __repr__(self) -> str:
        return f"<answer: {self.question}>"

    def _repr_html_(self) -> str:
        return answer_tables.html_page(self._cells(), self._notes())

    def _cells(self) -> answer_tables.Cells:
        interval = NOISE_ONLY if beyond(self.rules) else INTERVAL
        return answer_tables.cells(self.keys, self.columns, interval=interval)

    def _notes(self) -> list[str]:
        more = (*self.result.notes, *biased(self.rules), *self.result.processing, self.receipt.purpose)
        return answer_tables.notes(self.columns, None, more, things="entries")


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


_LONG = 10**1000
"""Whole numbers from here on are kept as text: JSON is read with limits of its own."""


def to_record(answer: GraphAnswer) -> dict[str, Any]:
    """The answer with JSON types only. Names of nodes that are neither text nor numbers are kept as text."""
    return {
        "kind": "graph",
        "keys": {name: _keys(values) for name, values in answer.keys.items()},
        "columns": columns_out(answer.columns),
        "question": answer.question,
        "rules": list(answer.rules),
        "method": answer.method,
        "processing": list(answer.result.processing),
        "notes": list(answer.result.notes),
        "asked": asked_out(answer.asked),
    }


def from_record(record: Any, receipt: Receipt) -> GraphAnswer:
    """The answer that :func:`to_record` wrote down, with the receipt that paid for it."""
    with reading(receipt, "a graph"):
        keys = {name: _listed(values) for name, values in record["keys"].items()}
        columns = columns_in(record["columns"], absolute=True)
        result = Result(columns, keys, tuple(record["processing"]), tuple(record["notes"]))
        asked = asked_in(record.get("asked"))
        return GraphAnswer(result, record["question"], receipt, tuple(record["rules"]), record["method"], asked)


def _listed(values: Any) -> Any:
    if isinstance(values, dict) and "moments" in values:
        return [datetime.fromisoformat(text) for text in values["moments"]]
    return range(*values["range"]) if isinstance(values, dict) else list(values)


def _keys(values: Any) -> Any:
    if isinstance(values, range):
        return {"range": [values.start, values.stop, values.step]}
    listed = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    if listed and all(type(x) is datetime and x.tzinfo is None for x in listed):
        return {"moments": [x.isoformat() for x in listed]}
    return [_plain(x) for x in listed]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    short = isinstance(value, int | np.integer) and abs(int(value)) < _LONG
    return int(value) if short else spelt(value)
