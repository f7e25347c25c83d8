r"""Noisy gradient descent that wastes none of its noise: momentum to get there, an average to stay.

Every step sees the whole gradient through fresh noise of variance T·s² for T steps, which costs as much as one look
through noise of variance s². Around the optimum a step errs by its own noise, but the average of the steps errs by
:math:`H^{-1}` times the mean of all noises, whose variance is s² again: what one look at the optimum
itself would cost, and objective perturbation costs (Polyak, Juditsky 1992). What is lost is the way there. Momentum
makes it short: about :math:`\sqrt{\kappa}` steps for the condition number :math:`\kappa = L/\lambda` (Nesterov 1983).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from defocus.learning.estimators.balls import Floats

__all__ = ["Course", "course", "descended"]


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
