"""Optima of sums over rows, seen through noisy gradients in whole numbers."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from defocus.learning.estimators.balls import Floats, Rows
from defocus.learning.estimators.descent import course, descended
from defocus.learning.estimators.residuals import PULL
from defocus.learning.estimators.spending import Plan, Purse, Sum, planned
from defocus.mechanisms import Gaussian
from defocus.mechanisms.values import IntVector, add
from defocus.noise import Bits, discrete_gaussian

__all__ = ["ROW_BITS", "UNIT", "Loss", "gradient_plan", "noised", "optimum"]

ROW_BITS = 13
"""Rows measure up to 2**13 steps."""
_FINE = 16
"""Coefficients are rounded to 2**-16 where scores are computed with them."""
UNIT = 2 ** (ROW_BITS + _FINE)
"""Scores are whole multiples of one over this."""
_TRACE = 0.01
"""The share of the budget that finds how long rows are."""
_AHEAD = 1 << 14
"""How many numbers of noise are drawn at a time."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """What rows pull scores by, as a function of their scores; both in whole numbers.

    ``pulls`` has a row for each row, of norm at most PULL, and may depend on that row alone; one of its steps stands
    for ``step``. ``bend`` bounds the curvature of the loss of a row by its score, and ``spread`` is what coefficients
    are expected to vary by, for rows in the unit ball.
    """

    pulls: Callable[[Floats], Floats]
    columns: int
    step: float
    bend: float
    spread: float


def gradient_plan(means: Purse, dimension: int, steps: int) -> Plan:
    r"""The noise of every gradient and of the sum of squared lengths.

    Guarantee:
        A row is a vector x of norm at most :math:`2^{13}` and pulls by a vector r of norm at most :math:`2^{13}`; it
        adds :math:`x \otimes r`, of norm :math:`\|x\|\|r\| \le 2^{26}`, to a gradient, at any coefficients, and at most
        :math:`2^{13}` to the sum of :math:`\lfloor\|x\|^2/2^{13}\rfloor`.
    """
    return planned(means, [Sum(2**ROW_BITS * PULL, dimension, 1 - _TRACE, steps), Sum(2**ROW_BITS, 1, _TRACE)])


def optimum(rows: Rows, loss: Loss, plan: Plan, *, steps: int, ridge: float | None, bits: Bits) -> Floats:
    """The coefficients that the loss and a ridge prefer: everything here is paid for by the plan."""
    whole, trace = plan.noises
    noise = replace(whole, dimension=rows.width * loss.columns)
    lengths = trace.sample(int(np.floor(rows.squares() / 2**ROW_BITS).sum()), bits) + 3 * float(trace.sigma)
    curvature = loss.bend * max(lengths, 0.0) / 2**ROW_BITS
    unit = loss.step / 2**ROW_BITS
    mean = float(noise.sigma) * unit / math.sqrt(steps)
    way = course(mean, curvature, steps, width=rows.width, spread=loss.spread, ridge=ridge)
    fresh = _fresh(noise, bits)

    def gradient(w: Floats) -> Floats:
        exact = rows.tallied(loss.pulls(rows.times(np.rint(w * 2**_FINE))))
        noisy: Floats = add(exact.ravel(), next(fresh)).reshape(w.shape) * unit
        return noisy

    return descended(gradient, (rows.width, loss.columns), way)


def noised(exact: IntVector, noise: Gaussian, bits: Bits) -> Floats:
    """A matrix of whole sums with fresh noise in every entry."""
    return np.asarray(noise.sample(exact.ravel(), bits), dtype=np.float64).reshape(exact.shape)


def _fresh(noise: Gaussian, bits: Bits) -> Iterator[IntVector]:
    """Fresh noise for one release after another, drawn for several at a time: short draws cost as much as long ones."""
    ahead = max(1, _AHEAD // noise.dimension)
    while True:
        yield from discrete_gaussian(noise.sigma, ahead * noise.dimension, bits).reshape(ahead, -1)
