r"""How much noise each step gets: the same for all, by a schedule, or correlated from step to step."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, Number, count, positive
from defocus.workloads.streams.design import Participation, best_bandwidth
from defocus.workloads.streams.strategies import coefficients, squares

__all__ = ["Banded", "Schedule", "Strategy", "strategy"]

_LEVELS = 8
_MOST = 16
_BITS = 18


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
class Strategy:
    """The first column of a banded Toeplitz matrix, with a one on the diagonal, and its L2 norm, rounded up."""

    column: tuple[float, ...]
    norm: float


def strategy(banded: Banded, *, steps: int, groups: int) -> Strategy:
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
