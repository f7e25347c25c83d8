"""Rows inside of declared bounds or a declared norm, when fitting and predicting, and coefficients for such rows."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, positive
from defocus.learning.estimators.grid import Ball, Floats, Matrix

__all__ = ["Bounds", "bounds_of", "held", "in_units_of_data", "outward", "scaled"]

_FINE = 26
"""Rows to predict are held to a finer grid than those that are counted."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """The least and the largest value of each feature. What becomes of an entry depends on that entry alone."""

    low: Floats
    high: Floats

    @property
    def middle(self) -> Floats:
        """Halfway between them; halves first, which cannot overflow."""
        return np.asarray(self.low / 2 + self.high / 2)

    @property
    def half(self) -> Floats:
        """How far it is from there to either."""
        return np.asarray(self.high / 2 - self.low / 2)

    def inward(self, X: Floats) -> Floats:
        """Features that go from -1 to 1: what lies outside is cut, and what is missing is 0."""
        with np.errstate(invalid="ignore", over="ignore"):
            moved = np.clip((X - self.middle) / self.half, -1.0, 1.0)
        return np.where(np.isnan(moved), 0.0, moved)

    def outward(self, X: Floats) -> Floats:
        """Features as they come, from those that go from -1 to 1."""
        return np.asarray(self.middle + X * self.half)

    def cut(self, X: Floats) -> Floats:
        """Features as they come, with what is missing in the middle."""
        return np.where(np.isnan(X), self.middle, np.clip(X, self.low, self.high))

    def cells(self, X: Floats, parts: int) -> NDArray[np.int64]:
        """Which of so many equal parts between the bounds each entry lies in; what is missing in the middle one."""
        with np.errstate(invalid="ignore", over="ignore"):
            shares = (X / 2 - self.low / 2) / self.half * parts
        within = np.nan_to_num(shares, nan=parts / 2, posinf=parts, neginf=0).clip(0, parts - 0.5)
        found: NDArray[np.int64] = np.floor(within).astype(np.int64)
        return found


def bounds_of(declared: Any, features: int) -> Bounds:
    """The declared bounds of so many features."""
    problem = InvalidParameterError(
        "bounds must be a pair of the least and the largest value, each a number or one for every feature.",
        fix="declare for example bounds=(0, 100), or bounds=([0, 18], [1, 90]) for two features, from what is known"
        " about them and not from the data.",
    )
    if isinstance(declared, str | bytes) or not hasattr(declared, "__len__") or len(declared) != 2:
        raise problem
    if isinstance(declared, list) and all(isinstance(each, tuple) for each in declared):
        raise InvalidParameterError(
            f"bounds={declared!r:.80} can be read as one pair for each feature, or as the two ends of all.",
            fix="write the least values and then the largest: bounds=([0, 18], [1, 90]) for 0 to 1 and 18 to 90.",
        )
    try:
        low, high = (np.asarray(end, dtype=np.float64) for end in declared)
    except (TypeError, ValueError):
        raise problem from None
    if any(end.shape not in {(), (features,)} for end in (low, high)):
        raise problem
    low, high = (np.broadcast_to(end, (features,)) for end in (low, high))
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise problem
    return Bounds(low, high)


def held(X: Matrix, bounds: Any, norm: Any) -> Matrix:
    """Rows to predict: cut to the bounds, with what is missing in the middle; or held to the norm."""
    if bounds is None:
        ball = Ball(float(positive("norm", norm)), _FINE)
        return ball.hold(X) * (ball.norm / ball.radius)
    return _of_dense(X, bounds).cut(X)


def scaled(X: Matrix, bounds: Any, norm: Any) -> tuple[Matrix, float]:
    """Rows in the units of the model, and the norm that they are held to.

    With ``bounds``, each feature goes from its two ends to -1 and 1, and a missing one to 0, so no row is longer than
    the root of the number of features. Without, rows stay as they are, and are held to ``norm``.
    """
    if bounds is None:
        return X, float(positive("norm", norm))
    return _of_dense(X, bounds).inward(X), math.sqrt(X.shape[1])


def outward(X: Floats, bounds: Any, *, cut: bool = False) -> Floats:
    """Rows in the units of the data, from those of the model; inside of the bounds, if they are ``cut``."""
    return X if bounds is None else bounds_of(bounds, X.shape[-1]).outward(X.clip(-1, 1) if cut else X)


def in_units_of_data(coef: Floats, intercept: Floats, bounds: Any) -> tuple[Floats, Floats]:
    """Coefficients and intercepts of features as they come, from those of features that go from -1 to 1."""
    if bounds is None:
        return coef, intercept
    known = bounds_of(bounds, coef.shape[1])
    plain = coef / known.half
    return plain, intercept - plain @ known.middle


def _of_dense(X: Matrix, bounds: Any) -> Bounds:
    """The bounds of rows that are not sparse."""
    if sp.issparse(X):
        raise InvalidParameterError(
            "bounds= moves zeros, so that sparse rows would not stay sparse.", fix="pass norm= instead, or dense rows."
        )
    return bounds_of(bounds, X.shape[1])
