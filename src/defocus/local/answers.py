"""What every answer of a collection can do: show, export, draw and explain itself, by the room that does so for all."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from defocus.answers import explanation, export, plots
from defocus.answers import tables as answer_tables
from defocus.answers.columns import AnswerColumn

__all__ = ["CollectedAnswer"]


class CollectedAnswer(ABC):
    """Estimates from private reports. They come from reports alone, so they may be shown to anyone and used in any way.

    What was collected, how and from how many is said by each kind of answer; all else is the same.
    """

    __slots__ = ()
    reports: int
    rejected: int
    collected: str

    @property
    @abstractmethod
    def question(self) -> str:
        """What was asked, in one line."""

    @property
    @abstractmethod
    def keys(self) -> Mapping[str, Sequence[Any]]:
        """What each entry is about; empty for a single number."""

    @property
    @abstractmethod
    def column(self) -> AnswerColumn:
        """The estimates with standard errors and 95 % intervals, where they have some."""

    @property
    @abstractmethod
    def thing(self) -> tuple[str, str]:
        """What one entry is called, and several."""

    @abstractmethod
    def _shown(self) -> list[int]:
        """Which entries a page shows, in which order."""

    def to_arrow(self) -> pa.Table:
        """A row for each entry: its key, then x, x_error (a standard error), x_low and x_high."""
        return answer_tables.arrow(self.keys, [self.column], None, exact=True)

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
        """The table as CSV text, written to ``path`` if given. Labels are disarmed: see :func:`exporting.disarmed`."""
        return export.csv_text(self.to_arrow(), path)

    def to_dict(self) -> dict[str, Any]:
        """The whole answer with JSON types only; numbers that are not finite as null."""
        return {
            "question": self.question,
            "rows": export.json_rows(self.to_arrow()),
            "keys": list(self.keys),
            "columns": {self.column.name: self.column.how},
            "errors": answer_tables.kinds_of_error([self.column]),
            "confidence": 0.95,
            "reports": self.reports,
            "rejected": self.rejected,
            "collected": self.collected,
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """The whole answer as JSON text, written to ``path`` if given."""
        return export.json_text(self.to_dict(), path)

    def plot(self) -> Any:
        """A matplotlib figure: bars of the largest, or a point, with 95 % intervals if there are some (``plot``)."""
        column = self.column
        if not self.keys:
            return plots.points([column.name], [column])
        shown = plots.drawn(column)
        labels = answer_tables.labels(self.keys, shown)
        return plots.bars(labels, [column], shown, by=", ".join(self.keys), things=self.thing[1])

    def explain(self, *, html: bool = False) -> str:
        """The answer in plain words: what was asked, who is protected by what, and how far off it is."""
        column, entries = self.column, len(self.column.values)
        rejected = [f"{self.rejected} more were rejected: no client makes them"] if self.rejected else []
        said: dict[str, Sequence[str]] = {
            "question": [self.question],
            "answer": [
                f"{entries} {self.thing[entries != 1]} with {column.name}, from {self.reports} reports",
                *rejected,
            ],
            "protected": [self.collected] if self.collected else [],
            "noise": [f"{column.name}: {column.how}"],
            "exactness": [explanation.exactness(column, thing=self.thing[0])],
            "cost": ["reading reports is free; what people pay is charged by collect, before they are asked"],
        }
        return explanation.told(said, html=html)

    def __str__(self) -> str:
        return answer_tables.text_page(*self._page())

    def _repr_html_(self) -> str:
        return answer_tables.html_page(*self._page())

    def _page(self) -> tuple[answer_tables.Cells, list[str]]:
        """The entries to show, and what to know about them."""
        shown, entries = self._shown(), len(self.column.values)
        keys = {name: [values[i] for i in shown] for name, values in self.keys.items()}
        hidden = (
            [f"{entries} {self.thing[1]}, the {len(shown)} most frequent are shown"] if len(shown) < entries else []
        )
        rejected = [f"{self.rejected} reports were rejected"] if self.rejected else []
        return answer_tables.cells(keys, [self.column.taken(shown)]), [*hidden, self.column.how, *rejected]
