r"""Trees of counts: noisy sums of every level made to add up, without bias or as whole numbers that are not negative.

A tree has levels. The leaves are counts, and a node is the sum of its children. Every level is measured with
independent noise, of one variance in each level.

*Least squares.* On the way up, the subtree of a node tells about it what its own measurement y and the sum of its
children's estimates tell together, weighted by precision: :math:`z = v (y / \sigma^2 + \sum z_c / \sum v_c)` with
:math:`1/v = 1/\sigma^2 + 1/\sum v_c`. On the way down, what is known of a parent from elsewhere is divided among
its children by their variances: :math:`x_c = z_c + b_c (x - \sum z_c)` with :math:`b_c = v_c / \sum v_c`. These two
passes are generalised least squares over all measurements, in time proportional to the number of nodes. The variance
follows on the same way down: :math:`u_c = v_c + b_c^2 (u - \sum v_c)`, as in smoothing.

*Whole numbers.* The same way down with counts that are not negative: a parent's whole number is divided among its
children by :math:`\min \sum (x_c - z_c)^2 / v_c` over :math:`x_c \ge 0,\ \sum x_c = n`, which is
:math:`x_c = \max(0, z_c - \lambda v_c)`, and then rounded by largest remainders, which keeps the sum. Because the
estimates that go up are not cut, sparse leaves do not push their ancestors upwards. The top-down method of the 2020
census does the same with :math:`y_c` in place of :math:`z_c`, so that what is measured below a node is lost to it.

Reference:
    Hay, Rastogi, Miklau, Suciu (2010), Boosting the accuracy of differentially private histograms through consistency.
    Honaker (2015), Efficient use of differentially private binary trees.
    Abowd et al. (2022), The 2020 census disclosure avoidance system TopDown algorithm.
    Michelot (1986), A finite algorithm for finding the projection of a point onto the canonical simplex.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError

__all__ = ["Pooled", "Tree", "divided", "level_errors", "shares"]

_Floats: TypeAlias = NDArray[np.float64]
_Whole: TypeAlias = NDArray[np.int64]
_Number = TypeVar("_Number", np.int64, np.float64)
_LARGEST = float(1 << 52)
"""Beyond this, floats do not tell neighbouring whole numbers apart."""
_LEAST = 1e-3
"""A measurement with a smaller part of the budget is left out."""
_MANY = 40
"""Among more measurements the budget is divided evenly."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """What the subtree of each node tells about it, without what is measured elsewhere: by level, from the top."""

    values: list[_Floats]
    variances: list[_Floats]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Levels of nodes from the top down. The children of a node stand together, in the order of their parents.

    ``parents`` says for each level but the first the number of each node's parent. There may be several nodes at the
    top.

    >>> tree = Tree((np.array([0, 0]), np.array([0, 0, 1])))
    >>> tree.sizes, [level.tolist() for level in tree.sums(np.array([3, 4, 5]))]
    ((1, 2, 3), [[12], [7, 5], [3, 4, 5]])
    """

    parents: tuple[_Whole, ...]
    top: int = 1
    """How many nodes the first level has."""

    def __post_init__(self) -> None:
        above = self.top
        for parents in self.parents:
            steps = np.diff(parents)
            if not len(parents) or parents[0] != 0 or parents[-1] != above - 1 or ((steps != 0) & (steps != 1)).any():
                raise InvalidParameterError(
                    "The nodes of a tree do not stand in the order of their parents, or a parent has no child.",
                    fix="number the nodes of each level so that parents rise by at most one, from 0 to the last.",
                )
            above = len(parents)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many nodes each level has."""
        return (self.top, *map(len, self.parents))

    def sums(self, leaves: NDArray[_Number]) -> list[NDArray[_Number]]:
        """The sums of each level, from the top down to the leaves themselves; further axes are kept."""
        levels = [leaves]
        for parents in reversed(self.parents):
            levels.insert(0, np.add.reduceat(levels[0], _starts(parents), axis=0))
        return levels

    def pooled(self, noisy: Sequence[_Floats], variances: Sequence[float]) -> Pooled:
        """The way up. A variance of infinity stands for a level that was not measured, 0 for one that is exact."""
        values, spread = [np.asarray(noisy[-1], np.float64)], [np.full(len(noisy[-1]), float(variances[-1]))]
        for level in range(len(self.parents) - 1, -1, -1):
            starts, own = _starts(self.parents[level]), float(variances[level])
            below, vary = np.add.reduceat(values[0], starts, axis=0), np.add.reduceat(spread[0], starts)
            if own == 0:
                below, vary = np.asarray(noisy[level], np.float64), np.zeros(len(starts))
            elif np.isfinite(own):
                weight = _wide(vary / (own + vary), below)
                below = below + weight * (noisy[level] - below)
                vary = own * vary / (own + vary)
            values.insert(0, below)
            spread.insert(0, vary)
        return Pooled(values, spread)

    def estimates(self, pooled: Pooled) -> tuple[list[_Floats], list[_Floats]]:
        """The way down: least squares over all measurements, by level, and the variance of each node.

        Guarantee:
            Unbiased, and every node is the sum of its children.
        """
        variances = [pooled.variances[0]]
        x = pooled.values[0]
        for parents, z, v in zip(self.parents, pooled.values[1:], pooled.variances[1:], strict=True):
            starts = _starts(parents)
            around = np.add.reduceat(v, starts)
            part = v / np.where(around > 0, around, 1.0)[parents]
            missing = x - np.add.reduceat(z, starts, axis=0)
            x = z + _wide(part, z) * missing[parents]
            variances.append(np.maximum(v + part**2 * (variances[-1] - around)[parents], 0.0))
        return self.sums(x), variances

    def whole(self, pooled: Pooled, exact: Sequence[_Whole] = ()) -> list[_Whole]:
        """The way down in whole numbers that are not negative and add up; the first levels may be ``exact``."""
        if any(not (np.abs(values) < _LARGEST).all() for values in pooled.values):
            raise InvalidParameterError("Counts of 2**52 and more are not exact.", fix="count fewer rows.")
        levels = list(exact) or [np.rint(np.maximum(pooled.values[0], 0.0)).astype(np.int64)]
        for level in range(len(levels), len(self.sizes)):
            parents = self.parents[level - 1]
            levels.append(divided(levels[-1], pooled.values[level], pooled.variances[level], parents))
        return levels


def divided(totals: _Whole, wanted: _Floats, variances: _Floats, parents: _Whole) -> _Whole:
    """Whole numbers that are not negative, add up to the totals and are near what is wanted, by its precision.

    >>> divided(np.array([10]), np.array([7.4, 4.1, -2.0]), np.ones(3), np.zeros(3, np.int64)).tolist()
    [7, 3, 0]
    """
    starts = _starts(parents)
    active = (totals > 0)[parents]
    while True:
        spread = np.add.reduceat(np.where(active, variances, 0.0), starts)
        over = np.add.reduceat(np.where(active, wanted, 0.0), starts) - totals
        x = np.where(active, wanted - (over / np.where(spread > 0, spread, 1.0))[parents] * variances, 0.0)
        negative = x < 0
        if not negative.any():
            return _rounded(x, totals, parents, starts)
        active &= ~negative  # once negative, always: the others have to give more


def _rounded(x: _Floats, totals: _Whole, parents: _Whole, starts: _Whole) -> _Whole:
    """Rounded down, and the children with the largest remainders up, as many as the total asks for."""
    whole = np.floor(x).astype(np.int64)
    left = totals - np.add.reduceat(whole, starts)
    order = np.lexsort((whole - x, parents))
    rank = np.arange(len(x)) - starts[parents]  # children stand together, also in this order
    whole[order[rank < left[parents]]] += 1
    return whole


def _starts(parents: _Whole) -> _Whole:
    """Where the children of each node begin."""
    return np.flatnonzero(np.diff(parents, prepend=-1))


def _wide(numbers: _Floats, like: _Floats) -> _Floats:
    """One number for each node, against values that may have further axes."""
    return numbers.reshape(-1, *(1,) * (like.ndim - 1))


def level_errors(sizes: Sequence[int], variances: Sequence[float] | _Floats) -> _Floats:
    """The variance of an average node of each level after least squares, as if all nodes of a level were alike.

    >>> level_errors((1, 10), (1.0, 1.0)).round(3).tolist()
    [0.909, 0.909]
    """
    branches = [below / above for above, below in itertools.pairwise(sizes)]
    up = [float(variances[-1])]
    for own, branch in zip(reversed(variances[:-1]), reversed(branches), strict=True):
        below = branch * up[0]
        up.insert(0, below if np.isinf(own) else own * below / (own + below))
    found = [up[0]]
    for branch, v in zip(branches, up[1:], strict=True):
        found.append(v + (found[-1] - branch * v) / branch**2 if v else 0.0)
    return np.array(found)


def shares(
    errors: Callable[[_Floats], _Floats], number: int, *, needed: Sequence[int], power: float
) -> tuple[float, ...]:
    """Parts of a budget for measurements that are combined, with the least sum of their errors.

    Args:
        errors: the error of each wanted table, for the variances of the measurements.
        number: how many measurements there are.
        needed: those that cannot be left out.
        power: a measurement with the part q has a variance proportional to q to the power of minus this: 1 for
            Gaussian noise, 2 for Laplace noise.

    >>> [round(part, 2) for part in shares(lambda v: level_errors((1, 1000), v), 2, needed=[1], power=1)]
    [0.5, 0.5]
    """
    from scipy.optimize import minimize  # noqa: PLC0415  # tenths of a second that most questions never need

    def parts(logs: _Floats) -> _Floats:
        raised = np.exp(logs - logs.max())
        return np.asarray(raised / raised.sum())

    def total(part: _Floats) -> float:
        with np.errstate(divide="ignore"):
            return float(np.sum(errors(part**-power)))

    kept = np.isin(np.arange(number), needed)
    candidates = [kept / kept.sum()]
    if not kept.all() and number <= _MANY:
        found = minimize(lambda logs: total(parts(logs)), np.zeros(number), method="BFGS", options={"maxiter": 200})
        candidates.append(parts(np.clip(found.x, -20, 20)))
    elif number > 1:
        candidates = [np.full(number, 1 / number)]
    best = min(candidates, key=total)
    best = np.where(kept | (best >= _LEAST), best, 0.0)
    return tuple((best / best.sum()).tolist())
