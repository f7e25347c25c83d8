"""A plan: what will be measured, how exact the answers will be, and what anything else would cost."""

import dataclasses
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it has no types of its own

from defocus.answers import Preview, PreviewColumn
from defocus.errors import InvalidParameterError, Number
from defocus.ledger import Ledger
from defocus.mechanisms import Gaussian
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.html import html_lines, html_table
from defocus.privacy.units import Unit
from defocus.release import release
from defocus.release.preview import planned
from defocus.workloads.answers import WorkloadAnswer
from defocus.workloads.candidates import GAUSSIAN, LAPLACE, spectrum
from defocus.workloads.consistent import fits
from defocus.workloads.marginal_strategies import MarginalStrategy
from defocus.workloads.marginals import Marginals
from defocus.workloads.measurement import Measurement
from defocus.workloads.products import ProductStrategy
from defocus.workloads.queries import Array
from defocus.workloads.strategy import Norms, l1_sensitivity, l2_sensitivity
from defocus.workloads.workload import Workload, kron_of

__all__ = ["Error", "Plan", "fingerprint"]


@final
@dataclass(frozen=True, slots=True)
class Error:
    """Predicted variances: their weighted ``total``, their weighted ``mean`` and the ``largest``.

    >>> Error(total=120.0, mean=4.0, largest=9.0).rmse
    2.0
    """

    total: float
    mean: float
    largest: float

    @property
    def rmse(self) -> float:
        """The root of the mean: the typical error of an answer."""
        return math.sqrt(self.mean)


@final
@dataclass(frozen=True, eq=False)
class Plan:
    """A strategy with its noise, fitted to a workload and a price. Nothing is charged until :meth:`release`.

    Errors and bounds are computed when they are first asked for, and kept.

    >>> from defocus import workloads
    >>> plan = workloads.plan(workloads.prefix(64), epsilon=1, delta=1e-6)
    >>> plan.unit.kind, plan.price, plan.error.rmse < 10
    ('rows', Budget(epsilon=1, delta=1e-06), True)
    """

    workload: Workload | Marginals = field(repr=False)
    price: Budget
    measurement: Measurement
    law: float
    """The variance of the noise at sensitivity one."""
    unit: Unit
    contribution: int
    objective: str

    @property
    def event(self) -> Event:
        """What a release owes."""
        return self.measurement.event

    @property
    def noise(self) -> str:
        """Which noise."""
        return GAUSSIAN if isinstance(self.measurement.noise, Gaussian) else LAPLACE

    @cached_property
    def error(self) -> Error:
        """What to expect."""
        strategy, variance = self.measurement.strategy, self.measurement.noise.variance
        total = strategy.total(self.workload) * variance
        return Error(total, total / self.workload.total_importance(), strategy.greatest(self.workload) * variance)

    @cached_property
    def lower_bound(self) -> float:
        """The SVD bound: no strategy has a smaller weighted total variance with this noise."""
        with threadpool_limits(1):
            whole, largest = spectrum(self.workload)
        if self._one_for_one():
            return 2 * max(0.0, whole - largest) ** 2 * self.law
        return whole**2 * self.contribution**2 * self.law

    @property
    def identity_error(self) -> float:
        """The weighted total variance of measuring every cell by itself."""
        if isinstance(self.workload, Marginals):
            cells = float(self.workload.cells)
            trace = sum(float(weights.sum()) for weights in self.workload.weights.values()) * cells
        else:
            trace = math.fsum(
                term.weight * math.prod(float(np.trace(atom.gram())) for atom in term.atoms)
                for term in self.workload.terms
            )
        return trace * self.law * self._squared(Norms(1, 1, 2, 2))

    @property
    def direct_error(self) -> float:
        """The weighted total variance of measuring every query by itself, without any inference."""
        l1, l2 = (math.ceil(reach) for reach in self.workload.reach())
        squared = self._squared(Norms(max(l1, 1), max(l2, 1), 2 * max(l1, 1), 4 * max(l2, 1)))
        return self.workload.total_importance() * self.law * squared

    def variances(self) -> Array:
        """The variance of each answer."""
        return self.measurement.variances(self.workload)

    def intervals(self, confidence: Number = 0.95) -> Array:
        """A half-width for each answer that its error stays within with this probability, each by itself."""
        return self.measurement.half_widths(self.workload, confidence)

    def covariance(self, chosen: Sequence[int] | None = None) -> Array:
        """The full covariance of the answers, or for marginals that of the cells of the ``chosen`` table."""
        strategy, variance = self.measurement.strategy, self.measurement.noise.variance
        if isinstance(self.workload, Marginals):
            table = self.workload.sets()[0] if chosen is None else tuple(chosen)
            if table not in set(self.workload.sets()) or not isinstance(strategy, MarginalStrategy):
                raise InvalidParameterError(
                    f"The plan has no marginal over {table}.", fix="name one of workload.sets()."
                )
            return strategy.covariance(self.workload, table) * variance
        matrix = self.workload.matrix()
        cells = (
            kron_of([factor.covariance for factor in strategy.factors])
            if isinstance(strategy, ProductStrategy)
            else strategy.covariance  # type: ignore[attr-defined]  # a MatrixStrategy: there is no third kind
        )
        full: Array = matrix @ cells @ matrix.T * variance
        return full

    def release(
        self,
        data: Any,
        *,
        ledger: Ledger,
        purpose: str,
        nonnegative: bool = False,
        consistent: bool = False,
        who: str | None = None,
        bits: Bits | None = None,
        request: str | None = None,
    ) -> WorkloadAnswer:
        """Measure ``data``, a histogram or :func:`records`, charge the ledger first, and reconstruct the answers.

        With ``nonnegative`` negative counts are taken away afterwards, which adds bias and is said so; with
        ``consistent`` as well, and marginals become those of one histogram. With
        ``request``, what was recorded under that name is reconstructed again, free of charge, if it was measured by
        an equal plan.
        """
        book: object = ledger
        if isinstance(book, Ledger) and book.unit != self.unit:
            raise InvalidParameterError(
                f"The plan protects {self.unit}, but the ledger protects {book.unit}; nothing was charged.",
                fix="plan with unit=ledger.unit, and say with contribution= how many records a unit holds at most.",
            )
        if not isinstance(consistent, bool):
            raise InvalidParameterError("consistent must be True or False.", fix="write consistent=True.")
        if consistent and isinstance(self.workload, Marginals):
            fits(self.workload)
        released = release(self.measurement, data, ledger=ledger, purpose=purpose, who=who, bits=bits, request=request)
        answers = WorkloadAnswer.of(self.workload, self.measurement, released)
        return answers.nonnegative(consistent=consistent) if nonnegative or consistent else answers

    def preview(self, *, ledger: Ledger | None = None) -> Preview:
        """How exact an answer would be, in the mean over all, and what ``ledger`` would be left with. Free."""
        typical = float(np.sqrt(np.mean(np.square(self.intervals()))))
        how = f"strategy {self.measurement.name}, {self.noise} noise"
        column = PreviewColumn("answer", how, self.error.rmse, typical)
        return planned([column], self.event, question=repr(self.workload), ledger=ledger, thing="entry")

    def comparison(self) -> list[tuple[str, float, float]]:
        """What could be measured, with the weighted total variance and its multiple of this plan's."""
        mine = self.error.total
        rows = [
            (f"this plan: {self.measurement.name}", mine),
            ("every cell by itself", self.identity_error),
            ("every query by itself", self.direct_error),
            ("no strategy is below", self.lower_bound),
        ]
        return [(name, total, total / mine) for name, total in rows]

    def __str__(self) -> str:
        lines, rows = self._heading(), self.comparison()
        wide = max(40, *(len(name) for name, _, _ in rows))
        lines.append(f"{'':{wide}s} {'total variance':>15s} {'ratio':>8s}")
        lines += [f"{name:{wide}s} {total:15.6g} {ratio:8.3g}" for name, total, ratio in rows]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(name, f"{total:.6g}", f"{ratio:.3g}") for name, total, ratio in self.comparison()]
        return html_lines(self._heading()) + html_table(["", "total variance", "ratio"], rows)

    def _heading(self) -> list[str]:
        return [
            f"{self.workload!r}, {self.noise} noise, {self.price!r}",
            f"typical error of an answer {self.error.rmse:.4g}, of the worst {math.sqrt(self.error.largest):.4g}",
        ]

    def _squared(self, norms: Norms) -> float:
        measure = l2_sensitivity if self.noise == GAUSSIAN else l1_sensitivity
        return float(measure(norms, self.unit, self.contribution)) ** 2

    def _one_for_one(self) -> bool:
        return self.unit.number_is_public and self.unit.kind == "rows" and self.contribution == 1


def fingerprint(*things: Any) -> str:
    """The same for equal descriptions, in every process; made of numbers, text, arrays and dataclasses of them.

    >>> fingerprint((1, 2.0), "a") == fingerprint((1, 2.0), "a") != fingerprint((1, 2.5), "a")
    True
    """
    digest = hashlib.blake2b(digest_size=8)
    for piece in _pieces(things):
        digest.update(len(piece).to_bytes(8, "big"))
        digest.update(piece)
    return digest.hexdigest()


def _pieces(thing: Any) -> Iterator[Any]:
    if isinstance(thing, np.ndarray):
        yield f"{thing.dtype.str}{thing.shape}".encode()
        yield np.ascontiguousarray(thing).reshape(-1).view(np.uint8).data
    elif dataclasses.is_dataclass(thing):
        yield from _pieces((type(thing).__name__, *(getattr(thing, field.name) for field in dataclasses.fields(thing))))
    elif isinstance(thing, Mapping):
        yield from _pieces(tuple(thing.items()))
    elif isinstance(thing, tuple | list):
        yield f"{len(thing)} things".encode()
        for one in thing:
            yield from _pieces(one)
    else:
        yield f"{type(thing).__name__} {thing!r}".encode()
