"""How good a model is on private rows: a question that is free to preview, and charged once when it is released."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from defocus.answers import Effect, Preview, PreviewColumn, Rule
from defocus.answers.rules import rules_of
from defocus.errors import (
    InvalidParameterError,
    LedgerDamagedError,
    NotDeclaredError,
    Number,
    UnfitDataError,
    count,
)
from defocus.errors.checks import guarded
from defocus.learning.estimators.grid import Matrix, Persons
from defocus.learning.estimators.inputs import bounds_of, numbers, seen_with
from defocus.learning.estimators.labels import Labels, declared_labels, numbered
from defocus.learning.evaluation.answer import EvaluationAnswer, measured
from defocus.learning.evaluation.cells import Layout, Noise, edges_of, noise_for
from defocus.learning.evaluation.measures import Measure
from defocus.learning.evaluation.scores import Scorer, scorer, scoring_of
from defocus.learning.examples import PrivateExamples, owners, said_once
from defocus.learning.ledgers import ledger_of, place_of
from defocus.ledger import Ledger, Receipt
from defocus.mechanisms.mechanism import IntVector
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Unit
from defocus.release.charge import spendable
from defocus.release.paid_computation import perform
from defocus.release.preview import previewed

__all__ = ["Evaluation", "evaluate"]

_SIZES = (1000, 10_000, 100_000)
_BUCKETS = 10
"""Of the largest probability, where there are more than two classes."""
_CELLS = 1 << 20

_Rows: TypeAlias = tuple[Matrix, Any, NDArray[np.int64] | None, NDArray[np.int64] | None]
_Read: TypeAlias = Callable[[], _Rows]
"""Rows, targets, groups, and whose each row is; None where nobody said."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """A model and the private rows it is tried on. Made by :func:`evaluate`; nothing of the rows is shown.

    Guarantee:
        :meth:`preview` looks at no row. :meth:`release` charges the ledger first, as one event, then asks the model
        about every row, counts, and adds noise to the counts (:mod:`.cells`). What the model says about a row decides
        about that row alone (:mod:`.scores`); where it fails, the row has no score. Whatever fails afterwards keeps the
        charge and says nothing about a row.

    >>> import tempfile
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> X = np.linspace(0, 1, 2000).reshape(-1, 1)
    >>> terms = {"ledger": f"{home.name}/a.ledger", "budget": dp.Budget(2), "classes": [0, 1]}
    >>> asked = dp.learning.evaluate(lambda rows: rows[:, 0], X, X[:, 0] > 0.4, **terms, expected_rows=2000)
    >>> rows, error, _ = asked.preview(epsilon=1).columns[0].by_size[0]
    >>> asked, rows, round(error, 3)
    (Evaluation(how well a model predicts 2 classes), 2000, 0.004)
    >>> home.cleanup()
    """

    scorer: Scorer
    read: _Read
    ledger: Ledger | str | Path
    unit: Unit | None
    budget: Budget | None
    layout: Layout
    buckets: Any
    expected_rows: int | None
    limits: tuple[float, float]
    facts: str

    def preview(
        self, *, epsilon: Number | None = None, delta: Number | None = None, rho: Number | None = None
    ) -> Preview:
        """What it would cost, and how far noise would move the measures. Free: no row is looked at."""
        with self._opened() as ledger:
            asked, layout, noise = self._planned(ledger, epsilon, delta, rho)
            sizes = _SIZES if self.expected_rows is None else (self.expected_rows,)
            known = {n: measured(self._typical(layout, noise, n)) for n in sizes}
            columns = [
                PreviewColumn(name, noise.words, by_size=tuple(_foretold(m[name], n, noise) for n, m in known.items()))
                for name in known[sizes[0]]
            ]
            return previewed(
                columns,
                noise.mechanism.event,
                question=self.question,
                asked=asked,
                replan=lambda other: self._planned(ledger, epsilon, other, rho)[2].mechanism.event,
                ledger=ledger,
                rules=self._rules(layout),
                foretold=("errors are foretold for classes of one size and scores that are spread from 0 to 1",),
            )

    def release(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
        request: str | None = None,
        bits: Bits | None = None,
    ) -> EvaluationAnswer:
        """Charge, ask the model about every row, count, add noise, and show.

        Args:
            epsilon: what the release may cost.
            delta: likewise; without it only noise that needs none is used.
            rho: the price instead of both.
            purpose: why, in one line; the question itself by default.
            who: by whom; the account's name by default.
            request: a name for this request. If an answer to it was recorded, that answer is returned again, free.
            bits: the source of random bits; the system's by default.
        """
        drawn = source(bits)
        with self._opened() as ledger:
            asked, layout, noise = self._planned(ledger, epsilon, delta, rho)
            rules = self._rules(layout)

            def shown(cells: Any, receipt: Receipt) -> EvaluationAnswer:
                made = np.asarray(cells, dtype=np.int64) / layout.unit
                return EvaluationAnswer(made, layout, noise, self.question, receipt, rules, asked, self.limits)

            def compute(receipt: Receipt) -> EvaluationAnswer:
                return shown(noise.mechanism.sample(self.exact(layout), drawn), receipt)

            return perform(
                noise.mechanism.event,
                compute,
                ledger=ledger,
                purpose=ledger.purpose_of(purpose, self.question),
                description=self.question[:400],
                written=lambda made: {
                    "kind": "evaluation",
                    "cells": np.rint(made.cells * layout.unit).astype(int).tolist(),
                },
                read=lambda record, receipt: shown(_recorded(record, layout, receipt), receipt),
                facts=repr((self.facts, self.scorer.fingerprint, layout, rules)),
                who=who,
                request=request,
                asked=asked,
                replan=lambda other: self._planned(ledger, epsilon, other, rho)[2].mechanism.event,
                what="evaluation",
            )

    def exact(self, layout: Layout) -> IntVector:
        """The cells before noise, once they are paid for."""
        rows, targets, groups, owner = self.read()
        if owner is not None:  # what is nobody's counts for nothing
            kept = owner >= 0
            rows, targets, owner = rows[kept], targets[kept], owner[kept]
            groups = None if groups is None else groups[kept]
        scores = self.scorer.scores(rows, layout.near)
        persons = None if owner is None or not layout.persons else Persons(owner)
        return layout.counted(scores, targets, groups, persons)

    @property
    def question(self) -> str:
        """What is asked, in one line."""
        what = "numbers" if self.layout.kind == "number" else f"{len(self.layout.classes)} classes"
        by = f", in {len(self.layout.groups)} groups" if self.layout.groups else ""
        return f"how well a model predicts {what}{by}"

    def __repr__(self) -> str:
        return f"Evaluation({self.question})"

    @contextmanager
    def _opened(self) -> Iterator[Ledger]:
        """The ledger, if it protects whose rows these are: one that is open stays so, one that is named is closed."""
        ledger = ledger_of(self.ledger, unit=self.unit, budget=self.budget, new=self.budget)
        try:
            persons = self.layout.persons
            if ledger.unit.kind != ("user" if persons else "rows"):
                raise InvalidParameterError(
                    f"The ledger protects {ledger.unit}, but "
                    + ("users= says whose each row is." if persons else "nobody said whose each row is."),
                    fix="leave users= out."
                    if persons
                    else "say whose each row is: evaluate(model, X, y, users=…); or"
                    ' that each is about one person: ledger=ledger.data("people", unit=dp.rows(per_person=1)).',
                )
            yield ledger
        finally:
            if not isinstance(self.ledger, Ledger):
                ledger.close()

    def _planned(self, ledger: Ledger, epsilon: Any, delta: Any, rho: Any) -> tuple[Budget, Layout, Noise]:
        """What it may cost, which cells there are, and their noise."""
        if (epsilon is None) == (rho is None) or (rho is not None and delta is not None):
            raise InvalidParameterError(
                "The price of an evaluation is epsilon, with or without delta, or rho.",
                fix="pass for example epsilon=1; or rho=0.1.",
            )
        asked = spendable(epsilon, delta, ledger) if rho is None else Budget(rho=rho)
        layout = self.layout
        if layout.buckets:
            variance = noise_for(layout, asked, ledger.unit).variance
            edges = edges_of(self.buckets, layout.threshold, expected=self.expected_rows, variance=variance)
            layout = replace(layout, edges=edges)
        if layout.size > _CELLS:
            raise InvalidParameterError(
                f"There would be {layout.size} cells.", fix="name fewer classes or groups, or pass fewer buckets=."
            )
        return asked, layout, noise_for(layout, asked, ledger.unit)

    def _typical(self, layout: Layout, noise: Noise, rows: int) -> EvaluationAnswer:
        """What cells of so many rows might be: no row is looked at."""
        share, tables = rows / layout.parts, list[Any]()
        for parts, lines, outcomes in layout.shapes:
            table = np.zeros((parts, lines, outcomes))
            if layout.kind == "number":
                table[:, 0] = share * np.array([1, 0.1, 0.015, 0.0007, 0.5, 0.32])
            elif len(layout.classes) == 2:
                edges = np.array(layout.edges)
                table[:, 1, :-1] = share / 2 * np.diff(edges**2)
                table[:, 0, :-1] = share / 2 * np.diff(edges) * (2 - edges[1:] - edges[:-1])
            elif not tables:
                number = len(layout.classes)
                table[:, :number, :number] = share / number * (0.2 / (number - 1))
                table[:, range(number), range(number)] = share / number * 0.8
            else:
                table[:, 0], table[:, 1] = share * 0.8 * np.diff(layout.edges), share * 0.2 * np.diff(layout.edges)
            tables.append(table.ravel())
        receipt: Any = None
        return EvaluationAnswer(np.concatenate(tables), layout, noise, "", receipt, (), None, self.limits)

    def _rules(self, layout: Layout) -> tuple[Rule, ...]:
        """How rows are read and what an error and an interval hold."""
        said = [
            Rule("errors are those of the noise; intervals hold noise, sampling and what buckets hide", Effect.TOLD),
            "the model is asked about each row by itself; where it fails or gives no number, there is no score",
        ]
        if layout.kind == "number":
            said.append(f"targets and predictions are cut to {self.limits[0]:g} to {self.limits[1]:g}")
            said.append("rows without a target or a prediction are left out")
        else:
            said.append("rows of no declared class, and without a score, are counted apart and left out of measures")
            if layout.kind != "labels":
                said.append(f"scores are cut to 0 to 1 and counted in {layout.buckets} buckets")
            if len(layout.classes) == 2 and layout.kind == "score":
                said.append(f"the second class is predicted from a score of {layout.threshold:g} on")
        if layout.persons:
            said.append(Rule("each person counts once, with the average of all rows: rows are persons", Effect.TOLD))
        return rules_of(said)


def evaluate(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    ledger: Any = None,
    unit: Unit | None = None,
    budget: Budget | None = None,
    classes: Any = None,
    target: Any = None,
    groups: Any = None,
    group_names: Any = None,
    users: Any = None,
    threshold: Number = 0.5,
    buckets: Any = None,
    expected_rows: int | None = None,
    bounds: Any = None,
) -> Evaluation:
    """Ask how good a model is on private rows: accuracy, AUC, calibration, confusion matrix, gaps between groups.

    ``evaluate(model, X, y, ledger=…).release(epsilon=1)``, or with the rows of an opened table
    ``evaluate(model, table.examples(inputs, target)).release(epsilon=1)``, which bring their ledger and declarations.

    Guarantee:
        See :class:`Evaluation`. What is refused here is refused by types, shapes and what the model does on synthetic
        rows; no value of a row is looked at.
    Assumes:
        The model is public, and so are all parameters: it was trained on other rows, or on these privately. A model
        that learned from these rows exactly is moved by each of them, which no noise here hides.

    Args:
        model: has ``predict_proba`` or ``predict``, or is a function from an array of rows to scores: of the second of
            two classes, or of each class. Scores are cut to the range from 0 to 1.
        X: the rows, of numbers; or ``table.examples(inputs, target)``.
        y: the label of each row.
        ledger: the ledger that is charged: open, or its place.
        unit: whom it protects, ``rows()``, or ``user("id")`` with ``users``; as the ledger says by default.
        budget: the total of the ledger, with which it is made if it does not exist.
        classes: the classes; by default those that the table declares, or that the model knows.
        target: the least and largest target, for a model that predicts numbers.
        groups: the group of each row, to compare groups; or of a table, ``examples(…, group=…)``.
        group_names: the groups to compare; the others are compared with the first. Declared by a table.
        users: whose each row is, for a ledger that protects ``user(…)``.
        threshold: the score from which on the second of two classes is predicted.
        buckets: how many buckets scores are counted in, or their edges; by default that follows from the noise.
        expected_rows: how many there are about, which is public, to choose buckets and to preview errors by.
        bounds: the least and largest inputs, for the synthetic rows; declared by a table.

    >>> import tempfile
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> X = np.linspace(0, 1, 2000).reshape(-1, 1)
    >>> terms = {"ledger": f"{home.name}/a.ledger", "budget": dp.Budget(2), "classes": [0, 1]}
    >>> asked = evaluate(lambda rows: rows[:, 0], X, X[:, 0] > 0.4, **terms)
    >>> answer = asked.release(epsilon=1)
    >>> answer.names[:2], answer.confusion.names
    (['accuracy', 'auc'], ['label', 'predicted', 'rows'])
    >>> home.cleanup()
    """
    examples = X if isinstance(X, PrivateExamples) else None
    if examples is not None:
        said_once(examples, ledger=ledger, y=y, users=users, unit=unit, groups=groups)
        bounds = examples.input_bounds if bounds is None else bounds
        group_names = examples.group_values if group_names is None else group_names
        classes = examples.target_values if classes is None and target is None else classes
    if (examples is None and y is None) or (examples is not None and examples.target is None):
        raise InvalidParameterError(
            "The target is missing.", fix="pass evaluate(model, X, y); or of a table, examples(inputs, target)."
        )
    if classes is None and target is None:
        classes = guarded(lambda given: given.classes_, model, None)
        target = examples.target_bounds if classes is None and examples is not None else None
    if (classes is None) == (target is None):
        raise NotDeclaredError(
            "Either the classes or the range of the target must be declared.",
            fix="pass classes=[0, 1] for a model of classes, or target=(least, largest) for one of numbers.",
        )
    grouped = groups is not None if examples is None else examples.group is not None
    if grouped and group_names is None:
        raise NotDeclaredError("Which groups there are is private.", fix='name them: group_names=["A", "B"].')
    columns = _Columns(
        None if classes is None else declared_labels(classes),
        (0.0, 1.0) if target is None else _range(target),
        declared_labels(group_names) if grouped else None,
    )
    if examples is None:
        read, features = columns.given(X, y, groups, users)
        place, facts, persons = place_of(ledger, X, unit), "", users is not None
    else:
        read, features = partial(columns.of_table, examples), len(examples.inputs)
        place, facts, persons = examples.ledger, examples.facts, examples.unit.kind == "user"
    ends = None if bounds is None else bounds_of(bounds, features)
    near = None if ends is None else (ends.low, ends.high)
    scoring = scoring_of(model, columns.classes, features, near, limits=columns.limits)
    cut = edges_of([], threshold, expected=None, variance=1.0)
    if expected_rows is not None:
        count("expected_rows", expected_rows)
    if buckets is None and scoring.kind != "score":
        buckets = [] if scoring.kind == "labels" else _BUCKETS
    layout = Layout(
        scoring.kind,
        tuple(scoring.classes.tolist()),
        cut if scoring.kind in {"score", "chances"} or len(scoring.classes) == 2 else (),
        float(threshold),
        () if columns.groups is None else tuple(columns.groups.known.tolist()),
        persons,
    )
    tried = scorer(scoring, features, near)
    asked = Evaluation(tried, read, place, unit, budget, layout, buckets, expected_rows, columns.limits, facts)
    if isinstance(place, Ledger):
        with asked._opened():  # noqa: SLF001 -- its own: that the ledger protects whom it should
            pass
    return asked


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """What is declared about targets and groups, and how they are read."""

    labels: Labels | None
    limits: tuple[float, float]
    groups: Labels | None

    @property
    def classes(self) -> NDArray[Any]:
        """The declared classes; none where targets are numbers."""
        return np.array([]) if self.labels is None else self.labels.known

    def given(self, X: Any, y: Any, groups: Any, users: Any) -> tuple[_Read, int]:
        """How rows in memory are read, and how many features they have; refused by types and lengths alone."""
        aims: Any
        if self.labels is None:
            rows, aims = seen_with(BaseEstimator(), X, y, numbers, sparse=True)
        else:
            rows, aims = seen_with(BaseEstimator(), X, y, self.labels.read, sparse=True)
        length = int(rows.shape[0])
        found = None if self.groups is None else _read_groups(self.groups, groups, length)
        owner = None if users is None else owners(users, length)
        return lambda: (rows, self._aims(aims), found, owner), int(rows.shape[1])

    def of_table(self, examples: PrivateExamples) -> _Rows:
        """The rows of a table."""
        rows, target, group, persons = examples.read_grouped()
        aims = numbers(target) if self.labels is None else self.labels.read(target)
        found = None if self.groups is None else numbered(self.groups.read(group), self.groups.known)
        return rows, self._aims(aims), found, owners(persons, len(rows))

    def _aims(self, aims: Any) -> Any:
        """Targets from 0 to 1, NaN where they are missing; or the places of labels."""
        if self.labels is not None:
            return numbered(aims, self.labels.known)
        low, high = self.limits
        return ((np.asarray(aims, dtype=np.float64) - low) / (high - low)).clip(0.0, 1.0)


def _read_groups(names: Labels, groups: Any, length: int) -> NDArray[np.int64]:
    found = None
    try:
        found = numbered(names.read(groups), names.known)
    except UnfitDataError:
        raise
    except (ValueError, TypeError):  # whose text may quote values
        pass
    if found is None or len(found) != length:
        raise UnfitDataError(
            "groups= must name one group for each row.", fix="pass a list or an array as long as the data."
        )
    return found


def _range(target: Any) -> tuple[float, float]:
    limits = bounds_of(target, 1)
    return float(limits.low[0]), float(limits.high[0])


def _foretold(measure: Measure, rows: int, noise: Noise) -> tuple[int, float, float]:
    return rows, measure.noise, noise.width * measure.noise


def _recorded(record: Any, layout: Layout, receipt: Receipt) -> Any:
    """The noisy cells that the ledger kept."""
    cells = record.get("cells") if isinstance(record, dict) else None
    if not isinstance(cells, list) or len(cells) != layout.size or not all(type(each) is int for each in cells):
        raise LedgerDamagedError(
            f"What the ledger kept for charge {receipt.sequence} is not an evaluation.",
            fix="ask under another request name.",
        )
    return cells
