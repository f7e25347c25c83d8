"""Looking before spending: how exact each column of an answer would be, and what it would cost. Free."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from defocus.answers import tables
from defocus.answers.columns import brief
from defocus.answers.explanation import told
from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger, Remaining
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.release.charge import Replan
from defocus.release.guarantee import Promise
from defocus.release.preview import Prospect, json_number
from defocus.tables.parts import without_folder

__all__ = ["SIZES", "Preview", "PreviewColumn"]

SIZES = (100, 1_000, 10_000, 100_000)
"""Group sizes to speak about where the error depends on the size of the group, which is private."""


@final
@dataclass(frozen=True, slots=True)
class PreviewColumn:
    """What is known about a column before it is released.

    ``error`` is the standard error of the noise and ``interval`` the half-width that holds with 95 % probability,
    where they are the same for every group; else ``by_size`` has (rows of the group, error, interval).

    >>> PreviewColumn("people", "discrete Laplace noise", error=2.8, interval=6).to_dict()["error"]
    2.8
    """

    name: str
    how: str
    error: float | None = None
    interval: float | None = None
    by_size: tuple[tuple[int, float, float], ...] = ()
    rank: float | None = None
    """Of a quantile: within how many rows of the true rank it is, with 95 % probability."""

    def __post_init__(self) -> None:
        if (self.error is None) != (self.interval is None):
            raise InvalidParameterError(
                f"The column {self.name!r} has an error without an interval, or the other way round.",
                fix="give both, or neither and by_size.",
            )
        object.__setattr__(self, "by_size", tuple((int(n), float(e), float(w)) for n, e, w in self.by_size))

    def to_dict(self) -> dict[str, Any]:
        """The column with JSON types only; null where there is no finite number."""
        sizes = [{"rows": n, "error": json_number(e), "interval": json_number(w)} for n, e, w in self.by_size]
        return {
            "name": self.name,
            "how": self.how,
            "error": json_number(self.error),
            "interval": json_number(self.interval),
            "by_size": sizes,
            "rank": json_number(self.rank),
        }


@final
@dataclass(frozen=True, slots=True)
class Preview:
    """What an answer would be like. Depends on public facts only; no data was touched and nothing was charged.

    Made by :meth:`of`. ``prospect`` says what it would cost, whether the budget covers it now, and what is left.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> people = pa.table({"person": range(1000), "age": [30 + i % 40 for i in range(1000)]})
    >>> visits = dp.open(people, unit=dp.user("person"), budget=dp.Budget(1), ledger=f"{home.name}/a", name="visits")
    >>> seen = visits.agg(people=dp.count_units()).preview(epsilon=0.5)
    >>> seen.fits, round(seen.columns[0].error, 2)
    (True, 2.83)
    >>> visits.close(); home.cleanup()
    """

    columns: tuple[PreviewColumn, ...]
    question: str
    prospect: Prospect
    rules: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        columns: Sequence[PreviewColumn],
        *,
        question: str,
        event: Event,
        asked: Budget,
        replan: Replan,
        ledger: Ledger,
        rules: Sequence[str] = (),
    ) -> "Preview":
        """The preview of a release of ``event`` charged to ``ledger``, which is asked and not changed.

        ``replan`` says what the same question would owe with another delta than was ``asked`` for.
        """
        if not columns:
            raise InvalidParameterError("A preview needs a column.", fix="ask for at least one statistic.")
        prospect = Prospect.of(event, asked=asked, replan=replan, ledger=ledger)
        return cls(tuple(columns), question, prospect, tuple(rules))

    @property
    def event(self) -> Event:
        """What would be charged."""
        return self.prospect.event

    @property
    def promise(self) -> Promise | None:
        """What the answer alone would promise; None if no accountant can say."""
        return self.prospect.promise

    @property
    def fits(self) -> bool:
        """Whether the budget covers it now."""
        return self.prospect.fits

    @property
    def remaining(self) -> Remaining:
        """What is left now."""
        return self.prospect.remaining

    @property
    def after(self) -> Remaining | None:
        """What would be left, None if it does not fit."""
        return self.prospect.after

    def to_dict(self) -> dict[str, Any]:
        """The preview with JSON types only."""
        return {
            "question": self.question,
            "columns": [column.to_dict() for column in self.columns],
            "confidence": 0.95,
            "rules": list(self.rules),
            **self.prospect.to_dict(),
        }

    def explain(self, *, html: bool = False) -> str:
        """The preview in plain words."""
        rules = list(self.rules) or ["nothing is bounded or clipped"]
        noise = [f"{column.name}: {column.how}" for column in self.columns]
        said = {"question": [self.question], **self.prospect.facts(rules=rules, noise=noise)}
        return told(said, html=html)

    def __str__(self) -> str:
        return tables.text_page(self._cells(), self._notes(), title=f"expected: {self.question}")

    def _repr_html_(self) -> str:
        return tables.html_page(self._cells(), self._notes(), title=f"expected: {self.question}")

    def _cells(self) -> tables.Cells:
        sizes = sorted({n for column in self.columns for n, _, _ in column.by_size})
        head = ["", "any group", *(f"{n:,} rows".replace(",", " ") for n in sizes)]
        steady = any(column.error is not None or column.rank is not None for column in self.columns)
        rows = []
        for column in self.columns:
            by_size = {n: _both(error, width) for n, error, width in column.by_size}
            every = "" if column.error is None else _both(column.error, column.interval)
            if column.rank is not None:
                every = f"± {brief(column.rank)} rows in rank"
            rows.append([tables.plain(column.name), every, *(by_size.get(n, "") for n in sizes)])
        if not steady:
            head, rows = [head[0], *head[2:]], [[row[0], *row[2:]] for row in rows]
        return head, rows, [False, *[True] * (len(head) - 1)]

    def _notes(self) -> list[str]:
        return [
            "standard error of the noise, and in brackets what it stays within with 95 % probability",
            *self.prospect.notes(),
            *without_folder(self.rules),
        ]


def _both(error: float, interval: float | None) -> str:
    return f"{brief(error)} (± {brief(math.nan if interval is None else interval)})"
