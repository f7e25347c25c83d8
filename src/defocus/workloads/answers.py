"""Answers to workloads, and how estimates are made plausible: declared post-processing, which is free and adds bias."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from defocus.answers import Answer, AnswerColumn
from defocus.answers.columns import CONFIDENCE
from defocus.answers.rules import Rule, rules_of
from defocus.answers.tables import Keys
from defocus.errors import InvalidParameterError, MismatchedDomainError, Number
from defocus.ledger import Receipt
from defocus.release import Release
from defocus.workloads.consistent import consistent_tables
from defocus.workloads.marginal_strategies import MarginalStrategy
from defocus.workloads.marginals import Marginals
from defocus.workloads.matrices import MatrixStrategy
from defocus.workloads.measurement import Measurement
from defocus.workloads.products import ProductStrategy
from defocus.workloads.queries import Array
from defocus.workloads.workload import Workload

__all__ = ["WorkloadAnswer", "without_negatives"]


def without_negatives(counts: Array) -> Array:
    """The nearest counts of the same total that are not negative; all zero if the total is not positive.

    Euclidean projection to a simplex: a common amount is taken off and what falls below zero is zero.

    >>> without_negatives(np.array([3.0, -1.0, 2.0])).tolist()
    [2.5, 0.0, 1.5]
    """
    total = float(counts.sum())
    if total <= 0:
        return np.zeros_like(counts)
    ordered = np.sort(counts)[::-1]
    taken = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    last = int(np.flatnonzero(ordered > taken)[-1])
    kept: Array = np.maximum(counts - taken[last], 0.0)
    return kept


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WorkloadAnswer(Answer):
    """Estimates of a workload's answers. Everything here comes from the noisy rows and may be shown to anyone.

    The least-squares ``values`` are unbiased and agree with each other: all are answers about one estimate of the
    data. ``processing`` names what was done to them beyond that. Errors are computed when they are asked for.

    >>> import defocus as dp
    >>> from defocus import examples
    >>> ledger = examples.ledger()
    >>> plan = dp.workloads.plan(dp.workloads.prefix(4), epsilon=0.5)
    >>> ages = plan.release([900, 800, 700, 600], ledger=ledger, purpose="ages")
    >>> len(ages), 2500 < float(ages.values[-1]) < 3500
    (4, True)
    >>> len(ages.ask(dp.workloads.identity(4)))  # free
    4
    >>> ledger.close()
    """

    values: Array
    workload: Workload | Marginals
    release: Release
    _measurement: Measurement
    processing: tuple[str, ...] = ("least squares: unbiased, consistent",)
    unbiased: bool = True

    @staticmethod
    def of(workload: Workload | Marginals, measurement: Measurement, released: Release) -> "WorkloadAnswer":
        """The answers that a release of noisy rows gives."""
        return WorkloadAnswer(measurement.strategy.answers(workload, released.value), workload, released, measurement)

    @property
    def keys(self) -> Keys:
        """The queries, by number; the cells of marginals come set by set."""
        return {"query": range(len(self.values))}

    @property
    def columns(self) -> tuple[AnswerColumn, ...]:
        """The answers with standard errors and 95 % intervals; those without negative counts have neither."""
        unbiased = self.unbiased
        errors = np.sqrt(self._measurement.variances(self.workload)) if unbiased else np.full(len(self), np.nan)
        half = self._measurement.reach(CONFIDENCE) * errors
        low, high = self.values - half, self.values + half
        how = f"strategy {self._measurement.name}, {type(self._measurement.noise).__name__} noise"
        return (AnswerColumn("answer", self.values, errors, low, high, integral=False, how=how),)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """How data that do not fit the domain were read."""
        return rules_of(
            (
                "of records, a code outside its range counts as the nearest one inside, and what is no integer as 0",
                "of a histogram in a list, fractions are rounded down, and what is no number is zero",
            )
        )

    @property
    def question(self) -> str:
        """The workload."""
        return repr(self.workload)

    @property
    def receipt(self) -> Receipt:
        """The charge of the release."""
        return self.release.receipt

    def _ends(self, column: AnswerColumn, confidence: Number) -> tuple[Array, Array]:
        if not self.unbiased:
            return column.interval(confidence)
        half = self._measurement.reach(confidence) * column.errors
        return column.values - half, column.values + half

    def table(self, chosen: Sequence[int]) -> Array:
        """The marginal over a set of attributes, as an array with one axis for each, in the order they are named."""
        if not isinstance(self.workload, Marginals):
            raise InvalidParameterError("Only marginals have tables.", fix="read .values.")
        sets, sizes = self.workload.sets(), self.workload.sizes
        wanted = tuple(chosen) if hasattr(chosen, "__iter__") else (chosen,)
        rising = next((held for held in sets if len(held) == len(wanted) and set(held) == set(wanted)), None)
        if rising is None:
            raise InvalidParameterError(
                f"There is no marginal over {wanted}.", fix="name the attributes of one of workload.sets()."
            )
        lengths = [math.prod(sizes[i] for i in held) for held in sets]
        at = sets.index(rising)
        start = sum(lengths[:at])
        table = self.values[start : start + lengths[at]].reshape([sizes[i] for i in rising])
        return table.transpose([rising.index(i) for i in wanted])

    def nonnegative(self, *, consistent: bool = False) -> "WorkloadAnswer":
        """The same without negative counts: closer on sparse data, but biased upwards where the truth is zero.

        Cells are brought to the nearest non-negative ones of the same total, and the answers follow from
        them. Marginals are brought there table by table, so they keep one total but may disagree otherwise. With
        ``consistent`` all are those of one histogram over their attributes, fitted to what was released in about a
        second: closer again on sparse data, and biased towards attributes that are independent where noise hides that
        they are not. Either way the answers have no standard errors and no intervals.
        """
        if not isinstance(consistent, bool):
            raise InvalidParameterError("consistent must be True or False.", fix="write consistent=True.")
        strategy = self._measurement.strategy
        if consistent and isinstance(self.workload, Marginals):
            assert isinstance(strategy, MarginalStrategy)  # noqa: S101  # what marginals are measured by
            variance = float(self._measurement.noise.variance)
            values = consistent_tables(self.workload, strategy, self.release.value, variance)
            note = "non-negative tables of one histogram: biased, consistent"
            return replace(self, values=values, processing=(note,), unbiased=False)
        if isinstance(self.workload, Marginals):
            tables = [without_negatives(self.table(chosen).ravel()) for chosen in self.workload.sets()]
            note = "non-negative table by table: biased, consistent in the total only"
            return replace(self, values=np.concatenate(tables), processing=(note,), unbiased=False)
        assert isinstance(strategy, MatrixStrategy | ProductStrategy)  # noqa: S101  # what other workloads have
        values = self.workload.answer(without_negatives(strategy.cells(self.release.value)))
        note = "non-negative cells: biased, consistent"
        return replace(self, values=values, processing=(note,), unbiased=False)

    def ask(self, workload: Workload | Marginals) -> "WorkloadAnswer":
        """Answers to other questions from the same release, free of charge, as far as it determines them."""
        if not isinstance(workload, Workload | Marginals):
            raise InvalidParameterError(
                f"A question is a workload, but it is {type(workload).__name__}.",
                fix="make one with workloads.total, ranges, marginals, explicit and so on.",
            )
        if workload.sizes != self.workload.sizes:
            raise MismatchedDomainError("The question", workload.sizes, self.workload.sizes)
        if isinstance(workload, Marginals) != isinstance(self._measurement.strategy, MarginalStrategy):
            raise InvalidParameterError(
                "Marginals are asked of releases of marginals, other workloads of other releases.",
                fix="plan both in one union, or marginals with marginals.",
            )
        self._measurement.strategy.check(workload)
        return WorkloadAnswer.of(workload, self._measurement, self.release)

    def __len__(self) -> int:
        return len(self.values)
