"""Principal components and scaling, from noisy moments."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from defocus.errors import InvalidParameterError, NotDeclaredError, count
from defocus.learning.estimators.base import PrivateEstimator
from defocus.learning.estimators.descent import noised
from defocus.learning.estimators.fit_budget import FitBudget, Noise, Sum, deviation, packed, planned, unpacked
from defocus.learning.estimators.grid import Ball, Floats, moment_sum, noisy_moments, summed
from defocus.learning.estimators.inputs import Bounds, bounds_of, outward, persons_of, scaled, seen
from defocus.mechanisms import RangeFinding
from defocus.noise import Bits
from defocus.privacy.events import NOTHING, DiscreteGaussian
from defocus.privacy.numbers import root_up

__all__ = ["PCA", "StandardScaler"]


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
        units of :math:`2^{-10}`, by at most :math:`2^{10}` each, in L2 norm. Noise is discrete Gaussian; for a price
        without delta discrete Laplace, for d features by the L1 norms: :math:`(5 + \frac72(d-1))2^{20}`,
        :math:`2^{10}\sqrt d` and :math:`2^{10}`. The rest is computed from the noisy sums.
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

    def fit(self, X: Any, y: Any = None, users: Any = None) -> "PCA":
        """Charge, then fit; ``users`` says whose each row is, and ``y`` is not looked at."""
        told, means, drawn, data = self._told(X, y, users)
        rows = seen(self, data.X, reset=True)
        persons = persons_of(data.users, rows.shape[0])
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
            second = noisy_moments(dense, squared, drawn, persons)
            first = noised(summed(dense, persons), plain, drawn)
            units = int(summed(np.full((len(dense), 1), 2.0**_BITS), persons)[0])
            return second, first, max(1.0, number.sample(units, drawn) / 2**_BITS)

        second, first, rows_about = self._spend(plan, means, compute)
        unit = norm / ball.radius
        mean = first * unit / rows_about
        values, vectors = np.linalg.eigh(second * unit**2 / rows_about - np.outer(mean, mean))
        turned = np.where(vectors[abs(vectors).argmax(axis=0), np.arange(width)] < 0, -1.0, 1.0) * vectors
        self.components_ = turned[:, ::-1].T[:wanted]
        self.explained_variance_ = values[::-1][:wanted].clip(0)
        self.explained_variance_ratio_ = self.explained_variance_ / max(float(values.clip(0).sum()), 1e-300)
        self.mean_ = outward(mean, told.bounds, cut=True)
        self.n_components_, self.bounds_ = wanted, told.bounds
        return self

    def transform(self, X: Any) -> Floats:
        """The coordinates of rows along the components; with ``bounds``, of features that go from -1 to 1."""
        check_is_fitted(self)
        rows = seen(self, X, reset=False)
        moved, mean = (scaled(points, self._limits, self.norm)[0] for points in (rows, self.mean_[np.newaxis]))
        projected: Floats = (np.nan_to_num(moved) - mean) @ self.components_.T
        return projected

    def inverse_transform(self, X: Any) -> Floats:
        """Rows with these coordinates."""
        check_is_fitted(self)
        mean, _ = scaled(self.mean_[np.newaxis], self._limits, self.norm)
        return outward(np.asarray(X, dtype=np.float64) @ self.components_ + mean, self._limits)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


_FINDING = 0.3
"""The share of the budget that finds bounds nobody declared."""
_NARROWEST = 1e-3
"""No feature is taken to vary by less than this share of half its bounds."""


@final
@dataclass(eq=False, repr=False, kw_only=True)
class StandardScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    r"""Subtract the mean of each feature and divide by its standard deviation, all of them noisy.

    ``with_mean`` and ``with_std`` say which of the two is done; both are released.

    Guarantee:
        The fit owes ``event_``, calibrated to its price; one row is added or removed, or replaced where the ledger
        says so. Each feature goes from its bounds to [-1, 1]; a row adds :math:`2^{10}` to a count, and at most
        :math:`2^{10}` in size to a sum and to a sum of squares of each of d features: at most
        :math:`2^{10}\sqrt{2d+1}` in L2 norm and :math:`2^{10}(2d+1)` in L1 norm, in whole numbers. Noise is discrete
        Gaussian; discrete Laplace for a price without delta.

        Without ``bounds``, each feature's are found from a noisy histogram of magnitudes (:class:`RangeFinding`), and
        that is charged as well, within the same budget.
    Assumes:
        Declared ``bounds`` were not read off the data. What lies outside is cut; NaN is the middle of the bounds here,
        and stays NaN in :meth:`transform`.

    Error:
        ``error_`` is the standard error of the means by noise, in the units of the data.
    Reference:
        Wilson et al. (2020), Differentially private SQL with bounded user contribution, for the bounds.

    Args:
        bounds: the least and the largest value, each a number or one for every feature; found by default.
        with_mean: whether the mean is subtracted.
        with_std: whether the standard deviation is divided by.
        epsilon, delta, rho, ledger, unit, budget, purpose, who, bits, random_state: see :class:`PrivateEstimator`.

    >>> from tempfile import TemporaryDirectory
    >>> from defocus import Budget
    >>> from defocus.noise.testing import seeded
    >>> X = np.tile([[20.0], [40.0], [60.0]], (5000, 1))
    >>> with TemporaryDirectory() as home:
    ...     terms = {"ledger": f"{home}/people.ledger", "budget": Budget(1, 1e-6)}
    ...     scaler = StandardScaler(**terms, bounds=(0, 120), bits=seeded(1)).fit(X)
    >>> scaler.mean_.round(0).tolist(), scaler.scale_.round(0).tolist()
    ([40.0], [16.0])
    """

    _RELEASED: ClassVar = dict.fromkeys(("low_", "high_", "mean_", "var_", "scale_", "error_"), ("features",))

    bounds: Any = None
    with_mean: bool = True
    with_std: bool = True

    def fit(self, X: Any, y: Any = None, users: Any = None) -> "StandardScaler":
        """Charge, then fit; ``users`` says whose each row is, and ``y`` is not looked at."""
        told, means, drawn, data = self._told(X, y, users)
        rows = seen(self, data.X, reset=True)
        persons = persons_of(data.users, rows.shape[0])
        width = rows.shape[1]
        also, declared = NOTHING, None if told.bounds is None else bounds_of(told.bounds, width)
        if declared is None:
            finder = _finder(means, width)
            also = width * finder.event
        entries = 2 * width + 1
        sums = Sum(2**_BITS * root_up(Fraction(entries)), entries, l1_bound=2**_BITS * entries)
        plan = planned(means, [sums], also=also)

        def compute() -> tuple[Bounds, Floats]:
            bounds = _found(rows, finder, drawn) if declared is None else declared
            noisy = plan.noises[0].sample(summed(_powers(bounds.inward(rows)), persons), drawn)
            return bounds, np.asarray(noisy, dtype=np.float64) / 2**_BITS

        def written(released: tuple[Bounds, Floats]) -> Any:
            return packed((released[0].low, released[0].high, released[1]))

        def read(value: Any) -> tuple[Bounds, Floats]:
            low, high, noisy = unpacked(value)
            return Bounds(low, high), noisy

        bounds, noisy = self._spend(plan, means, compute, written, read)
        self._read(bounds, noisy, plan.noises[0])
        return self

    def _read(self, bounds: Bounds, noisy: Floats, noise: Noise) -> None:
        """Means and deviations from noisy sums of features that go from -1 to 1."""
        width = len(bounds.low)
        rows_about = max(1.0, float(noisy[-1]))
        first = (noisy[:width] / rows_about).clip(-1, 1)
        second = (noisy[width : 2 * width] / rows_about).clip(0, 1)
        self.low_, self.high_ = bounds.low, bounds.high
        self.mean_ = bounds.outward(first)
        self.scale_ = np.sqrt(np.maximum(second - first**2, _NARROWEST**2)) * bounds.half
        with np.errstate(over="ignore"):  # bounds may be as wide as floats go
            self.var_ = self.scale_**2
            self.error_ = bounds.half * (deviation(noise) / 2**_BITS / rows_about)

    def transform(self, X: Any) -> Floats:
        """Standardised rows."""
        check_is_fitted(self)
        rows = seen(self, X, reset=False)
        scaled: Floats = (rows - (self.mean_ if self.with_mean else 0.0)) / (self.scale_ if self.with_std else 1.0)
        return scaled

    def inverse_transform(self, X: Any) -> Floats:
        """Rows in the units of the data."""
        check_is_fitted(self)
        spread = np.asarray(X, dtype=np.float64) * (self.scale_ if self.with_std else 1.0)
        restored: Floats = spread + (self.mean_ if self.with_mean else 0.0)
        return restored


def _finder(means: FitBudget, width: int) -> RangeFinding:
    r"""What finds the bounds of each feature, for :data:`_FINDING` of the budget.

    Discrete Laplace noise for epsilon' is :math:`\varepsilon'^2/2`-zCDP, so d of them at
    :math:`\varepsilon' = \mu\sqrt{share/d}` owe that share of :math:`\rho = \mu^2/2`, where :math:`1/\mu` is the noise
    ratio that the whole budget covers. Of a price without delta, each gets an equal part of that share of epsilon.
    """
    if means.unit.kind == "user":
        raise NotDeclaredError(
            f"The bounds of features are not found where the ledger protects {means.unit}.",
            fix="declare them with bounds=(low, high).",
        )
    if means.pure:
        epsilon = min(10.0, _FINDING * float(means.price.epsilon or 0) / width)
    else:
        ratio = means.least(lambda x: DiscreteGaussian(x * 2**20, 2**20))
        epsilon = min(10.0, math.sqrt(_FINDING / width) / ratio)
    return RangeFinding(epsilon=epsilon, sensitivity=1 if means.replace else means.moves, replace=means.replace)


def _found(rows: Floats, finder: RangeFinding, bits: Bits) -> Bounds:
    """The bounds of each feature, from a noisy histogram of its own."""
    low, high = np.array([finder.sample(_magnitudes(values, finder), bits) for values in rows.T]).T
    return Bounds(low, high)


def _magnitudes(values: Floats, finder: RangeFinding) -> NDArray[np.int64]:
    """How many values lie in each bucket; NaN in none."""
    present = values[~np.isnan(values)]
    cells = (np.searchsorted(np.array(finder.edges), present, side="right") - 1).clip(0, finder.buckets - 1)
    return np.bincount(cells, minlength=finder.buckets).astype(np.int64)


def _powers(shares: Floats) -> Floats:
    """Features that go from -1 to 1, their squares, and one, in steps."""
    powers: Floats = np.rint(np.column_stack([shares, shares**2, np.ones(len(shares))]) * 2**_BITS)
    return powers
