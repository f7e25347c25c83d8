"""Linear regression: by exact noisy descent, from noisy sufficient statistics, or by objective perturbation."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from defocus.errors import InvalidParameterError, count, in_range, positive
from defocus.learning.estimators.coefficients import Curve, InferringEstimator, inferred, newton_sums, unregularised
from defocus.learning.estimators.descent import (
    PULL,
    ROW_BITS,
    UNIT,
    Loss,
    gradient_plan,
    grained,
    noised,
    optimum,
)
from defocus.learning.estimators.fit_budget import Plan, Sum, planned
from defocus.learning.estimators.grid import (
    Ball,
    Floats,
    Held,
    moment_error,
    moment_sum,
    noisy_moments,
)
from defocus.learning.estimators.inputs import (
    bounds_of,
    held,
    in_units_of_data,
    l1_norm_of,
    numbers,
    persons_of,
    scaled,
    seen,
    seen_with,
)
from defocus.learning.estimators.perturbation import Problem, huber, objective
from defocus.noise import Bits

__all__ = ["LinearRegression", "shortfalls"]

_BITS = 10
"""Targets measure up to 2**10 steps; so do rows, where moments are released."""
_CONSTANT = 0.5
_SPREAD = 0.5
"""What coefficients are expected to vary by, where rows are in the unit ball and targets in [-1, 1]."""
_ROOM = 1 + 1e-6
"""Above the largest prediction, for entries that were rounded."""
_FARTHEST = 2.0
"""No prediction is farther from the middle of the range of targets, in half ranges, where the meat is released."""
_SHARE = 0.5
"""Of the budget, for second moments; the rest is for products with the target."""
_SOLVERS = ("descent", "moments", "objective")
_INFERENCE = (0.45, 0.3, 0.25)
"""Of the budget, for products with the target, second moments and the meat, where intervals are asked for."""


@final
@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegression(RegressorMixin, InferringEstimator):
    r"""A line through noisy data.

    Guarantee:
        The fit owes ``event_``, calibrated to its price; one row is added or removed, or replaced where the
        ledger says so. Rows and targets are whole numbers (:mod:`.grid`); noise is discrete Gaussian, or discrete
        Laplace for a price without delta, and the rest is computed from the noisy sums.

        *solver="descent"*: ``max_iter`` times, the sum over rows of (residual, clipped to ``clip``) times (row) is
        released, as in :class:`LogisticRegression`: one row moves it by at most :math:`2^{26}` steps.

        *solver="moments"*: the sums of :math:`x x^T` and of :math:`x y` are released once. Rows have norm at most
        :math:`2^{10}` and targets are at most :math:`2^{10}` in size, so a row moves the second by at most
        :math:`2^{20}` in L2 norm, and the first, weighted, by at most :math:`5\cdot2^{20}` (:mod:`.grid`).

        *solver="objective"*, the default for a price without delta: Huber's loss with a random linear term is minimised
        (:mod:`.perturbation`).

        *intervals=True*: both are released on a finer grid, and then the meat of the sandwich (:func:`.newton_sums`).
    Assumes:
        ``norm`` or ``bounds``, and ``target``, the least and largest value to predict, were not read off the data.
        What lies outside is cut. NaN is zero, with ``bounds`` the middle; a missing target is the middle of ``target``.

    Error:
        By descent, that of Huber's loss: a residual above ``clip``, in units of half the range of ``target``, pulls no
        harder than ``clip``. The noise of moments grows with the number of features and does not pay where
        there are more than a few; then the ridge is what lifts their least eigenvalue to the size of their noise.
    Reference:
        Huber (1964), Robust estimation of a location parameter; Wang (2018), Revisiting differentially private linear
        regression, for the moments (AdaSSP).

    Args:
        target: the least and the largest value to predict.
        solver: "descent", the default; "moments", which intervals need and then are the default; or "objective", the
            default for a price without delta.
        norm: the longest that a row may be, where there are no ``bounds``.
        l1_norm: the most that the sizes of a row's entries may add up to, where there are no ``bounds``; other rows are
            scaled down. Objective perturbation without delta adds noise in proportion to it. By default it follows from
            ``norm``; for one-hot rows of k columns, divided by the root of k to have norm one, it is the root of k.
        bounds: the least and the largest value, each a number or one for every feature.
        intervals: whether part of the price pays for confidence intervals, :meth:`coefficients`; without a ridge.
        clip: how hard a row may pull, in units of half the range of ``target``, by descent.
        fit_intercept: whether lines have a constant.
        alpha: the strength of regularisation, as in scikit-learn's Ridge, for rows in the unit ball and targets from -1
            to 1. By default it follows from the noise.
        max_iter: how many gradients are released, by descent. All of them are: a rule that stops early would tell.
        epsilon, delta, rho, ledger, unit, budget, purpose, who, bits, random_state: see :class:`PrivateEstimator`.

    >>> from tempfile import TemporaryDirectory
    >>> from defocus import Budget
    >>> from defocus.noise.testing import seeded
    >>> X = np.tile([[-0.8], [-0.2], [0.5], [0.9]], (5000, 1))
    >>> with TemporaryDirectory() as home:
    ...     terms = {"ledger": f"{home}/people.ledger", "budget": Budget(1, 1e-6)}
    ...     model = LinearRegression(**terms, target=(0, 10), bits=seeded(1))
    ...     model.fit(X, 3 + 2 * X.ravel()).predict([[0.0], [1.0]]).round(1).tolist()
    [3.0, 5.0]
    """

    _SPARSE: ClassVar = True
    _RELEASED: ClassVar = {"coef_": ("features",), "intercept_": ()}

    target: Any = (-1.0, 1.0)
    solver: str | None = None
    norm: Any = 1.0
    l1_norm: Any = None
    bounds: Any = None
    intervals: bool = False
    clip: Any = 0.5
    fit_intercept: bool = True
    alpha: Any = None
    max_iter: int = 400

    def fit(self, X: Any, y: Any = None, users: Any = None) -> "LinearRegression":
        """Charge, then fit; ``users`` says whose each row is."""
        told, means, drawn, data = self._told(X, y, users)
        if told.solver not in (None, *_SOLVERS):
            raise InvalidParameterError("There is no such solver.", fix=f"choose solver= from {', '.join(_SOLVERS)}.")
        if told.intervals:
            unregularised("alpha", told.alpha, told.solver, (None, "moments"), means)
        aim = bounds_of(told.target, 1)
        ridge = None if told.alpha is None else float(positive("alpha", told.alpha))
        clip, steps = float(in_range("clip", told.clip, 1e-3, 2)), count("max_iter", told.max_iter)
        rows, values = seen_with(self, data.X, data.y, numbers, sparse=True)
        persons = persons_of(data.users, rows.shape[0])
        rows, norm = scaled(rows, told.bounds, told.norm)
        solver = "moments" if told.intervals else told.solver or ("objective" if means.pure else "descent")
        features = rows.shape[1]
        constant = 1 / math.sqrt(features) if told.intervals else _CONSTANT
        fine = solver != "moments" or told.intervals
        beside = constant if told.fit_intercept else 0.0
        ball = Ball(norm, ROW_BITS if fine else _BITS, beside, l1_norm_of(told.l1_norm, told.bounds))
        width = features + bool(told.fit_intercept)
        moments = (
            newton_sums(width, 1, _INFERENCE)
            if told.intervals
            else (moment_sum(width, _BITS, _SHARE), Sum(4**_BITS, width, 1 - _SHARE))
        )
        if solver == "objective":
            way = objective(means, Problem(width, clip, 1.0, _SPREAD, ball.length(width)), ridge)
            plan = way.plan
        else:
            plan = gradient_plan(means, width, steps) if solver == "descent" else planned(means, moments)
        middle, half = float(aim.middle[0]), float(aim.half[0])

        def units(w: Floats) -> Floats:
            coef = w[np.newaxis, :features] * (half * ball.radius / (norm * 2**ball.bits))
            added = half * w[-1] * ball.intercept / 2**ball.bits if told.fit_intercept else 0.0
            (plain,), (intercept,) = in_units_of_data(coef, np.array([middle + added]), told.bounds)
            return np.append(plain, intercept)

        def compute() -> Floats:
            whole, aims = Held(ball.hold(rows), persons), aim.inward(values) * 2**_BITS
            if told.intervals:
                sides = None if told.bounds is None else np.full(features, ball.radius / norm)
                curve = _squares(whole, aims, sides, ball.intercept)
                return inferred(whole, curve, np.zeros(width), noises=plan.noises, bits=drawn, units=units).table
            aims = np.rint(aims)
            if solver == "objective":
                solve = way.prepare(Held(whole.matrix / 2.0**ROW_BITS, persons), drawn)
                return units(solve(huber(aims / 2**_BITS, clip), drawn))
            if solver == "moments":
                return units(_solved(whole, aims, plan, ridge, drawn))
            loss = Loss(
                lambda scores: shortfalls(scores, aims, clip), columns=1, step=clip / PULL, bend=1.0, spread=_SPREAD
            )
            return units(optimum(whole, loss, plan, steps=steps, ridge=ridge, bits=drawn)[:, 0])

        found = self._spend(plan, means, compute)
        if told.intervals:
            self.inference_, found = found, found[:, 0]
        self.coef_, self.intercept_ = found[:-1], found[-1]
        self.n_iter_, self.bounds_ = steps if solver == "descent" else 1, told.bounds
        self._names, self._constant = data.names, bool(told.fit_intercept)
        return self

    def _aim(self) -> str:
        return "the mean of the target"

    def predict(self, X: Any) -> Floats:
        """The expected target of each row, held to the bounds or the ball as when fitting."""
        check_is_fitted(self)
        rows = seen(self, X, reset=False, sparse=True)
        predicted: Floats = held(rows, self._limits, self.norm, self.l1_norm) @ self.coef_ + self.intercept_
        return predicted


def shortfalls(scores: Floats, aims: Floats, clip: float) -> Floats:
    """By how much scores miss targets, at most ``clip``, in steps of clip / PULL: row by row, in whole numbers.

    >>> shortfalls(np.array([[0.0], [0.0]]), np.array([1024.0, -128.0]), 0.5).ravel().tolist()
    [-8192.0, 2048.0]
    """
    missed = scores / UNIT - aims[:, np.newaxis] / 2**_BITS
    clipped: Floats = np.trunc(missed * (PULL / clip)).clip(-PULL, PULL)
    return clipped


def _squares(rows: Held, y: Floats, sides: Floats | None, constant: int) -> Curve:
    """The squared loss. Predictions of any row have a bound, and so have residuals: none is clipped.

    ``sides`` is how long each entry of a row may be, where that is known, and ``constant`` the entry beside them.
    """

    def reach(w: Floats) -> float:
        ball = float(np.linalg.norm(w))
        if sides is None:
            return ball
        box = np.append(sides, [float(constant)] if constant else []) @ np.abs(w) / 2**ROW_BITS
        return min(ball, float(box))

    def residuals(whole: Floats) -> tuple[Floats, float]:
        most = 1 + _ROOM * reach(whole[:, 0] / grained(np.ones(1)))
        return shortfalls(rows.times(whole), y, most), most / PULL

    return Curve(
        residuals,
        lambda _: np.full(len(y), float(PULL)),
        bend=1.0,
        confined=lambda w: w / max(reach(w) / _FARTHEST, 1.0),
    )


def _solved(rows: Held, y: Floats, plan: Plan, ridge: float | None, bits: Bits) -> Floats:
    """The coefficients for rows and targets measured in units of 2**bits."""
    squared, products = plan.noises
    gram = noisy_moments(rows.matrix, squared, bits, rows.persons)
    pulled = noised(rows.tallied(y[:, np.newaxis]), products, bits)[:, 0]
    floor = moment_error(squared, rows.width)
    lift = max(0.0, floor - float(np.linalg.eigvalsh(gram)[0])) if ridge is None else ridge * 4**_BITS
    return np.asarray(np.linalg.solve(gram + lift * np.eye(rows.width), pulled), dtype=np.float64)
