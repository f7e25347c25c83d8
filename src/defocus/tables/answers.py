"""The answer to a question about a table: noisy numbers by group, with everything needed to read them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from defocus.answers import explaining, exporting, plotting, showing, tabulating
from defocus.answers.columns import AnswerColumn, checked_names, named
from defocus.errors import InvalidParameterError, positive, whole
from defocus.ledger import Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.release import wording
from defocus.release.promises import Promise
from defocus.tables.dividing import without_folder
from defocus.tables.ordering import in_order

__all__ = ["PICKED", "Answer"]


PICKED = "of groups picked by their noisy values, fewer than 95 % of the intervals hold"
"""What to say where noise decides which groups are shown."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Released statistics by group. Noise was added and paid for, so all of it may be shown to anyone.

    Guarantee:
        Everything here is post-processing of a charged release: it depends on the data through the noisy numbers only.
        Groups come in the order of their keys, never in that of the data.

    What people read (text, pages, plots, CSV) is rounded to the digits that the noise leaves meaningful; what programs
    read (Arrow, frames, Parquet, JSON) is exact unless ``exact=False``. A noisy count may be negative: it is kept
    so, because it is unbiased; see :meth:`non_negative`.

    Args:
        keys: one column for each key, one row for each group; no columns for a question without groups.
        columns: the statistics.
        question: what was asked, in one line.
        receipt: the charge that paid for it.
        rules: sentences about what was bounded, clipped and dropped.
        threshold: a cell is unreliable if its standard error is more than this share of its value.
        processing: sentences about what was done to the noisy numbers.
        arranged: whether the order of the rows was asked for, and is to be left alone.
        asked: what it was allowed to cost; None where nobody wrote it down.
    """

    keys: pa.Table
    columns: tuple[AnswerColumn, ...]
    question: str
    receipt: Receipt
    rules: tuple[str, ...] = ()
    threshold: float = 0.1
    processing: tuple[str, ...] = ()
    arranged: bool = False
    asked: Budget | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "threshold", float(positive("threshold", self.threshold)))
        if not self.columns:
            raise InvalidParameterError("An answer needs a column.", fix="ask for at least one statistic.")
        checked_names(self.keys.column_names, [column.name for column in self.columns])
        lengths = {len(column.values) for column in self.columns}
        if len(lengths) != 1 or (self.keys.num_columns and lengths != {self.keys.num_rows}):
            raise InvalidParameterError(
                "The columns of an answer differ in length.", fix="give one number for each group."
            )
        if self.keys.num_columns:
            keys, rows = in_order(self.keys, as_given=self.arranged)
            object.__setattr__(self, "keys", keys)
            object.__setattr__(self, "columns", tuple(column.taken(rows) for column in self.columns))

    @property
    def event(self) -> Event:
        """What the answer owed."""
        return self.receipt.event

    @property
    def names(self) -> list[str]:
        """The keys, then the statistics."""
        return [*self.keys.column_names, *(column.name for column in self.columns)]

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
        """Group by group, as :meth:`to_arrow` has them."""
        return iter(self.to_arrow().to_pylist())

    def non_negative(self, *names: str) -> "Answer":
        """Negative values of the named columns raised to 0, of all counts unless named. Biased upwards, and says so."""
        chosen = [self[name].name for name in names] or [column.name for column in self.columns if column.integral]
        if not chosen:
            raise InvalidParameterError("The answer has no counts.", fix="name the columns that cannot be negative.")
        columns = tuple(column.non_negative() if column.name in chosen else column for column in self.columns)
        return self._processed(f"negative values of {', '.join(chosen)} raised to 0: biased upwards", columns=columns)

    def order_by(self, name: str, *, descending: bool = False) -> "Answer":
        """The groups in the order of a key or a released value."""
        if name in self.keys.column_names:
            way = "descending" if descending else "ascending"
            rows = pc.sort_indices(self.keys, sort_keys=[(name, way)]).to_numpy()
        else:
            values = self[name].values
            last = np.where(np.isnan(values), np.inf, -values if descending else values)
            rows = np.argsort(last, kind="stable")
        picked = "" if name in self.keys.column_names else f"; {PICKED}"
        return self.take(rows, f"ordered by {name}{', largest first' if descending else ''}{picked}")

    def head(self, count: int) -> "Answer":
        """The first groups only."""
        wanted = whole("count", count)
        return self.take(np.arange(min(wanted, len(self))), f"the first {wanted} groups kept")

    def take(self, rows: Any, why: str) -> "Answer":
        """Some groups in the order given, chosen by keys and released values; ``why`` says how."""
        chosen = np.asarray(rows, dtype=np.int64)
        keys = self.keys.take(pa.array(chosen)) if self.keys.num_columns else self.keys
        return self._processed(why, keys=keys, columns=tuple(column.taken(chosen) for column in self.columns))

    def _processed(self, why: str, **changed: Any) -> "Answer":
        return replace(self, processing=(*self.processing, why), arranged=True, **changed)

    def to_arrow(self, *, exact: bool = True) -> pa.Table:
        """Keys, then for each statistic x: x, x_error, x_low, x_high and x_reliable; rounded if not ``exact``.

        Rounded counts are integers. What the answer is about is in the metadata of the schema.
        """
        made = tabulating.arrow(self._keyed, self.columns, self.threshold, exact=exact)
        return exporting.described(made, question=self.question, rules=self.rules, receipt=self.receipt)

    def to_pandas(self, *, exact: bool = True) -> Any:
        """The table as a pandas DataFrame (extra ``frames``)."""
        return exporting.frame(self.to_arrow(exact=exact), "pandas")

    def to_polars(self, *, exact: bool = True) -> Any:
        """The table as a polars DataFrame (extra ``frames``)."""
        return exporting.frame(self.to_arrow(exact=exact), "polars")

    def to_parquet(self, path: str | Path, *, exact: bool = True) -> None:
        """The table as a Parquet file."""
        exporting.write_parquet(self.to_arrow(exact=exact), path)

    def to_csv(self, path: str | Path | None = None, *, exact: bool = False) -> str:
        """The table as CSV text, written to ``path`` if given. Text is disarmed: see :func:`exporting.disarmed`."""
        return exporting.csv_text(self.to_arrow(exact=exact), path)

    def to_dict(self, *, exact: bool = True) -> dict[str, Any]:
        """The whole answer with JSON types only."""
        return {
            "question": self.question,
            "groups": exporting.json_rows(self.to_arrow(exact=exact)),
            "keys": self.keys.column_names,
            "columns": {column.name: column.how for column in self.columns},
            "confidence": 0.95,
            "threshold": self.threshold,
            "rules": list(self.rules),
            "processing": list(self.processing),
            "receipt": self.receipt.to_dict(),
        }

    def to_json(self, path: str | Path | None = None, *, exact: bool = True) -> str:
        """The whole answer as JSON text, written to ``path`` if given."""
        return exporting.json_text(self.to_dict(exact=exact), path)

    def explain(self, *, html: bool = False) -> str:
        """The answer in plain words: question, protection, odds, rules, noise, exactness, cost and what is left."""
        said = explaining.facts(
            question=self.question,
            columns=self.columns,
            receipt=self.receipt,
            rules=self.rules,
            processing=self.processing,
            asked=self.asked,
            threshold=self.threshold,
        )
        return explaining.told(said, html=html)

    def plot(self, column: str | None = None) -> Any:
        """A matplotlib figure: bars with intervals, of one column or of all (extra ``plot``)."""
        chosen = self.columns if column is None else (self[column],)
        shown = plotting.drawn(chosen[0])
        labels = tabulating.labels(self._keyed, shown)
        return plotting.bars(labels, chosen, shown, threshold=self.threshold, by=", ".join(self.keys.column_names))

    def __str__(self) -> str:
        return showing.text_page(tabulating.cells(self._keyed, self.columns, self.threshold), self._notes())

    def _repr_html_(self) -> str:
        return showing.html_page(tabulating.cells(self._keyed, self.columns, self.threshold), self._notes())

    @property
    def _keyed(self) -> tabulating.Keys:
        return dict(zip(self.keys.column_names, self.keys.columns, strict=True))

    def _notes(self) -> list[str]:
        """What to write below the numbers: also what takes rows away, which no interval tells."""
        bounding = [f"not in the intervals: {rule}" for rule in self.rules if "counts with at most" in rule]
        more = (*bounding[:1], *without_folder(self.rules), *self.processing, self.receipt.purpose)
        return tabulating.notes(self.columns, self.threshold, more)
