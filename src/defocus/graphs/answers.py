"""The answer to a question about a graph: noisy numbers, with everything needed to read them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pyarrow as pa

from defocus.answers import explaining, exporting, plotting, showing, tabulating
from defocus.answers.columns import AnswerColumn, named
from defocus.errors import InvalidParameterError
from defocus.graphs.questions import TIME, Result
from defocus.graphs.wording import INTERVAL, NOISE_ONLY, beyond, biased, covered
from defocus.ledger import Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.release import wording
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
        asked: what it was allowed to cost; None where nobody wrote it down.
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
        return wording.alone(self.event, self.receipt.terms, self.asked)

    def __len__(self) -> int:
        return len(self.columns[0].values)

    def __getitem__(self, name: str) -> AnswerColumn:
        return named(self.columns, name)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Entry by entry, as :meth:`to_arrow` has them."""
        return iter(self.to_arrow().to_pylist())

    def to_arrow(self) -> pa.Table:
        """The keys, then x, x_error, x_low and x_high for each column x."""
        made = tabulating.arrow(self.keys, self.columns, None, exact=True)
        holds = covered(self.rules)
        return exporting.described(
            made, question=self.question, rules=self.rules, receipt=self.receipt, intervals=holds
        )

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame (extra ``frames``)."""
        return exporting.frame(self.to_arrow(), "pandas")

    def to_polars(self) -> Any:
        """The table as a polars DataFrame (extra ``frames``)."""
        return exporting.frame(self.to_arrow(), "polars")

    def to_parquet(self, path: str | Path) -> None:
        """The table as a Parquet file."""
        exporting.write_parquet(self.to_arrow(), path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """The table as CSV text, written to ``path`` if given. Names are disarmed: see :func:`exporting.disarmed`."""
        return exporting.csv_text(self.to_arrow(), path)

    def to_dict(self) -> dict[str, Any]:
        """The whole answer with JSON types only; numbers that are not finite as null."""
        return {
            "question": self.question,
            "rows": exporting.json_rows(self.to_arrow()),
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
        return exporting.json_text(self.to_dict(), path)

    def explain(self, *, html: bool = False) -> str:
        """The answer in plain words: question, protection, odds, rules, noise, exactness, cost and what is left."""
        said = explaining.facts(
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
        return explaining.told(said, html=html)

    def plot(self, column: str | None = None) -> Any:
        """A matplotlib figure with intervals, and what they do not hold (extra ``plot``).

        Single numbers are points, numbers along time are steps, numbers along many degrees or ranks a curve, and all
        others bars. All single numbers are drawn unless a ``column`` is named.
        """
        chosen = self.columns[0] if column is None else self[column]
        figure = self._drawn(chosen, self.columns if column is None else (chosen,))
        figure.suptitle(plotting.literal("\n".join((self.question, *biased(self.rules)))), fontsize=10)
        return figure

    def _drawn(self, chosen: AnswerColumn, all_of_them: Sequence[AnswerColumn]) -> Any:
        if not self.keys:
            return plotting.points([each.name for each in all_of_them], all_of_them)
        if list(self.keys) == [TIME] and len(self) > 1:
            return plotting.series(self.keys[TIME], chosen, by=TIME)
        along = [name for name, values in self.keys.items() if isinstance(values, range) and name != "node"]
        if along and len(self) > plotting.MOST:
            return plotting.curve(self.keys[along[0]], chosen, by=along[0])
        shown = plotting.drawn(chosen)
        labels = tabulating.labels(self.keys, shown, whole=chosen.name)
        return plotting.bars(labels, [chosen], shown, by=", ".join(self.keys), things="entries")

    def __str__(self) -> str:
        return showing.text_page(self._cells(), self._notes())

    def __repr__(self) -> str:
        return f"<answer: {self.question}>"

    def _repr_html_(self) -> str:
        return showing.html_page(self._cells(), self._notes())

    def _cells(self) -> showing.Cells:
        interval = NOISE_ONLY if beyond(self.rules) else INTERVAL
        return tabulating.cells(self.keys, self.columns, interval=interval)

    def _notes(self) -> list[str]:
        more = (*self.result.notes, *biased(self.rules), *self.result.processing, self.receipt.purpose)
        return tabulating.notes(self.columns, None, more, things="entries")


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
