"""Logistic regression, in three ways: by exact noisy descent, by objective and by output perturbation."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from defocus.errors import InvalidParameterError, count, in_range
from defocus.learning.estimators.base import PrivateEstimator
from defocus.learning.estimators.coefficients import Curve, InferringEstimator, inferred, newton_sums, unregularised
from defocus.learning.estimators.descent import (
    PULL,
    ROW_BITS,
    UNIT,
    Loss,
    bends,
    decisions,
    gradient_plan,
    largest,
    optimum,
    probabilities,
    pulls,
    residuals,
)
from defocus.learning.estimators.fit_budget import FitBudget, Plan
from defocus.learning.estimators.grid import Ball, Floats, Held, Rows
from defocus.learning.estimators.inputs import held, in_units_of_data, l1_norm_of, persons_of, scaled, seen, seen_with
from defocus.learning.estimators.labels import ClassWeights, Labels, class_weights, labels, none_found, numbered
from defocus.learning.estimators.perturbation import WAYS, classified, problem_of
from defocus.noise import Bits

__all__ = ["LogisticRegression", "ScoredClassifier", "descent_plan", "fitted_by_descent", "unweighted"]

_CONSTANT = 0.25
"""The feature that is one for everybody, beside features in the unit ball: it costs 3 % more noise."""
_SPREAD = 2.0
"""Rows in the unit ball have scores of a few units if coefficients are a few units."""
_SOLVERS = ("descent", "output", "objective")
_INFERENCE, _LOOKS = (0.32, 0.28, 0.1), 2
"""Of the budget, for the gradient, the curvature and the meat, where intervals are asked for; descent has the rest."""


class ScoredClassifier(ClassifierMixin, PrivateEstimator):
    """A classifier that gives each class a score."""

    classes_: NDArray[Any]

    def decision_function(self, X: Any) -> Floats:
        """The score of each class; of the second against the first where there are two."""
        return decisions(self._scored(X), len(self.classes_))

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class."""
        return probabilities(self._scored(X), len(self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class."""
        best = self.predict_proba(X).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    @abstractmethod
    def _scored(self, X: Any) -> Floats:
        """The scores of rows."""


@final
@dataclass(eq=False, repr=False, kw_only=True)
class LogisticRegression(ScoredClassifier, InferringEstimator):
    r"""A linear classifier for any number of classes.

    Guarantee:
        The fit owes ``event_``, calibrated to its price; one row is added or removed, or replaced where the
        ledger says so. Rows are held to a ball and put on an integer grid (:mod:`.grid`).

        *solver="descent"*: ``max_iter`` times, the sum over rows of (clipped residual) ⊗ (row) is released with
        discrete Gaussian noise, and once the sum of squared lengths. Both factors are whole numbers of norm at most
        :math:`2^{13}`, so one row moves a gradient by at most :math:`2^{26}` steps in L2 norm, exactly, at any
        coefficients; everything else is computed from the noisy sums. No float decides about an outcome.

        *intervals=True*, for two declared classes: descent goes by residuals that are not clipped, at most 1, in steps
        of :math:`2^{-13}`, so the same holds; from where it ends, a noisy Newton step is taken (:func:`.newton_sums`).

        *solver="output"* and *solver="objective"*, the default for a price without delta: see :mod:`.perturbation`.
        Minima are computed with floats, and what that leaves is paid for. They cost K times as much for K > 2 classes.
    Assumes:
        ``norm``, ``bounds`` and ``classes`` were not read off the data. Without ``bounds``, rows longer than
        ``norm`` are scaled down to it, when fitting and when predicting. Without ``classes``, a label is learned
        if enough rows have it, for a tenth of epsilon and half of delta. A row with another label pulls
        nobody. NaN is zero, with ``bounds`` the middle.

    Error:
        About that of objective perturbation with half the noise, since residuals are clipped to what they are at the
        start (:mod:`.descent`); the ridge follows from the noise and a noisy mean of curvatures (:func:`.course`).
        ``coef_`` are those of the clipped loss, of which :meth:`predict_proba` makes probabilities; for odds, ask that.
        With ``intervals``, they are log odds, with neither clipping nor ridge.
    Reference:
        Bassily, Smith, Thakurta (2014), Private empirical risk minimization; Polyak, Juditsky (1992), Acceleration of
        stochastic approximation by averaging. For the other two ways see :mod:`.perturbation`.

    Args:
        solver: "descent", "output" or "objective"; by default descent, and objective for a price without delta.
        norm: the longest that a row may be, where there are no ``bounds``.
        l1_norm: the most that the sizes of a row's entries may add up to, where there are no ``bounds``; other rows are
            scaled down. Objective perturbation without delta adds noise in proportion to it. By default it follows from
            ``norm``; for one-hot rows of k columns, divided by the root of k to have norm one, it is the root of k.
        bounds: the least and the largest value, each a number or one for every feature.
        classes: the classes to learn; found for a share of the price by default.
        class_weight: what rows of a class count for, as in ``{0: 1, 1: 5}``; one for those that are not named. By
            descent, with ``C`` for the weights divided by the largest. Probabilities are those among weighted rows.
        intervals: whether part of the price pays for confidence intervals, :meth:`coefficients`; without a ridge.
        fit_intercept: whether scores have a constant.
        C: the inverse of the ridge, as in scikit-learn: the loss of all rows counts C times as much as half the squared
            length of the coefficients of rows in the unit ball. By default it follows from the noise.
        max_iter: how many gradients are released, by descent. All of them are: a rule that stops early would tell.
        epsilon, delta, rho, ledger, unit, budget, purpose, who, bits, random_state: see :class:`PrivateEstimator`.

    >>> from tempfile import TemporaryDirectory
    >>> from defocus import Budget
    >>> from defocus.noise.testing import seeded
    >>> X = np.tile([[0.9, 0.1], [0.1, 0.9]], (5000, 1))
    >>> y = np.tile(["ill", "well"], 5000)
    >>> with TemporaryDirectory() as home:
    ...     terms = {"ledger": f"{home}/people.ledger", "budget": Budget(1, 1e-6)}
    ...     model = LogisticRegression(**terms, classes=["ill", "well"], bits=seeded(1))
    ...     model.fit(X, y).predict([[0.8, 0.2], [0.3, 0.7]]).tolist()
    ['ill', 'well']
    """

    _SPARSE: ClassVar = True
    _RELEASED: ClassVar = {"classes_": ("classes",), "coef_": ("scores", "features"), "intercept_": ("scores",)}

    solver: str | None = None
    norm: Any = 1.0
    l1_norm: Any = None
    bounds: Any = None
    classes: Any = None
    class_weight: Any = None
    intervals: bool = False
    fit_intercept: bool = True
    C: Any = None
    max_iter: int = 400

    def fit(self, X: Any, y: Any = None, users: Any = None) -> "LogisticRegression":
        """Charge, then fit; ``users`` says whose each row is."""
        told, means, drawn, data = self._told(X, y, users)
        if told.solver not in (None, *_SOLVERS):
            raise InvalidParameterError("There is no such solver.", fix=f"choose solver= from {', '.join(_SOLVERS)}.")
        declared = labels(told.classes, means)
        _check_inference(told, declared, means)
        solver = told.solver or ("objective" if means.pure else "descent")
        weights = _class_weights(told, declared, solver)
        ridge = None if told.C is None else 1 / float(in_range("C", told.C, 1e-300, 1e300))
        rows, target = seen_with(self, data.X, data.y, declared.read, sparse=True)
        persons = persons_of(data.users, rows.shape[0])
        rows, norm = scaled(rows, told.bounds, told.norm)
        features = rows.shape[1]
        constant = 1 / math.sqrt(features) if told.intervals else _CONSTANT
        beside = constant if told.fit_intercept else 0.0
        ball = Ball(norm, ROW_BITS, beside, l1_norm_of(told.l1_norm, told.bounds))
        width = features + bool(told.fit_intercept)

        def units(w: Floats) -> tuple[Floats, Floats]:
            coef = w[:features].T * (ball.radius / (norm * 2**ROW_BITS))
            intercept = w[-1] * (ball.intercept / 2**ROW_BITS) if told.fit_intercept else np.zeros(w.shape[1])
            return in_units_of_data(coef, intercept, told.bounds)

        if told.intervals:
            steps, pair = count("max_iter", told.max_iter), np.asarray(declared.declared)
            plan = gradient_plan(means, width, steps, newton_sums(width, _LOOKS, _INFERENCE))

            def compute() -> tuple[NDArray[Any], Floats]:
                whole, places = Held(ball.hold(rows), persons), numbered(target, pair)
                return pair, _inferred(whole, places, plan, steps=steps, bits=drawn, units=units)

        elif solver == "descent":
            plan = descent_plan(means, declared, width, count("max_iter", told.max_iter))

            def compute() -> tuple[NDArray[Any], Floats]:
                whole = Held(ball.hold(rows), persons)
                return fitted_by_descent(
                    whole, target, declared, plan, steps=told.max_iter, ridge=ridge, bits=drawn, weights=weights
                )

        else:
            way = WAYS[solver](means, problem_of(declared, width, ball.length(width)), ridge)
            plan = way.plan

            def compute() -> tuple[NDArray[Any], Floats]:
                return classified(way, Held(ball.hold(rows) / 2.0**ROW_BITS, persons), target, declared, drawn)

        classes, w = self._spend(plan, means, compute)
        if not len(classes):
            raise none_found()
        self.classes_, self.bounds_ = classes, told.bounds
        if told.intervals:
            self.inference_, self.coef_, self.intercept_ = w, w[np.newaxis, :-1, 0], w[-1:, 0]
        else:
            self.coef_, self.intercept_ = units(w)
        self._names, self._constant = data.names, bool(told.fit_intercept)
        self.n_iter_ = told.max_iter if solver == "descent" else 1  # how far a solver goes depends on rows
        return self

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class."""
        if "inference_" not in self.__dict__:
            return super().predict_proba(X)
        scores = self._scored(X)
        return np.asarray(expit(np.hstack([-scores, scores])))

    def _aim(self) -> str:
        first, second = self.classes_.tolist()
        return f"log odds of {second!r:.40} against {first!r:.40}"

    def _scored(self, X: Any) -> Floats:
        check_is_fitted(self)
        rows = seen(self, X, reset=False, sparse=True)
        scores: Floats = held(rows, self._limits, self.norm, self.l1_norm) @ self.coef_.T + self.intercept_
        return scores


def descent_plan(means: FitBudget, declared: Labels, width: int, steps: int) -> Plan:
    """What finding classes, and then gradients for as many as there may be, owe together."""
    plan = gradient_plan(declared.left(means), width * (1 if declared.most == 2 else declared.most), steps)
    return replace(plan, event=plan.event + declared.event)


def fitted_by_descent(
    rows: Rows,
    y: Any,
    declared: Labels,
    plan: Plan,
    *,
    steps: int,
    ridge: float | None,
    bits: Bits,
    weights: ClassWeights | None = None,
) -> tuple[NDArray[Any], Floats]:
    """The classes and the coefficients, from rows of whole numbers: everything here is paid for by the plan."""
    classes = declared.found(y, bits)
    number = len(classes)
    if number < 2:
        return classes, np.zeros((rows.width, 1))
    places = numbered(y, classes)
    shares = None if weights is None else weights.shares(classes)

    def pulled(scores: Floats) -> Floats:
        steps = pulls(scores, places, unit=UNIT, classes=number)
        return steps if weights is None or shares is None else weights.held(steps, places, shares)

    loss = Loss(
        pulled,
        columns=1 if number == 2 else number,
        step=(0.5 if number == 2 else largest(number)) / PULL,
        bend=0.25 if number == 2 else 0.5,
        spread=_SPREAD,
    )
    return classes, optimum(rows, loss, plan, steps=steps, ridge=ridge, bits=bits)


def _class_weights(told: LogisticRegression, declared: Labels, solver: str) -> ClassWeights | None:
    weights = class_weights(told.class_weight, declared)
    if weights is not None and (told.intervals or solver != "descent"):
        raise unweighted()
    return weights


def unweighted() -> InvalidParameterError:
    """That a way of fitting has no weights of classes."""
    return InvalidParameterError(
        "class_weight is for descent, without intervals: other ways have proofs for rows that count alike.",
        fix='leave class_weight= out, or pass solver="descent" with a delta and without intervals=True.',
    )


def _check_inference(told: LogisticRegression, declared: Labels, means: FitBudget) -> None:
    if not told.intervals:
        return
    unregularised("C", told.C, told.solver, (None, "descent"), means)
    if declared.declared is None or declared.most != 2:
        raise InvalidParameterError(
            "Intervals are for log odds of two classes.", fix="declare both, for example classes=[0, 1]."
        )


def _inferred(
    rows: Held,
    places: NDArray[np.int64],
    plan: Plan,
    *,
    steps: int,
    bits: Bits,
    units: Callable[[Floats], tuple[Floats, Floats]],
) -> Floats:
    """A Newton step from where descent by the logistic loss ends, in the units of the data."""
    loss = Loss(lambda scores: residuals(scores, places), columns=1, step=1 / PULL, bend=0.25, spread=_SPREAD)
    curve = Curve(
        lambda w: (residuals(rows.times(w), places), 1 / PULL),
        lambda w: bends(rows.times(w), places),
        bend=0.25,
        looks=_LOOKS,
    )
    start = optimum(rows, loss, plan, steps=steps, ridge=None, bits=bits)[:, 0]

    def plain(w: Floats) -> Floats:
        (coef,), (intercept,) = units(w[:, np.newaxis])
        return np.append(coef, intercept)

    return inferred(rows, curve, start, noises=plan.noises[2:], bits=bits, units=plain).table
