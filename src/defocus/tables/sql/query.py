"""A question asked in SQL: previewed, planned and released like any other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, final

from defocus.answers import Preview, PreviewColumn, Released
from defocus.answers.rules import rules_of
from defocus.errors import (
    DefocusError,
    NotDeclaredError,
    NotFinishedError,
    NotRecordedError,
    Number,
)
from defocus.noise import Bits
from defocus.tables.aggregates import Aggregate
from defocus.tables.keys import Keys
from defocus.tables.planner import Plan
from defocus.tables.query import Query
from defocus.tables.rows import Rows
from defocus.tables.sql.postprocessing import Finish, Output, linear, references
from defocus.tables.words import printable

__all__ = ["Ask", "SqlQuery"]

Ask: TypeAlias = Callable[[Rows, bool, tuple[str, ...], Keys | None, Mapping[str, Aggregate]], Query]
"""Makes a question of rows, whether they are the table's own, keys and aggregates."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class SqlQuery:
    """One SELECT: a question that is released as one event, and what is done to its answer. Made by ``sql_query``.

    Guarantee:
        The release is that of :attr:`query`, charged before it is computed. HAVING, ORDER BY, LIMIT and formulas
        see released numbers and keys only.
    """

    query: Query
    finish: Finish
    text: str
    unknown: tuple[str, ...] = ()
    """Keys of which nobody said what values they have."""

    @property
    def question(self) -> str:
        """The SELECT in one line."""
        return self.text

    def __repr__(self) -> str:
        return f"SqlQuery({printable(self.text)})"

    def plan(self, *, epsilon: Number, delta: Number | None = None) -> Plan:
        """Which measurements would be made, with which noise."""
        self._check_keys(delta)
        return self.query.plan(epsilon=epsilon, delta=delta)

    def preview(self, *, epsilon: Number, delta: Number | None = None) -> Preview:
        """How exact each column would be and what it would cost. Free: no row is looked at."""
        self._check_keys(delta)
        seen = self.query.preview(epsilon=epsilon, delta=delta)
        known = {column.name: column for column in seen.columns}
        columns = tuple(self._foreseen(output, known) for output in self.finish.outputs)
        return replace(seen, columns=columns, question=self.text, rules=rules_of((*seen.rules, *self.finish.notes)))

    def release(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
        request: str | None = None,
        bits: Bits | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Released:
        """Charge, compute, add noise, finish and show; the arguments are those of :meth:`Query.release`."""
        self._check_keys(delta)
        if purpose is None and self.query.purposes is None:
            purpose = printable(self.text)[:200]
        try:
            answer = self.query.release(
                epsilon=epsilon,
                delta=delta,
                purpose=purpose,
                who=who,
                request=request,
                bits=bits,
                progress=progress,
            )
        except NotRecordedError as problem:
            problem.release = self._finished(problem.release)
            raise
        return self._finished(answer)

    def _finished(self, answer: Released) -> Released:
        try:
            return self.finish.apply(answer, self.query.rows.engine, self.text)
        except DefocusError as problem:
            why = problem.what
        raise NotFinishedError(answer, why=why)

    def _foreseen(self, output: Output, known: Mapping[str, PreviewColumn]) -> PreviewColumn:
        """What is known beforehand of one column, also of a multiple of one."""
        scaled = linear(output.tree)
        if scaled is None:
            names = [self.finish.held[each] for each in references(output.tree)]
            return PreviewColumn(output.name, f"computed from {' and '.join(names)}")
        column, factor = known[self.finish.held[scaled.reference]], abs(scaled.factor)
        return PreviewColumn(
            output.name,
            column.how,
            None if column.error is None else factor * column.error,
            None if column.interval is None else factor * column.interval,
            tuple((size, factor * error, factor * width) for size, error, width in column.by_size),
        )

    def _check_keys(self, delta: Number | None) -> None:
        if self.query.keys is None and not delta:
            names = ", ".join(self.unknown)
            raise NotDeclaredError(
                f"Nobody said which values of {names} there are, and whether one exists depends on single people.",
                fix=f"list them, WHERE {self.unknown[0]} IN ('a', 'b') or keys=[…]; declare the domain of the"
                " column, declare(ward=[…]) or in the dataset file; or pass delta=, for example 1e-6, to find them."[
                    :600
                ],
            )
