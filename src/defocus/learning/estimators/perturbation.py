r"""Output and objective perturbation, for what solvers really return.

Both minimise :math:`F(w) = \sum_i f(s_i x_i \cdot w) + \frac\lambda2\|w\|^2` (the second with a random linear
term) where f is the loss of :mod:`.descent` for two classes: convex, of slope between -1/2 and 0 and curvature up to
1/4; rows have norm at most one. The solver returns w with :math:`\|\nabla F(w)\| \le \gamma` for every data set
(:func:`minimised`), and F is :math:`\lambda`-strongly convex, so w is within :math:`\gamma/\lambda` of the minimum
:math:`w^*`.

*Output.* A row more adds a function of slope at most 1/2, so :math:`w^*` moves by at most :math:`1/2\lambda`, and w
by at most :math:`(1/2 + 2\gamma)/\lambda`. It is rounded to a grid, which adds the root of the dimension in steps, and
gets discrete Gaussian noise. (Chaudhuri, Monteleoni, Sarwate 2011, with Gaussian noise and inexact solvers.)

*Objective.* :math:`b\cdot w` with :math:`b \sim N(0, \sigma^2 I)` is added to F before minimising. Let D' be D with one
row more, of gradient g(w) = f' x. The minimum :math:`w^*` determines
:math:`b = B_D(w^*) = -\nabla F_D(w^*)`, so its log-density under D exceeds that under D' by

.. math:: \log\frac{\det A}{\det(A + f'' x x^T)} + \frac{\|B_D - g\|^2 - \|B_D\|^2}{2\sigma^2},\ A \succeq \lambda I.

The first term lies in :math:`[-\log(1 + 1/4\lambda),\ 0]`. Under D, :math:`B_D` is the noise, and the second is at
most :math:`t|Z| + t^2/2` with a standard Gaussian Z and t = 1/2σ, whatever f' is. From D' to D the same holds with the
sign of the first term turned. So for both directions

.. math:: \delta(\varepsilon) = E(1 - e^{\varepsilon - \ell - t|Z| - t^2/2})_+
    = 2[\Phi(-z) - e^{\varepsilon-\ell}\Phi(-z-t)]

with :math:`\ell = \log(1 + 1/4\lambda)` and :math:`z = \max(0, (\varepsilon-\ell)/t - t/2)`: twice the curve of the
Gaussian mechanism, at :math:`\varepsilon - \ell`. What the solver returns instead of :math:`w^*` is a second release
about the data, given :math:`w^*`: it differs by at most :math:`\gamma/\lambda`, so it gets noise for
:math:`2\gamma/\lambda` and is charged beside the first. (Kifer, Smith, Thakurta 2012; Iyengar et al. 2019, Towards
practical differentially private convex optimization, for approximate minima; Redberg, Koskela, Wang 2023, Improving the
privacy and practicality of objective perturbation, for curves of this kind.)

This argument is about one row added or removed; objective perturbation is refused where a row is replaced.

Assumes:
    Real numbers. The solver, its check and the Gaussian b are computed in double precision; *solver="descent"* has no
    such gap.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.sparse.linalg as sla
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_ndtr, ndtr

from defocus.errors import CannotCalibrateError, InvalidParameterError, NotDeclaredError
from defocus.learning.estimators.fit_budget import FitBudget, Plan, Sum, planned
from defocus.learning.estimators.grid import Floats, Matrix, squares
from defocus.learning.estimators.labels import Labels, numbered
from defocus.mechanisms import Gaussian
from defocus.noise import Bits
from defocus.privacy.events import Approximate, Event

__all__ = ["Perturbation", "descended_to", "minimised", "objective", "objective_delta", "objective_epsilon", "output"]


_SLOPE, _BEND = 0.5, 0.25
_GAMMA = 1e-6
"""The gradient that a solver may leave."""
_ENOUGH = _GAMMA / 2
"""Where it stops: the other half is for the rounding of the gradient itself."""
_NEWTON = 200
_LEAST = 1e-3
"""No ridge is smaller: the way to the minimum gets no longer than that."""
_STEPS = 1 << 20
"""One row moves a minimum by at most so many steps of its grid."""
_SPREAD = 2.0
"""The standard deviation of coefficients expected beforehand: see :func:`.descent.course`."""
_TRACE = 0.01
_BESIDE = 1000.0
"""Noise over sensitivity for what a solver leaves: as good as free."""
_OUTRIGHT = 0.9
"""The share of delta that is the perturbation's own."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Perturbation:
    """What is owed, and how the coefficients of one problem are made: rows, signs and bits to a vector."""

    plan: Plan
    known: Labels
    prepare: Callable[[Matrix, Bits], Callable[[Matrix, Floats, Bits], Floats]]

    def fitted(self, rows: Matrix, radius: int, y: Any, bits: Bits) -> tuple[NDArray[Any], Floats]:
        """The classes and the coefficients, one problem for two classes and one for each of several."""
        classes = self.known.found(y, bits)
        places, unit = numbered(y, classes), rows / float(radius)
        solve = self.prepare(unit, bits)
        wanted = [1] if len(classes) == 2 else range(len(classes))
        # A row with none of the classes has sign zero, and a loss that does not depend on w.
        signs = [np.where(places < 0, 0.0, np.where(places == k, 1.0, -1.0)) for k in wanted]
        return classes, np.stack([solve(unit, sign, bits) for sign in signs], axis=1)


def output(means: FitBudget, declared: Labels, width: int, ridge: float | None) -> Perturbation:
    """Minimise, round, add noise."""
    problems = _problems(means, declared, ridge)
    rounding = math.ceil(4 * _GAMMA * _STEPS + math.sqrt(width))
    plan = planned(
        means,
        [Sum(_STEPS + rounding, width, 1 - _TRACE, problems), Sum(1 << 10, 1, _TRACE)],
    )
    noise, trace = plan.noises

    def prepare(rows: Matrix, bits: Bits) -> Callable[[Matrix, Floats, Bits], Floats]:
        whole = int(np.floor(squares(rows) * (1 << 10)).clip(0, 1 << 10).sum())
        lengths = max(trace.sample(whole, bits) / (1 << 10), 1.0)
        # Noise of variance s²/λ² and shrinkage by λ/h cost h s²/λ² + λ² τ²/h: least at λ² = s h/τ.
        spread = float(noise.sigma) / _STEPS * _SLOPE
        chosen = ridge or max(math.sqrt(spread * _BEND * lengths / width / _SPREAD), _LEAST)

        def solve(rows: Matrix, sign: Floats, bits: Bits) -> Floats:
            grid = _SLOPE / chosen / _STEPS
            w = minimised(rows, sign, chosen, np.zeros(width))
            coefficients: Floats = noise.sample(np.rint(w / grid).astype(np.int64), bits).astype(np.float64) * grid
            return coefficients

        return solve

    return Perturbation(plan, declared, prepare)


def objective(means: FitBudget, declared: Labels, width: int, ridge: float | None) -> Perturbation:
    """Add a random linear term, minimise, round, add noise for what the solver left."""
    problems = _problems(means, declared, ridge)
    if means.moves > 1:
        raise InvalidParameterError(
            f"Objective perturbation is proven for one row added or removed, but this ledger protects {means.unit}.",
            fix='leave solver= out, or choose solver="output".',
        )
    if means.price.epsilon is None or not means.price.delta:
        raise InvalidParameterError(
            f"Objective perturbation has a price of epsilon and delta, but got {means.price}.",
            fix="pass for example epsilon=1, delta=1e-6, or leave solver= out.",
        )
    delta = _OUTRIGHT * float(means.price.delta) / problems
    # Steps of 2γ/λ / _STEPS: what the solver leaves moves by _STEPS of them, and by rounding.
    steps = _STEPS + math.ceil(math.sqrt(width))
    beside = Gaussian(sigma=_BESIDE * steps, sensitivity=steps, dimension=width)

    def chosen(sigma: float) -> float:
        return ridge or max(sigma / _SPREAD, _LEAST)

    def event(sigma: float) -> Event:
        own = Approximate(objective_epsilon(sigma, chosen(sigma), delta), delta)
        return problems * own + problems * beside.event

    try:
        sigma = means.least(event)
    except CannotCalibrateError as problem:
        enough = 1.1 * _BEND / math.expm1(float(means.price.epsilon) / problems)
        raise InvalidParameterError(
            f"No noise makes up for what so little regularisation loses: log(1 + C/4) for each of {problems} problems.",
            fix=f"lower C= to {1 / enough:.2g} or less, or leave it out.",
        ) from problem

    def prepare(rows: Matrix, bits: Bits) -> Callable[[Matrix, Floats, Bits], Floats]:
        del rows, bits

        def solve(rows: Matrix, sign: Floats, bits: Bits) -> Floats:
            grid = 2 * _GAMMA / chosen(sigma) / _STEPS
            w = minimised(rows, sign, chosen(sigma), sigma * _standard(width, bits))
            coefficients: Floats = beside.sample(np.rint(w / grid).astype(np.int64), bits).astype(np.float64) * grid
            return coefficients

        return solve

    return Perturbation(Plan((beside,), event(sigma)), declared, prepare)


def objective_delta(epsilon: float, sigma: float, ridge: float) -> float:
    """The delta of objective perturbation at ``epsilon``, as derived above, rounded up.

    >>> round(objective_delta(1.0, 2.0, 5.0), 7)
    1.33e-05
    """
    t, left = _SLOPE / sigma, epsilon - math.log1p(_BEND / ridge)
    z = max(0.0, left / t - t / 2)
    delta = 2 * float(ndtr(-z) - math.exp(min(left + log_ndtr(-z - t), 0.0)))
    return min(1.0, max(0.0, delta) * (1 + 1e-9) + 1e-300)


def objective_epsilon(sigma: float, ridge: float, delta: float) -> float:
    """The least epsilon with this delta, rounded up."""
    start = math.log1p(_BEND / ridge)
    high = start + 1.0
    while objective_delta(high, sigma, ridge) > delta:
        high = start + 2 * (high - start)
    if objective_delta(start, sigma, ridge) <= delta:
        return start
    epsilon = brentq(lambda e: objective_delta(e, sigma, ridge) - delta, start, high, xtol=1e-12)
    return float(epsilon) * (1 + 1e-9) + 1e-11


def minimised(rows: Matrix, sign: Floats, ridge: float, slope: Floats) -> Floats:
    r"""A w where the gradient of F + ``slope`` · w is at most gamma, for every data set.

    L-BFGS comes near; Newton steps, each kept if the gradient gets shorter, come nearer, and nearly always all the
    way. Where they do not, accelerated descent does: F is ridge-strongly convex and its gradient is L-Lipschitz with
    :math:`L = n/4 + ridge`, so after k steps from w it is within
    :math:`(1 - \sqrt{ridge/L})^k\,L\,\|\nabla F(w)\|^2/ridge^2` of its minimum (Nesterov 2004, Theorem 2.2.3), and
    :math:`\|\nabla F\|^2` is at most 2L times that. So many steps are taken, and no data set is refused.
    """

    def gradient(w: Floats) -> tuple[Floats, Floats]:
        margin = sign * np.asarray(rows @ w)
        pull = np.where(sign == 0, 0.0, -np.minimum(expit(-margin), _SLOPE))
        return np.asarray(rows.T @ (sign * pull)) + ridge * w + slope, margin

    def loss(w: Floats) -> tuple[float, Floats]:
        descent, margin = gradient(w)
        right = np.maximum(margin, 0.0)
        value = np.logaddexp(0.0, -right).sum() - _SLOPE * (margin - right).sum()
        return float(value + ridge / 2 * (w @ w) + slope @ w), descent

    w = np.asarray(
        minimize(loss, np.zeros(len(slope)), jac=True, method="L-BFGS-B", options={"maxiter": 2000}).x, dtype=np.float64
    )
    w = w if np.isfinite(w).all() else np.zeros(len(slope))
    here, margin = gradient(w)
    for _ in range(_NEWTON):
        length = float(np.linalg.norm(here))
        if length <= _ENOUGH:
            return w
        bend = np.where((margin >= 0) & (sign != 0), expit(margin) * expit(-margin), 0.0)

        def curved(v: Floats, bend: Floats = bend) -> Floats:
            return np.asarray(rows.T @ (bend * np.asarray(rows @ v))) + ridge * v

        operator = sla.LinearOperator((len(w), len(w)), matvec=curved, dtype=np.float64)
        direction, _ = sla.cg(operator, -here, rtol=1e-4, maxiter=10 * len(w))
        size = 1.0
        while size > 1e-6:
            there, ahead = gradient(w + size * direction)
            if np.linalg.norm(there) < (1 - 1e-4 * size) * length:
                w, here, margin = w + size * direction, there, ahead
                break
            size /= 2
        else:
            break
    return descended_to(_ENOUGH, lambda w: gradient(w)[0], w, _BEND * rows.shape[0] + ridge, ridge)


def descended_to(enough: float, gradient: Callable[[Floats], Floats], w: Floats, smooth: float, ridge: float) -> Floats:
    """The first iterate of accelerated descent from ``w`` whose gradient is at most ``enough``: see above.

    The number of steps is the proven one, so that rounding, which the proof knows nothing of, cannot make it endless.
    """
    root = math.sqrt(smooth / ridge)
    momentum = (root - 1) / (root + 1)
    ahead, here = w, gradient(w)
    length = float(np.linalg.norm(here))
    most = root * max(0.0, math.log(2 * (smooth * length / (ridge * enough)) ** 2)) + 1 if length > enough else 0.0
    for _ in range(math.ceil(most)):
        there = ahead - here / smooth
        w, ahead = there, there + momentum * (there - w)
        here = gradient(ahead)
        if np.linalg.norm(here) <= enough:
            return ahead
    return w


def _problems(means: FitBudget, declared: Labels, ridge: float | None) -> int:
    if means.unit.kind == "user":
        raise InvalidParameterError(
            f"Perturbation is proven for single rows, but this ledger protects {means.unit}.",
            fix="leave solver= out: descent counts persons.",
        )
    if ridge is not None and ridge < _LEAST:
        raise InvalidParameterError(
            f"With C above {1 / _LEAST:g} a solver does not come near enough to the minimum.",
            fix=f"lower C=, to {1 / _LEAST:g} at most, or leave it out.",
        )
    if declared.declared is None:
        raise NotDeclaredError(
            "Perturbation divides its price between classes, and nobody said which there are.",
            fix="declare them with classes=[…], or leave solver= out.",
        )
    return 1 if len(declared.declared) == 2 else len(declared.declared)


def _standard(size: int, bits: Bits) -> Floats:
    """Standard Gaussians by Box and Muller, from 53 random bits each way."""
    words = (bits.words(2 * size) >> np.uint64(11)).astype(np.float64)
    u, v = (words[:size] + 1) / 2**53, words[size:] / 2**53
    return np.asarray(np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v), dtype=np.float64)
