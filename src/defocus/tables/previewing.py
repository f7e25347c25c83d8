"""Looking before spending: how exact each column of an answer would be, and what it would cost. Free."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger, Remaining
from defocus.ledger.guards import Guard
from defocus.privacy.budgets import Budget
from defocus.privacy.digits import at_most
from defocus.privacy.events import Event
from defocus.privacy.expressions import unparse
from defocus.privacy.filters import Cost
from defocus.privacy.units import Unit
from defocus.release.charging import Replan, admitted, advice
from defocus.release.promises import Promise
from defocus.tables import explaining, showing
from defocus.tables.digits import brief
from defocus.tables.dividing import without_folder

__all__ = ["SIZES", "Preview", "PreviewColumn"]

SIZES = (100, 1_000, 10_000, 100_000)
"""Group sizes to speak about where the error depends on the size of the group, which is private."""


@final
@dataclass(frozen=True, slots=True)
class PreviewColumn:
    """What is known about a column before it is released.

    ``error`` is the standard error of the noise and ``interval`` the half-width that holds with 95 % probability,
    where they are the same for every group; else ``by_size`` has (rows of the group, error, interval).
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
        sizes = [{"rows": n, "error": _json(e), "interval": _json(w)} for n, e, w in self.by_size]
        return {
            "name": self.name,
            "how": self.how,
            "error": _json(self.error),
            "interval": _json(self.interval),
            "by_size": sizes,
            "rank": _json(self.rank),
        }


@final
@dataclass(frozen=True, slots=True)
class Preview:
    """What an answer would be like. Depends on public facts only; no data was touched and nothing was charged.

    Made by :meth:`of`. ``fits`` says whether the budget covers it now, ``remaining`` what is left now, and
    ``after`` what would be left, None if it does not fit.
    """

    columns: tuple[PreviewColumn, ...]
    question: str
    event: Event
    promise: Promise | None
    unit: Unit
    dataset: str
    fits: bool
    remaining: Remaining
    after: Remaining | None
    rules: tuple[str, ...] = ()
    asked: Budget | None = None
    used: tuple[float, float] = (0.0, 0.0)
    """The part of the ledger's budget that is used now, and that would be used afterwards."""
    remedy: str = ""
    """What to ask instead where it does not fit, if there is something."""

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
        guard, spent = Guard.of(ledger.terms), ledger.spent()
        owed = admitted(event, asked, ledger)
        after = None if owed is None else guard.add(spent, guard.cost(owed))
        return cls(
            columns=tuple(columns),
            question=question,
            event=event if owed is None else owed,
            promise=explaining.alone(event, ledger.terms, asked),
            unit=ledger.unit,
            dataset=ledger.dataset,
            fits=after is not None,
            remaining=guard.remaining(spent),
            after=None if after is None else guard.remaining(after),
            rules=tuple(rules),
            asked=asked,
            used=(guard.filter.used(Cost(spent)), guard.filter.used(Cost(spent if after is None else after))),
            remedy="" if owed is not None else advice(asked, ledger, replan),
        )

    def to_dict(self) -> dict[str, Any]:
        """The preview with JSON types only."""
        promised = self.promise
        return {
            "question": self.question,
            "columns": [column.to_dict() for column in self.columns],
            "confidence": 0.95,
            "rules": list(self.rules),
            "event": unparse(self.event),
            "epsilon": None if promised is None else _json(promised.epsilon),
            "delta": None if promised is None else promised.delta,
            "fits": self.fits,
            "epsilon_left_now": _json(self.remaining.epsilon),
            "epsilon_left_after": None if self.after is None else _json(self.after.epsilon),
            "delta_left_now": _json(self.remaining.delta),
            "delta_left_after": None if self.after is None else _json(self.after.delta),
            "used_now": _json(self.used[0]),
            "used_after": None if self.after is None else _json(self.used[1]),
            "instead": self.remedy or None,
        }

    def explain(self, *, html: bool = False) -> str:
        """The preview in plain words."""
        said = {
            "question": [self.question],
            "protected": [explaining.protection(self.unit, self.dataset)],
            f"for one {explaining.one(self.unit)}": explaining.odds(self.promise, self.unit),
            "by rule": list(self.rules) or ["nothing is bounded or clipped"],
            "noise": [f"{column.name}: {column.how}" for column in self.columns],
            "cost": [explaining.cost(self.promise, self.asked), explaining.owed(self.event)],
            "budget": [self._budget()],
        }
        return showing.html_facts(said) if html else showing.text_facts(said)

    def __str__(self) -> str:
        head, rows = self._cells()
        table = showing.text_table(head, rows, right=[False, *[True] * (len(head) - 1)])
        return "\n".join([showing.line(f"expected: {self.question}"), table, *map(showing.line, self._notes())])

    def _repr_html_(self) -> str:
        head, rows = self._cells()
        table = showing.html_table(head, rows, right=[False, *[True] * (len(head) - 1)])
        notes = "".join(f"<p>{showing.escaped(note)}</p>" for note in self._notes())
        return f"<div><p>{showing.escaped(f'expected: {self.question}')}</p>{table}{notes}</div>"

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        sizes = sorted({n for column in self.columns for n, _, _ in column.by_size})
        head = ["", "any group", *(f"{n:,} rows".replace(",", " ") for n in sizes)]
        steady = any(column.error is not None or column.rank is not None for column in self.columns)
        rows = []
        for column in self.columns:
            by_size = {n: _both(error, width) for n, error, width in column.by_size}
            every = "" if column.error is None else _both(column.error, column.interval)
            if column.rank is not None:
                every = f"± {brief(column.rank)} rows in rank"
            rows.append([showing.plain(column.name), every, *(by_size.get(n, "") for n in sizes)])
        if not steady:
            head, rows = [head[0], *head[2:]], [[row[0], *row[2:]] for row in rows]
        return head, rows

    def _notes(self) -> list[str]:
        return [
            "standard error of the noise, and in brackets what it stays within with 95 % probability",
            f"cost: {explaining.cost(self.promise)}",
            f"budget: {self._budget()}",
            *without_folder(self.rules),
        ]

    def _budget(self) -> str:
        if self.after is None:
            instead = f"; {self.remedy.rstrip('.')}" if self.remedy else ""
            return f"does not cover it; left now: {_left(self.remaining)}{instead}"
        now, then = self.used
        takes = f"it takes {100 * (then - now):.3g} % of the budget, and {100 * then:.3g} % is used then"
        return f"covers it; left now: {_left(self.remaining)}; left afterwards: {_left(self.after)}; {takes}"


def _both(error: float, interval: float | None) -> str:
    return f"{brief(error)} (± {brief(math.nan if interval is None else interval)})"


def _left(remaining: Remaining) -> str:
    """What is left, with the delta that releases may spend outright."""
    return f"{remaining}, and delta {at_most(remaining.delta, 3)}" if remaining.delta else str(remaining)


def _json(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
