r"""Output and objective perturbation, for what solvers really return.

Both minimise :math:`F(w) = \sum_i f_i(x_i \cdot w) + \frac\lambda2\|w\|^2` (the second with a random linear term) where
each :math:`f_i` is a convex loss of a score (:class:`ScoreLoss`), of slope at most c in size and curvature at most h:
that of :mod:`.descent` for two classes, c = 1/2 and h = 1/4, or Huber's, c = ``clip`` and h = 1. Rows have norm at most
one. A person adds the average of the losses of that person's rows, which has the same bounds. The solver returns w with
:math:`\|\nabla F(w)\| \le \gamma` for every data set (:func:`minimised`), and F is :math:`\lambda`-strongly convex,
so w is within :math:`\gamma/\lambda` of the minimum :math:`w^*`.

*Output.* A unit more adds a function of slope at most c, so :math:`w^*` moves by at most :math:`c/\lambda`, and w
by at most :math:`(c + 2\gamma)/\lambda`. It is rounded to a grid, which adds the root of the dimension in steps, and
gets discrete noise: Gaussian by this L2 norm, or Laplace by the L1 norm, which is larger by the root of the dimension
at most. (Chaudhuri, Monteleoni, Sarwate 2011, with other noise and inexact solvers.)

*Objective.* :math:`b\cdot w` with a random b is added to F before minimising. Let D' be D with one unit more, of
gradient g(w). The minimum :math:`w^*` determines :math:`b = B_D(w^*) = -\nabla F_D(w^*)`, so for a density
:math:`e^{-\phi(b)}` of b its log-density under D exceeds that under D' by

.. math:: \log\frac{\det A}{\det(A + P)} + \phi(B_D - g) - \phi(B_D),\ A \succeq \lambda I,

where P is the curvature of what the unit adds: of rank one for a row, of trace at most h. The first term lies in
:math:`[-\ell, 0]`: for a row :math:`\ell = \log(1 + h/\lambda)`; for a person P may have all d eigenvalues, whose sum
is at most h, and :math:`\ell = d\log(1 + h/d\lambda)`.

With :math:`b \sim N(0, \sigma^2 I)`, :math:`B_D` is the noise under D, and the second is at most
:math:`t|Z| + t^2/2` with a standard Gaussian Z and t = c/σ, whatever g is. From D' to D the same holds with the
sign of the first term turned. So for both directions

.. math:: \delta(\varepsilon) = E(1 - e^{\varepsilon - \ell - t|Z| - t^2/2})_+
    = 2[\Phi(-z) - e^{\varepsilon-\ell}\Phi(-z-t)]

with :math:`z = \max(0, (\varepsilon-\ell)/t - t/2)`: twice the curve of the Gaussian mechanism, at
:math:`\varepsilon - \ell`.

For pure epsilon, b has independent Laplace entries of scale s, :math:`\phi(b) = \|b\|_1/s`, and the second term is at
most :math:`\|g\|_1/s \le c\max\|x\|_1/s`. So :math:`\varepsilon = \ell + c\max\|x\|_1/s`, in both directions; m rows
added or removed, one by one, cost m times that, and a row replaced is two. (Chaudhuri, Monteleoni and Sarwate draw a
vector whose length has a gamma law, which is by at most :math:`\sqrt2` shorter, and longer where rows are sparse.)

What the solver returns instead of :math:`w^*` is a second release about the data, given :math:`w^*`: it differs by at
most :math:`\gamma/\lambda`, so it gets noise for :math:`2\gamma/\lambda` and is charged beside the first. That also
pays for a b that is rounded. Discrete Laplace noise k of scale :math:`s/\eta` has
:math:`P(k \le -j) = q^j/(1+q)` with :math:`q = e^{-\eta/s}`, and Laplace noise b has
:math:`P(b \le y) = e^{y/s}/2` for y up to zero. With one uniform number behind both, k = -j where b lies between
:math:`-j\eta - \eta + s\log\frac2{1+q}` and :math:`-j\eta + s\log\frac2{1+q}`, for j above zero, and likewise on
the other side. The logarithm is between 0 and :math:`\eta/2s`, so :math:`|b - k\eta| \le \eta`. The solver's
gradient with b is then at most :math:`\gamma + \eta\sqrt d`: the exact integer k may stand for the real b.

(Kifer, Smith, Thakurta 2012; Iyengar et al. 2019, Towards practical differentially private convex optimization, for
approximate minima; Redberg, Koskela, Wang 2023, Improving the privacy and practicality of objective perturbation, for
curves of this kind. Curvatures have jumps; gradients do not, and :math:`w \mapsto \nabla F(w)` is Lipschitz both ways,
which is what the change of variables asks for.)

With Gaussian noise this argument is about one unit added or removed, and is refused where a row is replaced.

Assumes:
    Real numbers for the solver and its check, which are computed in double precision; half of :math:`\gamma` is for the
    rounding of a gradient. The Gaussian b is computed in double precision, too. *solver="descent"* has no such gap.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import scipy.sparse.linalg as sla
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_ndtr, ndtr

from defocus.errors import CannotCalibrateError, InvalidParameterError, NotDeclaredError
from defocus.learning.estimators.fit_budget import FitBudget, Noise, Plan, Sum, deviation, planned
from defocus.learning.estimators.grid import Floats, Held, Matrix, summed
from defocus.learning.estimators.labels import Labels, numbered
from defocus.mechanisms import Gaussian, Laplace
from defocus.noise import Bits, discrete_laplace
from defocus.privacy.events import Approximate, Event

__all__ = [
    "LOGISTIC",
    "WAYS",
    "Perturbation",
    "Problem",
    "ScoreLoss",
    "classified",
    "clipped_logistic",
    "descended_to",
    "huber",
    "minimised",
    "objective",
    "objective_delta",
    "objective_epsilon",
    "output",
    "problem_of",
]


_GAMMA = 1e-6
"""The gradient that a solver may leave."""
_ENOUGH = _GAMMA / 2
"""Where it stops: the other half is for the rounding of the gradient itself."""
_NEWTON = 200
_LEAST = 1e-3
"""No ridge is smaller: the way to the minimum gets no longer than that."""
_STEPS = 1 << 20
"""One row moves a minimum by at most so many steps of its grid."""
_TRACE = 0.01
_BESIDE = 1000.0
"""Noise over sensitivity for what a solver leaves: as good as free."""
_PURE_STEPS = 1 << 12
"""Likewise for what a solver leaves, where Laplace noise of a small share of epsilon is wide."""
_PURE_BESIDE = 0.005
"""The share of a pure epsilon for that."""
_FINE = 1 << 36
"""Laplace noise of the objective is drawn in so many steps of its scale."""
_OUTRIGHT = 0.9
"""The share of delta that is the perturbation's own."""


@final
@dataclass(frozen=True, slots=True)
class Problem:
    """What is public about a problem: how wide rows are, and what bounds their losses.

    ``slope`` and ``bend`` bound the slope and curvature of a loss by its score, ``spread`` is what coefficients are
    expected to vary by (:func:`.descent.course`), and ``length`` the L1 norm of a row in the unit ball. There are
    ``number`` such problems to solve.
    """

    width: int
    slope: float
    bend: float
    spread: float
    length: float
    number: int = 1


LOGISTIC = (0.5, 0.25, 2.0)
"""The slope, bend and spread of :func:`clipped_logistic`."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScoreLoss:
    """A convex loss of one score for each row: its values, slopes and curvatures."""

    value: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    curve: Callable[[Floats], Floats]

    def weighted(self, weights: Floats | None) -> "ScoreLoss":
        """The same, where each row counts for its weight."""
        if weights is None:
            return self
        return ScoreLoss(
            lambda scores: weights * self.value(scores),
            lambda scores: weights * self.slope(scores),
            lambda scores: weights * self.curve(scores),
        )


def clipped_logistic(sign: Floats) -> ScoreLoss:
    """The loss of :mod:`.descent` for two classes, -1 and 1; a row of sign zero has none."""

    def value(scores: Floats) -> Floats:
        margin = sign * scores
        right = np.maximum(margin, 0.0)
        return np.asarray(np.logaddexp(0.0, -right) - (margin - right) / 2)

    def curve(scores: Floats) -> Floats:
        margin = sign * scores
        return np.where((margin >= 0) & (sign != 0), expit(margin) * expit(-margin), 0.0)

    return ScoreLoss(value, lambda scores: -sign * np.minimum(expit(-sign * scores), 0.5), curve)


def huber(aims: Floats, clip: float) -> ScoreLoss:
    """Huber's loss of what scores miss their aims by: no row pulls harder than ``clip``."""

    def value(scores: Floats) -> Floats:
        missed = abs(scores - aims)
        return np.where(missed <= clip, missed**2 / 2, clip * missed - clip**2 / 2)

    return ScoreLoss(
        value,
        lambda scores: np.clip(scores - aims, -clip, clip),
        lambda scores: np.where(abs(scores - aims) <= clip, 1.0, 0.0),
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Perturbation:
    """What is owed, and how coefficients are made: of rows in the unit ball and bits, then of a loss and bits."""

    plan: Plan
    prepare: Callable[[Held, Bits], Callable[[ScoreLoss, Bits], Floats]]


def classified(way: Perturbation, rows: Held, y: Any, known: Labels, bits: Bits) -> tuple[NDArray[Any], Floats]:
    """The classes and the coefficients, one problem for two classes and one for each of several."""
    classes = np.asarray(known.declared)
    places, solve = numbered(y, classes), way.prepare(rows, bits)
    wanted = [1] if len(classes) == 2 else range(len(classes))
    # A row with none of the classes has sign zero, and a loss that does not depend on w.
    signs = [np.where(places < 0, 0.0, np.where(places == k, 1.0, -1.0)) for k in wanted]
    return classes, np.stack([solve(clipped_logistic(sign), bits) for sign in signs], axis=1)


def output(means: FitBudget, problem: Problem, ridge: float | None) -> Perturbation:
    """Minimise, round, add noise."""
    _check(ridge)
    width = problem.width
    rounding = math.ceil(2 * _GAMMA / problem.slope * _STEPS + math.sqrt(width))
    plan = planned(
        means,
        [Sum(_STEPS + rounding, width, 1 - _TRACE, problem.number), Sum(1 << 10, 1, _TRACE)],
    )
    noise, trace = plan.noises

    def prepare(rows: Held, bits: Bits) -> Callable[[ScoreLoss, Bits], Floats]:
        whole = summed(np.floor(rows.squares() * (1 << 10)).clip(0, 1 << 10)[:, np.newaxis], rows.persons)
        lengths = max(trace.sample(int(whole[0]), bits) / (1 << 10), 1.0)
        # Noise of variance s²/λ² and shrinkage by λ/h cost h s²/λ² + λ² τ²/h: least at λ² = s h/τ.
        spread = deviation(noise) / _STEPS * problem.slope
        chosen = ridge or max(math.sqrt(spread * problem.bend * lengths / width / problem.spread), _LEAST)

        shares = None if rows.persons is None else rows.persons.shares
        grid = problem.slope / chosen / _STEPS

        def solve(loss: ScoreLoss, bits: Bits) -> Floats:
            w = minimised(rows.matrix, loss.weighted(shares), chosen, np.zeros(width), problem.bend)
            coefficients: Floats = noise.sample(np.rint(w / grid).astype(np.int64), bits).astype(np.float64) * grid
            return coefficients

        return solve

    law = "Laplace" if means.pure else "Gaussian"
    return Perturbation(replace(plan, method=f"output perturbation with discrete {law} noise"), prepare)


def objective(means: FitBudget, problem: Problem, ridge: float | None) -> Perturbation:
    """Add a random linear term, minimise, round, add noise for what the solver left."""
    _check(ridge)
    number, width, pure = problem.number, problem.width, means.pure
    if means.price.epsilon is None:
        raise InvalidParameterError(
            f"Objective perturbation has a price of epsilon, with or without delta, but got {means.price}.",
            fix="pass for example epsilon=1, delta=1e-6, or leave solver= out.",
        )
    if means.moves > 1 and not pure:
        raise InvalidParameterError(
            f"With a delta, objective perturbation is proven for one row added or removed, but this ledger protects"
            f" {means.unit}.",
            fix='leave solver= out, choose solver="output", or pass delta=0.',
        )
    delta = _OUTRIGHT * float(means.price.delta) / number
    # Steps of 2γ/λ over so many: what the solver leaves moves by that number of them, and by rounding.
    fine = _PURE_STEPS if pure else _STEPS
    steps = fine + math.ceil(math.sqrt(width))
    beside: Noise = Gaussian(sigma=_BESIDE * steps, sensitivity=steps, dimension=width)
    if pure:
        far = Sum(steps, width).l1_sensitivity
        beside = Laplace(scale=far * number / (_PURE_BESIDE * float(means.price.epsilon)), sensitivity=far)
    rank = width if means.unit.kind == "user" else 1

    def chosen(scale: float) -> float:
        return ridge or max((math.sqrt(2) if pure else 1.0) * scale / problem.spread, _LEAST)

    def event(scale: float) -> Event:
        bent = rank * math.log1p(problem.bend / chosen(scale) / rank)
        if pure:
            lost = means.moves * (bent + problem.slope * problem.length / scale)
            own = Approximate(lost * (1 + 1e-9), 0)
        else:
            own = Approximate(objective_epsilon(scale, bent, delta, problem.slope), delta)
        return number * own + number * beside.event

    try:
        scale = means.least(event)
    except CannotCalibrateError as refused:
        enough = 1.1 * problem.bend / math.expm1(float(means.price.epsilon) / number / means.moves)
        raise InvalidParameterError(
            f"No noise makes up for what so little regularisation loses: log(1 + {problem.bend:g}/ridge) for each of"
            f" {number} problems.",
            fix=f"lower C= to {1 / enough:.2g} or less, or raise alpha= to {enough:.2g} or more; or leave it out.",
        ) from refused

    def prepare(rows: Held, bits: Bits) -> Callable[[ScoreLoss, Bits], Floats]:
        del bits
        left = _GAMMA + (1.001 * math.sqrt(width) * scale / _FINE if pure else 0.0)
        grid = 2 * left / chosen(scale) / fine
        shares = None if rows.persons is None else rows.persons.shares

        def solve(loss: ScoreLoss, bits: Bits) -> Floats:
            drawn = discrete_laplace(_FINE, width, bits) / _FINE if pure else _standard(width, bits)
            slope: Floats = scale * drawn
            w = minimised(rows.matrix, loss.weighted(shares), chosen(scale), slope, problem.bend)
            coefficients: Floats = beside.sample(np.rint(w / grid).astype(np.int64), bits).astype(np.float64) * grid
            return coefficients

        return solve

    law = "Laplace" if pure else "Gaussian"
    return Perturbation(Plan((beside,), event(scale), f"objective perturbation with {law} noise"), prepare)


WAYS = {"output": output, "objective": objective}
"""By the name of a solver."""


def objective_delta(epsilon: float, sigma: float, bent: float, slope: float) -> float:
    """The delta of objective perturbation with Gaussian noise at ``epsilon``, as derived above, rounded up.

    >>> round(objective_delta(1.0, 2.0, math.log1p(0.25 / 5.0), 0.5), 7)
    1.33e-05
    """
    t, left = slope / sigma, epsilon - bent
    z = max(0.0, left / t - t / 2)
    delta = 2 * float(ndtr(-z) - math.exp(min(left + log_ndtr(-z - t), 0.0)))
    return min(1.0, max(0.0, delta) * (1 + 1e-9) + 1e-300)


def objective_epsilon(sigma: float, bent: float, delta: float, slope: float) -> float:
    """The least epsilon with this delta, rounded up."""
    high = bent + 1.0
    while objective_delta(high, sigma, bent, slope) > delta:
        high = bent + 2 * (high - bent)
    if objective_delta(bent, sigma, bent, slope) <= delta:
        return bent
    epsilon = brentq(lambda e: objective_delta(e, sigma, bent, slope) - delta, bent, high, xtol=1e-12)
    return float(epsilon) * (1 + 1e-9) + 1e-11


def minimised(rows: Matrix, loss: ScoreLoss, ridge: float, slope: Floats, bend: float) -> Floats:
    r"""A w where the gradient of F + ``slope`` · w is at most gamma, for every data set.

    L-BFGS comes near; Newton steps, each kept if the gradient gets shorter, come nearer, and nearly always all the
    way. Where they do not, accelerated descent does: F is ridge-strongly convex and its gradient is L-Lipschitz with
    :math:`L = n\,bend + ridge`, so after k steps from w it is within
    :math:`(1 - \sqrt{ridge/L})^k\,L\,\|\nabla F(w)\|^2/ridge^2` of its minimum (Nesterov 2004, Theorem 2.2.3), and
    :math:`\|\nabla F\|^2` is at most 2L times that. So many steps are taken, and no data set is refused.
    """

    def gradient(w: Floats) -> tuple[Floats, Floats]:
        scores = np.asarray(rows @ w)
        return np.asarray(rows.T @ loss.slope(scores)) + ridge * w + slope, scores

    def value(w: Floats) -> tuple[float, Floats]:
        descent, scores = gradient(w)
        return float(loss.value(scores).sum() + ridge / 2 * (w @ w) + slope @ w), descent

    start = np.zeros(len(slope))
    w = np.asarray(minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000}).x, dtype=np.float64)
    w = w if np.isfinite(w).all() else np.zeros(len(slope))
    here, scores = gradient(w)
    for _ in range(_NEWTON):
        length = float(np.linalg.norm(here))
        if length <= _ENOUGH:
            return w
        curve = loss.curve(scores)

        def curved(v: Floats, curve: Floats = curve) -> Floats:
            return np.asarray(rows.T @ (curve * np.asarray(rows @ v))) + ridge * v

        operator = sla.LinearOperator((len(w), len(w)), matvec=curved, dtype=np.float64)
        direction, _ = sla.cg(operator, -here, rtol=1e-4, maxiter=10 * len(w))
        size = 1.0
        while size > 1e-6:
            there, ahead = gradient(w + size * direction)
            if np.linalg.norm(there) < (1 - 1e-4 * size) * length:
                w, here, scores = w + size * direction, there, ahead
                break
            size /= 2
        else:
            break
    return descended_to(_ENOUGH, lambda w: gradient(w)[0], w, bend * rows.shape[0] + ridge, ridge)


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


def _check(ridge: float | None) -> None:
    if ridge is not None and ridge < _LEAST:
        raise InvalidParameterError(
            f"With a ridge below {_LEAST:g} a solver does not come near enough to the minimum.",
            fix=f"lower C= to {1 / _LEAST:g} or less, or raise alpha= to {_LEAST:g} or more; or leave it out.",
        )


def problem_of(declared: Labels, width: int, length: float) -> Problem:
    """Logistic regression by perturbation: one problem for two classes, one for each of several."""
    if declared.declared is None:
        raise NotDeclaredError(
            "Perturbation divides its price between classes, and nobody said which there are.",
            fix="declare them with classes=[…], or leave solver= out.",
        )
    number = len(declared.declared)
    return Problem(width, *LOGISTIC, length, 1 if number == 2 else number)


def _standard(size: int, bits: Bits) -> Floats:
    """Standard Gaussians by Box and Muller, from 53 random bits each way."""
    words = (bits.words(2 * size) >> np.uint64(11)).astype(np.float64)
    u, v = (words[:size] + 1) / 2**53, words[size:] / 2**53
    return np.asarray(np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v), dtype=np.float64)
