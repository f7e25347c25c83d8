"""Linear regression from noisy sufficient statistics."""

from typing import Any, final

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from defocus.errors import positive
from defocus.learning.estimators.balls import Ball, Floats, Matrix, tallied
from defocus.learning.estimators.base import (
    PrivateEstimator,
    checked_bits,
    ends,
    in_units_of_data,
    scaled,
    seen,
    seen_with,
)
from defocus.learning.estimators.logistic import LinearScores, noised
from defocus.learning.estimators.moments import moment_error, moment_sum, noisy_moments
from defocus.learning.estimators.spending import Plan, Sum, planned, purse
from defocus.noise import Bits

__all__ = ["LinearRegression"]

_BITS = 10
"""Rows, and targets, measure up to 2**10 steps."""
_CONSTANT = 0.5
_SHARE = 0.5
"""Of the budget, for second moments; the rest is for products with the target."""


@final
class LinearRegression(RegressorMixin, PrivateEstimator):
    r"""Least squares, from the sums of :math:`x x^T` and :math:`x y` with noise, and a ridge that the noise asks for.

    Guarantee:
        The fit owes ``event_``, calibrated to ``budget``; one row is added or removed, or replaced where the
        ledger says so. Rows are whole vectors of norm at most :math:`2^{10}` and targets whole numbers of size at
        most :math:`2^{10}`, so a row moves the sum of :math:`x y` by at most :math:`2^{20}` in L2 norm, and the
        weighted sum of :math:`x x^T` by at most :math:`5\cdot2^{20}` (:mod:`.moments`): exactly, as both are sums
        of whole numbers. Noise is discrete Gaussian; the rest is computed from the noisy sums.
    Assumes:
        ``norm`` or ``bounds``, and ``target``, the least and largest value to predict, were not read off the data.
        What lies outside is cut. NaN is zero, with ``bounds`` the middle; a missing target is the middle of ``target``.

    Error:
        As that of AdaSSP: with least eigenvalue :math:`\mu` of the noisy second moments, the ridge is what lifts
        :math:`\mu` to the size of their noise. The eigenvalue is read off what was released, so that,
        other than there, no budget is spent on it.
    Reference:
        Wang (2018), Revisiting differentially private linear regression: optimal and adaptive prediction and estimation
        in unbounded domain.

    >>> from defocus.noise.testing import seeded
    >>> X = np.tile([[-0.8], [-0.2], [0.5], [0.9]], (5000, 1))
    >>> model = LinearRegression(target=(0, 10), bits=seeded(1)).fit(X, 3 + 2 * X.ravel())
    >>> model.predict([[0.0], [1.0]]).round(1).tolist()
    [3.0, 5.0]
    """

    def __init__(
        self,
        *,
        target: Any = (-1.0, 1.0),
        budget: Any = None,
        ledger: Any = None,
        norm: Any = 1.0,
        bounds: Any = None,
        fit_intercept: bool = True,
        ridge: Any = None,
        purpose: str | None = None,
        bits: Any = None,
    ) -> None:
        self.target = target
        self.budget = budget
        self.ledger = ledger
        self.norm = norm
        self.bounds = bounds
        self.fit_intercept = fit_intercept
        self.ridge = ridge
        self.purpose = purpose
        self.bits = bits

    def fit(self, X: Any, y: Any = None) -> "LinearRegression":
        """Charge, then fit."""
        means, drawn = purse(self.budget, self.ledger), checked_bits(self.bits)
        (low,), (high,) = ends(self.target, 1)
        ridge = None if self.ridge is None else float(positive("ridge", self.ridge))
        rows, values = seen_with(self, X, y, sparse=True)
        rows, norm = scaled(rows, self.bounds, self.norm)
        ball = Ball(norm, _BITS, _CONSTANT if self.fit_intercept else 0.0)
        width = rows.shape[1] + bool(self.fit_intercept)
        plan = planned(means, [moment_sum(width, _BITS, _SHARE), Sum(4**_BITS, width, 1 - _SHARE)])
        middle, half = low / 2 + high / 2, high / 2 - low / 2

        def compute() -> Floats:
            with np.errstate(invalid="ignore", over="ignore"):
                shares = np.clip((np.asarray(values, dtype=np.float64) - middle) / half, -1.0, 1.0)
            steps = np.rint(np.where(np.isnan(shares), 0.0, shares) * 2**_BITS)
            return _solved(ball.hold(rows), steps, plan, ridge, drawn)

        w = self._spend(plan, means, compute, lambda made: made.tolist(), self.purpose)
        self._scores = LinearScores(ball, w[:, np.newaxis] * half)
        self._middle = middle
        coef = w[np.newaxis, : rows.shape[1]] * (half * ball.radius / (norm * 2**_BITS))
        intercept = np.array([middle + (half * w[-1] * ball.intercept / 2**_BITS if self.fit_intercept else 0.0)])
        (self.coef_,), (self.intercept_,) = in_units_of_data(coef, intercept, self.bounds)
        return self

    def predict(self, X: Any) -> Floats:
        """The expected target of each row, held to the ball as when fitting."""
        check_is_fitted(self)
        rows = seen(self, X, reset=False, sparse=True)
        found: Floats = self._middle + self._scores.of(scaled(rows, self.bounds, self.norm)[0])[:, 0]
        return found

    def __sklearn_tags__(self) -> Any:
        """Sparse rows are fine."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _solved(rows: Matrix, y: Floats, plan: Plan, ridge: float | None, bits: Bits) -> Floats:
    """The coefficients for rows and targets measured in units of 2**bits."""
    squared, products = plan.noises
    width = rows.shape[1]
    gram = noisy_moments(rows, squared, bits)
    pulled = noised(tallied(rows, y[:, np.newaxis]), products, bits)[:, 0]
    floor = moment_error(squared, width)
    lift = max(0.0, floor - float(np.linalg.eigvalsh(gram)[0])) if ridge is None else ridge * 4**_BITS
    return np.asarray(np.linalg.solve(gram + lift * np.eye(width), pulled), dtype=np.float64)
