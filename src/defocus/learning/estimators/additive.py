"""A boosted additive model: for every feature a sum of trees of step functions, fitted all at once."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from defocus.errors import InvalidParameterError, count
from defocus.learning.estimators.descent import ROW_BITS
from defocus.learning.estimators.grid import Floats, Held, tallied
from defocus.learning.estimators.inputs import bounds_of, persons_of, seen, seen_with
from defocus.learning.estimators.labels import class_weights, labels, none_found
from defocus.learning.estimators.logistic import ScoredClassifier, descent_plan, fitted_by_descent, unweighted
from defocus.learning.estimators.perturbation import classified, objective, problem_of
from defocus.mechanisms.mechanism import IntVector

__all__ = ["AdditiveModel", "Steps", "Trees"]

_DEEPEST = 10
_FINER = 0.5**0.5
"""How much of a row's squared length each depth has, beside the one before: a half for curves that wander as a random
walk does, all of it for codes of categories, whose neighbours have nothing in common; this lies between."""
_CONSTANT = 0.25
"""The length of the part of a row that is the same for everybody."""


@final
@dataclass(eq=False, repr=False, kw_only=True)
class AdditiveModel(ScoredClassifier):
    r"""A classifier whose score is a sum of one curve for each feature.

    Between its declared ``bounds`` a feature is halved ``max_depth`` times, as a tree would; each curve is a sum of
    steps over all halves, quarters and so on, of which coarse ones are expected to be larger, so that these are learned
    from little data. All trees of all features are boosted together: every step of accelerated descent sees all rows.

    Guarantee:
        Like :class:`LogisticRegression` by descent: a row is the whole vector of the parts that it lies in, whose
        length is at most :math:`2^{13}` for every row by construction, so one row moves a gradient by at most
        :math:`2^{26}` steps. Which parts there are follows from ``bounds`` and ``max_depth`` alone. For a price without
        delta, by objective perturbation (:mod:`.perturbation`), where the L1 norm of a row is known as well.
    Assumes:
        ``bounds`` and ``classes`` were not read off the data; see :class:`LogisticRegression` for undeclared
        classes. What lies outside belongs to the outermost parts; NaN to the part after the middle.

    Error:
        Chosen before random forests and cyclic boosting, whose budget is divided between trees that each
        see the data once or a part of it: see docs/estimators.md for the comparison.
    Reference:
        Nori, Caruana, Bu, Shen, Kulkarni (2021), Accuracy, interpretability, and differential privacy via explainable
        boosting, for private additive models.

    Args:
        bounds: the least and the largest value, each a number or one for every feature.
        max_depth: how often a feature is halved, at most 10 times.
        classes: the classes to learn; found for a share of the price by default.
        class_weight: what rows of a class count for, as in :class:`LogisticRegression`; not for a price without delta.
        max_iter: how many gradients are released. All of them are: a rule that stops early would tell.
        epsilon, delta, rho, ledger, unit, budget, purpose, who, bits, random_state: see :class:`PrivateEstimator`.

    >>> from tempfile import TemporaryDirectory
    >>> from defocus import Budget
    >>> from defocus.noise.testing import seeded
    >>> X = np.linspace(0, 1, 5000)[:, np.newaxis]
    >>> y = (abs(X.ravel() - 0.5) < 0.25).astype(int)
    >>> with TemporaryDirectory() as home:
    ...     terms = {"ledger": f"{home}/people.ledger", "budget": Budget(1, 1e-6)}
    ...     model = AdditiveModel(**terms, bounds=(0, 1), classes=[0, 1], bits=seeded(1))
    ...     model.fit(X, y).predict([[0.1], [0.5], [0.9]]).tolist()
    [0, 1, 0]
    """

    _RELEASED: ClassVar = {
        "classes_": ("classes",),
        "curves_": ("features", "parts", "scores"),
        "intercept_": ("scores",),
    }

    bounds: Any = (-1.0, 1.0)
    max_depth: int = 7
    classes: Any = None
    class_weight: Any = None
    max_iter: int = 300

    def fit(self, X: Any, y: Any = None, users: Any = None) -> "AdditiveModel":
        """Charge, then fit; ``users`` says whose each row is."""
        told, means, drawn, data = self._told(X, y, users)
        declared, depth = labels(told.classes, means), count("max_depth", told.max_depth)
        if depth > _DEEPEST:
            raise InvalidParameterError(f"max_depth must be at most {_DEEPEST}.", fix="use fewer, wider parts.")
        rows, target = seen_with(self, data.X, data.y, declared.read)
        persons = persons_of(data.users, rows.shape[0])
        bounds = bounds_of(told.bounds, rows.shape[1])
        trees = Trees(rows.shape[1], depth)
        steps, way = count("max_iter", told.max_iter), None
        weights = class_weights(told.class_weight, declared)
        if weights is not None and means.pure:
            raise unweighted()
        if means.pure:
            way = objective(means, problem_of(declared, trees.width, trees.length / 2**ROW_BITS), None)
        plan = descent_plan(means, declared, trees.width, steps) if way is None else way.plan

        def compute() -> tuple[NDArray[Any], Floats]:
            cells = trees.placed(bounds.cells(rows, 2**depth))
            if way is not None:
                spread = trees.spread() / 2.0**ROW_BITS
                return classified(way, Held((cells @ spread).tocsr(), persons), target, declared, drawn)
            parts = Steps(trees, cells) if persons is None else Held((cells @ trees.spread()).tocsr(), persons)
            return fitted_by_descent(
                parts, target, declared, plan, steps=steps, ridge=None, bits=drawn, weights=weights
            )

        classes, w = self._spend(plan, means, compute)
        if not len(classes):
            raise none_found()
        self.classes_, self.bounds_ = classes, told.bounds
        table = np.asarray(trees.spread() @ w) / 2**ROW_BITS
        self.curves_ = table[:-1].reshape(rows.shape[1], 2**depth, -1)
        self.intercept_ = table[-1]
        self.n_iter_ = steps if way is None else 1
        return self

    def _scored(self, X: Any) -> Floats:
        check_is_fitted(self)
        rows = seen(self, X, reset=False)
        cells = bounds_of(self._limits, rows.shape[1]).cells(rows, self.curves_.shape[1])
        scores: Floats = self.curves_[np.arange(rows.shape[1]), cells].sum(axis=1) + self.intercept_
        return scores


@final
@dataclass(frozen=True, slots=True)
class Trees:
    """The parts of all features: halves, quarters, … of each, with whole weights, and one part for everybody."""

    features: int
    depth: int

    @property
    def weights(self) -> tuple[int, ...]:
        """What a part weighs at each depth; those of a row and the constant together measure at most 2**13."""
        shares = [_FINER**k for k in range(self.depth)]
        whole = (1 << ROW_BITS) * math.sqrt((1 - _CONSTANT**2) / self.features)
        return tuple(math.floor(whole * math.sqrt(share / sum(shares))) for share in shares)

    @property
    def constant(self) -> int:
        """What the part for everybody weighs."""
        return math.floor((1 << ROW_BITS) * _CONSTANT)

    @property
    def length(self) -> int:
        """The L1 norm of every row."""
        return self.features * sum(self.weights) + self.constant

    @property
    def width(self) -> int:
        """How many parts there are."""
        return self.features * int(2 ** (self.depth + 1) - 2) + 1

    def spread(self) -> Any:
        """One row for each finest part of each feature, and a last one for everybody: the parts that it lies in."""
        finest = 2**self.depth
        blocks = [
            sp.kron(sp.identity(2 ** (k + 1)), np.full((finest >> (k + 1), 1), float(weight)))
            for k, weight in enumerate(self.weights)
        ]
        one = sp.hstack(blocks)
        return sp.block_diag([one] * self.features + [np.array([[float(self.constant)]])], format="csr")

    def placed(self, cells: NDArray[np.int64]) -> Any:
        """A one for the finest part of each feature that a row lies in, and one for everybody."""
        n, finest = len(cells), 2**self.depth
        columns = np.hstack([cells + np.arange(self.features) * finest, np.full((n, 1), self.features * finest)])
        ends_at = np.arange(0, columns.size + 1, self.features + 1)
        return sp.csr_matrix((np.ones(columns.size), columns.ravel(), ends_at), (n, self.features * finest + 1))


@final
class Steps:
    """Rows as the parts that they lie in, kept as the finest ones: two small products instead of one large one."""

    __slots__ = ("_cells", "_spread", "_trees")

    persons: ClassVar = None

    def __init__(self, trees: Trees, cells: Any) -> None:
        self._trees, self._cells, self._spread = trees, cells, trees.spread()

    @property
    def width(self) -> int:
        """See the protocol :class:`.grid.Rows`."""
        return self._trees.width

    def squares(self) -> Floats:
        """See the protocol: the same for every row."""
        squares = self._trees.features * sum(weight**2 for weight in self._trees.weights) + self._trees.constant**2
        return np.full(self._cells.shape[0], float(squares))

    def times(self, w: Floats) -> Floats:
        """See the protocol."""
        return np.asarray(self._cells @ (self._spread @ w))

    def tallied(self, weights: Floats) -> IntVector:
        """See the protocol. Sums of the finest parts first: integers, so that the order does not matter."""
        return np.asarray(self._spread.T.astype(np.int64) @ tallied(self._cells, weights))
