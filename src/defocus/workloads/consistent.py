r"""Marginals of one histogram: counts that are not negative, and fit noisy tables as well as is worth while.

Counts :math:`p = N e^\theta / \sum e^\theta` of all cells fit the residuals :math:`\hat r_A` that a release estimates
with the loss :math:`\sum_A \|r_A(p) - \hat r_A\|^2 / 2 s_A^2`, minus its logarithmic likelihood. They begin where
attributes are independent, with the released counts of each, and follow the loss downhill by mirror descent with
momentum: :math:`\theta` moves against the gradient, so counts stay positive, and what no table speaks of stays as it
was. Going on to the end would fit the noise. How many steps to take is told by the release itself: with fresh noise
:math:`z` of the same law, :math:`\hat r + cz` and :math:`\hat r - z/c` have independent errors, so a fit of one is
judged by the other. All of it is computed from what was released.

Reference: McKenna, Sheldon, Miklau (2019), Graphical-model based estimation and inference for differential privacy
(mirror descent); Neufeld, Dharamshi, Gao, Witten (2024), Data thinning for convolution-closed distributions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from defocus.errors import InvalidParameterError
from defocus.workloads.marginal_strategies import MarginalStrategy
from defocus.workloads.marginals import Marginals
from defocus.workloads.queries import Array
from defocus.workloads.residuals import centred

__all__ = ["LARGEST_FITTED", "consistent_tables", "fits"]

LARGEST_FITTED = 2**21
"""Every step goes through all cells of the domain; with more of them it takes minutes."""
_STEPS = 400
_PATIENCE = 30
"""Steps after which a fit that other noise has not liked better is ended."""
_SHARE = 0.5
"""How much noise is added to judge a fit: more judges better, of a fit that is further off."""
_LEAST = 2.0**-20
"""A step is halved no further than to so much of what it was."""

_Set = tuple[int, ...]


def consistent_tables(workload: Marginals, strategy: MarginalStrategy, noisy: object, variance: float) -> Array:
    """The answers to ``workload`` of a histogram that fits the noisy rows; all zero if the total is not positive."""
    held = fits(workload)
    sizes = tuple(workload.sizes[i] for i in held)
    names, residuals, scales = strategy.lattice.names(), strategy.residuals(noisy), strategy.scales() * variance
    total = float(residuals[names.index(())])
    if total <= 0:
        return np.zeros(workload.queries)
    place = {member: at for at, member in enumerate(held)}
    tops = [tuple(place[i] for i in chosen) for chosen in workload.sets()]
    wanted = set(workload.lattice.names()) - {()}
    terms = [
        _Term.of(tuple(place[i] for i in name), residual, float(scale), tops)
        for name, residual, scale in zip(names, residuals, scales, strict=True)
        if name in wanted and 0 < scale < np.inf
    ]
    problem = _Problem(sizes, tops, terms, total)
    targets = [term.estimate for term in terms]
    rng = np.random.default_rng(0)  # it judges what was released, and hides nothing
    fresh = [math.sqrt(term.variance) * centred(rng.standard_normal(term.estimate.shape)) for term in terms]
    judged = [target - noise / _SHARE for target, noise in zip(targets, fresh, strict=True)]
    _, steps = problem.fitted([t + _SHARE * noise for t, noise in zip(targets, fresh, strict=True)], judged=judged)
    counts, _ = problem.fitted(targets, steps=steps)
    tables = problem.tree.tables(counts)
    return np.concatenate([tables[top].ravel() for top in tops])


def fits(workload: Marginals) -> list[int]:
    """The attributes of the tables; refused if they have too many cells together."""
    held = sorted({member for chosen in workload.sets() for member in chosen})
    cells = math.prod(workload.sizes[i] for i in held)
    if cells > LARGEST_FITTED:
        raise InvalidParameterError(
            f"The attributes of these tables have {cells} cells together, and one histogram is fitted to at most"
            f" {LARGEST_FITTED}.",
            fix="leave consistent out; after the release, answer.ask(…) takes tables of fewer attributes.",
        )
    return held


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Term:
    """The residual of one set: read from a table ``top`` that holds it, by summing ``away`` the rest."""

    top: _Set
    away: _Set
    estimate: Array
    variance: float

    @staticmethod
    def of(name: _Set, estimate: Array, variance: float, tops: Sequence[_Set]) -> "_Term":
        top = next(chosen for chosen in tops if set(name) <= set(chosen))
        away = tuple(axis for axis, member in enumerate(top) if member not in name)
        return _Term(top, away, estimate, variance)


@final
class _Problem:
    """Counts of all cells and how well their residuals fit."""

    __slots__ = ("_start", "sizes", "terms", "total", "tree")

    def __init__(self, sizes: _Set, tops: Sequence[_Set], terms: Sequence[_Term], total: float) -> None:
        self.sizes, self.terms, self.total, self.tree = sizes, terms, total, _Tree(sizes, tops)
        start = np.zeros(sizes)
        for term in terms:
            if term.estimate.ndim == 1:
                (axis,) = (member for i, member in enumerate(term.top) if i not in term.away)
                counts = np.maximum(total / sizes[axis] + term.estimate, max(math.sqrt(term.variance), 1.0))
                start = start + np.expand_dims(np.log(counts), tuple(i for i in range(len(sizes)) if i != axis))
        self._start = start

    def fitted(
        self, targets: Sequence[Array], *, judged: Sequence[Array] | None = None, steps: int = _STEPS
    ) -> tuple[Array, int]:
        """Counts after so many steps, and after how many they were best for ``judged`` targets."""
        theta = ahead = self._start
        counts, tables = self._of(theta)
        loss, slopes = self._loss(tables, targets)
        ahead_counts, ahead_loss, ahead_slopes = counts, loss, slopes
        step, pace, best, best_after = 0.0, 1.0, math.inf, 0
        for number in range(1, steps + 1):
            slope = self.tree.spread(ahead_slopes)
            slope = slope - float(np.vdot(slope, ahead_counts)) / self.total
            first = step = step * 1.3 or 1 / max(float(np.abs(slope).max()), 1e-300)
            while True:
                moved = ahead - step * slope
                new, tables = self._of(moved)
                new_loss, new_slopes = self._loss(tables, targets)
                if ahead_loss - new_loss >= 0.5 * float(np.vdot(slope, ahead_counts - new)) or step < _LEAST * first:
                    break
                step /= 2
            if new_loss > loss and pace > 1:  # the momentum led uphill: begin anew from here
                pace, ahead, ahead_counts, ahead_loss, ahead_slopes = 1.0, theta, counts, loss, slopes
                continue
            faster = (1 + math.sqrt(1 + 4 * pace * pace)) / 2
            ahead = moved + (pace - 1) / faster * (moved - theta)
            theta, counts, loss, slopes, pace = moved, new, new_loss, new_slopes, faster
            ahead_counts, ahead_tables = self._of(ahead)
            ahead_loss, ahead_slopes = self._loss(ahead_tables, targets)
            if judged is not None:
                worth = self._loss(tables, judged)[0]
                if worth < best:
                    best, best_after = worth, number
                elif number > best_after + _PATIENCE:
                    break
        return counts, best_after

    def _of(self, theta: Array) -> tuple[Array, dict[_Set, Array]]:
        counts = np.exp(theta - theta.max())
        counts *= self.total / counts.sum()
        return counts, self.tree.tables(counts)

    def _loss(self, tables: dict[_Set, Array], targets: Sequence[Array]) -> tuple[float, dict[_Set, Array]]:
        """The loss, and its slope in the cells of each table."""
        loss, slopes = 0.0, {top: np.zeros(tables[top].shape) for top in self.tree.tops}
        for term, target in zip(self.terms, targets, strict=True):
            off = centred(tables[term.top].sum(axis=term.away) if term.away else tables[term.top]) - target
            loss += float(np.vdot(off, off)) / (2 * term.variance)
            slopes[term.top] += np.expand_dims(off / term.variance, term.away)
        return loss, slopes


@final
class _Tree:
    """Tables summed down one attribute at a time, the longest first, so that few sums go through all cells."""

    __slots__ = ("_above", "_full", "_order", "_sizes", "tops")

    def __init__(self, sizes: _Set, tops: Sequence[_Set]) -> None:
        self._sizes, self._full, self.tops = sizes, tuple(range(len(sizes))), tops
        shortest = sorted(self._full, key=lambda i: (sizes[i], i))
        self._above: dict[_Set, tuple[_Set, int]] = {}
        for top in tops:
            table = top
            while table != self._full and table not in self._above:
                more = next(i for i in shortest if i not in table)
                larger = tuple(sorted((*table, more)))
                self._above[table] = larger, larger.index(more)
                table = larger
        self._order = sorted(self._above, key=len, reverse=True)

    def tables(self, counts: Array) -> dict[_Set, Array]:
        """The tables of these counts, and those on the way to them."""
        found = {self._full: counts}
        for table in self._order:
            larger, axis = self._above[table]
            found[table] = found[larger].sum(axis=axis)
        return found

    def spread(self, slopes: dict[_Set, Array]) -> Array:
        """The sum over tables of what each says of its cells, for every cell of the domain."""
        held = dict(slopes)
        for table in reversed(self._order):
            larger, axis = self._above[table]
            part = np.expand_dims(held.pop(table), axis)
            held[larger] = held[larger] + part if larger in held else part
        return np.broadcast_to(held[self._full], self._sizes)
