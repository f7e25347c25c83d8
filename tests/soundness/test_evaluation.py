"""Evaluations: every kind of model on every kind of rows, with one odd row, target, group or person more."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.soundness.odd_rows import VALUES
from tests.soundness.test_estimators import KINDS, ROWS, Odd, X, Y, _targets, odd_examples
from tests.soundness.watching import Base, attempt, compared, no_differences

import defocus as dp

Drive = Callable[[Path, Sequence[Any]], Any]


class _Named:
    """Says which class, and fails on what is no number."""

    def predict(self, rows: Any) -> Any:
        return [int(row[0] * 2) for row in rows]


def _fussy(rows: Any) -> Any:
    """Fails on all rows of a batch for the sake of one."""
    if not np.isfinite(rows).all() or (rows > 1e6).any():
        raise ValueError(f"private: {rows}")
    return rows[:, 0].clip(0, 1)


MODELS: dict[str, dict[str, Any]] = {
    "scikit-learn": {"model": LogisticRegression().fit(X, Y)},
    "a function": {"model": lambda rows: np.tanh(np.abs(rows).sum(axis=1)), "classes": [0, 1]},
    "one that fails": {"model": _fussy, "classes": [0, 1]},
    "one that names classes": {"model": _Named(), "classes": [0, 1]},
    "several classes": {"model": LogisticRegression().fit(X, [i % 3 for i in range(ROWS)])},
    "numbers": {"model": lambda rows: rows[:, 0], "target": (0, 1)},
}


def shown(answer: dp.learning.EvaluationAnswer) -> list[Any]:
    views = [
        answer,
        *(view for name in ("confusion", "calibration", "groups", "gaps") if (view := _view(answer, name))),
    ]
    return [[str(view), view.to_dict(), view.explain()] for view in views]


def _view(answer: Any, name: str) -> Any:
    found = attempt(lambda: getattr(answer, name), refused="This evaluation has no")
    return getattr(answer, name) if found[0] == "result" else None


def evaluated(settings: dict[str, Any], kind: str, owned: int | None = None, odd_user: Any = "new") -> Drive:
    """Ask, preview, release, and show all that is shown; with ``owned``, of persons."""
    build, _ = KINDS[kind]

    def drive(home: Path, added: Sequence[Odd]) -> Any:
        added = list(added) * (owned or 1)
        rows, targets = build([*X, *(row for row, _ in added)]), _targets([*Y, *(y for _, y in added)], kind)
        groups = [*("AB"[i % 2] for i in range(ROWS)), *(y for _, y in added)]
        users: dict[str, Any] = (
            {} if owned is None else {"users": [*(i // 2 for i in range(ROWS)), *[odd_user] * len(added)]}
        )
        terms: Any = {
            "budget": dp.Budget(50),
            "unit": dp.rows() if owned is None else dp.user("person"),
            "dataset": "v",
        }
        more = {key: value for key, value in settings.items() if key != "model"}
        with dp.Ledger.open(home / "v.ledger", **terms) as book:
            asked = dp.learning.evaluate(
                settings["model"], rows, targets, ledger=book, groups=groups, group_names=["A", "B"], **users, **more
            )
            before = [repr(asked), str(asked.preview(epsilon=3))]
            answer = asked.release(epsilon=3, request="once")
            again = asked.release(epsilon=3, request="once")
            return [before, shown(answer), str(again), str(book.remaining())]

    return drive


@pytest.mark.parametrize("name", MODELS)
def test_no_row_is_told_by_an_evaluation(name: str) -> None:
    no_differences(compared(f"evaluate, {name}", evaluated(MODELS[name], "list"), odd_examples("list")))


@pytest.mark.parametrize("name", ["scikit-learn", "several classes", "numbers"])
def test_no_person_is_told_by_an_evaluation(name: str) -> None:
    drive = evaluated(MODELS[name], "list", owned=3)
    no_differences(compared(f"evaluate, {name}, persons", drive, odd_examples("list"), units=lambda _: 1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_row_is_told_by_an_evaluation_of_any_kind_of_rows(kind: str) -> None:
    no_differences(compared(f"evaluate, {kind}", evaluated(MODELS["one that fails"], kind), odd_examples(kind)))


@functools.cache
def without_odd_names() -> Base:
    drive = evaluated(MODELS["scikit-learn"], "list", owned=2)
    return Base("evaluate, persons", lambda home: drive(home, ()))


@pytest.mark.slow
@pytest.mark.parametrize("odd", VALUES)
def test_no_odd_name_of_a_person_is_told_by_an_evaluation(odd: str) -> None:
    drive = evaluated(MODELS["scikit-learn"], "list", owned=2, odd_user=VALUES[odd]())
    entry, more = f"evaluate, a person called {odd}", {"one more": ([0.2, 0.4], 1)}
    no_differences(compared(entry, drive, more, first=without_odd_names()))
