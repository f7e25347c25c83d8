"""Which classes there are: declared, or found privately and charged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, NotDeclaredError
from defocus.learning.estimators.spending import Purse
from defocus.mechanisms import PartitionSelection
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import NOTHING, Event
from defocus.privacy.rounding import below

__all__ = ["Labels", "labels", "none_found", "numbered"]

_EPSILON, _DELTA = 10, 2
"""Finding classes takes a tenth of epsilon and half of delta."""
_MOST_EPSILON = 50
_WHOLE = 2.0**53


@final
@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The declared classes, sorted, or the rule that finds them: a label is shown if enough rows have it.

    Guarantee:
        A row has one label, so it touches one key of the selection, and two where it is replaced. The type of the
        classes found is a function of those classes: numbers, among them truth values, are int64 where all that are
        shown are whole and at most 2**53 in size, and else float64; text is as wide as the longest that is shown.
    Assumes:
        Whether labels are numbers, text or dates is public.
    """

    declared: NDArray[Any] | None
    selection: PartitionSelection | None

    @property
    def event(self) -> Event:
        """What finding them owes."""
        return NOTHING if self.selection is None else self.selection.event

    def left(self, purse: Purse) -> Purse:
        """What finding them leaves of a purse: epsilons and deltas are added up."""
        budget = purse.budget
        if self.selection is None or budget.epsilon is None:
            return purse
        epsilon = Fraction(budget.epsilon) - Fraction(self.selection.epsilon)
        delta = Fraction(budget.delta) - Fraction(self.selection.delta)
        return replace(purse, budget=Budget(below(epsilon), below(delta)))

    def found(self, y: NDArray[Any], bits: Bits | None) -> NDArray[Any]:
        """The classes, sorted."""
        if self.selection is None:
            return np.asarray(self.declared)
        values, counts = np.unique(y, return_counts=True)
        return _retyped(values[self.selection.keep(counts, bits)])


def labels(declared: object, purse: Purse) -> Labels:
    """How the classes are known to an estimator with this parameter."""
    if declared is not None:
        if isinstance(declared, str | bytes | dict) or not hasattr(declared, "__len__"):
            raise InvalidParameterError(
                f"classes must list the classes, but it is {type(declared).__name__}.", fix="pass classes=[0, 1]."
            )
        values = np.unique(np.asarray(_listed(declared)))
        if values.ndim != 1 or len(values) < 2:
            raise InvalidParameterError("There must be at least two classes.", fix="pass classes=[0, 1].")
        return Labels(values, None)
    budget = purse.budget
    if budget.epsilon is None or not budget.delta:
        raise NotDeclaredError(
            f"Which classes there are is private, and {budget} has no delta to find them with.",
            fix="declare them with classes=[…], or give a budget of epsilon and delta.",
        )
    epsilon = min(float(budget.epsilon) / _EPSILON, _MOST_EPSILON)
    return Labels(None, PartitionSelection(epsilon=epsilon, delta=float(budget.delta) / _DELTA, replace=purse.replace))


def numbered(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each label among the sorted ``classes``, and -1 for one that is none of them."""
    if not len(classes):
        return np.full(len(y), -1, np.int64)
    places = np.searchsorted(classes, y).clip(0, len(classes) - 1)
    return np.where(classes[places] == y, places, -1).astype(np.int64)


def none_found() -> NotDeclaredError:
    """That no label was shown, which is known from the noisy selection alone."""
    return NotDeclaredError(
        "Not even one class was frequent enough to be shown.", fix="declare them with classes=[…], or raise the budget."
    )


def _retyped(kept: NDArray[Any]) -> NDArray[Any]:
    """The same classes, of a type that depends on nothing else."""
    if kept.dtype.kind in "mM":
        return kept
    made = np.array(kept.tolist())
    if made.dtype.kind not in "biuf":
        return made
    numbers = made.astype(np.float64)
    whole = bool(((np.abs(numbers) <= _WHOLE) & (numbers == np.rint(numbers))).all())
    return np.unique(numbers.astype(np.int64) if whole else numbers)


def _listed(declared: Any) -> Sequence[Any]:
    return list(declared)
