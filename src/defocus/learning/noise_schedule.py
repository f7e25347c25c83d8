r"""How much noise each step gets: the same for all, by a schedule, or correlated from step to step."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final, overload

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.signal import lfilter

from defocus.errors import InvalidParameterError, Number, count, positive
from defocus.workloads.streams.design import Participation, best_bandwidth
from defocus.workloads.streams.strategies import coefficients, squares

__all__ = ["Banded", "BufferedStrategy", "BufferedToeplitz", "Schedule", "Strategy", "strategy"]

_Floats = NDArray[np.float64]

_LEVELS = 8
_MOST = 16
_BITS = 18
_SEARCHED = 2**13
"""Parameters are searched for runs of at most so many steps; the sensitivity is that of the whole run."""
_MOST_BUFFERS = 8
_TRIES = 300


@final
@dataclass(frozen=True, slots=True)
class Schedule:
    """Noise that changes on the way: a run is cut into as many equal stretches as there are ``factors``.

    The noise of a step is the base noise, which the budget decides, times the factor of its stretch. Each level is one
    repeated event, and accounting takes some milliseconds for each level, whatever the length of the run. More than 16
    different factors are brought to the nearest of 16 in a geometric series; the noise added is then that noise.

    >>> Schedule.geometric(2, 1, levels=3).factors
    (2.0, 1.414..., 1.0)
    """

    factors: tuple[float, ...]

    def __init__(self, factors: Sequence[Number]) -> None:
        checked = tuple(float(positive("a factor of the schedule", factor)) for factor in factors)
        if not checked or max(checked) / min(checked) > 1e6:
            raise InvalidParameterError(
                "A schedule has at least one factor, and none a million times another.",
                fix="write for example Schedule([1.5, 1.2, 1.0]).",
            )
        object.__setattr__(self, "factors", checked if len(set(checked)) <= _MOST else _snapped(checked))

    @classmethod
    def linear(cls, first: Number, last: Number, *, levels: int = _LEVELS) -> "Schedule":
        """From ``first`` to ``last`` in steps of equal difference."""
        return cls(
            np.linspace(float(positive("first", first)), float(positive("last", last)), _several(levels)).tolist()
        )

    @classmethod
    def geometric(cls, first: Number, last: Number, *, levels: int = _LEVELS) -> "Schedule":
        """From ``first`` to ``last`` in steps of equal ratio."""
        return cls(
            np.geomspace(float(positive("first", first)), float(positive("last", last)), _several(levels)).tolist()
        )

    @classmethod
    def of(cls, shape: Callable[[float], Number], *, levels: int = _LEVELS) -> "Schedule":
        """A function of the part of the run that is over, from 0 to 1, read at the middle of each stretch."""
        return cls([shape((i + 0.5) / _several(levels)) for i in range(levels)])

    def at(self, steps: int) -> tuple[float, ...]:
        """The factor of every step."""
        last = len(self.factors)
        return tuple(self.factors[min(last - 1, step * last // steps)] for step in range(steps))


@final
@dataclass(frozen=True, slots=True)
class Banded:
    r"""Noise that later steps take back: DP-FTRL with a banded square-root strategy.

    With the strategy C, lower triangular with a band of ``bands`` steps, what is released is C applied to the stream of
    gradients, with independent noise; each step uses its own gradient, with the noise :math:`C^{-1}z`, which partly
    cancels in the sum of all steps. Units take part cyclically: see :class:`~defocus.learning.sampling.Cyclic`.

    Args:
        bands: how many steps the strategy remembers; as many noises of the size of the model are kept. The best for the
            run by default. At most ``groups``.
        groups: how many groups units fall into. Unless told, as many as an epoch has steps, and all of a group take
            part when it is their turn; with fewer groups a part of them is drawn, and the rate is accounted.
    Reference:
        Kairouz et al. (2021), Practical and private (deep) learning without sampling or shuffling; Choquette-Choo et
        al. (2023); Kalinin, Lampert (2024), Banded square root matrix factorization.

    >>> Banded(bands=4, groups=10).bands
    4
    """

    bands: int | None = None
    groups: int | None = None

    def __post_init__(self) -> None:
        for name in ("bands", "groups"):
            value: Any = getattr(self, name)
            if value is not None:
                count(name, value)
        if self.bands is not None and self.groups is not None and self.bands > self.groups:
            raise InvalidParameterError(
                f"A band of {self.bands} steps needs as many groups, but there are {self.groups}.",
                fix="pass bands <= groups.",
            )


@final
@dataclass(frozen=True, slots=True)
class BufferedToeplitz:
    r"""Noise that later steps take back, from a few buffers: DP-FTRL with a buffered linear Toeplitz strategy (BLT).

    The strategy C is lower triangular with ones on its diagonal and :math:`\sum_i w_i \lambda_i^{k-1}` at k steps below
    it, so that the noise :math:`C^{-1}z` of a step follows from one buffer of the size of the model for each i. It
    remembers the whole run. Units take part cyclically, all of a group when it is its turn: nothing is drawn.

    Args:
        buffers: how many buffers are kept; three or four come close to the best strategy without such a limit.
        groups: how many groups units fall into; as many as an epoch has steps by default, and no fewer.
    Reference:
        Dvijotham, McMahan, Pillutla, Steinke, Thakurta (2024), Efficient and near-optimal noise generation for
        streaming differential privacy; McMahan, Xu, Zhang (2024), A hassle-free algorithm for strong DP-FTRL.

    >>> BufferedToeplitz(buffers=3).buffers
    3
    """

    buffers: int = 4
    groups: int | None = None

    def __post_init__(self) -> None:
        if count("buffers", self.buffers) > _MOST_BUFFERS:
            raise InvalidParameterError(
                f"There are at most {_MOST_BUFFERS} buffers: more hardly lower the error.", fix="pass buffers=4."
            )
        if self.groups is not None:
            count("groups", self.groups)


@final
@dataclass(frozen=True, slots=True)
class Strategy:
    """The first column of a banded Toeplitz matrix, with a one on the diagonal, and its L2 norm, rounded up."""

    column: tuple[float, ...]
    norm: float

    def words(self) -> str:
        """What noise is correlated over."""
        return f"{len(self.column)} steps"

    def first(self, steps: int) -> _Floats:
        """The first column of the matrix for so many steps."""
        return np.pad(np.array(self.column[:steps]), (0, max(0, steps - len(self.column))))


@final
@dataclass(frozen=True, slots=True)
class BufferedStrategy:
    """The weights and decays of a buffered Toeplitz matrix, and its sensitivity for each turn, rounded up.

    If a unit has k turns, the sum of its columns has at most the norm times the root of k: k releases of one column
    with that norm cost the same.
    """

    weights: tuple[float, ...]
    decays: tuple[float, ...]
    norm: float

    def words(self) -> str:
        """What noise is correlated over."""
        return f"the whole run by {len(self.weights)} buffers"

    def first(self, steps: int) -> _Floats:
        """The first column of the matrix for so many steps."""
        return _column(np.array(self.weights), np.array(self.decays), steps)


@overload
def strategy(how: Banded, *, steps: int, groups: int) -> Strategy: ...
@overload
def strategy(how: BufferedToeplitz, *, steps: int, groups: int) -> BufferedStrategy: ...
def strategy(how: Banded | BufferedToeplitz, *, steps: int, groups: int) -> Strategy | BufferedStrategy:
    """The strategy for this run, in which participations of a unit are ``groups`` steps apart."""
    return _banded(how, steps, groups) if isinstance(how, Banded) else _buffered(how.buffers, steps, groups)


def _buffered(buffers: int, steps: int, groups: int) -> BufferedStrategy:
    r"""The buffered Toeplitz strategy with about the least mean error of all sums, and its sensitivity.

    Guarantee:
        A unit of group g takes part in steps g, g + b, g + 2b, …, for b groups, with gradients :math:`x_j` no longer
        than one. It moves :math:`Cx` by :math:`\sum_j c_{g+jb} \otimes x_j`, whose squared length is
        :math:`\sum_{jl} \langle c_{g+jb}, c_{g+lb}\rangle \langle x_j, x_l\rangle`. No entry of C is negative, so that
        is at most the squared length of :math:`\sum_j c_{g+jb}`; and since the columns of a Toeplitz matrix are one
        column, moved down and cut off, at most that for g = 0. Of k turns it counts the first k·b rows only, as no
        later turn meets them. The norm is the largest root of (that squared length over k) for any k, so that a run
        that ends early is covered as well. A step that is passed over takes its row and column away, which lowers
        every inner product.
        Later gradients may depend on what was released: C is lower triangular, and noise is Gaussian.
    Reference:
        Denisov, McMahan, Rush, Smith, Thakurta (2022), Improved differential privacy for SGD via optimal private
        linear operators on adaptive streams, Theorem 2.1; Choquette-Choo, McMahan, Rush, Thakurta (2023),
        Multi-epoch matrix factorization mechanisms, Corollary 2.1.
    """
    weights, decays = _searched(buffers, min(steps, _SEARCHED), groups)
    lengths = _lengths(_column(weights, decays, steps), groups)
    turns = np.arange(1, -(-steps // groups) + 1)
    rows = np.minimum(turns * groups, steps)
    norm = math.sqrt(float((lengths[rows - 1] / turns).max()) * (1 + 1e-9))  # for rounding of so many sums
    return BufferedStrategy(tuple(weights.tolist()), tuple(decays.tolist()), norm)


def _searched(buffers: int, steps: int, groups: int) -> tuple[_Floats, _Floats]:
    """Weights and decays by a search from two beginnings, on a grid, so that all processes of a run find the same."""

    def read(point: _Floats) -> tuple[_Floats, _Floats]:
        return np.exp(point[:buffers].clip(-40, 5)), 1 / (1 + np.exp(-point[buffers:].clip(-20, 20)))

    def mean_error(point: _Floats) -> float:
        weights, decays = read(point)
        with np.errstate(all="ignore"):  # weights whose inverse grows without end are as bad as that
            sums = np.cumsum(_column(weights, decays, steps, inverse=True))
            error = _lengths(_column(weights, decays, steps), groups)[-1] * np.cumsum(sums**2).mean()
        return math.log(error) if math.isfinite(error) else 1e9

    found = []
    for far in (steps, min(steps, 4 * groups)):
        gaps = np.geomspace(1 / max(far, 2), 0.8, buffers)
        start = np.concatenate([np.log(np.sqrt(gaps) / buffers), np.log((1 - gaps) / gaps)])
        tries = {"maxiter": _TRIES * buffers, "maxfev": _TRIES * buffers, "adaptive": True}
        near = minimize(mean_error, start, method="Nelder-Mead", options=tries)
        found.append(minimize(mean_error, near.x, method="L-BFGS-B", options={"maxiter": 200}))
    weights, decays = read(min(found, key=lambda each: float(each.fun)).x)
    return _rounded(weights), _rounded(decays).clip(0, 1 - 2.0**-_BITS)


def _rounded(numbers: _Floats) -> _Floats:
    return np.asarray(np.rint(numbers * 2**_BITS) / 2**_BITS)


def _column(weights: _Floats, decays: _Floats, steps: int, *, inverse: bool = False) -> _Floats:
    r"""The first column of C, or of its inverse: of :math:`1 + \sum_i w_i x/(1-\lambda_i x)` as a series in x.

    >>> _column(np.array([0.5]), np.array([0.5]), 4).tolist()
    [1.0, 0.5, 0.25, 0.125]
    >>> _column(np.array([0.5]), np.array([0.5]), 4, inverse=True).tolist()
    [1.0, -0.5, 0.0, 0.0]
    """
    below = np.ones(1)
    for decay in decays:
        below = np.convolve(below, [1.0, -decay])
    above = below.copy()
    for place, weight in enumerate(weights):
        part = np.array([0.0, weight])
        for decay in np.delete(decays, place):
            part = np.convolve(part, [1.0, -decay])
        above += part
    first = np.zeros(steps)
    first[0] = 1.0
    return np.asarray(lfilter(below, above, first) if inverse else lfilter(above, below, first))


def _lengths(column: _Floats, groups: int) -> _Floats:
    """The squared lengths of the first rows, one after the other, of the sum of every ``groups``-th column."""
    total = np.zeros_like(column)
    for start in range(0, len(column), groups):
        total[start:] += column[: len(column) - start]
    return np.asarray(np.cumsum(total**2))


def _banded(banded: Banded, steps: int, groups: int) -> Strategy:
    """The banded square root for this run, with the integer coefficients that running sums use.

    Guarantee:
        Participations are at least ``groups`` steps apart and the band is no wider, so columns that one unit meets do
        not overlap, and each has at most the norm returned.
    """
    unit = Participation(-(-steps // groups), groups, 1, replace=False)
    width = banded.bands if banded.bands is not None else min(groups, best_bandwidth(steps, unit))
    if width > groups:
        raise InvalidParameterError(
            f"A band of {width} steps is wider than the {groups} steps between participations.",
            fix=f"pass bands <= {groups}, or more groups.",
        )
    integers = coefficients(np.arange(min(width, steps), dtype=np.int64), _BITS)
    norm = math.sqrt(squares(integers)) / 2**_BITS * (1 + 2.0**-50)
    return Strategy(tuple((integers / 2**_BITS).tolist()), norm)


def _several(levels: object) -> int:
    return count("levels", levels)


def _snapped(factors: tuple[float, ...]) -> tuple[float, ...]:
    grid = np.geomspace(min(factors), max(factors), _MOST)
    nearest = np.abs(np.log(np.array(factors))[:, None] - np.log(grid)).argmin(axis=1)
    return tuple(grid[nearest].tolist())
