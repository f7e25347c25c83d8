"""Looking before spending: how exact an answer would be, and what it would cost. One preview for all rooms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from defocus.answers import explanation, tables
from defocus.answers.columns import CONFIDENCE, brief
from defocus.answers.explanation import Promise, told
from defocus.answers.export import json_value
from defocus.answers.rules import Rule, below, covered, cut, exact, expected_rules
from defocus.errors import InvalidParameterError
from defocus.ledger import Remaining
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.expressions import unparse
from defocus.privacy.filters import Used
from defocus.privacy.units import Unit

__all__ = ["Preview", "PreviewColumn", "Prospect"]


@final
@dataclass(frozen=True, slots=True)
class PreviewColumn:
    """What is known about a column, or about one method to release it, before anything is released.

    ``error`` is the error to expect and ``interval`` the half-width that holds with 95 % probability, where they are
    the same for every group; else ``by_size`` has (rows of the group, error, interval).

    >>> PreviewColumn("visits", "discrete Laplace noise", error=2.8, interval=6.0).interval
    6.0
    """

    name: str
    how: str
    error: float | None = None
    interval: float | None = None
    by_size: tuple[tuple[int, float, float], ...] = ()
    rank: float | None = None
    """Of a quantile: within how many rows of the true rank it is, with 95 % probability."""
    depends: str = "depends on the data"
    """Where the error is not known before a release (NaN): in a few words, what is known about it."""

    def __post_init__(self) -> None:
        if (self.error is None) != (self.interval is None):
            raise InvalidParameterError(
                f"The column {self.name!r} has an error without an interval, or the other way round.",
                fix="give both, or neither and by_size.",
            )
        object.__setattr__(self, "by_size", tuple((int(n), float(e), float(w)) for n, e, w in self.by_size))

    @property
    def _unknown(self) -> bool:
        return self.error is not None and math.isnan(self.error)

    def to_dict(self) -> dict[str, Any]:
        """The column with JSON types only; null where there is no finite number."""
        sizes = [{"rows": n, "error": json_value(e), "interval": json_value(w)} for n, e, w in self.by_size]
        return {
            "name": self.name,
            "how": self.how,
            "error": json_value(self.error),
            "interval": json_value(self.interval),
            "by_size": sizes,
            "rank": json_value(self.rank),
            "depends": self.depends if self._unknown else None,
        }

    def cells(self, sizes: Sequence[int]) -> list[str]:
        """The error of any group, and of groups of these sizes."""
        by_size = {n: _both(error, width) for n, error, width in self.by_size}
        every = "" if self.error is None or self.interval is None else _both(self.error, self.interval)
        if self._unknown:
            every = self.depends
        if self.rank is not None:
            every = f"± {brief(self.rank)} rows in rank"
        return [every, *(by_size.get(n, "") for n in sizes)]


@final
@dataclass(frozen=True, slots=True)
class Prospect:
    """What a release would cost, and whether the ledger covers it now. Depends on public facts only.

    ``event`` is what would be charged; ``promise`` what the release alone would promise at the delta that was
    ``asked`` for, None if no accountant can say; ``after`` what would be left, None if it does not fit.
    """

    event: Event
    asked: Budget | None
    promise: Promise | None
    unit: Unit
    dataset: str
    fits: bool
    remaining: Remaining
    after: Remaining | None
    used: tuple[Used, Used]
    """The parts of the ledger's budget that are used now, and that would be used afterwards."""
    remedy: str
    """What to ask instead where it does not fit, if there is something."""

    def budget(self) -> str:
        """Whether the budget covers it, and what is left now and afterwards."""
        if self.after is None:
            instead = f"; {self.remedy.rstrip('.')}" if self.remedy else ""
            return f"does not cover it; left now: {explanation.left(self.remaining)}{instead}"
        takes = f"used now: {self.used[0]}; used afterwards: {self.used[1]}"
        both = f"left now: {explanation.left(self.remaining)}; left afterwards: {explanation.left(self.after)}"
        return f"covers it; {both}; {takes}"

    def to_dict(self) -> dict[str, Any]:
        """The prospect with JSON types only."""
        promised, after = self.promise, self.after
        return {
            "epsilon": None if promised is None else json_value(promised.epsilon),
            "delta": None if promised is None else promised.delta,
            "fits": self.fits,
            "epsilon_left_now": json_value(self.remaining.certain),
            "epsilon_left_after": None if after is None else json_value(after.certain),
            "delta_left_now": json_value(self.remaining.delta),
            "delta_left_after": None if after is None else json_value(after.delta),
            "used_now": self.used[0].to_dict(),
            "used_after": None if after is None else self.used[1].to_dict(),
            "instead": self.remedy or None,
        }


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Preview:
    """What an answer would be like. Depends on public facts only; no data was touched and nothing was charged.

    Args:
        columns: what is known about each column; the first method of a choice has one only.
        question: what would be asked, in one line.
        event: what would be charged.
        prospect: what it would cost and what would be left; None where there is no ledger.
        rules: what would be bounded, clipped and dropped; plain sentences say how data are read.
        methods: all ways to answer, least error first, where there are several.
        method: the one that would be used.
        foretold: on what the errors rest, or what they depend on.
        confidence: of the half-widths.
        absolute: whether errors are expected absolute ones, and not standard errors.
        thing: what one entry of the answer is called.

    >>> from defocus.mechanisms import Laplace
    >>> from defocus.release import preview
    >>> found = preview(Laplace(scale=4))
    >>> round(found.error, 2), found.interval
    (3.96, 12.0)
    """

    columns: tuple[PreviewColumn, ...]
    question: str
    event: Event
    prospect: Prospect | None = None
    rules: tuple[Rule, ...] = ()
    methods: tuple[PreviewColumn, ...] = ()
    method: str = ""
    foretold: tuple[str, ...] = ()
    confidence: float = CONFIDENCE
    absolute: bool = False
    thing: str = "group"

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidParameterError("A preview needs a column.", fix="ask for at least one statistic.")
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rules", expected_rules(self.rules))

    @property
    def error(self) -> float:
        """The error to expect of an entry of the first column; NaN where it is not the same for all, or not known."""
        found = self.columns[0].error
        return math.nan if found is None else found

    @property
    def interval(self) -> float:
        """The half-width that the first column stays within with this confidence; NaN likewise."""
        found = self.columns[0].interval
        return math.nan if found is None else found

    @property
    def promise(self) -> Promise | None:
        """What the answer alone would promise; None if no accountant can say, or there is no ledger."""
        return None if self.prospect is None else self.prospect.promise

    @property
    def fits(self) -> bool | None:
        """Whether the budget covers it now; None where there is no ledger."""
        return None if self.prospect is None else self.prospect.fits

    @property
    def remaining(self) -> Remaining | None:
        """What is left now; None where there is no ledger."""
        return None if self.prospect is None else self.prospect.remaining

    @property
    def after(self) -> Remaining | None:
        """What would be left; None if it does not fit, or there is no ledger."""
        return None if self.prospect is None else self.prospect.after

    def to_dict(self) -> dict[str, Any]:
        """The preview with JSON types only."""
        return {
            "question": self.question,
            "columns": [column.to_dict() for column in self.columns],
            "method": self.method or None,
            "methods": [each.to_dict() for each in self.methods],
            "confidence": self.confidence,
            "intervals": covered(self.rules),
            "rules": list(self.rules),
            "foretold": list(self.foretold),
            "event": unparse(self.event),
            **({} if self.prospect is None else self.prospect.to_dict()),
        }

    def explain(self, *, html: bool = False) -> str:
        """The preview in plain words."""
        found = self.prospect
        others = [f"{each.name}: {each.how}" for each in self.methods if each.name != self.method]
        said: dict[str, Sequence[str]] = {"question": [self.question]}
        if found is not None:
            said["protected"] = [explanation.protection(found.unit, found.dataset)]
            said[f"for one {explanation.one(found.unit)}"] = explanation.odds(found.promise, found.unit)
            said = explanation.subject_to(exact(self.rules), said)
        said["by rule"] = (*self.rules, *self.foretold) or ["nothing is bounded or clipped"]
        said["noise"] = [*(f"{column.name}: {column.how}" for column in self.columns), *below(cut(self.rules))]
        said["instead of"] = others
        paid = [] if found is None else [explanation.cost(found.promise, found.asked)]
        said["cost"] = [*paid, explanation.owed(self.event)]
        said["budget"] = [] if found is None else [found.budget()]
        return told(said, html=html)

    def __str__(self) -> str:
        return tables.text_page(self.cells(), self.notes(), title=f"expected: {self.question}")

    def __repr__(self) -> str:
        return f"<preview: {self.question}>"

    def _repr_html_(self) -> str:
        return tables.html_page(self.cells(), self.notes(), title=f"expected: {self.question}")

    def cells(self) -> tables.Cells:
        """The table of a preview: heads, rows, and which columns hold numbers."""
        shown = self.methods or self.columns
        sizes = sorted({n for column in shown for n, _, _ in column.by_size})
        noise = f" ({100 * self.confidence:.4g} % of the noise only)" if cut(self.rules) else ""
        head = ["", f"any {self.thing}{noise}", *(f"{n:,} rows".replace(",", " ") for n in sizes)]
        rows = [[f"{self._mark(each)}{tables.plain(each.name)}", *each.cells(sizes)] for each in shown]
        if sizes and not any(row[1] for row in rows):
            head, rows = [head[0], *head[2:]], [[row[0], *row[2:]] for row in rows]
        return head, rows, [False, *[True] * (len(head) - 1)]

    def _mark(self, column: PreviewColumn) -> str:
        """Which of several methods would be used."""
        return "" if not self.methods else "→ " if column.name == self.method else "  "

    def notes(self) -> list[str]:
        """What to write below it."""
        error = "expected absolute error" if self.absolute else "standard error of the noise"
        kind = f"{error}, and in brackets what it stays within with {100 * self.confidence:.4g} % probability"
        found = self.prospect
        cost = explanation.owed(self.event) if found is None else explanation.cost(found.promise)
        paid = [f"cost: {cost}"] if found is None else [f"cost: {cost}", f"budget: {found.budget()}"]
        return [kind, *self.foretold, *paid, *below(self.rules)]


def _both(error: float, interval: float) -> str:
    return brief(error) if math.isnan(interval) else f"{brief(error)} (± {brief(interval)})"
