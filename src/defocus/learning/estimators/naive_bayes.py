"""Naive Bayes on noisy counts."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from defocus.errors import InvalidParameterError, whole
from defocus.learning.estimators.base import PrivateEstimator
from defocus.learning.estimators.descent import noised
from defocus.learning.estimators.fit_budget import Sum, deviation, planned, sized
from defocus.learning.estimators.grid import Floats, summed
from defocus.learning.estimators.inputs import bounds_of, persons_of, seen, seen_with
from defocus.learning.estimators.labels import labels, none_found, numbered
from defocus.privacy.numbers import root_up

__all__ = ["NaiveBayes"]

_ROW = 1 << 10
"""What a row weighs in a cell: noise may be finer than one row."""


@final
@dataclass(eq=False, repr=False, kw_only=True)
class NaiveBayes(ClassifierMixin, PrivateEstimator):
    r"""A naive Bayes classifier: classes, and within a class each feature by itself, by noisy histograms.

    Every feature is cut into ``n_bins`` equal parts between its declared ``bounds``; what lies outside belongs to the
    outermost parts, NaN to the middle one. For yes-or-no features, ``n_bins=2`` is Bernoulli naive Bayes.

    Guarantee:
        The fit owes ``event_``, calibrated to its price; one row is added or removed, or replaced where the ledger
        says so. A row adds :math:`2^{10}` to a cell for each of d features, in the block of its own class: the cells
        move by exactly :math:`2^{10}\sqrt d` in L2 norm and :math:`2^{10}d` in L1 norm. They are integers; the
        noise is discrete Gaussian, and discrete Laplace for a price without delta.
    Assumes:
        ``bounds`` and ``classes`` were not read off the data; without ``classes``, a label is learned if enough rows
        have it, for a tenth of epsilon and half of delta. Rows with other labels are left out.

    Error:
        How frequent a class is, is the mean of its d noisy totals. Counts below the error of their noise are lifted to
        it, or to half of a mean count (at least one row) where that is less: noise is never taken for certainty.
    Reference:
        Vaidya, Shafiq, Basu, Hong (2013), Differentially private naive Bayes classification.

    Args:
        bounds: the least and the largest value, each a number or one for every feature.
        n_bins: how many equal parts of its bounds a feature is cut into.
        classes: the classes to learn; found for a share of the price by default.
        epsilon, delta, rho, ledger, unit, budget, purpose, who, bits, random_state: see :class:`PrivateEstimator`.

    >>> from tempfile import TemporaryDirectory
    >>> from defocus import Budget
    >>> from defocus.noise.testing import seeded
    >>> X = np.tile([[0.9, 0.1], [0.2, 0.8]], (2000, 1))
    >>> y = np.tile(["ill", "well"], 2000)
    >>> with TemporaryDirectory() as home:
    ...     terms = {"ledger": f"{home}/people.ledger", "budget": Budget(1, 1e-6)}
    ...     model = NaiveBayes(bounds=(0, 1), classes=["ill", "well"], **terms, bits=seeded(1))
    ...     model.fit(X, y).predict([[1.0, 0.0]]).tolist()
    ['ill']
    """

    _RELEASED: ClassVar = {
        "classes_": ("classes",),
        "class_log_prior_": ("classes",),
        "feature_log_prob_": ("classes", "features", "parts"),
    }

    bounds: Any = (-1.0, 1.0)
    n_bins: int = 8
    classes: Any = None

    def fit(self, X: Any, y: Any = None, users: Any = None) -> "NaiveBayes":
        """Charge, then fit; ``users`` says whose each row is."""
        told, means, drawn, data = self._told(X, y, users)
        declared, bins = labels(told.classes, means), whole("n_bins", told.n_bins, at_least=2)
        rows, target = seen_with(self, data.X, data.y, declared.read)
        persons = persons_of(data.users, rows.shape[0])
        bounds = bounds_of(told.bounds, rows.shape[1])
        if bins > 1 << 16:
            raise InvalidParameterError("n_bins must be at most 65536.", fix="use wider bins.")
        features = rows.shape[1]
        cells_of_row = Sum(
            _ROW * root_up(Fraction(features)), declared.most * features * bins, l1_bound=_ROW * features
        )
        plan = planned(declared.left(means), [cells_of_row])
        plan = replace(plan, event=plan.event + declared.event)

        def compute() -> tuple[NDArray[Any], Floats, float]:
            classes = declared.found(target, drawn)
            shape = (max(1, len(classes)), features, bins)
            places = numbered(target, classes)[:, np.newaxis]
            there = np.where(places < 0, 0.0, float(_ROW)) * np.ones(features)
            columns = (places.clip(0) * features + np.arange(features)) * bins + bounds.cells(rows, bins)
            ends_at = np.arange(0, columns.size + 1, features)
            each = sp.csr_matrix((there.ravel(), columns.ravel(), ends_at), (len(columns), math.prod(shape)))
            cells = summed(each, persons).reshape(shape)
            noise = sized(plan.noises[0], cells.size)
            return classes, noised(cells, noise, drawn) / _ROW, deviation(noise) / _ROW

        classes, counts, error = self._spend(plan, means, compute)
        if not len(classes):
            raise none_found()
        self.classes_, self.bounds_ = classes, told.bounds
        lifted = np.maximum(counts, min(error, max(1.0, counts.mean() / 2)))
        totals = np.maximum(counts.sum(axis=2).mean(axis=1), error * math.sqrt(bins))
        self.class_log_prior_ = np.log(totals / totals.sum())
        self.feature_log_prob_ = np.log(lifted / lifted.sum(axis=2, keepdims=True))
        return self

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithms of the probabilities of the classes."""
        check_is_fitted(self)
        rows = seen(self, X, reset=False)
        cells = bounds_of(self._limits, rows.shape[1]).cells(rows, self.feature_log_prob_.shape[2])
        joint = self.class_log_prior_ + self.feature_log_prob_[:, np.arange(rows.shape[1]), cells].sum(axis=2).T
        logarithms: Floats = joint - logsumexp(joint, axis=1, keepdims=True)
        return logarithms

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class."""
        best = self.predict_log_proba(X).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted
