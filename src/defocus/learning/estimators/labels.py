"""Which classes there are: declared, or found privately and charged."""

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, NotDeclaredError, UnfitDataError
from defocus.learning.estimators.cells import family, marks
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
_MOST_FOUND = 1 << 10
"""How many classes are found at most: noise is planned for so many. Declared ones may be more."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The declared classes, sorted, or the rule that finds them: a label is shown if enough rows have it.

    Guarantee:
        A row has one label, so it touches one key of the selection, and two where it is replaced. The type of the
        classes found is a function of those classes: numbers are int64 where all that are shown are whole and at most
        2**53 in size, and else float64; text is as wide as the longest that is shown; where both are shown, they are
        objects. A column of truth values has such classes. What is neither number nor text nor date, and what is
        missing, is nobody's label (:mod:`.cells`).
    Assumes:
        The type of the column of labels is public.
    """

    declared: NDArray[Any] | None
    selection: PartitionSelection | None

    @property
    def event(self) -> Event:
        """What finding them owes."""
        return NOTHING if self.selection is None else self.selection.event

    @property
    def most(self) -> int:
        """How many classes there may be."""
        return _MOST_FOUND if self.declared is None else len(self.declared)

    def left(self, purse: Purse) -> Purse:
        """What finding them leaves of a purse: epsilons and deltas are added up."""
        budget = purse.budget
        if self.selection is None or budget.epsilon is None:
            return purse
        epsilon = Fraction(budget.epsilon) - Fraction(self.selection.epsilon)
        delta = Fraction(budget.delta) - Fraction(self.selection.delta)
        return replace(purse, budget=Budget(below(epsilon), below(delta)))

    def read(self, y: Any) -> NDArray[Any]:
        """The labels of a column; refused where its type says that none can be one of the declared classes."""
        spoken = family(y)
        if self.declared is not None and {spoken, family(self.declared)} == {"numbers", "texts"}:
            raise UnfitDataError(
                f"The labels are {spoken}, but the declared classes are {family(self.declared)}.",
                fix="declare the classes as they are written in the data.",
            )
        return marks(y)

    def found(self, y: NDArray[Any], bits: Bits | None) -> NDArray[Any]:
        """The classes, sorted; numbers come before texts."""
        if self.selection is None:
            return np.asarray(self.declared)
        values, counts = _counted(y)
        return _retyped(values[self.selection.keep(counts, bits)] if len(values) else values)[:_MOST_FOUND]


def labels(declared: object, purse: Purse) -> Labels:
    """How the classes are known to an estimator with this parameter."""
    if declared is not None:
        if isinstance(declared, str | bytes | dict) or not hasattr(declared, "__len__"):
            raise InvalidParameterError(
                f"classes must list the classes, but it is {type(declared).__name__}.", fix="pass classes=[0, 1]."
            )
        return Labels(_declared(np.asarray(declared), list(declared)), None)  # type: ignore[call-overload] # has a length
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
    if "O" in {y.dtype.kind, classes.dtype.kind} or family(y) != family(classes):
        places = {mark: place for place, mark in enumerate(_marked(classes))}
        return np.array([-1 if mark is None else places.get(mark, -1) for mark in _marked(y)], dtype=np.int64)
    near = np.searchsorted(classes, y).clip(0, len(classes) - 1)
    return np.where(classes[near] == y, near, -1).astype(np.int64)


def none_found() -> NotDeclaredError:
    """That no label was shown, which is known from the noisy selection alone."""
    return NotDeclaredError(
        "Not even one class was frequent enough to be shown.", fix="declare them with classes=[…], or raise the budget."
    )


def _declared(values: NDArray[Any], listed: list[Any]) -> NDArray[Any]:
    """The declared classes, sorted: at least two, all numbers, all texts or all dates."""
    known = [] if values.ndim != 1 else listed if values.dtype.kind == "M" else _marked(listed)
    if len({isinstance(each, str) for each in known}) > 1 or any(each is None for each in known):
        raise InvalidParameterError(
            "The classes are not all numbers or all texts.", fix="write them in one way, for example classes=[0, 1]."
        )
    found = np.unique(np.array(known) if values.dtype.kind == "O" else values)
    if values.ndim != 1 or len(found) < 2:
        raise InvalidParameterError("There must be at least two classes.", fix="pass classes=[0, 1].")
    return found


def _marked(values: Any) -> list[Any]:
    """Labels as objects, whatever they were."""
    made = np.empty(len(values), dtype=object)
    made[:] = list(values)
    return list(marks(made))


def _counted(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The different labels in their order, and how many rows have each; missing ones left out."""
    if y.dtype.kind != "O":
        values, counts = np.unique(y, return_counts=True)
        there = values == values  # noqa: PLR0124 # NaN and NaT are not
        return values[there], counts[there]
    tally = Counter(mark for mark in y.tolist() if mark is not None)
    kept = sorted(tally, key=lambda mark: (isinstance(mark, str), mark))
    values = np.empty(len(kept), dtype=object)
    values[:] = kept
    return values, np.array([tally[mark] for mark in kept], dtype=np.int64)


def _retyped(kept: NDArray[Any]) -> NDArray[Any]:
    """The same classes, of a type that depends on nothing else."""
    if kept.dtype.kind in "bmM":
        return kept
    if len({isinstance(each, str) for each in kept.tolist()}) > 1:
        return kept
    made = np.array(kept.tolist())
    if made.dtype.kind not in "biuf":
        return made
    numbers = made.astype(np.float64)
    whole = bool(((np.abs(numbers) <= _WHOLE) & (numbers == np.rint(numbers))).all())
    return np.unique(numbers.astype(np.int64) if whole else numbers)
