"""One answer for all rooms: released numbers with errors and intervals, for people and programs.

Answers as a ledger keeps them: the same question asked again is answered from there, free of charge.

Ledgers outlive code. What is written here is read by every later version: fields are added, never renamed.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from defocus.answers import charts, explanation, export, plots, tables
from defocus.answers.columns import CLOSED, CONFIDENCE, NUMBERS, AnswerColumn, Floats, Tails, checked_names, named
from defocus.answers.explanation import Promise, exactness, told
from defocus.answers.noise_sources import Noise
from defocus.answers.rules import Effect, Rule, below, covered, cut, exact, missed, rules_in, rules_of, rules_out
from defocus.errors import InvalidParameterError, LedgerDamagedError, Number, positive, whole
from defocus.ledger import Bundle, Ledger, PlannedNoise, Receipt, SigningKey
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.wire import read_number, write_number

__all__ = ["PICKED", "Answer", "Figure", "Released", "columns_in", "columns_out", "read", "written"]


PICKED = "of groups picked by their noisy values, fewer than 95 % of the intervals hold"
"""What to say where noise decides which groups are shown."""

Figure: TypeAlias = Literal["bars", "series", "curve"]
"""How numbers with keys are drawn: by size, over time, or along numbers on logarithmic axes."""


_MOST_TOLD = 100
"""So many entries are in the text of a picture; of more, the first and the last."""


class Answer(ABC):
    """Noisy numbers that may be shown to anyone. All rooms answer with one of these, so all can do the same.

    Guarantee:
        Everything here is post-processing of what was released: it depends on the data through that only.

    What people read (text, pages, plots) is rounded, each number to the digits that its noise leaves meaningful; what
    programs read (Arrow, frames, CSV, Excel, Parquet, JSON) is exact unless ``exact=False``. A noisy count may be
    negative: it is kept so, because it is unbiased.

    >>> from defocus import examples
    >>> g = examples.ring()
    >>> answer = g.edges().release(epsilon=1)
    >>> 80 < answer.value < 120, round(answer.error, 2)
    (True, 0.85)
    >>> low, high = answer.interval(0.99)
    >>> high > low
    True
    >>> g.close()
    """

    __slots__ = ()

    @property
    @abstractmethod
    def keys(self) -> tables.Keys:
        """What each entry is about, by name; empty for single numbers."""

    @property
    @abstractmethod
    def columns(self) -> tuple[AnswerColumn, ...]:
        """The numbers, with errors and 95 % intervals."""

    @property
    @abstractmethod
    def question(self) -> str:
        """What was asked, in one line."""

    @property
    def receipt(self) -> Receipt | None:
        """The charge that paid for it; None where it was paid for elsewhere."""
        return None

    @property
    def asked(self) -> Budget | None:
        """What it was allowed to cost; None where nobody wrote it down."""
        return None

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What was bounded, clipped and dropped, and how data were read."""
        return ()

    @property
    def processing(self) -> Sequence[str]:
        """What was done to the noisy numbers, in sentences."""
        return ()

    @property
    def notes(self) -> Sequence[str]:
        """What became known by paying, in sentences."""
        return ()

    @property
    def threshold(self) -> float | None:
        """A cell is unreliable if its standard error is more than this share of its value; None for no such flag."""
        return None

    @property
    def things(self) -> tuple[str, str]:
        """What one entry is called, and several."""
        return "entry", "entries"

    @property
    def figure(self) -> Figure:
        """How it is drawn."""
        return "bars"

    @property
    def facts(self) -> Mapping[str, Any]:
        """What else programs should know about it."""
        return {}

    def _topics(self) -> Mapping[str, Sequence[str]]:
        """What an explanation says about protection and cost where no receipt does."""
        return {}

    def _first(self) -> list[int] | None:
        """Which entries a page shows, most important first; None for the first and the last."""
        return None

    @property
    def names(self) -> list[str]:
        """The keys, then the columns."""
        return [*self.keys, *(column.name for column in self.columns)]

    @property
    def value(self) -> Any:
        """The number, where one was asked for; by name, where several were; with groups, those of the first column."""
        if not self._single:
            return self.columns[0].values
        numbers = {column.name: _number(column) for column in self.columns}
        return numbers if len(numbers) > 1 else next(iter(numbers.values()))

    @property
    def error(self) -> float:
        """The error of the first entry of the first column; NaN where it is not known."""
        return float(self.columns[0].errors[0]) if len(self) else math.nan

    def interval(self, confidence: Number = CONFIDENCE, *, column: str | None = None) -> tuple[Any, Any]:
        """Low and high ends that hold each number of a column with this probability, one at a time.

        Of the first column unless one is named: two arrays, or two numbers where one number was asked for. An end that
        is open, since noise may hide people with any number of rows, is as far away as the truth may be.
        """
        chosen = self.columns[0] if column is None else self[column]
        low, high = self._ends(chosen, confidence)
        low, high = np.minimum(low, chosen.limits[0]), np.maximum(high, chosen.limits[1])
        return (float(low[0]), float(high[0])) if self._single else (low, high)

    @property
    def _single(self) -> bool:
        return not self.keys and len(self) == 1

    def _ends(self, column: AnswerColumn, confidence: Number) -> tuple[Floats, Floats]:
        """The intervals of a column; a room that knows the exact law of its noise says so here."""
        return column.interval(confidence)

    def promise(self) -> Promise | None:
        """(epsilon, delta) and posterior odds of this answer alone, at the delta that was asked for, if one was.

        None if no accountant can say, or it was paid for elsewhere.
        """
        paid = self.receipt
        return None if paid is None else explanation.alone(paid.event, paid.terms, self.asked)

    def __len__(self) -> int:
        return len(self.columns[0].values)

    def __getitem__(self, name: str) -> AnswerColumn:
        return named(self.columns, name)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Entry by entry, as :meth:`to_arrow` has them."""
        return iter(self.to_arrow().to_pylist())

    def to_arrow(self, *, exact: bool = True, confidence: Number = CONFIDENCE) -> pa.Table:
        """Keys, then for each column x: x, x_error, x_low, x_high, and x_reliable if there is a threshold.

        Where noise may hide rows that no interval holds, x_open says at which end: "above", "below" or "both". Rounded
        if not ``exact``; rounded counts are integers. ``confidence`` is that of x_low and x_high. What it is about is
        in the metadata of the schema.
        """
        made = tables.arrow(self.keys, self._at_all(confidence), self.threshold, exact=exact)
        about = {"question": self.question, "rules": "\n".join(self.rules), "intervals": self._covered(confidence)}
        return export.described(made, **about, **({} if self.receipt is None else {"charge": str(self.receipt)}))

    def to_pandas(self, *, exact: bool = True, confidence: Number = CONFIDENCE) -> Any:
        """The table as a pandas DataFrame (extra ``frames``)."""
        return export.frame(self.to_arrow(exact=exact, confidence=confidence), "pandas")

    def to_polars(self, *, exact: bool = True, confidence: Number = CONFIDENCE) -> Any:
        """The table as a polars DataFrame (extra ``frames``)."""
        return export.frame(self.to_arrow(exact=exact, confidence=confidence), "polars")

    def to_parquet(self, path: str | Path, *, exact: bool = True, confidence: Number = CONFIDENCE) -> None:
        """The table as a Parquet file."""
        export.write_parquet(self.to_arrow(exact=exact, confidence=confidence), path)

    def to_csv(self, path: str | Path | None = None, *, exact: bool = True, confidence: Number = CONFIDENCE) -> str:
        """The table as CSV text, written to ``path`` if given. Text is disarmed: see :func:`export.disarmed`."""
        return export.csv_text(self.to_arrow(exact=exact, confidence=confidence), path)

    def to_excel(self, path: str | Path, *, exact: bool = True, confidence: Number = CONFIDENCE) -> None:
        """The table as an Excel file, with a sheet of notes that says what it is about (extra ``excel``)."""
        level = f"x_low and x_high: {plots.Look.of(confidence=confidence).intervals}"
        notes = {
            **self.sentences(),
            "columns": [level, *(f"{k}: {v}" for k, v in tables.kinds_of_error(self.columns).items())],
        }
        export.write_excel(self.to_arrow(exact=exact, confidence=confidence), notes, path)

    def to_text(self, *, confidence: Number = CONFIDENCE) -> str:
        """The table and what is to be known beside it, for a terminal: what ``print`` shows, at any confidence."""
        return tables.text_page(*self.cells_and_notes(confidence=confidence))

    def to_dict(self, *, exact: bool = True, confidence: Number = CONFIDENCE) -> dict[str, Any]:
        """The whole answer with JSON types only; numbers that are not finite as null."""
        columns = self.columns
        return {
            "question": self.question,
            "rows": export.json_rows(self.to_arrow(exact=exact, confidence=confidence)),
            "keys": list(self.keys),
            "columns": {column.name: column.how for column in columns},
            "errors": tables.kinds_of_error(columns),
            "confidence": float(confidence),
            "intervals": self._covered(confidence),
            "threshold": self.threshold,
            "rules": list(self.rules),
            "processing": list(self.processing),
            "notes": list(self.notes),
            "receipt": None if self.receipt is None else self.receipt.to_dict(),
            **self.facts,
        }

    def to_json(self, path: str | Path | None = None, *, exact: bool = True, confidence: Number = CONFIDENCE) -> str:
        """The whole answer as JSON text, written to ``path`` if given."""
        return export.json_text(self.to_dict(exact=exact, confidence=confidence), path)

    def bundle(self, path: str | Path, *, ledger: Ledger, key: str | Path | SigningKey) -> Bundle:
        """Write the answer to a signed file that proves itself to whoever has neither the data nor the ledger.

        Args:
            path: the file.
            ledger: the one that was charged; the answer must have been released under a name, ``request=``.
            key: the key of the ledger's keeper, or its file, which is made if there is none.
        """
        if self.receipt is None:
            raise InvalidParameterError(
                "This answer was paid for elsewhere.", fix="bundle the release that it is computed from."
            )
        made = ledger.bundle(self.receipt, key=key)
        made.save(path)
        return made

    def explain(self, *, html: bool = False) -> str:
        """The answer in plain words: question, protection, odds, rules, noise, exactness, cost and what is left."""
        return told(self.sentences(), html=html)

    def sentences(self) -> dict[str, Sequence[str]]:
        """The topics of an explanation, and the sentences of each."""
        told_anyway = self._topics() if self.receipt is None else explanation.topics(self.receipt, self.asked)
        said = explanation.subject_to(exact(self.rules), told_anyway)
        columns, things, paid = self.columns, self.things, self.receipt is not None
        names = ", ".join(column.name for column in columns)
        here = {
            "question": [self.question],
            "answer": [f"{len(self)} {things[len(self) != 1]} with {names}"],
            **{name: said.pop(name) for name in list(said) if name not in {"cost", "left"}},
            "by rule": self.rules or (["nothing was bounded or clipped"] if paid else []),
            "noise": [f"{column.name}: {column.how}" for column in columns],
            "exactness": [
                exactness(each, self.threshold, thing=things[0], cut=cut(self.rules))
                for each in columns
                if each.error_of
            ],
            "found": self.notes,
            "afterwards": self.processing
            or (["nothing but scaling and rounding was done to the noisy numbers"] if paid else []),
        }
        return {**here, **said}

    def plot(
        self,
        column: str | None = None,
        *,
        confidence: Number = CONFIDENCE,
        width: Number = 640,
        dark: bool = False,
    ) -> Any:
        """A matplotlib figure with intervals, what they do not hold, and all of it in words (extra ``plot``).

        Single numbers are points, numbers along time are lines, a histogram has outlines, numbers along many degrees or
        ranks are a curve, and all others bars; further keys and columns have bars side by side or panels.

        Args:
            column: the one to draw; all of them by default.
            confidence: of the intervals.
            width: in pixels, at 100 to the inch: 400 for a phone or one column of print.
            dark: whether on dark paper. An SVG follows the page it is on, so it needs no other one.
        """
        look = plots.Look.of(width=width, dark=dark, confidence=confidence)
        named = [each for each in self.columns if each.error_of] if column is None else [self[column]]
        if not named:
            raise InvalidParameterError(
                "No column has an error to be drawn.", fix=f"draw one by its name, such as {self.columns[0].name!r}."
            )
        chosen = tuple(self._at(each, look.confidence) for each in named)
        if look.confidence != CONFIDENCE and all(np.isnan(each.low).all() for each in chosen):
            self._ends(named[0], look.confidence)  # says what there is
        made = self._drawn(chosen, look)
        made.suptitle(plots.wrapped("\n".join((self.question, *below(missed(self.rules)))), look, size=10), fontsize=10)
        made.alt = self._told(chosen, look)
        return plots.in_every_script(made)

    def _at(self, column: AnswerColumn, confidence: float) -> AnswerColumn:
        """The column with intervals of another confidence; without, where nothing is known about them."""
        if confidence == CONFIDENCE:
            return column
        try:
            low, high = self._ends(column, confidence)
        except InvalidParameterError:
            low = high = np.full(len(column.values), np.nan)
        return replace(column, low=low, high=high)

    def _at_all(self, confidence: Number) -> tuple[AnswerColumn, ...]:
        level = plots.Look.of(confidence=confidence).confidence
        return tuple(self._at(each, level) if each.error_of else each for each in self.columns)

    def _covered(self, confidence: Number) -> str:
        """What intervals of this confidence hold."""
        return covered(self.rules).replace("95 %", plots.Look.of(confidence=confidence).percent)

    def _told(self, columns: Sequence[AnswerColumn], look: plots.Look) -> str:
        """What a picture shows, in words with the numbers."""
        _, rows, _ = tables.cells(self.keys, columns, self.threshold, most=_MOST_TOLD)
        names, told = [tables.plain(column.name) for column in columns], []
        for row in rows:
            cells = iter(row[len(self.keys) :])
            said = [
                f"{name} {next(cells).strip()}{f' ({next(cells)})' if column.error_of else ''}"
                for name, column in zip(names, columns, strict=True)
            ]
            told.append(": ".join(part for part in (", ".join(row[: len(self.keys)]), ", ".join(said)) if part))
        by = f" by {', '.join(map(tables.plain, self.keys))}" if self.keys else ""
        more = tables.notes(columns, self.threshold, below(missed(self.rules)), things=self.things[1], most=_MOST_TOLD)
        about = f"{', '.join(names)}{by}, with {look.intervals} in brackets"
        return ". ".join(map(tables.line, [self.question, about, "; ".join(told), *more]))

    def _drawn(self, chosen: Sequence[AnswerColumn], look: plots.Look) -> Any:
        if self.figure == "curve" and self.keys:
            by, values = next(iter(self.keys.items()))
            return plots.curve(values, chosen[0], by=by, look=look)
        if not self.keys and not charts.binned(chosen):
            return plots.points([each.name for each in chosen], chosen, look)
        steps = self.figure == "series"
        return charts.chart(self.keys, chosen, look, threshold=self.threshold, things=self.things[1], steps=steps)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<answer: {self.question}>"

    def _repr_html_(self) -> str:
        cells, notes = self.cells_and_notes(tables.PAGE)
        said = [note for note in notes if note != self.question]  # it stands above
        return tables.html_page(cells, said, title=self.question, heads=len(self.keys))

    def cells_and_notes(
        self, most: int = tables.ROWS, *, confidence: Number = CONFIDENCE
    ) -> tuple[tables.Cells, list[str]]:
        """The entries to show, and what to write below them."""
        keys, columns, hidden, first = self.keys, self._at_all(confidence), [], self._first()
        if first is not None:
            keys = {name: tables.taken(values, first) for name, values in keys.items()}
            columns = tuple(column.taken(first) for column in columns)
            if len(first) < len(self):
                hidden = [f"{len(self)} {self.things[1]}, the {len(first)} most frequent are shown"]
        level = plots.Look.of(confidence=confidence).percent
        heads = f"{level} of the noise only" if cut(self.rules) else f"{level} interval"
        last = [column.how for column in columns] if self.receipt is None else [self.receipt.purpose]
        more = [*hidden, *self.notes, *below(self.rules), *self.processing, *last]
        return (
            tables.cells(keys, columns, self.threshold, interval=heads, most=most),
            tables.notes(columns, self.threshold, more, things=self.things[1], most=most),
        )


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Released(Answer):
    """Released statistics of a table or a graph, with the charge that paid for them. See :class:`Answer`.

    Args:
        keys: what each entry is about, by name: Arrow arrays, lists or ranges.
        columns: the statistics.
        question: what was asked, in one line.
        receipt: the charge that paid for it.
        rules: what was bounded, clipped and dropped; plain sentences say how data were read.
        threshold: a cell is unreliable if its standard error is more than this share of its value.
        processing: sentences about what was done to the noisy numbers.
        notes: sentences about what became known by paying.
        method: which method was used, where there are several.
        asked: what it was allowed to cost; None where nobody wrote it down.
        things: what one entry is called, and several.
        figure: how it is drawn.
        plan: the noise of each measurement, for whoever checks it against the charge.

    >>> from defocus import examples
    >>> g = examples.ring()
    >>> answer = g.edges().release(epsilon=1)
    >>> answer.question, answer.names, answer.receipt.sequence
    ('number of edges', ['edges'], 1)
    >>> g.close()
    """

    keys: tables.Keys = field()
    columns: tuple[AnswerColumn, ...] = field()
    question: str = field()
    receipt: Receipt = field()
    rules: tuple[Rule, ...] = ()
    threshold: float | None = None
    processing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    method: str = ""
    asked: Budget | None = None
    things: tuple[str, str] = ("entry", "entries")
    figure: Figure = "bars"
    plan: tuple[PlannedNoise, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", dict(self.keys))
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rules", rules_of(self.rules))
        if self.threshold is not None:
            object.__setattr__(self, "threshold", float(positive("threshold", self.threshold)))
        if not self.columns:
            raise InvalidParameterError("An answer needs a column.", fix="ask for at least one statistic.")
        checked_names(list(self.keys), [column.name for column in self.columns])
        if len({len(each.values) for each in self.columns} | {len(values) for values in self.keys.values()}) != 1:
            raise InvalidParameterError(
                "The columns and keys of an answer differ in length.", fix="give one number for each group."
            )

    @property
    def event(self) -> Event:
        """What the answer owed."""
        return self.receipt.event

    @property
    def facts(self) -> Mapping[str, Any]:
        """The method, where there are several."""
        return {"method": self.method} if self.method else {}

    def non_negative(self, *names: str) -> "Released":
        """Negative values of the named columns raised to 0, of all counts unless named. Biased upwards, and says so."""
        chosen = [self[name].name for name in names] or [column.name for column in self.columns if column.integral]
        if not chosen:
            raise InvalidParameterError("The answer has no counts.", fix="name the columns that cannot be negative.")
        columns = tuple(column.non_negative() if column.name in chosen else column for column in self.columns)
        why = f"negative values of {', '.join(chosen)} raised to 0: biased upwards"
        return replace(self, columns=columns, processing=(*self.processing, why))

    def derive(self, **formulas: str) -> "Released":
        """More columns, computed from the released ones by SQL expressions. Free: only released numbers are read.

        Window functions look at all entries: ``SUM(visits) OVER ()``, ``RANK() OVER (ORDER BY visits DESC)``,
        ``LAG(stay) OVER (ORDER BY month)``. A formula may use the ones before it. How errors and intervals follow is
        said in :mod:`defocus.answers.propagation`, and by which rule in the ``how`` of each column.

        >>> import tempfile
        >>> import pyarrow as pa
        >>> import defocus as dp
        >>> home = tempfile.TemporaryDirectory()
        >>> rows = pa.table({"person": range(900), "ward": ["A", "B", "B"] * 300})
        >>> table = dp.open(rows, unit=dp.user("person"), budget=dp.Budget(1), ledger=f"{home.name}/a", name="visits")
        >>> counts = table.bound(rows=1).group_by("ward", keys=["A", "B"]).agg(n=dp.count()).release(epsilon=1)
        >>> shares = counts.derive(share="n / SUM(n) OVER ()", place="RANK() OVER (ORDER BY n DESC)")
        >>> shares["share"].values.round(1).tolist(), shares["place"].values.tolist(), shares.receipt.sequence
        ([0.3, 0.7], [2.0, 1.0], 1)
        >>> table.close(); home.cleanup()
        """
        from defocus.answers import derivation  # noqa: PLC0415  # slow to load

        checked_names(list(self.keys), [*(column.name for column in self.columns), *formulas])
        columns, said = derivation.derived(self.keys, self.columns, formulas)
        return replace(self, columns=columns, processing=(*self.processing, *said))

    def order_by(self, name: str, *, descending: bool = False) -> "Released":
        """The entries in the order of a key or a released value."""
        if name in self.keys:
            way = "descending" if descending else "ascending"
            sorted_by = pa.table({"key": tables.arrow_key(self.keys[name])})
            rows = pc.sort_indices(sorted_by, sort_keys=[("key", way)]).to_numpy()
        else:
            values = self[name].values
            last = np.where(np.isnan(values), np.inf, -values if descending else values)
            rows = np.argsort(last, kind="stable")
        picked = "" if name in self.keys else f"; {PICKED}"
        return self.take(rows, f"ordered by {name}{', largest first' if descending else ''}{picked}")

    def head(self, count: int) -> "Released":
        """The first entries only."""
        wanted = whole("count", count)
        return self.take(np.arange(min(wanted, len(self))), f"the first {wanted} {self.things[1]} kept")

    def take(self, rows: Any, why: str) -> "Released":
        """Some entries in the order given, chosen by keys and released values; ``why`` says how."""
        chosen = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            keys={name: tables.taken(values, chosen.tolist()) for name, values in self.keys.items()},
            columns=tuple(column.taken(chosen) for column in self.columns),
            processing=(*self.processing, why),
            figure="bars",
        )


def columns_out(columns: Sequence[AnswerColumn]) -> list[dict[str, Any]]:
    """The columns with JSON types only; numbers that are not finite as text."""
    return [
        {
            "name": column.name,
            "how": column.how,
            "integral": column.integral,
            "absolute": column.absolute,
            "tails": str(column.tails),
            "error_of": column.error_of,
        }
        | ({} if column.limits == CLOSED else {"limits": [_told_number(end) for end in column.limits]})
        | ({} if column.rank is None else {"rank": column.rank})
        | {part: [_told_number(x) for x in getattr(column, part).tolist()] for part in NUMBERS}
        | ({"noise": column.noise.out()} if isinstance(column.noise, Noise) else {})
        for column in columns
    ]


def _told_number(x: float) -> float | str:
    return x if math.isfinite(x) else str(x)


def columns_in(written: Any, *, absolute: bool) -> tuple[AnswerColumn, ...]:
    """The columns that :func:`columns_out` wrote; earlier versions did not say what is ``absolute``, nor the tails."""
    return tuple(
        AnswerColumn(
            name=column["name"],
            how=column["how"],
            integral=column["integral"],
            absolute=bool(column.get("absolute", absolute)),
            tails=Tails(column.get("tails", Tails.UNKNOWN)),
            error_of=column.get("error_of", "the noise"),
            noise=None if column.get("noise") is None else Noise.read(column["noise"]),
            limits=(float(column["limits"][0]), float(column["limits"][1])) if "limits" in column else CLOSED,
            rank=column.get("rank"),
            **{part: np.array([float(x) for x in column[part]], dtype=np.float64) for part in NUMBERS},
        )
        for column in written
    )


def written(answer: Released) -> dict[str, Any]:
    """What every record of an answer has, with JSON types only; rooms add the keys."""
    asked = answer.asked
    return {
        "columns": columns_out(answer.columns),
        "question": answer.question,
        **rules_out(answer.rules),
        "processing": list(answer.processing),
        "asked": None if asked is None else [write_number(asked.epsilon), write_number(asked.delta)],
        "plan": [each.to_dict() for each in answer.plan],
    }


def read(
    record: Any,
    receipt: Receipt,
    about: str,
    make: Callable[..., Released],
    *,
    absolute: bool,
    earlier: Mapping[str, Effect],
) -> Released:
    """The answer that ``make`` makes of the parts that :func:`written` wrote; it finds the others in the record.

    Whatever is wrong with a record is told as a damaged ledger. Answers that were kept by earlier versions do not say
    what was asked for, and not whether errors are ``absolute`` nor what a rule does, which ``earlier`` knows.
    """
    try:
        asked = record.get("asked")
        return make(
            columns=columns_in(record["columns"], absolute=absolute),
            question=record["question"],
            receipt=receipt,
            rules=rules_in(record, earlier),
            processing=tuple(record["processing"]),
            asked=None if asked is None else Budget(*map(read_number, asked)),
            plan=tuple(map(PlannedNoise.read, record.get("plan", ()))),
        )
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException):
        raise LedgerDamagedError(
            f"What the ledger kept for charge {receipt.sequence} is not the answer to a question about {about}.",
            fix="ask under another request name.",
        ) from None


def _number(column: AnswerColumn) -> Any:
    """The one value of a column: whole where its noise is, as it is where it is no number."""
    value = column.values[0]
    if not isinstance(value, int | float | np.number):
        return value
    number = float(value)
    return round(number) if column.integral and math.isfinite(number) else number
