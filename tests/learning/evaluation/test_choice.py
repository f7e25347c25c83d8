"""The choice among models: which is charged, what one row can move, and the law of what is recommended."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import defocus as dp
from defocus.errors import BudgetExceededError, InvalidParameterError
from defocus.learning import choose, evaluate
from defocus.learning.evaluation.choice import _right
from defocus.noise.testing import seeded
from defocus.privacy import Exponential, Pure


def book(folder: Path, **terms: Any) -> dp.Ledger:
    usual = {"unit": dp.rows(), "budget": dp.Budget(1000, 1e-6), "dataset": "rows"}
    return dp.Ledger.open(folder / "a.ledger", **{**usual, **terms})


def says(classes: int, wrong: int) -> Any:
    """A model that names the class written in a row, but for the first so many rows, whose second number says so."""
    return lambda rows: np.eye(classes)[(rows[:, 0] + (rows[:, 1] < wrong)).astype(int) % classes]


def made(rows: int, classes: int) -> tuple[Any, Any]:
    labels = np.arange(rows) % classes
    return np.column_stack([labels, np.arange(rows)]).astype(float), labels


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("wrong", [0, 1, 7, 20])
def test_what_is_counted_are_the_rows_told_right(tmp_path: Path, classes: int, wrong: int) -> None:
    X, y = made(20, classes)
    X, y = np.vstack([X, [[0, 90], [1, 91]]]), np.append(y, [9, -1])  # of no class that was named
    with book(tmp_path) as ledger:
        for model in (says(classes, wrong), lambda rows: says(classes, wrong)(rows).argmax(axis=1)):
            for threshold in (0.5, 0.3):
                asked = evaluate(model, X, y, ledger=ledger, classes=range(classes), threshold=threshold)
                assert _right(asked.exact(asked.layout), asked.layout) == 20 - wrong


def test_one_row_or_person_more_raises_every_count_by_at_most_one_and_lowers_none(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    for persons in (False, True):
        (tmp_path / str(persons)).mkdir()
        with book(tmp_path / str(persons), unit=dp.user("who") if persons else dp.rows()) as ledger:
            for _ in range(40):
                X = np.column_stack([draw.integers(0, 3, 12), draw.integers(0, 9, 12)]).astype(float)
                y, who = draw.integers(0, 3, 12), draw.integers(0, 5, 12)
                kept = who != 0 if persons else np.arange(12) != 0
                counts, most = [], 1
                for here in (np.full(12, True), kept):
                    owner = {"users": who[here]} if persons else {}
                    asked = evaluate(says(3, 4), X[here], y[here], ledger=ledger, classes=range(3), **owner)
                    counts.append(_right(asked.exact(asked.layout), asked.layout))
                    most = asked.layout.unit
                assert 0 <= counts[0] - counts[1] <= most


@pytest.mark.statistical
@pytest.mark.parametrize(("unit", "factor"), [(dp.rows(), 1), (dp.rows(replace=True), 2), (dp.rows(per_person=3), 3)])
def test_the_best_is_recommended_as_often_as_the_price_says(tmp_path: Path, unit: Any, factor: int) -> None:
    X, y = made(30, 3)
    with book(tmp_path, unit=unit) as ledger:
        asked = {str(n): evaluate(says(3, n), X, y, ledger=ledger, classes=range(3)) for n in (0, 4)}
        best = sum(choose(asked, epsilon=0.5, bits=seeded(k)).best == "0" for k in range(400))
    expected = 1 / (1 + math.exp(-0.5 * 4 / factor))
    assert abs(best / 400 - expected) < 4 * math.sqrt(expected * (1 - expected) / 400)
    assert abs(expected - 1 / (1 + math.exp(-1.5 * 0.5 * 4 / factor))) > 0.05  # which would be seen


@pytest.mark.parametrize(("budget", "event"), [(dp.Budget(2), Pure(1)), (dp.Budget(rho=2), Exponential(1))])
def test_it_is_charged_once_and_recalled_by_its_request(tmp_path: Path, budget: Any, event: Any) -> None:
    X, y = made(30, 2)
    with book(tmp_path, budget=budget) as ledger:
        asked = {str(n): evaluate(says(2, n), X, y, ledger=ledger, classes=range(2)) for n in (0, 30)}
        first = choose(asked, epsilon=1, request="a")
        assert choose(asked, epsilon=1, request="a") == first
        assert [entry.kind for entry in ledger.entries()].count("charge") == 1
        assert first.receipt is not None
        assert first.receipt.event == event
        assert "at most" in str(first)
        with pytest.raises(BudgetExceededError):
            choose(asked, epsilon=100)


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    X, y = made(30, 2)
    (tmp_path / "b").mkdir()
    with book(tmp_path) as ledger, book(tmp_path / "b") as other:
        one = evaluate(says(2, 0), X, y, ledger=ledger, classes=[0, 1])
        for second, words in (
            (evaluate(says(2, 0), X, y, ledger=other, classes=[0, 1]), "one open ledger"),
            (evaluate(says(3, 0), X, y, ledger=ledger, classes=[0, 1, 2]), "same classes"),
            ("model", "two or more"),
        ):
            with pytest.raises(InvalidParameterError, match=words):
                choose({"a": one, "b": second}, epsilon=1)  # type: ignore[dict-item]
        number = evaluate(lambda rows: rows[:, 0], X, X[:, 0], ledger=ledger, target=(0, 1))
        with pytest.raises(InvalidParameterError, match="tell right"):
            choose({"a": number, "b": number}, epsilon=1)
        with pytest.raises(InvalidParameterError, match="two or more"):
            choose({"a": one}, epsilon=1)
