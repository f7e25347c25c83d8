r"""What one row pulls a linear classifier by, in whole numbers: the clipped residuals of the logistic loss.

A row x of class y pulls the scores of the classes by :math:`(p - e_y) \otimes x`, where p are the probabilities that
the model gives it. The residual :math:`p - e_y` is clipped to the norm that it has for everybody before anything was
learned, :math:`c = \sqrt{1 - 1/K}` for K classes: no row ever pulls harder than at the start, and noise needs to hide a
half of what it would for the logistic loss itself where there are two classes, and .58 to .71 of it where there are
more. For two classes this is a convex loss, logistic on the right side of the boundary and straight on the wrong one.

What clipping does to probabilities is known and undone. Where the classes of rows at some x have probabilities
:math:`\eta`, nothing pulls if :math:`\sum_y \eta_y a_y (p - e_y) = 0` with :math:`a_y = \min(1, c/\|p - e_y\|)`; so
:math:`p_y \propto \eta_y a_y`, and :math:`\eta_y \propto p_y / a_y` (:func:`chances`).

Scores come as whole numbers, exponentials from a table, the rest is whole numbers and single operations that IEEE 754
rounds in one way. So what a row pulls by depends on that row and the model alone, and its norm is at most
:data:`PULL` steps exactly.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from defocus.learning.estimators.balls import Floats

__all__ = ["PULL", "chances", "decisions", "largest", "probabilities", "pulls"]

PULL = 1 << 13
"""The largest norm of a clipped residual, in steps."""

_FINE = 12
"""Scores are looked up in steps of 2**-12."""
_FAR = 16
"""Scores beyond this many units are looked up there: probabilities differ from 0 or 1 by a ten-millionth."""
_ONE = 1 << 24
"""What the largest class weighs in the table of exponentials."""


def largest(classes: int) -> float:
    """The norm that residuals are clipped to."""
    return math.sqrt(1 - 1 / classes)


def pulls(scores: Floats, labels: NDArray[np.int64], *, unit: int, classes: int) -> Floats:
    """The clipped residuals in steps of largest / PULL; ``scores`` are whole multiples of 1 / ``unit``, a power of two.

    One column of scores, for class 1 against class 0, where there are two classes; else one for each class. Rows with
    a label below zero have none of the classes, and pull nobody.

    >>> pulls(np.array([[0.0], [0.0], [64.0]]), np.array([0, 1, -1]), unit=16, classes=2).ravel().tolist()
    [8192.0, -8192.0, 0.0]
    """
    known = labels >= 0
    if classes == 2:
        sign = np.where(labels == 1, 1.0, -1.0)
        found = -sign * _wrongness()[_cells(sign * scores[:, 0], unit)]
        return np.where(known, found, 0.0)[:, np.newaxis]
    weights = _exponentials()[_cells(scores - scores.max(axis=1, keepdims=True), unit)]
    chance = weights / weights.sum(axis=1, keepdims=True)  # sums of whole numbers
    chance[known, labels[known]] -= 1.0
    steps = np.trunc(chance * (PULL / largest(classes)))
    size = np.einsum("ij,ij->i", steps, steps)  # whole numbers again
    steps *= np.where(size > PULL**2, PULL * (1 - 2.0**-40) / np.sqrt(np.maximum(size, 1.0)), 1.0)[:, np.newaxis]
    steps = np.trunc(steps)
    keep = known & (np.einsum("ij,ij->i", steps, steps) <= PULL**2)
    return np.where(keep[:, np.newaxis], steps, 0.0)


def chances(scores: Floats) -> Floats:
    """The probability of each class that scores stand for, one column each: softmax, with the clipping undone."""
    plain = np.exp(scores - scores.max(axis=1, keepdims=True))
    plain /= plain.sum(axis=1, keepdims=True)
    apart = np.sqrt(np.maximum((plain**2).sum(axis=1, keepdims=True) + 1 - 2 * plain, 0.0))
    mended = plain * np.maximum(1.0, apart / largest(scores.shape[1]))
    found: Floats = mended / mended.sum(axis=1, keepdims=True)
    return found


def _cells(scores: Floats, unit: int) -> NDArray[np.int64]:
    """Which entry of a table each score belongs to: division by a power of two is exact."""
    cells = np.floor(scores * (2**_FINE / unit)) + (_FAR << _FINE)
    found: NDArray[np.int64] = cells.clip(0, (2 * _FAR << _FINE) - 1).astype(np.int64)
    return found


def _middles() -> Floats:
    found: Floats = (np.arange(2 * _FAR << _FINE) + 0.5) / 2**_FINE - _FAR
    return found


@cache
def _wrongness() -> Floats:
    """The probability of the other class, at most one half, by the score of the own class; PULL for one half."""
    found: Floats = np.minimum(np.rint(2 * PULL / (1 + np.exp(_middles()))), PULL)
    return found


@cache
def _exponentials() -> Floats:
    """Whole multiples of e to the score, for scores up to zero."""
    found: Floats = np.rint(_ONE * np.exp(np.minimum(_middles(), 0.0)))
    return found


def probabilities(scores: Floats, classes: int) -> Floats:
    """The probability of each class, from one column of scores for two classes or fewer, and one for each of more.

    >>> probabilities(np.zeros((1, 1)), 2)
    array([[0.5, 0.5]])
    """
    if classes == 1:
        return np.ones((len(scores), 1))
    return chances(np.hstack([-scores, scores]) / 2 if classes == 2 else scores)


def decisions(scores: Floats, classes: int) -> Floats:
    """What scikit-learn calls decisions: the score of the second class against the first, or of each of more."""
    return scores[:, 0] if classes <= 2 else np.log(np.maximum(chances(scores), 1e-300))
