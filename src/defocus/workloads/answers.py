"""Making estimates plausible: declared post-processing, which costs nothing and adds bias."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from defocus.errors import InvalidParameterError, MismatchedDomainError, Number
from defocus.privacy.html import html_facts
from defocus.release import Release
from defocus.workloads.marginal_strategies import MarginalStrategy
from defocus.workloads.marginals import Marginals
from defocus.workloads.matrices import MatrixStrategy
from defocus.workloads.measurement import Measurement
from defocus.workloads.products import ProductStrategy
from defocus.workloads.queries import Array
from defocus.workloads.workload import Workload

__all__ = ["Answers", "without_negatives"]


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
class Answers:
    """Estimates of a workload's answers. Everything here comes from the noisy rows and may be shown to anyone.

    The least-squares ``values`` are unbiased and agree with each other: all are answers about one estimate of the
    data. ``processing`` names what was done to them beyond that.
    """

    values: Array
    workload: Workload | Marginals
    release: Release
    processing: str
    _measurement: Measurement
    _unbiased: bool = True

    @staticmethod
    def of(workload: Workload | Marginals, measurement: Measurement, made: Release) -> "Answers":
        """The answers that a release of noisy rows gives."""
        values = measurement.strategy.answers(workload, made.value)
        return Answers(values, workload, made, "least squares: unbiased, consistent", measurement)

    def intervals(self, confidence: Number = 0.95) -> tuple[Array, Array]:
        """Low and high ends that hold each true answer with this probability; of unbiased answers only."""
        if not self._unbiased:
            raise InvalidParameterError(
                "Answers that were made non-negative carry no interval of their own.",
                fix="take the intervals of the least-squares answers, from the plan or before processing.",
            )
        half = self._measurement.half_widths(self.workload, confidence)
        return self.values - half, self.values + half

    def table(self, chosen: Sequence[int]) -> Array:
        """The marginal over a set of attributes, as an array with one axis for each, in the order they are named."""
        if not isinstance(self.workload, Marginals):
            raise InvalidParameterError("Only marginals have tables.", fix="read .values.")
        sets, sizes = self.workload.sets(), self.workload.sizes
        wanted = tuple(chosen) if hasattr(chosen, "__iter__") else (chosen,)
        rising = next((each for each in sets if len(each) == len(wanted) and set(each) == set(wanted)), None)
        if rising is None:
            raise InvalidParameterError(
                f"There is no marginal over {wanted}.", fix="name the attributes of one of workload.sets()."
            )
        lengths = [math.prod(sizes[i] for i in each) for each in sets]
        at = sets.index(rising)
        start = sum(lengths[:at])
        table = self.values[start : start + lengths[at]].reshape([sizes[i] for i in rising])
        return table.transpose([rising.index(i) for i in wanted])

    def nonnegative(self) -> "Answers":
        """The same without negative counts: closer on sparse data, but biased upwards where the truth is zero.

        Cells are brought to the nearest non-negative ones of the same total, and the answers follow from
        them. Marginals are brought there table by table, so they keep one total but may disagree otherwise.
        """
        if isinstance(self.workload, Marginals):
            tables = [without_negatives(self.table(each).ravel()) for each in self.workload.sets()]
            note = "non-negative table by table: biased, consistent in the total only"
            return replace(self, values=np.concatenate(tables), processing=note, _unbiased=False)
        strategy = self._measurement.strategy
        assert isinstance(strategy, MatrixStrategy | ProductStrategy)  # noqa: S101  # what other workloads have
        values = self.workload.answer(without_negatives(strategy.cells(self.release.value)))
        return replace(self, values=values, processing="non-negative cells: biased, consistent", _unbiased=False)

    def ask(self, workload: Workload | Marginals) -> "Answers":
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
        return Answers.of(workload, self._measurement, self.release)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<answers to {self.workload!r}: {self._shown()}>"

    def __str__(self) -> str:
        return f"{self._shown()}\n{self.processing}; {self.release.receipt.purpose}"

    def _repr_html_(self) -> str:
        facts = {"values": self._shown(), "questions": repr(self.workload), "processing": self.processing}
        if self._unbiased:
            half = self._measurement.half_widths(self.workload, 0.95)
            low, high = float(half.min()), float(half.max())
            facts["error"] = (
                f"at most {low:.4g} to {high:.4g}, each with 95 % probability"
                if high > 1.001 * low
                else f"at most {high:.4g}, each with 95 % probability"
            )
        return html_facts({**facts, "purpose": self.release.receipt.purpose})

    def _shown(self) -> str:
        return np.array2string(self.values, threshold=8, edgeitems=3, separator=", ", precision=4)
