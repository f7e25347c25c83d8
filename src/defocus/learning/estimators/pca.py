"""Principal components from noisy moments."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from defocus.errors import InvalidParameterError, count
from defocus.learning.estimators.base import PrivateEstimator
from defocus.learning.estimators.bounds import outward, scaled
from defocus.learning.estimators.descent import noised
from defocus.learning.estimators.fit_budget import Sum, planned
from defocus.learning.estimators.grid import Ball, Floats, moment_sum, noisy_moments, tallied
from defocus.learning.estimators.inputs import seen

__all__ = ["PCA"]

_BITS = 10
_MOMENTS, _MEAN, _COUNT = 0.8, 0.15, 0.05
"""Shares of the budget."""


@final
@dataclass(eq=False, repr=False, kw_only=True)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    r"""The directions in which rows vary most, from the sums of :math:`x x^T` and x and the number of rows.

    Guarantee:
        The fit owes ``event_``, calibrated to its price; one row is added or removed, or replaced where the ledger
        says so. Rows are whole vectors of norm at most :math:`2^{10}`: one row moves the weighted sum of
        :math:`x x^T` by at most :math:`5\cdot2^{20}` (:mod:`.grid`), and the sum of x, and the number of rows in
        units of :math:`2^{-10}`, by at most :math:`2^{10}` each, in L2 norm. Noise is discrete Gaussian; the rest is
        computed from the noisy sums.
    Assumes:
        ``norm`` or ``bounds`` were not read off the data; longer rows are scaled down. NaN is zero, with ``bounds`` the
        middle.

    Error:
        Directions whose variance is below the error of the second moments are those of the noise.
    Reference:
        Dwork, Talwar, Thakurta, Zhang (2014), Analyze Gauss: optimal bounds for privacy-preserving PCA.

    Args:
        n_components: how many directions to find; all by default.
        norm: the longest that a row may be, where there are no ``bounds``.
        bounds: the least and the largest value, each a number or one for every feature.
        epsilon, delta, rho, ledger, unit, budget, purpose, who, bits, random_state: see :class:`PrivateEstimator`.

    >>> from tempfile import TemporaryDirectory
    >>> from defocus import Budget
    >>> from defocus.noise.testing import seeded
    >>> X = np.outer(np.tile([-1.0, 1.0], 5000), [0.6, 0.8])
    >>> with TemporaryDirectory() as home:
    ...     model = PCA(n_components=1, ledger=f"{home}/people.ledger", budget=Budget(1, 1e-6), bits=seeded(1))
    ...     abs(model.fit(X).components_).round(1).tolist()
    [[0.6, 0.8]]
    """

    _RELEASED: ClassVar = {
        "components_": ("components", "features"),
        "explained_variance_": ("components",),
        "explained_variance_ratio_": ("components",),
        "mean_": ("features",),
        "n_components_": (),
    }

    n_components: Any = field(default=None, kw_only=False)
    norm: Any = 1.0
    bounds: Any = None

    def fit(self, X: Any, y: Any = None) -> "PCA":
        """Charge, then fit; ``y`` is not looked at."""
        del y
        told, means, drawn = self._told()
        rows = seen(self, X, reset=True)
        width = rows.shape[1]
        wanted = width if told.n_components is None else count("n_components", told.n_components)
        if wanted > width:
            raise InvalidParameterError(
                f"There are {width} features, so there cannot be {wanted} components.", fix=f"ask for at most {width}."
            )
        held, norm = scaled(rows, told.bounds, told.norm)
        ball = Ball(norm, _BITS)
        sums = [moment_sum(width, _BITS, _MOMENTS), Sum(2**_BITS, width, _MEAN), Sum(2**_BITS, 1, _COUNT)]
        plan = planned(means, sums)

        def compute() -> tuple[Floats, Floats, float]:
            whole = ball.hold(held)
            dense = whole.toarray() if hasattr(whole, "toarray") else whole
            squared, plain, number = plan.noises
            second = noisy_moments(dense, squared, drawn)
            first = noised(tallied(dense, np.ones((len(dense), 1))), plain, drawn)[:, 0]
            return second, first, max(1.0, number.sample(len(dense) << _BITS, drawn) / 2**_BITS)

        second, first, rows_about = self._spend(plan, means, compute, lambda made: made[0].tolist())
        unit = norm / ball.radius
        mean = first * unit / rows_about
        values, vectors = np.linalg.eigh(second * unit**2 / rows_about - np.outer(mean, mean))
        turned = np.where(vectors[abs(vectors).argmax(axis=0), np.arange(width)] < 0, -1.0, 1.0) * vectors
        self.components_ = turned[:, ::-1].T[:wanted]
        self.explained_variance_ = values[::-1][:wanted].clip(0)
        self.explained_variance_ratio_ = self.explained_variance_ / max(float(values.clip(0).sum()), 1e-300)
        self.mean_ = outward(mean, told.bounds, cut=True)
        self.n_components_ = wanted
        return self

    def transform(self, X: Any) -> Floats:
        """The coordinates of rows along the components; with ``bounds``, of features that go from -1 to 1."""
        check_is_fitted(self)
        rows = seen(self, X, reset=False)
        moved, mean = (scaled(each, self.bounds, self.norm)[0] for each in (rows, self.mean_[np.newaxis]))
        found: Floats = (np.nan_to_num(moved) - mean) @ self.components_.T
        return found

    def inverse_transform(self, X: Any) -> Floats:
        """Rows with these coordinates."""
        check_is_fitted(self)
        mean, _ = scaled(self.mean_[np.newaxis], self.bounds, self.norm)
        return outward(np.asarray(X, dtype=np.float64) @ self.components_ + mean, self.bounds)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)
