"""What an evaluation released: noisy cells, and everything that follows from them, free of charge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, final

import numpy as np

from defocus.answers import Answer, AnswerColumn, Released, Rule, Tails, plots
from defocus.answers.tables import Keys
from defocus.errors import InvalidParameterError
from defocus.learning.estimators.grid import Floats
from defocus.learning.evaluation.cells import Layout, Noise
from defocus.learning.evaluation.measures import (
    Measure,
    area,
    calibration_error,
    column,
    difference,
    moments,
    share,
)
from defocus.ledger import Receipt
from defocus.privacy.budgets import Budget

__all__ = ["EvaluationAnswer", "measured"]

_BINS = 10
_OTHER = "(other)"
"""What rows are called that are of no class or group that was named."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EvaluationAnswer(Answer):
    """How good a model is on private rows. Made by :meth:`Evaluation.release`; free to look at in every way.

    The answer itself holds accuracy, AUC, Brier score and calibration error; for numbers MAE, MSE, RMSE and R². Its
    views are answers of their own: :attr:`confusion`, :attr:`classes`, :attr:`calibration`, :attr:`roc`,
    :attr:`groups` and :attr:`gaps`.

    Guarantee:
        Everything here is post-processing of the noisy cells: it depends on the rows through these only.

    Error:
        An ``error`` is the standard error of the noise. An interval holds, with 95 %, what the measure would be on
        the many rows that these were drawn from: it covers noise, sampling, and what buckets may hide. By the delta
        method, so it is good from some hundred rows on. A measure of too few rows is NaN.

    >>> import tempfile
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> X = np.linspace(0, 1, 2000).reshape(-1, 1)
    >>> terms = {"ledger": f"{home.name}/a.ledger", "budget": dp.Budget(2), "classes": [0, 1]}
    >>> answer = dp.learning.evaluate(lambda rows: rows[:, 0], X, X[:, 0] > 0.4, **terms).release(epsilon=1)
    >>> low, high = answer.interval(column="accuracy")
    >>> 0.8 < low < high < 1, answer.classes.names, len(answer.confusion)
    (True, ['class', 'recall', 'precision'], 7)
    >>> home.cleanup()
    """

    cells: Floats
    """The noisy cells, in rows or persons."""
    layout: Layout
    noise: Noise
    question: str = field()
    receipt: Receipt = field()
    rules: tuple[Rule, ...] = ()
    asked: Budget | None = None
    limits: tuple[float, float] = (0.0, 1.0)
    """Of the target, where it is a number."""

    @property
    def keys(self) -> Keys:
        """None: these are single numbers."""
        return {}

    @property
    def columns(self) -> tuple[AnswerColumn, ...]:
        """The measures of all rows."""
        return self._columns([self._of(None)])

    @property
    def processing(self) -> tuple[str, ...]:
        """What was done to the noisy cells."""
        return ("ratios of sums of noisy cells; shares are cut to the range from 0 to 1",)

    @property
    def confusion(self) -> Released:
        """How many rows of each class were taken for which, or have no score; and how many are of no class."""
        self._needs(classes=True)
        names = _names(self.layout.classes)
        table = self._tables(None)[0]
        counts, summed = _merged(table, self._predicted())
        guesses = [*names, "(none)"]
        return self._view(
            {
                "label": [*(label for label in names for _ in guesses), _OTHER],
                "predicted": [*(guess for _ in names for guess in guesses), "(any)"],
            },
            (self._counts("rows", np.append(counts[:-1], counts[-1, -1]), np.append(np.tile(summed, len(names)), 1)),),
            "confusion matrix",
        )

    @property
    def classes(self) -> Released:
        """Of each class, how many of its rows were found (recall), and how many taken for it were of it (precision)."""
        self._needs(classes=True)
        number = len(self.layout.classes)
        table, into = self._tables(None)[0], self._predicted()
        recalls, precisions = [], []
        for place in range(number):
            hit, own, taken = (np.zeros(table.shape) for _ in range(3))
            own[place, into < number] = 1
            taken[:number, into == place] = 1
            hit[place, into == place] = 1
            recalls.append(self._share(hit, own, table))
            precisions.append(self._share(hit, taken, table))
        return self._view(
            {"class": _names(self.layout.classes)},
            (self._column("recall", recalls), self._column("precision", precisions)),
            "recall and precision of each class",
        )

    @property
    def calibration(self) -> Released:
        """In ranges of scores, how often the second class, or the predicted one of several, was right."""
        wrong, right, edges = self._scored(None)
        bins = _bins(edges)
        shares, sizes, spread = [], [], []
        for part in bins:
            both = np.concatenate([wrong[part], right[part]])
            hit = np.concatenate([np.zeros(len(wrong[part])), np.ones(len(right[part]))])
            shares.append(self._share(hit, np.ones(len(both)), both))
            sizes.append(float(both.sum()))
            spread.append(len(both))
        return self._view(
            {
                "score from": [float(edges[part.start]) for part in bins],
                "to": [float(edges[part.stop]) for part in bins],
            },
            (self._column("share", shares), self._counts("rows", np.array(sizes), np.array(spread))),
            "calibration",
        )

    @property
    def roc(self) -> Released:
        """At each threshold, how many of the second class (recall) and of the first (false positives) score as much."""
        self._needs(scores=True)
        negative, positive, edges = self._scored(None)
        chosen = [(np.arange(len(negative)) >= place).astype(np.float64) for place in range(len(negative) + 1)]
        one = np.ones(len(negative))
        return self._view(
            {"threshold": edges.tolist()},
            (
                self._column("recall", [self._share(each, one, positive) for each in chosen]),
                self._column("false_positive_rate", [self._share(each, one, negative) for each in chosen]),
            ),
            "ROC curve",
        )

    @property
    def groups(self) -> Released:
        """The measures of each group, and how many rows it has."""
        self._needs(groups=True)
        keys = {"group": [*_names(self.layout.groups), _OTHER]}
        found = [self._of(place) for place in range(self.layout.parts)]
        return self._view(keys, self._columns(found, 0), "measures of each group")

    @property
    def gaps(self) -> Released:
        """How much larger the measures of each other group are than those of the first group that was named."""
        self._needs(groups=True)
        found = [self._of(place) for place in range(len(self.layout.groups))]
        names = [name for name, each in found[0].items() if isinstance(each, Measure)]
        low, high = (-np.inf, np.inf) if self.layout.kind == "number" else (-1.0, 1.0)
        columns = [
            self._column(name, [difference(each[name], found[0][name]) for each in found[1:]], (low, high))
            for name in names
        ]
        first = _names(self.layout.groups)[0]
        return self._view({"group": _names(self.layout.groups)[1:]}, columns, f"difference from group {first}")

    def _of(self, group: int | None) -> dict[str, Any]:
        """The measures of all rows, or of one group."""
        layout = self.layout
        tables = self._tables(group)
        variance = self._variance(group)
        if layout.kind == "number":
            sums = tables[0].ravel()
            return {**moments(sums, variance, self.limits[1] - self.limits[0]), "rows": (sums[0], 1)}
        table, into, number = tables[0], self._predicted(), len(layout.classes)
        right, whole = np.zeros(table.shape), np.zeros(table.shape)
        whole[:number, into < number] = 1
        for place in range(number):
            right[place, into == place] = 1
        found: dict[str, Any] = {"accuracy": share(right, whole, table, variance)}
        if number == 2:
            ties = layout.kind == "labels"
            negative, positive = table[0, :-1], table[1, :-1]
            found["auc"] = area(negative, positive, variance, ties=ties)
            found |= {
                name: self._share(taken, own, table, group)
                for name, taken, own in (
                    ("recall", *_part(table, [1], into)),
                    ("false_positive_rate", *_part(table, [0], into)),
                    ("selection_rate", *_part(table, [0, 1], into)),
                )
            }
        if layout.buckets and layout.kind != "labels":
            no, yes, edges = self._scored(group)
            if number == 2:
                found["brier"] = _brier(no, yes, edges, variance)
            found["calibration_error"] = calibration_error(no, yes, edges, _bins(edges), variance)
        found["rows"] = float((whole * table).sum()), int(whole.sum())
        found["left_out"] = float(table[:, -1].sum()), len(table)
        return found

    def _columns(self, found: Sequence[Mapping[str, Any]], group: int | None = None) -> tuple[AnswerColumn, ...]:
        limits = (-np.inf, np.inf) if self.layout.kind == "number" else (0.0, 1.0)
        made = []
        for name, first in found[0].items():
            if isinstance(first, Measure):
                made.append(self._column(name, [each[name] for each in found], limits))
            else:
                values, number = (np.array([each[name][place] for each in found]) for place in (0, 1))
                made.append(self._counts(name, values, number, group))
        return tuple(made)

    def _variance(self, group: int | None) -> float:
        """The variance of a cell of one group, or of the sum of one of each."""
        return self.noise.variance * (self.layout.parts if group is None else 1)

    def _tables(self, group: int | None) -> list[Floats]:
        """The tables of one group, or of all together."""
        found, first = [], 0
        for shape in self.layout.shapes:
            size = int(np.prod(shape))
            table = self.cells[first : first + size].reshape(shape)
            found.append(table.sum(axis=0) if group is None else table[group])
            first += size
        return found

    def _scored(self, group: int | None) -> tuple[Floats, Floats, Floats]:
        """By bucket, rows of the first and second class, or wrong and right ones; and the edges."""
        self._needs(buckets=True)
        if len(self.layout.classes) == 2:
            table = self._tables(group)[0]
            return table[0, :-1], table[1, :-1], np.array(self.layout.edges)
        table = self._tables(group)[1]
        return table[1], table[0], np.array(self.layout.edges)

    def _predicted(self) -> Any:
        """Which class each outcome predicts; as many as there are classes for none."""
        number = len(self.layout.classes)
        if number > 2:
            return np.arange(number + 1)
        return np.append(np.array(self.layout.edges[:-1]) >= self.layout.threshold, 2).astype(np.int64)

    def _share(self, above: Floats, below: Floats, cells: Floats, group: int | None = None) -> Measure:
        return share(above, below, cells, self._variance(group))

    def _column(self, name: str, measures: Sequence[Measure], limits: tuple[float, float] = (0.0, 1.0)) -> AnswerColumn:
        return column(name, measures, self.noise.width, self.noise.words, limits)

    def _counts(self, name: str, values: Any, number: Any, group: int | None = None) -> AnswerColumn:
        """Sums of so many cells each; of these rows, so without sampling."""
        errors = np.sqrt(np.asarray(number) * self._variance(group))
        half = self.noise.width * errors
        how, whole = f"{self.noise.words}; of these rows, without sampling", self.layout.unit == 1
        return AnswerColumn(name, values, errors, values - half, values + half, whole, how, tails=Tails.LOG_CONCAVE)

    def _view(self, keys: Keys, columns: Sequence[AnswerColumn], what: str) -> Released:
        return Released(
            keys,
            tuple(columns),
            f"{what}; {self.question}",
            self.receipt,
            self.rules,
            processing=self.processing,
            asked=self.asked,
        )

    def _needs(
        self, *, classes: bool = False, scores: bool = False, buckets: bool = False, groups: bool = False
    ) -> None:
        layout = self.layout
        missing = {
            "classes": (classes or scores) and layout.kind == "number",
            "scores of two classes": scores and len(layout.classes) != 2,
            "scores": buckets and not layout.buckets,
            "groups": groups and not layout.groups,
        }
        for what, lacking in missing.items():
            if lacking:
                raise InvalidParameterError(
                    f"This evaluation has no {what}.",
                    fix="pass groups= and group_names=." if what == "groups" else "read another view of it.",
                )

    def _drawn(self, chosen: Sequence[AnswerColumn], look: plots.Look) -> Any:
        """Of scores, the ROC curve of two classes and the calibration; else the measures."""
        layout = self.layout
        if not layout.buckets or layout.kind == "labels" or len(chosen) < len(self.columns):
            return plots.points([each.name for each in chosen], chosen, look)
        number = 2 if len(layout.classes) == 2 else 1
        beside = 1 if look.width < 560 else number
        figure = look.paper(420 * number // beside)
        panels = figure.subplots(number // beside, beside, squeeze=False).ravel().tolist()
        if len(panels) == 2:
            recall, false = self.roc["recall"], self.roc["false_positive_rate"]
            low, high = self.roc.interval(look.confidence, column="recall")
            axes = panels.pop(0)
            band = {"facecolor": plots.PALE, "edgecolor": plots.TEAL, "linewidth": 0.5}
            axes.fill_between(false.values, low, high, **band)
            axes.plot(false.values, recall.values, color=plots.TEAL)
            axes.set(xlabel="false positive rate", ylabel="recall")
        view = self.calibration
        middle = (np.array(view.keys["score from"]) + np.array(view.keys["to"])) / 2
        found = view["share"]
        low, high = view.interval(look.confidence, column="share")
        known = np.isfinite(found.values)
        reach = [(found.values - low)[known], (high - found.values)[known]]
        panels[0].errorbar(middle[known], found.values[known], yerr=reach, fmt="o", color=plots.TEAL, ecolor=plots.DARK)
        panels[0].set(xlabel="score", ylabel="share")
        for axes in figure.axes:
            axes.plot([0, 1], [0, 1], color=plots.DARK, linewidth=0.8, linestyle=":")
            axes.set(xlim=(0, 1), ylim=(0, 1))
            axes.grid(visible=True, alpha=0.3)
        figure.supxlabel(f"{look.intervals} of noise and sampling", fontsize=8)
        return figure


def measured(answer: EvaluationAnswer) -> Mapping[str, Measure]:
    """The measures of all rows, with noise, sampling and slack apart."""
    return {name: each for name, each in answer._of(None).items() if isinstance(each, Measure)}  # noqa: SLF001 -- its own


def _part(table: Floats, labels: list[int], into: Any) -> tuple[Floats, Floats]:
    """Which cells of these labels are taken for the second class, and all of them with a score."""
    taken, own = np.zeros(table.shape), np.zeros(table.shape)
    for label in labels:
        own[label, into < 2] = 1
        taken[label, into == 1] = 1
    return taken, own


def _brier(no: Floats, yes: Floats, edges: Floats, variance: float) -> Measure:
    """The mean squared distance of scores from outcomes, with scores in the middle of their buckets."""
    middle = (edges[1:] + edges[:-1]) / 2
    lost = np.concatenate([middle**2, (1 - middle) ** 2])
    furthest = np.concatenate([edges[1:] ** 2, (1 - edges[:-1]) ** 2]) - lost
    return share(lost, np.ones(len(lost)), np.concatenate([no, yes]), variance, slack=furthest)


def _merged(table: Floats, into: Any) -> tuple[Floats, Any]:
    """The lines of a table by what outcomes predict, and of how many outcomes each is the sum."""
    number = int(into.max()) + 1
    counts = np.stack([table[:, into == place].sum(axis=1) for place in range(number)], axis=1)
    return counts, np.bincount(into, minlength=number)


def _bins(edges: Floats) -> list[slice]:
    """About ten ranges of buckets, which end at the edges nearest to tenths."""
    nearest = {int(np.abs(edges - place / _BINS).argmin()) for place in range(_BINS + 1)}
    ends = sorted(nearest | {0, len(edges) - 1})
    return [slice(start, stop) for start, stop in pairwise(ends)]


def _names(values: Sequence[Any]) -> list[Any]:
    """Classes and groups as texts, so that one list holds them beside what is none of them."""
    return [str(value) for value in values]
