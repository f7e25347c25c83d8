"""What private estimators have in common: how they are copied, what they take, and how they are charged."""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from defocus.errors import InvalidParameterError, UnfitDataError, positive
from defocus.learning.estimators.balls import Ball, Matrix
from defocus.learning.estimators.cells import table
from defocus.learning.estimators.spending import Plan, Purse, purse
from defocus.ledger import Ledger
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.privacy.expressions import unparse
from defocus.release import promise

__all__ = ["PrivateEstimator", "ends", "held", "in_units_of_data", "scaled", "seen", "seen_with"]

_Made = TypeVar("_Made")
_FINE = 26
"""Rows to predict are held to a finer grid than those that are counted."""

_PUBLIC = ("The feature names should match", "Feature names are only supported", "X has ", "Sparse ")
"""How texts begin that hold names, numbers and types of features alone, which are public."""
_ABOUT_ROWS = {
    "Expected 2D array": (
        "Expected 2D array: X must have rows and columns.",
        "Reshape your data, with reshape(-1, 1) for one feature and reshape(1, -1) for one row.",
    ),
    "Complex data not supported": ("Complex data not supported.", "pass the two parts as two features."),
    "Found array with 0 sample(s)": (
        "Found array with 0 sample(s) while a minimum of 1 is required.",
        "pass one row at least.",
    ),
    "Found array with 0 feature(s)": (
        "Found array with 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.",
        "pass one feature at least.",
    ),
    "": ("X is no table of numbers.", "pass an array or a frame of numbers, with as many in each row."),
}
_ABOUT_TARGETS = {
    "y should be a 1d array": ("y should be a 1d array, but it has several columns.", "pass one target for each row."),
    "": ("y is no list of targets.", "pass one number or label for each row."),
}


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateEstimator(BaseEstimator, ABC):
    """An estimator whose fit is charged before it looks at the data, once for each call of fit.

    What all of them are told: the ``budget`` of a fit, the ``ledger`` that is charged for it and its ``purpose`` there,
    and a source of random ``bits`` for tests. The fields of an estimator are its parameters, as scikit-learn reads them
    off the signature; they are kept as they were given, and checked by fit.

    After a fit, ``event_`` says what was spent and ``receipt_`` that it was charged, or None without a ledger. A clone
    charges the same ledger. Public are the names and number of features, the parameters, and that there is any row.
    """

    _RELEASED: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """What a fit finds that its event pays for, and its shape; nothing else is written to a file for others."""
    _WITHHELD: ClassVar[tuple[str, ...]] = ()
    """What a fit leaves in memory that tells of single rows, and that no file may hold."""

    budget: Any = None
    ledger: Any = None
    purpose: str | None = None
    bits: Any = None

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Any:
        """Charge, then fit."""

    def _means(self) -> tuple[Purse, Bits]:
        """What a fit may spend, and where its noise comes from."""
        return purse(self.budget, self.ledger), source(self.bits)

    def _spend(self, plan: Plan, means: Purse, compute: Callable[[], _Made], written: Callable[[_Made], Any]) -> _Made:
        """What ``compute`` makes, once the event of the plan is charged."""
        why = f"fit {type(self).__name__}" if self.purpose is None else self.purpose
        made, self.receipt_ = means.spend(plan.event, compute, purpose=why, written=written)
        self.event_ = plan.event
        self._asked, self._unit = means.budget, means.unit
        return made

    def explain(self) -> str:
        """What the last fit promises to whom, what it spent, and where that is written down."""
        check_is_fitted(self, "event_")
        made = promise(self.event_, self._asked, self._unit.adjacency)
        lines = (
            f"{type(self).__name__} protects {self._unit}: {made}.",
            f"spent:   {unparse(self.event_)}",
            f"charged: {'to no ledger' if self.receipt_ is None else self.receipt_}",
        )
        return "\n".join(lines)

    def released(self) -> dict[str, Any]:
        """What the last fit found that anybody may see, by name: no more than ``event_`` pays for."""
        check_is_fitted(self, "event_")
        return {name: getattr(self, name) for name in ("n_features_in_", *self._RELEASED)}

    @classmethod
    def restored(cls, released: Mapping[str, Any], **parameters: Any) -> Self:
        """An estimator that predicts as the one did that ``released`` this, with the same parameters.

        It spent nothing and cannot explain what the other one did. What does not fit together is refused.
        """
        if not isinstance(released, Mapping):
            raise _not_released(cls)
        made = cls(**parameters)
        sizes: dict[str, int] = {}
        for name, shape in {"n_features_in_": (), **cls._RELEASED}.items():
            value = _number_or_labels(released.get(name), labels=name == "classes_")
            if value is None or value.ndim != len(shape):
                raise _not_released(cls)
            for part, size in zip(shape, value.shape, strict=True):
                if not size or sizes.setdefault(part, size) != size:
                    raise _not_released(cls)
            setattr(made, name, value if shape else value[()])
        made.n_features_in_ = int(made.n_features_in_)
        classes = sizes.get("classes", 1)
        wanted = {"features": made.n_features_in_, "scores": classes if classes > 2 else 1}
        if any(sizes.get(part, size) != size for part, size in wanted.items()):
            raise _not_released(cls)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """What is kept in a file: nothing that tells of single rows, as the labels of a clustering do.

        A ledger is named and not kept: to fit again, it must be opened and passed again.
        """
        found: dict[str, Any] = super().__getstate__()
        state = {name: value for name, value in found.items() if name not in self._WITHHELD}
        ledger = state.get("ledger")
        return {**state, "ledger": ledger.where} if isinstance(ledger, Ledger) else state

    def __sklearn_clone__(self) -> Any:
        """The same parameters, unfitted. A ledger and a source of bits are one thing each, and never copied."""
        given: dict[str, Any] = {
            name: value if isinstance(value, Ledger | Bits) else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        made = type(self)(**given)
        for name in ("_metadata_request", "_sklearn_output_config"):
            if hasattr(self, name):
                setattr(made, name, copy.deepcopy(getattr(self, name)))
        return made

    def __sklearn_tags__(self) -> Any:
        """NaN is a missing value, whose outcome is declared; noise is fresh in every fit."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = True
        return tags


def seen(estimator: Any, X: Any, *, reset: bool, sparse: bool = False) -> Matrix:
    """Rows as numbers: types and shapes are checked, values are not, and never quoted."""

    def check() -> Matrix:
        rows = table(X)
        kinds = "csr" if sparse else False
        told = {"estimator": estimator, "input_name": "X"}
        rows = check_array(rows, accept_sparse=kinds, dtype=np.float64, ensure_all_finite=False, **told)
        validate_data(estimator, X if hasattr(X, "columns") else rows, reset=reset, skip_check_array=True)
        return rows

    taken, problem = _attempted(check, _ABOUT_ROWS)
    if problem is not None:
        raise problem
    return taken


def seen_with(
    estimator: Any, X: Any, y: Any, read: Callable[[Any], NDArray[Any]], *, sparse: bool = False
) -> tuple[Matrix, NDArray[Any]]:
    """Rows to fit, and one target for each, which ``read`` makes a number or a label of."""
    if y is None:
        raise InvalidParameterError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None.", fix="pass fit(X, y)."
        )
    rows = seen(estimator, X, reset=True, sparse=sparse)
    target, problem = _attempted(lambda: column_or_1d(read(y), warn=True), _ABOUT_TARGETS)
    if problem is not None:
        raise problem
    if len(target) != rows.shape[0]:
        raise UnfitDataError("X and y have different numbers of rows.", fix="pass one target for each row.")
    return rows, target


def _attempted(check: Callable[[], Any], words: Mapping[str, tuple[str, str]]) -> tuple[Any, Exception | None]:
    """What a check of scikit-learn gives, or a refusal in ``words`` of ours, found by how its own begin.

    Its own often quote values. A refusal is given and not raised, so that its context is not the one that it replaces.
    """
    try:
        return check(), None
    except UnfitDataError as problem:
        return None, problem
    except (ValueError, TypeError, ArithmeticError) as problem:
        said = str(problem)
        if said.startswith(_PUBLIC):
            return None, UnfitDataError(said.rstrip(), fix="pass the features that were fitted, and dense rows.")
        what = next((ours for theirs, ours in words.items() if said.startswith(theirs)), words[""])
        return None, UnfitDataError(what[0], fix=what[1])


def _number_or_labels(value: Any, *, labels: bool) -> NDArray[Any] | None:
    """An array of what was released, or None for what cannot have been."""
    try:
        made = np.asarray(value) if labels else np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    finite = made.dtype.kind in "biufU" and (made.dtype.kind == "U" or bool(np.isfinite(made).all()))
    return made if finite else None


def _not_released(kind: type) -> InvalidParameterError:
    return InvalidParameterError(
        f"This is not what a {kind.__name__} released.", fix="pass what released() gave, whole and unchanged."
    )


def held(X: Matrix, bounds: Any, norm: Any) -> Matrix:
    """Rows to predict: cut to the bounds, with what is missing in the middle; or held to the norm."""
    if bounds is None:
        ball = Ball(float(positive("norm", norm)), _FINE)
        return ball.hold(X) * (ball.norm / ball.radius)
    low, high = _ends_of_dense(X, bounds)
    return np.where(np.isnan(X), low / 2 + high / 2, np.clip(X, low, high))


def scaled(X: Matrix, bounds: Any, norm: Any) -> tuple[Matrix, float]:
    """Rows in the units of the model, and the norm that they are held to.

    With ``bounds``, each feature goes from its two ends to -1 and 1, and a missing one to 0, so no row is longer than
    the root of the number of features. Without, rows stay as they are, and are held to ``norm``.
    """
    if bounds is None:
        return X, float(positive("norm", norm))
    low, high = _ends_of_dense(X, bounds)
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    with np.errstate(invalid="ignore", over="ignore"):
        moved = np.clip((X - middle) / half, -1.0, 1.0)
    return np.where(np.isnan(moved), 0.0, moved), math.sqrt(X.shape[1])


def _ends_of_dense(X: Matrix, bounds: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The bounds of rows that are not sparse."""
    if sp.issparse(X):
        raise InvalidParameterError(
            "bounds= moves zeros, so that sparse rows would not stay sparse.", fix="pass norm= instead, or dense rows."
        )
    return ends(bounds, X.shape[1])


def ends(bounds: Any, features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The declared least and largest value of each feature."""
    problem = InvalidParameterError(
        "bounds must be a pair of the least and the largest value, each a number or one for every feature.",
        fix="declare for example bounds=(0, 100), or bounds=([0, 18], [1, 90]) for two features, from what is known"
        " about them and not from the data.",
    )
    if isinstance(bounds, str | bytes) or not hasattr(bounds, "__len__") or len(bounds) != 2:
        raise problem
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (features,)) for end in bounds)
    except (TypeError, ValueError):
        raise problem from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise problem
    return low, high


def in_units_of_data(
    coef: NDArray[np.float64], intercept: NDArray[np.float64], bounds: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coefficients and intercepts of features as they come, from those of features that go from -1 to 1."""
    if bounds is None:
        return coef, intercept
    low, high = ends(bounds, coef.shape[1])
    plain = coef / (high / 2 - low / 2)
    return plain, intercept - plain @ (low / 2 + high / 2)
