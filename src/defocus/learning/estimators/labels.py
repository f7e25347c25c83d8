"""Which classes there are, declared or found privately and charged, and what each of them weighs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, NotDeclaredError, UnfitDataError, positive
from defocus.learning.estimators.fit_budget import FitBudget
from defocus.learning.estimators.inputs import Marks, family, mark, marks
from defocus.mechanisms import PartitionSelection
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import NOTHING, Event
from defocus.privacy.numbers import below

__all__ = ["ClassWeights", "Labels", "class_weights", "declared_labels", "labels", "none_found", "numbered"]

_EPSILON, _DELTA = 10, 2
"""Finding classes takes a tenth of epsilon and half of delta."""
_MOST_EPSILON = 50
_NUMBERS = "biuf"
_MOST_FOUND = 1 << 10
"""How many classes are found at most: noise is planned for so many. Declared ones may be more."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The declared classes, sorted, or the rule that finds them: a label is shown if enough rows have it.

    Guarantee:
        A row has one label, so it touches one key of the selection, and two where it is replaced. The type of the
        classes found is a function of those classes and of the type that is declared for the column: in a column of
        truth values they are such; numbers are of the first of int64, uint64 and float64 that holds all that are shown
        exactly, and objects where none does; text is as wide as the longest that is shown; where both are shown, they
        are objects. What is neither number nor text nor date, and what is missing, is nobody's label (:mod:`.inputs`).
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
    def known(self) -> NDArray[Any]:
        """The declared classes; none where they are to be found."""
        return np.array([]) if self.declared is None else self.declared

    @property
    def most(self) -> int:
        """How many classes there may be."""
        return _MOST_FOUND if self.declared is None else len(self.declared)

    def left(self, purse: FitBudget) -> FitBudget:
        """What finding them leaves of a purse: epsilons and deltas are added up."""
        price = purse.price
        if self.selection is None or price.epsilon is None:
            return purse
        epsilon = Fraction(price.epsilon) - Fraction(self.selection.epsilon)
        delta = Fraction(price.delta) - Fraction(self.selection.delta)
        return replace(purse, price=Budget(below(epsilon), below(delta)))

    def read(self, y: Any) -> Marks:
        """The labels of a column; refused where its type says that none can be one of the declared classes."""
        spoken = family(y)
        if self.declared is not None and {spoken, family(self.declared)} == {"numbers", "texts"}:
            raise UnfitDataError(
                f"The labels are {spoken}, but the declared classes are {family(self.declared)}.",
                fix="declare the classes as they are written in the data.",
            )
        return marks(y)

    def found(self, y: Marks, bits: Bits | None) -> NDArray[Any]:
        """The classes, sorted; numbers come before texts."""
        if self.selection is None:
            return np.asarray(self.declared)
        values, counts = _counted(y)
        return _retyped(values[self.selection.keep(counts, bits)] if len(values) else values)[:_MOST_FOUND]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClassWeights:
    """What rows of each class count for, in parts of the largest weight; of a class that is not named, as one.

    Guarantee:
        The weights are public, and a row's depends on its own label alone. None is above one, so whole numbers that are
        multiplied by one and rounded towards zero come out no larger: a row moves a sum by no more than without.
    """

    of: Mapping[Any, float]
    largest: float

    def shares(self, classes: NDArray[Any]) -> NDArray[np.float64]:
        """The weight of each class, at most one."""
        return np.array([self.of.get(label, 1.0) / self.largest for label in _marked(classes)])

    def held(self, steps: NDArray[np.float64], places: NDArray[np.int64], shares: NDArray[np.float64]) -> Any:
        """What each row pulls by, in whole steps, times the weight of its class; a row without a class pulls nobody."""
        return np.trunc(steps * np.append(shares, 0.0)[places][:, np.newaxis])


def class_weights(given: object, known: Labels) -> ClassWeights | None:
    """The weights that an estimator was given: a public number above zero for each class that is named."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidParameterError(
            "class_weight must say what each class weighs; numbers of rows, by which others balance it, are private.",
            fix="pass class_weight={0: 1, 1: 5}, from what is known about the classes or from released counts.",
        )
    of = {mark(label): float(positive("class_weight", weight)) for label, weight in given.items()}
    odd = None if known.declared is None else next((each for each in of if each not in _marked(known.declared)), None)
    if odd is not None or not of:
        raise InvalidParameterError(
            f"class_weight names {odd!r:.60}, which is none of the declared classes.", fix="name declared classes."
        )
    every = known.declared is not None and len(of) == len(known.declared)
    return ClassWeights(of, max(of.values()) if every else max(1.0, *of.values()))


def declared_labels(declared: object) -> Labels:
    """Classes that are declared."""
    if isinstance(declared, str | bytes | dict) or not hasattr(declared, "__len__"):
        raise InvalidParameterError(
            f"classes must list the classes, but it is {type(declared).__name__}.", fix="pass classes=[0, 1]."
        )
    return Labels(_declared(np.asarray(declared), list(declared)), None)  # type: ignore[call-overload] # has a length


def labels(declared: object, purse: FitBudget) -> Labels:
    """How the classes are known to an estimator with this parameter."""
    if declared is not None:
        return declared_labels(declared)
    price = purse.price
    if price.epsilon is None or not price.delta:
        raise NotDeclaredError(
            f"Which classes there are is private, and {price} has no delta to find them with.",
            fix="declare them with classes=[…], or pass epsilon= and delta=.",
        )
    if purse.unit.kind == "user" or purse.unit.per_person not in {None, 1}:
        raise NotDeclaredError(
            f"Which classes there are is private, and they are not found where the ledger protects {purse.unit}.",
            fix="declare them with classes=[…].",
        )
    epsilon = min(float(price.epsilon) / _EPSILON, _MOST_EPSILON)
    return Labels(None, PartitionSelection(epsilon=epsilon, delta=float(price.delta) / _DELTA, replace=purse.moves > 1))


def numbered(y: Marks, classes: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each label among the sorted ``classes``, and -1 for one that is none of them."""
    values = y.values
    if values.dtype.kind in _NUMBERS and classes.dtype.kind in _NUMBERS:
        of, held = _held(classes, values.dtype)
    else:
        of, held = np.arange(len(classes)), classes
    if not len(held):
        return np.full(len(y), -1, np.int64)
    if values.dtype.kind in _NUMBERS or values.dtype.kind == held.dtype.kind != "O":
        near = np.searchsorted(held, values).clip(0, len(held) - 1)
        numbers = np.where(held[near] == values, of[near], -1).astype(np.int64)
    else:
        places = {each: place for place, each in enumerate(_marked(classes))}
        told = values.tolist() if values.dtype.kind == "O" else _marked(values)
        numbers = np.array([-1 if label is None else places.get(label, -1) for label in told], dtype=np.int64)
    return numbers if y.there is None else np.where(y.there, numbers, -1)


def none_found() -> NotDeclaredError:
    """That no label was shown, which is known from the noisy selection alone."""
    return NotDeclaredError(
        "Not even one class was frequent enough to be shown.", fix="declare them with classes=[…], or raise epsilon=."
    )


def _declared(values: NDArray[Any], listed: list[Any]) -> NDArray[Any]:
    """The declared classes, sorted: at least two, all numbers, all texts or all dates."""
    marked = [] if values.ndim != 1 else listed if values.dtype.kind == "M" else _marked(listed)
    if len({isinstance(label, str) for label in marked}) > 1 or any(label is None for label in marked):
        raise InvalidParameterError(
            "The classes are not all numbers or all texts.", fix="write them in one way, for example classes=[0, 1]."
        )
    classes = np.unique(np.array(marked) if values.dtype.kind == "O" else values)
    if classes.dtype.kind in _NUMBERS and classes.tolist() != sorted(set(marked)):
        classes = _exactly(sorted(set(marked)))
    if values.ndim != 1 or len(classes) < 2:
        raise InvalidParameterError("There must be at least two classes.", fix="pass classes=[0, 1].")
    return classes


def _marked(values: Any) -> list[Any]:
    """Labels as objects, whatever they were."""
    return [mark(value) for value in values]


def _held(classes: NDArray[Any], dtype: np.dtype[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Which classes numbers of this type can be equal to, and these in that type, in their order."""
    told = [(place, _held_by(each, dtype)) for place, each in enumerate(classes.tolist())]
    kept = [(place, each) for place, each in told if each is not None]
    return np.array([place for place, _ in kept], dtype=np.int64), np.array([each for _, each in kept], dtype=dtype)


def _held_by(number: float, dtype: np.dtype[Any]) -> Any:
    """The same number, or None if this type has none that equals it."""
    try:
        label = np.array(int(number) if float(number).is_integer() else number, dtype)
    except OverflowError:
        return None
    return label.item() if label.item() == number else None


def _counted(y: Marks) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The different labels in their order, and how many rows have each; missing ones left out."""
    present = y.values if y.there is None else y.values[y.there]
    if present.dtype.kind != "O":
        values, counts = np.unique(present, return_counts=True)
        there = values == values  # noqa: PLR0124 # NaN and NaT are not
        return values[there], counts[there]
    tally = Counter(label for label in present.tolist() if label is not None)
    kept = sorted(tally, key=lambda each: (isinstance(each, str), each))
    values = np.empty(len(kept), dtype=object)
    values[:] = kept
    return values, np.array([tally[label] for label in kept], dtype=np.int64)


def _retyped(kept: NDArray[Any]) -> NDArray[Any]:
    """The same classes, of a type that depends on nothing else, and on whether they are declared truth values."""
    shown = kept.tolist()
    if kept.dtype.kind in "bM" or len({isinstance(label, str) for label in shown}) > 1:
        return kept
    return np.array(shown) if shown and isinstance(shown[0], str) else _exactly(shown)


def _exactly(numbers: list[Any]) -> NDArray[Any]:
    """Numbers as an array of the first type that holds all of them exactly."""
    for dtype in (np.int64, np.uint64, np.float64):
        held = [_held_by(number, np.dtype(dtype)) for number in numbers]
        if None not in held:
            return np.array(held, dtype=dtype)
    array = np.empty(len(numbers), dtype=object)
    array[:] = numbers
    return array
