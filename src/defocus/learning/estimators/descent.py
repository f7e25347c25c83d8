r"""Noisy gradient descent that wastes none of its noise: momentum to get there, an average to stay.

Every step sees the whole gradient through fresh noise of variance T·s² for T steps, which costs as much as one look
through noise of variance s². Around the optimum a step errs by its own noise, but the average of the steps errs by
:math:`H^{-1}` times the mean of all noises, whose variance is s² again: what one look at the optimum
itself would cost, and objective perturbation costs (Polyak, Juditsky 1992). What is lost is the way there. Momentum
makes it short: about :math:`\sqrt{\kappa}` steps for the condition number :math:`\kappa = L/\lambda` (Nesterov 1983).

What one row pulls a linear classifier by, in whole numbers: the clipped residuals of the logistic loss.

A row x of class y pulls the scores of the classes by :math:`(p - e_y) \otimes x`, where p are the probabilities that
the model gives it. The residual :math:`p - e_y` is clipped to the norm that it has for everybody before anything was
learned, :math:`c = \sqrt{1 - 1/K}` for K classes: no row ever pulls harder than at the start, and noise needs to hide a
half of what it would for the logistic loss itself where there are two classes, and .58 to .71 of it where there are
more. For two classes this is a convex loss, logistic on the right side of the boundary and straight on the wrong one.

What clipping does to probabilities is known and undone. Where the classes of rows at some x have probabilities
:math:`\eta`, nothing pulls if :math:`\sum_y \eta_y a_y (p - e_y) = 0` with :math:`a_y = \min(1, c/\|p - e_y\|)`; so
:math:`p_y \propto \eta_y a_y`, and :math:`\eta_y \propto p_y / a_y` (:func:`chances`).

Scores come as whole numbers, exponentials from a table, the rest is whole numbers and single operations that IEEE 754
rounds in one way. So what a row pulls by depends on that row and the model alone, and its norm is at most
:data:`PULL` steps exactly.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import cast, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError
from defocus.learning.estimators.fit_budget import FitBudget, Noise, Plan, Sum, planned
from defocus.learning.estimators.grid import Floats, Rows, summed
from defocus.mechanisms import Gaussian
from defocus.mechanisms.mechanism import IntVector, add
from defocus.noise import Bits, discrete_gaussian

__all__ = [
    "PULL",
    "ROW_BITS",
    "UNIT",
    "Course",
    "Loss",
    "bends",
    "chances",
    "course",
    "decisions",
    "descended",
    "gradient_plan",
    "grained",
    "largest",
    "noised",
    "optimum",
    "probabilities",
    "pulls",
    "residuals",
]


_ROUNDS = 2
"""Steps are worth at least so many times the square root of the condition number; else the ridge is raised."""
_LONGEST = 2.0**12
"""No coefficient is ever larger: sums of whole numbers stay below 2**53."""


@final
@dataclass(frozen=True, slots=True)
class Course:
    """A ridge, a bound on the curvature with it, and how many steps are taken before averaging begins."""

    ridge: float
    curvature: float
    steps: int

    @property
    def before(self) -> int:
        """Steps on the way: about the square root of the condition number, at most half of all."""
        return min(self.steps // 2, math.ceil(math.sqrt(self.curvature / self.ridge)))


def course(
    noise: float, curvature: float, steps: int, *, width: int, spread: float, ridge: float | None = None
) -> Course:
    r"""How to descend, from the standard deviation of the mean ``noise`` and a bound on the ``curvature``.

    Along a direction of curvature h, with a coefficient of variance :math:`\tau^2` expected beforehand, a
    ridge :math:`\lambda` costs :math:`h(\lambda^2\tau^2 + s^2)/(h + \lambda)^2`, least for
    :math:`\lambda = s^2/h\tau^2`. Of all h no more is known than their mean m over the ``width`` directions, since the
    ``curvature`` bounds their sum. What is lost to the best ridge for every direction is then, in the worst case, least
    for :math:`\lambda = (s/\tau)(1 + \frac32 e^{-2m\tau/s})`, to within a hundredth: where noise prevails,
    :math:`s/\tau` alone would make twice of it what it should. What coefficients are expected to vary by,
    :math:`\tau`, is the ``spread``. Nothing here depends on data, but for the curvature, which is noisy and paid for.
    """
    least = curvature * (_ROUNDS / steps) ** 2
    usual = noise / spread
    lifted = usual * (1 + 1.5 * math.exp(-2 * curvature / width / usual)) if usual else 0.0
    chosen = max(lifted, least) if ridge is None else ridge
    return Course(chosen, curvature + chosen, steps)


def descended(gradient: Callable[[Floats], Floats], shape: tuple[int, int], way: Course) -> Floats:
    """The average of the iterates of accelerated descent from zero, each step with the noisy ``gradient`` there."""
    root = math.sqrt(way.curvature / way.ridge)
    momentum = (root - 1) / (root + 1)
    here, ahead, total = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for step in range(way.steps):
        pull = gradient(ahead) + way.ridge * ahead
        there = np.clip(ahead - pull / way.curvature, -_LONGEST, _LONGEST)
        ahead = np.clip(there + momentum * (there - here), -_LONGEST, _LONGEST)
        here = there
        if step >= way.before:
            total += here
    return total / (way.steps - way.before)


PULL = 1 << 13
"""The largest norm of a clipped residual, in steps."""

_FINE = 12
"""Scores are looked up in steps of 2**-12."""
_FAR = 16
"""Scores beyond this many units are looked up there: probabilities differ from 0 or 1 by a ten-millionth."""
_ONE = 1 << 24
"""What the largest class weighs in the table of exponentials."""


def largest(classes: int) -> float:
    """The norm that residuals are clipped to."""
    return math.sqrt(1 - 1 / classes)


def pulls(scores: Floats, labels: NDArray[np.int64], *, unit: int, classes: int) -> Floats:
    """The clipped residuals in steps of largest / PULL; ``scores`` are whole multiples of 1 / ``unit``, a power of two.

    One column of scores, for class 1 against class 0, where there are two classes; else one for each class. Rows with
    a label below zero have none of the classes, and pull nobody.

    >>> pulls(np.array([[0.0], [0.0], [64.0]]), np.array([0, 1, -1]), unit=16, classes=2).ravel().tolist()
    [8192.0, -8192.0, 0.0]
    """
    labelled = labels >= 0
    if classes == 2:
        sign = np.where(labels == 1, 1.0, -1.0)
        pulled = -sign * _wrongness()[_cells(sign * scores[:, 0], unit)]
        return np.where(labelled, pulled, 0.0)[:, np.newaxis]
    weights = _exponentials()[_cells(scores - scores.max(axis=1, keepdims=True), unit)]
    chance = weights / weights.sum(axis=1, keepdims=True)  # sums of whole numbers
    chance[labelled, labels[labelled]] -= 1.0
    steps = np.trunc(chance * (PULL / largest(classes)))
    size = np.einsum("ij,ij->i", steps, steps)  # whole numbers again
    steps *= np.where(size > PULL**2, PULL * (1 - 2.0**-40) / np.sqrt(np.maximum(size, 1.0)), 1.0)[:, np.newaxis]
    steps = np.trunc(steps)
    keep = labelled & (np.einsum("ij,ij->i", steps, steps) <= PULL**2)
    return np.where(keep[:, np.newaxis], steps, 0.0)


def chances(scores: Floats) -> Floats:
    """The probability of each class that scores stand for, one column each: softmax, with the clipping undone."""
    plain = np.exp(scores - scores.max(axis=1, keepdims=True))
    plain /= plain.sum(axis=1, keepdims=True)
    apart = np.sqrt(np.maximum((plain**2).sum(axis=1, keepdims=True) + 1 - 2 * plain, 0.0))
    mended = plain * np.maximum(1.0, apart / largest(scores.shape[1]))
    shares: Floats = mended / mended.sum(axis=1, keepdims=True)
    return shares


def _cells(scores: Floats, unit: int) -> NDArray[np.int64]:
    """Which entry of a table each score belongs to: division by a power of two is exact."""
    cells = np.floor(scores * (2**_FINE / unit)) + (_FAR << _FINE)
    numbers: NDArray[np.int64] = cells.clip(0, (2 * _FAR << _FINE) - 1).astype(np.int64)
    return numbers


def _middles() -> Floats:
    middles: Floats = (np.arange(2 * _FAR << _FINE) + 0.5) / 2**_FINE - _FAR
    return middles


@cache
def _wrongness() -> Floats:
    """The probability of the other class, at most one half, by the score of the own class; PULL for one half."""
    table: Floats = np.minimum(np.rint(2 * PULL / (1 + np.exp(_middles()))), PULL)
    return table


def residuals(scores: Floats, labels: NDArray[np.int64]) -> Floats:
    """The residuals of the logistic loss for two classes, as they are, in steps of 1 / PULL; zero without a label.

    >>> residuals(np.array([[0.0], [0.0], [64.0]]), np.array([0, 1, -1])).ravel().tolist()
    [4096.0, -4096.0, 0.0]
    """
    sign = np.where(labels == 1, 1.0, -1.0)
    missed = -sign * _misses()[_cells(sign * scores[:, 0], UNIT)]
    return np.where(labels >= 0, missed, 0.0)[:, np.newaxis]


def bends(scores: Floats, labels: NDArray[np.int64]) -> Floats:
    """The roots of the curvature of the logistic loss for two classes, p (1 - p), in steps of 1 / (2 PULL)."""
    return np.where(labels >= 0, _roots()[_cells(scores[:, 0], UNIT)], 0.0)


@cache
def _misses() -> Floats:
    """The probability of the other class, by the score of the own class; PULL for one."""
    table: Floats = np.rint(PULL / (1 + np.exp(_middles())))
    return table


@cache
def _roots() -> Floats:
    """The root of 4 p (1 - p), by the score; PULL for one."""
    table: Floats = np.rint(PULL / np.cosh(_middles() / 2))
    return table


@cache
def _exponentials() -> Floats:
    """Whole multiples of e to the score, for scores up to zero."""
    table: Floats = np.rint(_ONE * np.exp(np.minimum(_middles(), 0.0)))
    return table


def probabilities(scores: Floats, classes: int) -> Floats:
    """The probability of each class, from one column of scores for two classes or fewer, and one for each of more.

    >>> probabilities(np.zeros((1, 1)), 2)
    array([[0.5, 0.5]])
    """
    if classes == 1:
        return np.ones((len(scores), 1))
    return chances(np.hstack([-scores, scores]) / 2 if classes == 2 else scores)


def decisions(scores: Floats, classes: int) -> Floats:
    """What scikit-learn calls decisions: the score of the second class against the first, or of each of more."""
    return scores[:, 0] if classes <= 2 else np.log(np.maximum(chances(scores), 1e-300))


ROW_BITS = 13
"""Rows measure up to 2**13 steps."""
_FINE_GRADIENT = 16
"""Coefficients are rounded to 2**-16 where scores are computed with them."""
UNIT = 2 ** (ROW_BITS + _FINE_GRADIENT)
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


def gradient_plan(means: FitBudget, dimension: int, steps: int, also: Sequence[Sum] = ()) -> Plan:
    r"""The noise of every gradient and of the sum of squared lengths; then that of what is ``also`` released.

    Guarantee:
        A row is a vector x of norm at most :math:`2^{13}` and pulls by a vector r of norm at most :math:`2^{13}`; it
        adds :math:`x \otimes r`, of norm :math:`\|x\|\|r\| \le 2^{26}`, to a gradient, at any coefficients, and at most
        :math:`2^{13}` to the sum of :math:`\lfloor\|x\|^2/2^{13}\rfloor`.
    """
    if means.pure:
        raise InvalidParameterError(
            f"Descent looks at the data {steps} times, and {means.price} has no delta: without one, noise grows with"
            " that number and not with its root.",
            fix="leave solver= out, or pass a delta well below one over the number of rows, for example delta=1e-6.",
        )
    left = 1 - sum(each.share for each in also)
    gradients = Sum(2**ROW_BITS * PULL, dimension, left * (1 - _TRACE), steps)
    return planned(means, [gradients, Sum(2**ROW_BITS, 1, left * _TRACE), *also])


def optimum(rows: Rows, loss: Loss, plan: Plan, *, steps: int, ridge: float | None, bits: Bits) -> Floats:
    """The coefficients that the loss and a ridge prefer: everything here is paid for by the plan."""
    whole, trace = cast("tuple[Gaussian, Gaussian]", plan.noises[:2])  # no other is planned for gradients
    noise = replace(whole, dimension=rows.width * loss.columns)
    long = summed(np.floor(rows.squares() / 2**ROW_BITS)[:, np.newaxis], rows.persons)
    lengths = trace.sample(int(long[0]), bits) + 3 * float(trace.sigma)
    curvature = loss.bend * max(lengths, 0.0) / 2**ROW_BITS
    unit = loss.step / 2**ROW_BITS
    mean = float(noise.sigma) * unit / math.sqrt(steps)
    way = course(mean, curvature, steps, width=rows.width, spread=loss.spread, ridge=ridge)
    fresh = _fresh(noise, bits)

    def gradient(w: Floats) -> Floats:
        exact = rows.tallied(loss.pulls(rows.times(grained(w))))
        noisy: Floats = add(exact.ravel(), next(fresh)).reshape(w.shape) * unit
        return noisy

    return descended(gradient, (rows.width, loss.columns), way)


def grained(w: Floats) -> Floats:
    """Coefficients as whole numbers, with which rows make scores in steps of 1 / UNIT."""
    whole: Floats = np.rint(w * 2**_FINE_GRADIENT)
    return whole


def noised(exact: IntVector, noise: Noise, bits: Bits) -> Floats:
    """A matrix of whole sums with fresh noise in every entry."""
    return np.asarray(noise.sample(exact.ravel(), bits), dtype=np.float64).reshape(exact.shape)


def _fresh(noise: Gaussian, bits: Bits) -> Iterator[IntVector]:
    """Fresh noise for one release after another, drawn for several at a time: short draws cost as much as long ones."""
    ahead = max(1, _AHEAD // noise.dimension)
    while True:
        yield from discrete_gaussian(noise.sigma, ahead * noise.dimension, bits).reshape(ahead, -1)
