"""What the columns of an answer are called."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from defocus.answers import explanation, export, plots
from defocus.answers import tables as answer_tables
from defocus.answers.columns import AnswerColumn, checked_names, named
from defocus.answers.record import asked_in, asked_out, columns_in, columns_out, reading
from defocus.errors import InvalidParameterError, positive, whole
from defocus.ledger import Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.release import guarantee
from defocus.release.guarantee import Promise
from defocus.tables.aggregates import Aggregate, Histogram, Quantile
from defocus.tables.parts import without_folder

__all__ = ["PICKED", "Answer", "from_record", "in_order", "nothing", "titles", "to_record"]


def titles(name: str, aggregate: Aggregate) -> list[str]:
    """The columns that an aggregate fills."""
    if isinstance(aggregate, Quantile) and not aggregate.single:
        return [f"{name}_{_percent(level)}" for level in aggregate.levels]
    if isinstance(aggregate, Histogram):
        pairs = zip(aggregate.edges, aggregate.edges[1:], strict=False)
        return [f"{name}_{low:g}_to_{high:g}" for low, high in pairs]
    return [name]


def nothing(name: str, aggregate: Aggregate) -> list[AnswerColumn]:
    """The columns of an answer in which no group was found."""
    empty = np.zeros(0)
    return [
        AnswerColumn(title, empty, empty, empty, empty, integral=False, how="no group was found")
        for title in titles(name, aggregate)
    ]


def _percent(level: Fraction) -> str:
    return f"{float(100 * level):g}".replace(".", "_")


def in_order(keys: pa.Table, *, as_given: bool) -> tuple[pa.Table, Any]:
    """Keys of plain types, each once, and the rows they came from: in the order of the keys, or as they were given."""
    for i, field in enumerate(keys.schema):
        if pa.types.is_dictionary(field.type):
            keys = keys.set_column(i, field.name, keys.column(i).cast(field.type.value_type))
    if keys.group_by(keys.column_names).aggregate([]).num_rows != keys.num_rows:
        raise InvalidParameterError("A key appears twice in an answer.", fix="name each group once.")
    order = pa.array(range(keys.num_rows), pa.int64())
    if not as_given:
        order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
    return keys.take(order).combine_chunks(), order.to_numpy()


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

    >>> import tempfile
    >>> import pyarrow as pa
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> people = pa.table({"person": range(1000), "age": [30 + i % 40 for i in range(1000)]})
    >>> visits = dp.open(people, unit=dp.user("person"), budget=dp.Budget(1), ledger=f"{home.name}/a", name="visits")
    >>> answer = visits.agg(people=dp.count_units(), age=dp.mean("age", 0, 120)).release(epsilon=0.5)
    >>> answer.names, bool(900 < answer.columns[0].values[0] < 1100)
    (['people', 'age'], True)
    >>> answer.to_arrow().num_rows
    1
    >>> visits.close(); home.cleanup()
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
        return guarantee.alone(self.event, self.receipt.terms, self.asked)

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
        made = answer_tables.arrow(self._keyed, self.columns, self.threshold, exact=exact)
        return export.described(made, question=self.question, rules=self.rules, receipt=self.receipt)

    def to_pandas(self, *, exact: bool = True) -> Any:
        """The table as a pandas DataFrame (extra ``frames``)."""
        return export.frame(self.to_arrow(exact=exact), "pandas")

    def to_polars(self, *, exact: bool = True) -> Any:
        """The table as a polars DataFrame (extra ``frames``)."""
        return export.frame(self.to_arrow(exact=exact), "polars")

    def to_parquet(self, path: str | Path, *, exact: bool = True) -> None:
        """The table as a Parquet file."""
        export.write_parquet(self.to_arrow(exact=exact), path)

    def to_csv(self, path: str | Path | None = None, *, exact: bool = False) -> str:
        """The table as CSV text, written to ``path`` if given. Text is disarmed: see :func:`exporting.disarmed`."""
        return export.csv_text(self.to_arrow(exact=exact), path)

    def to_dict(self, *, exact: bool = True) -> dict[str, Any]:
        """The whole answer with JSON types only."""
        return {
            "question": self.question,
            "groups": export.json_rows(self.to_arrow(exact=exact)),
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
        return export.json_text(self.to_dict(exact=exact), path)

    def explain(self, *, html: bool = False) -> str:
        """The answer in plain words: question, protection, odds, rules, noise, exactness, cost and what is left."""
        said = explanation.facts(
            question=self.question,
            columns=self.columns,
            receipt=self.receipt,
            rules=self.rules,
            processing=self.processing,
            asked=self.asked,
            threshold=self.threshold,
        )
        return explanation.told(said, html=html)

    def plot(self, column: str | None = None) -> Any:
        """A matplotlib figure: bars with intervals, of one column or of all (extra ``plot``)."""
        chosen = self.columns if column is None else (self[column],)
        shown = plots.drawn(chosen[0])
        labels = answer_tables.labels(self._keyed, shown)
        return plots.bars(labels, chosen, shown, threshold=self.threshold, by=", ".join(self.keys.column_names))

    def __str__(self) -> str:
        return answer_tables.text_page(answer_tables.cells(self._keyed, self.columns, self.threshold), self._notes())

    def _repr_html_(self) -> str:
        return answer_tables.html_page(answer_tables.cells(self._keyed, self.columns, self.threshold), self._notes())

    @property
    def _keyed(self) -> answer_tables.Keys:
        return dict(zip(self.keys.column_names, self.keys.columns, strict=True))

    def _notes(self) -> list[str]:
        """What to write below the numbers: also what takes rows away, which no interval tells."""
        bounding = [f"not in the intervals: {rule}" for rule in self.rules if "counts with at most" in rule]
        more = (*bounding[:1], *without_folder(self.rules), *self.processing, self.receipt.purpose)
        return answer_tables.notes(self.columns, self.threshold, more)


_TYPES = {
    str(kind): kind
    for kind in (pa.bool_(), pa.int64(), pa.int32(), pa.string(), pa.date32(), pa.timestamp("us"), pa.null())
}


def to_record(answer: Answer) -> dict[str, Any]:
    """The answer with JSON types only, for :meth:`~defocus.ledger.Ledger.record`; nothing of it is lost.

    Keys of other types than a question can have are kept as text.
    """
    keys = answer.keys
    return {
        "keys": [
            {"name": name, "type": _type(column.type), "values": [_out(value) for value in column.to_pylist()]}
            for name, column in zip(keys.column_names, keys.columns, strict=True)
        ],
        "columns": columns_out(answer.columns),
        "question": answer.question,
        "rules": list(answer.rules),
        "threshold": answer.threshold,
        "processing": list(answer.processing),
        "arranged": answer.arranged,
        "asked": asked_out(answer.asked),
    }


def from_record(record: Any, receipt: Receipt) -> Answer:
    """The answer that :func:`to_record` wrote down, with the receipt that paid for it."""
    with reading(receipt, "a table"):
        keys = {key["name"]: _array(key["type"], key["values"]) for key in record["keys"]}
        return Answer(
            keys=pa.table(keys),
            columns=columns_in(record["columns"], absolute=False),
            question=record["question"],
            receipt=receipt,
            rules=tuple(record["rules"]),
            threshold=record["threshold"],
            processing=tuple(record["processing"]),
            arranged=record["arranged"],
            asked=asked_in(record.get("asked")),
        )


def _type(kind: pa.DataType) -> str:
    return str(kind) if str(kind) in _TYPES else str(pa.string())


def _array(kind: str, values: list[Any]) -> pa.Array:
    read = {"date32[day]": date.fromisoformat, "timestamp[us]": datetime.fromisoformat}.get(kind)
    return pa.array([x if x is None or read is None else read(x) for x in values], _TYPES[kind])


def _out(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    return value.isoformat() if isinstance(value, date) else str(value)
