"""Rows inside of declared bounds or a declared norm, when fitting and predicting, and coefficients for such rows."""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, positive
from defocus.learning.estimators.balls import Ball, Matrix

__all__ = ["ends", "held", "in_units_of_data", "outward", "scaled"]

_FINE = 26
"""Rows to predict are held to a finer grid than those that are counted."""


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


def outward(X: NDArray[np.float64], bounds: Any, *, cut: bool = False) -> NDArray[np.float64]:
    """Rows in the units of the data, from those of the model: inside of the bounds, if they are ``cut``."""
    if bounds is None:
        return X
    low, high = ends(bounds, X.shape[-1])
    return np.asarray((low / 2 + high / 2) + (X.clip(-1, 1) if cut else X) * (high / 2 - low / 2))


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
        low, high = (np.asarray(end, dtype=np.float64) for end in bounds)
    except (TypeError, ValueError):
        raise problem from None
    if any(end.shape not in {(), (features,)} for end in (low, high)):
        raise problem
    low, high = (np.broadcast_to(end, (features,)) for end in (low, high))
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
