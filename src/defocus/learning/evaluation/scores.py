r"""What a model says about a private row: a function of that row alone, whatever was beside it.

A histogram bounds what one row can change only if a row stays in its cell when another comes or goes. A model is code
of others. It may normalise a batch, keep something of what it saw, or round the last bit of a product in another way
where a batch has another size; then one row more could move every other row across the edge of a bucket.

Guarantee:
    The outcome of a row is the one that the model gives for this row in a batch of its own. Rows go through the model
    together for speed only: a row whose outcome could be another if its score were off by :data:`MARGIN` is asked again
    alone, as is one that has no score, and all rows where a batch fails. Rows with numbers that are not finite, or
    larger than the trial says rounding allows, never go with others. Models that name classes and give no score are
    asked row by row, since nothing tells how close a decision was.
    Before anything is charged, the model is tried on synthetic rows (of the shape of the data and none of its values).
    It is refused if a row scores differently beside others, or when it is asked again after rows that are huge or no
    numbers. As far as rounding moves scores by more than a fiftieth of the margin, rows are asked one by one.
Assumes:
    A model that treats synthetic rows apart treats private ones apart, up to rounding that stays below the margin, and
    keeps nothing of one row for another by a way that the trial does not reach.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import DependentExamplesError, InvalidParameterError, UnfitModelError
from defocus.errors.checks import guarded
from defocus.learning.estimators.grid import Floats, Matrix
from defocus.learning.estimators.inputs import marks
from defocus.learning.estimators.labels import numbered
from defocus.release.paid_computation import silence

__all__ = ["MARGIN", "Kind", "Near", "Scorer", "Scoring", "scorer", "scoring_of"]

Kind: TypeAlias = Literal["score", "chances", "labels", "number"]
"""The score of the second class, the probability of each class, the class itself, or a number that was foretold."""

MARGIN = 1e-4
"""Rows nearer than this to another outcome are asked alone."""
_WOBBLE, _DEPENDENT = MARGIN / 50, 1e-3
"""What rounding may do to scores of rows that go together; and from where on it is not rounding."""
_CHUNK = 1 << 10
_TRIED = 12
_SCALES = (1.0, 50.0, 1e4)
"""How many times larger than the bounds, or than one, numbers may be in rows that go together."""
_GOLDEN = (math.sqrt(5) - 1) / 2

Near: TypeAlias = Callable[[Floats], NDArray[np.bool_]]
"""For which of these scores another one within the margin would mean another outcome."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scoring:
    """How a model is asked, and what its output means: all of it public."""

    call: Callable[[Any], Any]
    kind: Kind
    width: int
    classes: NDArray[Any]
    columns: tuple[int, ...] | None = None
    """For each class its column in the output; -1 where the model does not know the class."""
    limits: tuple[float, float] = (0.0, 1.0)
    """What a foretold number is cut to, and then brought to the range from 0 to 1."""

    def read(self, output: Any, rows: int) -> Floats:
        """Scores, one line for each row, NaN for what is none; fails where the output has another shape."""
        if self.kind == "labels":
            places = numbered(marks(_array(output)), self.classes).astype(np.float64)
            return np.where(places < 0, np.nan, places).reshape(rows, 1)
        values = np.asarray(_array(output), dtype=np.float64).reshape(rows, -1)
        if self.kind == "number":
            low, high = self.limits
            values = (values - low) / (high - low)
        if self.columns is not None:
            values = np.column_stack([values, np.zeros(rows)])[:, list(self.columns)]
        if self.kind == "score" and values.shape[1] == 2:
            values = values[:, 1:]
        if values.shape[1] != self.width:
            raise ValueError
        return np.where(np.isfinite(values).all(axis=1, keepdims=True), values.clip(0.0, 1.0), np.nan)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """A model that was tried; see the module."""

    scoring: Scoring
    reach: Floats
    """The largest numbers of rows that go together; zero where all are asked one by one."""
    fingerprint: str
    """What the model said about synthetic rows, by which it is known again."""

    def scores(self, rows: Matrix, near: Near) -> Floats:
        """What the model says about each row, NaN where it says nothing."""
        found = np.full((rows.shape[0], self.scoring.width), np.nan)
        for start in range(0, rows.shape[0], _CHUNK):
            part = _dense(rows[start : start + _CHUNK])
            found[start : start + len(part)] = self._chunk(part, near)
        return found

    def _chunk(self, part: Floats, near: Near) -> Floats:
        said = np.full((len(part), self.scoring.width), np.nan)
        usual = np.flatnonzero((np.abs(part) <= self.reach).all(axis=1) & self.reach.any())
        if len(usual):
            together = _asked(self.scoring, part[usual])
            if together is not None:
                said[usual] = together
        doubtful = np.isnan(said).any(axis=1) | near(said)
        for place in np.flatnonzero(doubtful):
            said[place] = _one(self.scoring, part[place])
        return said


def scorer(scoring: Scoring, features: int, bounds: Sequence[Any] | None) -> Scorer:
    """Try a model on synthetic rows, and refuse it where rows are not kept apart."""
    usual, more, odd = _made_up(features, bounds)
    rows = np.vstack([usual, *more, odd])
    with silence():
        alone = np.array([_one(scoring, row) for row in rows])
        if np.isnan(alone[: len(usual)]).all():
            raise UnfitModelError(
                f"The model gives no score for a synthetic row of {features} numbers.",
                fix="pass bounds=(least, largest) if its inputs must lie in a range, or a function from an array of"
                " rows to scores.",
            )
        moved, known, limit = _moved(scoring, usual, alone), len(usual), 0.0
        for scale, family in zip(_SCALES, more, strict=True):
            known += len(family)
            if scoring.kind in {"labels", "number"} or moved > _WOBBLE:
                break
            if _moved(scoring, rows[:known], alone) > _WOBBLE:
                break
            limit = scale
        again = np.array([_one(scoring, row) for row in rows])
    if moved > _DEPENDENT:
        raise DependentExamplesError(
            "What the model says about a row depends on the rows beside it, so one person could change all scores.",
            fix="pass a model that scores each row by itself: in eval() mode, without batch statistics.",
        )
    if _gap(again, alone) > _WOBBLE:
        raise UnfitModelError(
            "The model says something else when it is asked about the same row again.",
            fix="pass a model that draws nothing at random and keeps nothing between calls: in eval() mode.",
        )
    digest = hashlib.sha256(repr((scoring.kind, features)).encode() + np.round(alone, 6).tobytes()).hexdigest()
    return Scorer(scoring, limit * more[0][-1], digest)


def _moved(scoring: Scoring, rows: Floats, alone: Floats) -> float:
    """How far scores move where rows go together: in several orders, in small batches and in a large one."""
    every = np.arange(len(rows))
    few = [every[start : start + 3] for start in range(0, len(rows), 3)]
    furthest = 0.0
    for company in (every, every[::-1], *few, np.tile(every, _CHUNK // len(rows) + 1)[:_CHUNK]):
        together = _asked(scoring, rows[company])
        if together is not None:
            furthest = max(furthest, _gap(together, alone[company]))
    return furthest


def _called(model: Any, *ways: str) -> tuple[Callable[[Any], Any], str]:
    """How a model is asked for what it says about rows: by the first of these ways that it has, else as a function."""
    for way in ways:
        found = getattr(model, way, None)
        if callable(found):
            return found, way
    if callable(model):
        return model, "call"
    raise InvalidParameterError(
        f"A model has predict_proba or predict, or is a function, but this is {type(model).__name__}.",
        fix="pass a fitted model, or a function from an array of rows to scores.",
    )


def scoring_of(
    model: Any, classes: NDArray[Any], features: int, bounds: Sequence[Any] | None, *, limits: tuple[float, float]
) -> Scoring:
    """What the output of a model means, by its way of answering and by the shape of it on synthetic rows.

    ``predict_proba`` gives the probability of each class, and ``predict`` a class. A function gives the score of the
    second of two classes, the probability of each class, or classes themselves. Without classes, it is a number.
    """
    number = len(classes)
    if not number:
        return Scoring(_called(model, "predict")[0], "number", 1, classes, limits=limits)
    call, way = _called(model, "predict_proba", "predict")
    kind: Kind = "score" if number == 2 else "chances"
    width = 1 if number == 2 else number
    named = Scoring(call, "labels", 1, classes)
    if way == "predict":
        return named
    if way == "predict_proba":
        return Scoring(call, kind, width, classes, _columns(model, classes))
    with silence():
        for row in _made_up(features, bounds)[0]:
            output = guarded(lambda given: _array(call(given)), row[np.newaxis].copy(), None)
            if output is not None:
                numbers = output.dtype.kind in "biuf"
                return Scoring(call, kind, width, classes) if numbers and output.size in {width, number} else named
    return named


def _columns(model: Any, classes: NDArray[Any]) -> tuple[int, ...] | None:
    known = getattr(model, "classes_", None)
    if known is None:
        return None
    places = numbered(marks(np.asarray(known)), classes).tolist()
    if -1 in places or len(set(places)) < len(places):
        raise InvalidParameterError(
            "The model knows classes that were not declared.", fix="declare all of them: classes=list(model.classes_)."
        )
    return tuple(places.index(place) if place in places else -1 for place in range(len(classes)))


def _one(scoring: Scoring, row: Floats) -> Floats:
    """What the model says about one row alone."""
    said = _asked(scoring, row[np.newaxis])
    return np.full(scoring.width, np.nan) if said is None else said[0]


def _asked(scoring: Scoring, rows: Floats) -> Floats | None:
    """What the model says about some rows, of which it gets a copy; None in whatever way it fails."""
    return guarded(lambda given: scoring.read(scoring.call(given), len(rows)), rows.copy(), None)


def _array(output: Any) -> Any:
    """An output as an array; a tensor leaves its graph and its device."""
    return np.asarray(output.detach().cpu() if hasattr(output, "detach") else output)


def _dense(rows: Matrix) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


def _gap(one: Floats, other: Floats) -> float:
    """How far two outputs are apart; infinitely where one of them says nothing."""
    if np.array_equal(one, other, equal_nan=True):
        return 0.0
    apart = np.abs(one - other)
    return math.inf if (np.isnan(one) != np.isnan(other)).any() else float(np.nanmax(apart, initial=0.0))


def _made_up(features: int, bounds: Sequence[Any] | None) -> tuple[Floats, list[Floats], Floats]:
    """Rows that are nobody's: ordinary ones, families on several scales that end with the largest, and odd ones.

    They are the same each time: multiples of the golden ratio, modulo one.
    """
    low, high = (np.asarray(end, dtype=np.float64) for end in ((-1.0, 1.0) if bounds is None else bounds))
    places = (np.arange(1, _TRIED * features + 1) * _GOLDEN % 1).reshape(_TRIED, features)
    usual = low + (high - low) * places
    largest = np.broadcast_to(np.maximum(np.abs(low), np.abs(high)), (features,))
    family = np.vstack([usual, np.rint(usual[:4]), 1e-3 * usual[:3], np.zeros(features), largest])
    flat = [np.full(features, value) for value in (np.nan, np.inf, -np.inf, 1e12, -1e308)]
    holes = np.where(np.arange(features) % 2 == 0, np.nan, usual[0])
    return usual, [scale * family for scale in _SCALES], np.vstack([*flat, holes])
