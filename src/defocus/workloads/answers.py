"""Answers: what was reconstructed from a release, with intervals around it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, MismatchedDomainError, Number
from defocus.release import Release
from defocus.workloads.atoms import Array
from defocus.workloads.marginal_strategies import MarginalStrategy
from defocus.workloads.marginals import Marginals
from defocus.workloads.matrices import MatrixStrategy
from defocus.workloads.postprocessing import without_negatives
from defocus.workloads.products import ProductStrategy
from defocus.workloads.workload import Workload

__all__ = ["Answers"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Estimates of a workload's answers. Everything here comes from the noisy rows and may be shown to anyone.

    The least-squares ``values`` are unbiased and agree with each other: all are answers about one estimate of the
    data. ``processing`` names what was done to them beyond that.
    """

    values: Array
    workload: Workload | Marginals
    release: Release
    processing: str = "least squares: unbiased, consistent"
    _strategy: Any = field(default=None, repr=False)
    _width: Callable[[Number], Array] | None = field(default=None, repr=False)

    @staticmethod
    def of(workload: Workload | Marginals, strategy: Any, made: Release, width: Callable[[Number], Array]) -> "Answers":
        """The answers that a release of noisy rows gives."""
        values = strategy.answers(workload, made.value)
        return Answers(values, workload, made, _strategy=strategy, _width=width)

    def intervals(self, confidence: Number = 0.95) -> tuple[Array, Array]:
        """Low and high ends that hold each true answer with this probability; of unbiased answers only."""
        if self._width is None:
            raise InvalidParameterError(
                "Answers that were made non-negative or asked for later carry no interval of their own.",
                fix="take the intervals of the least-squares answers, from the plan or before processing.",
            )
        half = self._width(confidence)
        return self.values - half, self.values + half

    def table(self, chosen: Sequence[int]) -> Array:
        """The marginal over a set of attributes, as an array with one axis for each."""
        if not isinstance(self.workload, Marginals):
            raise InvalidParameterError("Only marginals have tables.", fix="read .values.")
        sets, wanted = self.workload.sets(), tuple(chosen)
        if wanted not in sets:
            raise InvalidParameterError(f"There is no marginal over {wanted}.", fix="name one of workload.sets().")
        sizes = self.workload.sizes
        lengths = [int(np.prod([sizes[i] for i in each])) for each in sets]
        at = sets.index(wanted)
        start = sum(lengths[:at])
        return self.values[start : start + lengths[at]].reshape([sizes[i] for i in wanted])

    def nonnegative(self) -> "Answers":
        """The same without negative counts: closer on sparse data, but biased upwards where the truth is zero.

        Cells are brought to the nearest non-negative ones of the same total, and the answers follow from
        them. Marginals are brought there table by table, so they keep one total but may disagree otherwise.
        """
        if isinstance(self.workload, Marginals):
            tables = [without_negatives(self.table(each).ravel()) for each in self.workload.sets()]
            note = "non-negative table by table: biased, consistent in the total only"
            return replace(self, values=np.concatenate(tables), processing=note, _width=None)
        strategy: MatrixStrategy | ProductStrategy = self._strategy
        cells = without_negatives(strategy.cells(self.release.value))
        return replace(
            self, values=self.workload.answer(cells), processing="non-negative cells: biased, consistent", _width=None
        )

    def ask(self, workload: Workload | Marginals) -> Array:
        """Answers to other questions from the same release, free of charge, as far as it determines them."""
        if workload.sizes != self.workload.sizes:
            raise MismatchedDomainError("The question", workload.sizes, self.workload.sizes)
        if isinstance(workload, Marginals) != isinstance(self._strategy, MarginalStrategy):
            raise InvalidParameterError(
                "Marginals are asked of releases of marginals, other workloads of other releases.",
                fix="plan both in one union, or marginals with marginals.",
            )
        self._strategy.check(workload)
        values: Array = self._strategy.answers(workload, self.release.value)
        return values

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        shown = np.array2string(self.values, threshold=8, edgeitems=3, separator=", ", precision=4)
        return f"{shown}\n{self.processing}; {self.release.receipt.purpose}"
