r"""The cells that an evaluation releases: which of them a row falls into, and how far one person can move them.

Two classes: one table over (group, label, bucket of the score). More classes: one over (group, label, predicted class),
and where there are probabilities another over (group, right or wrong, bucket of the largest one). A row adds one to
one cell of each table, so with t tables it moves the vector by t in L1 norm and by √t in L2 norm. A person with several
rows adds the average of what the rows add, in steps of :math:`2^{-20}`, each entry rounded towards zero
(:class:`~.grid.Persons`): in each table these are at least zero and sum to at most one, so that a person moves the
vector by no more than a row does. A person who owns m rows by declaration moves it m times as far.

Numbers: for its error e and its target y, both brought to the range from 0 to 1, each row adds 1, e, e², e⁴, y and y²
in steps of :math:`2^{-20}`: at most 6 in L1 norm, and √6 in L2 norm.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from defocus.errors import CannotCalibrateError, InvalidParameterError, count, probability
from defocus.learning.estimators.grid import Floats, Persons, summed
from defocus.learning.evaluation.scores import MARGIN, Kind
from defocus.mechanisms import Gaussian, Laplace
from defocus.mechanisms.mechanism import IntVector
from defocus.privacy.budgets import Budget
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import Adjacency, Unit

__all__ = ["SUMS", "Layout", "Noise", "edges_of", "noise_for"]

SUMS = ("1", "e", "e²", "e⁴", "y", "y²")
"""What is summed up where numbers are foretold."""
_STEPS = 1 << 20
_FEWEST, _MOST = 10, 200
_FINEST = 10_000


@final
@dataclass(frozen=True)
class Layout:
    """Which cells there are. Everything in it is public."""

    kind: Kind
    classes: tuple[Any, ...]
    edges: tuple[float, ...]
    """Of the buckets, from 0 to 1; none where there are no scores."""
    threshold: float
    groups: tuple[Any, ...]
    """Their names; none where nobody asked for groups."""
    persons: bool

    @property
    def unit(self) -> int:
        """What one row, or one person, weighs."""
        return _STEPS if self.persons or self.kind == "number" else 1

    @cached_property
    def inner(self) -> Floats:
        """The edges between buckets."""
        return np.array(self.edges[1:-1])

    @property
    def buckets(self) -> int:
        """How many there are."""
        return max(len(self.edges) - 1, 0)

    @property
    def parts(self) -> int:
        """How many groups have cells of their own; rows of no group that was named are one of them."""
        return len(self.groups) + 1 if self.groups else 1

    @property
    def shapes(self) -> tuple[tuple[int, int, int], ...]:
        """The tables: groups, then labels or right and wrong, then outcomes.

        The last label is that it is none of the classes, and the last outcome that there is none; cells of the last
        label but for the last outcome stay empty.
        """
        if self.kind == "number":
            return ((self.parts, 1, len(SUMS)),)
        number = len(self.classes)
        if number == 2:
            return ((self.parts, 3, self.buckets + 1),)
        first = (self.parts, number + 1, number + 1)
        return (first, (self.parts, 2, self.buckets)) if self.buckets else (first,)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return sum(a * b * c for a, b, c in self.shapes)

    def sensitivity(self, unit: Unit) -> Sensitivity:
        """How far what comes or goes between neighbours moves the cells; the proof is at the top of this module."""
        touched = len(SUMS) if self.kind == "number" else len(self.shapes)
        one = Sensitivity(touched * self.unit, touched * self.unit**2).times(unit.per_person or 1)
        return one.replaced() if unit.adjacency is Adjacency.REPLACE else one

    def near(self, scores: Floats) -> NDArray[np.bool_]:
        """Which scores would mean another outcome if they were off by the margin."""
        if self.kind in {"labels", "number"}:
            return np.full(len(scores), True)
        with np.errstate(invalid="ignore"):
            top = scores.max(axis=1)
            place = np.searchsorted(self.inner, top)
            around = np.concatenate([[-np.inf], self.inner, [np.inf]])
            close = (top - around[place] < MARGIN) | (around[place + 1] - top < MARGIN)
            if scores.shape[1] > 1:
                ordered = np.sort(scores, axis=1)
                close |= ordered[:, -1] - ordered[:, -2] < 2 * MARGIN
        return np.asarray(close)

    def counted(
        self, scores: Floats, targets: Any, groups: NDArray[np.int64] | None, persons: Persons | None
    ) -> IntVector:
        """The exact cells: of labels, their places among the classes, -1 for others; of numbers, from 0 to 1."""
        rows = np.arange(len(scores))
        part = np.zeros(len(rows), np.int64) if groups is None else np.where(groups < 0, len(self.groups), groups)
        tables = [self._sums(scores[:, 0], targets)] if self.kind == "number" else self._codes(scores, targets)
        found, first = [], 0
        for (parts, lines, outcomes), (line, outcome, weight) in zip(self.shapes, tables, strict=True):
            for each in range(outcome.shape[1]):
                kept = rows[line >= 0]
                places = first + (part[kept] * lines + line[kept]) * outcomes + outcome[kept, each]
                found.append(sp.csr_matrix((weight[kept, each], (kept, places)), (len(rows), self.size)))
            first += parts * lines * outcomes
        total = found[0]
        for more in found[1:]:
            total = total + more
        return summed(total.tocsr(), persons)

    def _codes(self, scores: Floats, labels: NDArray[np.int64]) -> list[tuple[Any, Any, Any]]:
        """In each table the line of a row, -1 for none, and its outcome, with what it weighs."""
        number, full = len(self.classes), np.full((len(scores), 1), float(self.unit))
        missing = np.isnan(scores).any(axis=1) | (labels < 0)
        line = np.where(labels < 0, number, labels)
        known = np.where(missing[:, np.newaxis], 0.0, scores)
        if number == 2:
            bucket = np.where(missing, self.buckets, np.searchsorted(self.inner, known[:, 0], side="right"))
            return [(line, bucket[:, np.newaxis], full)]
        guess = known[:, 0].astype(np.int64) if self.kind == "labels" else known.argmax(axis=1)
        tables = [(line, np.where(missing, number, guess)[:, np.newaxis], full)]
        if self.buckets:
            bucket = np.searchsorted(self.inner, known.max(axis=1), side="right")
            right = np.where(missing, -1, (guess != labels).astype(np.int64))
            tables.append((right, bucket[:, np.newaxis], full))
        return tables

    def _sums(self, foretold: Floats, targets: Floats) -> tuple[Any, Any, Any]:
        """What a row adds to each sum; nothing where its target or its prediction is missing."""
        there: NDArray[np.bool_] = np.isfinite(foretold) & np.isfinite(targets)
        aim, miss = np.where(there, targets, 0.0), np.where(there, np.abs(foretold - targets), 0.0)
        added = np.column_stack([np.ones(len(aim)), miss, miss * miss, (miss * miss) * (miss * miss), aim, aim * aim])
        weights = np.rint(np.clip(added, 0.0, 1.0) * self.unit)
        return np.where(there, 0, -1), np.tile(np.arange(len(SUMS)), (len(aim), 1)), weights


def edges_of(buckets: Any, threshold: Any, *, expected: int | None, variance: float) -> tuple[float, ...]:
    r"""The edges of the buckets, with the threshold among them: :math:`\sin^2` of equal angles by default.

    They lie closer together at 0 and 1, where scores of rare outcomes are. How many there are by default balances
    what a bucket hides, about one over their number, with noise, which grows with its root: for as many rows as are
    ``expected``.

    >>> [round(edge, 3) for edge in edges_of(4, 0.5, expected=None, variance=2)]
    [0.0, 0.146, 0.5, 0.854, 1.0]
    """
    cut = float(probability("threshold", threshold, zero=False, one=False))
    if buckets is None:
        rows = 1000 if expected is None else expected
        best = (rows / 8 / np.sqrt(0.1 * variance)) ** (2 / 3)
        buckets = 2 * round(float(np.clip(best, _FEWEST, _MOST)) / 2)
    if hasattr(buckets, "__len__"):
        given = [float(probability("an edge of buckets", edge)) for edge in buckets]
        if given != sorted(set(given)):
            raise InvalidParameterError(
                "The edges of buckets must rise.", fix="pass for example buckets=[0, 0.1, 0.5, 1]."
            )
    else:
        number = count("buckets", buckets)
        if number > _FINEST:
            raise InvalidParameterError(f"There are {number} buckets.", fix=f"pass buckets={_FINEST} or fewer.")
        given = [round(edge, 4) for edge in (np.sin(np.arange(number + 1) / number * np.pi / 2) ** 2).tolist()]
    return tuple(sorted({0.0, *given, cut, 1.0}))


@final
@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of every cell, in rows or persons, and what it owes."""

    mechanism: Laplace | Gaussian
    unit: int

    @property
    def variance(self) -> float:
        """Of one cell."""
        return self.mechanism.variance / self.unit**2

    @property
    def width(self) -> float:
        """How many standard errors hold 95 % of a combination of cells: ln(20)/√2 for one with Laplace noise."""
        return 2.1183 if isinstance(self.mechanism, Laplace) else 1.96

    @property
    def words(self) -> str:
        """The noise in a few words."""
        kind = "Laplace" if isinstance(self.mechanism, Laplace) else "Gaussian"
        return f"discrete {kind} noise of standard deviation {self.variance**0.5:.3g} on every cell"


def noise_for(layout: Layout, price: Budget, unit: Unit) -> Noise:
    """The least noise within the price: discrete Laplace, or Gaussian where the price has a delta or is rho."""
    moved = layout.sensitivity(unit)
    pure = Budget(price.epsilon) if price.rho is None else price
    ways: list[Laplace | Gaussian] = [Laplace.calibrated(pure, sensitivity=moved.l1)]
    if price.delta or price.rho is not None:
        with suppress(CannotCalibrateError):  # too small a delta; Laplace noise needs none
            ways.append(Gaussian.calibrated(price, sensitivity=moved.l2, dimension=layout.size))
    return Noise(min(ways, key=lambda way: way.variance), layout.unit)
