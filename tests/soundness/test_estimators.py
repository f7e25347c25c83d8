"""Estimators: every one of them, in each way it can fit, on every kind of rows, with one odd row more."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from tests.soundness.odd_rows import VALUES
from tests.soundness.watching import Base, Difference, attempt, compared, modules, no_differences

import defocus as dp
from defocus import learning
from defocus.learning.estimators.base import PrivateEstimator

SETTINGS: dict[str, Any] = {"max_iter": 3, "max_depth": 3, "n_clusters": 2, "target": (0, 1)}
"""What a parameter of an estimator is given, by its name, so that a fit is quick."""

INFERRING = {("LinearRegression", "moments"), ("LogisticRegression", "descent")}
"""Which can pay for intervals, and in which way."""

ROWS = 12
X = [[i % 5 / 5, i % 3 / 3] for i in range(ROWS)]
Y = [i % 2 for i in range(ROWS)]

Odd = tuple[Sequence[Any], Any]
"""One more row, and its target."""


def estimators() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public estimator, in each way it says it can fit, with declared classes and with found ones."""
    for name in dir(learning):
        made = getattr(learning, name)
        if not (inspect.isclass(made) and issubclass(made, PrivateEstimator)):
            continue
        wanted = inspect.signature(made).parameters
        given = {key: value for key, value in SETTINGS.items() if key in wanted}
        home = next(each for each in modules() if each.__name__ == made.__module__)
        for way in getattr(home, "_SOLVERS", (None,)):
            for bounds in (None, (0, 1)):
                found = (None,) if way in {None, "descent"} else ()  # the others need to know how many there are
                for classes in ([0, 1], *found) if "classes" in wanted else (None,):
                    chosen = {**given, **({} if way is None else {"solver": way})}
                    chosen |= {"classes": classes} if "classes" in wanted else {}
                    chosen |= {} if bounds is None else {"bounds": bounds}
                    inferring = "intervals" in wanted and (name, way) in INFERRING and (classes or name[:2] == "Li")
                    for more in ({}, {"intervals": True}) if inferring else ({},):
                        told = {**chosen, **more}
                        words = ", ".join(f"{key}={value}" for key, value in told.items() if key not in SETTINGS)
                        yield f"{name}({words})", lambda made=made, told=told, **more: made(**told, **more)


EVERY = dict(estimators())


def _array(rows: Sequence[Any]) -> Any:
    return np.array([[float(x) for x in row] for row in rows], dtype=np.float64)


def _objects(rows: Sequence[Any]) -> Any:
    made = np.empty((len(rows), 2), dtype=object)
    for i, row in enumerate(rows):
        made[i, 0], made[i, 1] = row
    return made


def _frame(rows: Sequence[Any]) -> Any:
    made = _objects(rows)
    return pd.DataFrame({"a": made[:, 0], "b": made[:, 1]}, dtype=object)


def _mixed(rows: Sequence[Any]) -> Any:
    """One column of floats and one of objects, which is what a frame with one odd value in it is."""
    made = _objects(rows)
    return pd.DataFrame({"a": [float(x) for x in made[:, 0]], "b": pd.Series(made[:, 1], dtype=object)})


def _polars(rows: Sequence[Any]) -> Any:
    made = _array(rows)
    return pl.DataFrame({"a": made[:, 0], "b": made[:, 1]})


KINDS: Mapping[str, tuple[Callable[[Sequence[Any]], Any], Callable[[Any], Any]]] = {
    "array": (_array, float),
    "float32": (lambda rows: np.clip(_array(rows), -3e38, 3e38).astype(np.float32), float),
    "list": (list, lambda value: value),
    "rows of any length": (list, float),
    "objects": (_objects, lambda value: value),
    "frame of floats": (lambda rows: pd.DataFrame(_array(rows), columns=["a", "b"]), float),
    "frame of objects": (_frame, lambda value: value),
    "frame of both": (_mixed, lambda value: value),
    "polars": (_polars, float),
    "sparse": (lambda rows: scipy.sparse.csr_matrix(_array(rows)), float),
    "tensor": (lambda rows: torch.tensor(_array(rows)), float),
}
"""Kinds of rows, and what a value becomes in them; a kind that cannot hold it refuses."""


def _targets(values: Sequence[Any], kind: str) -> Any:
    if kind in {"list", "rows of any length", "frame of objects"}:
        return list(values)
    if kind in {"objects", "frame of both"}:
        made = np.empty(len(values), dtype=object)
        made[:] = [None] * len(values)
        for i, value in enumerate(values):
            made[i] = value
        return made
    return np.array([float(each) for each in values])


def odd_examples(kind: str) -> dict[str, Odd]:
    """Every row that this kind can hold: odd in one feature, odd in the target."""
    _, fits = KINDS[kind]
    found: dict[str, Odd] = {"an ordinary row": ([0.2, 0.4], 1), "a new class": ([0.2, 0.4], 7)}
    for name, make in VALUES.items():
        try:
            fits(make())
        except Exception:  # noqa: BLE001, S112 -- whatever it says: it is no value of such rows
            continue
        found[f"{name} as a feature"] = ([0.2, make()], 1)
        found[f"{name} as the target"] = ([0.2, 0.4], make())
    if kind == "rows of any length":
        found |= {"a short row": ([0.2], 1), "a long row": ([0.2, 0.4, 0.6], 1), "no row": ([], 1)}
        found |= {"a row that is none": (0.5, 1), "a row of text": ("ab", 1)}  # type: ignore[dict-item]
    return found


def fitted(
    make: Callable[..., Any], kind: str, price: Mapping[str, Any], owned: int | None = None, odd_user: Any = "new"
) -> Callable[[Path, Sequence[Odd]], Any]:
    """Fit, and show all that a fit shows; with ``owned``, to persons, of whom an odd one has as many odd rows."""
    build, _ = KINDS[kind]

    def drive(home: Path, added: Sequence[Odd]) -> Any:
        added = list(added) * (owned or 1)
        rows, targets = build([*X, *(row for row, _ in added)]), _targets([*Y, *(y for _, y in added)], kind)
        users = {} if owned is None else {"users": [*(i // 2 for i in range(ROWS)), *[odd_user] * len(added)]}
        unit = dp.rows() if owned is None else dp.user("person")
        terms: Any = {"budget": dp.Budget(50, 1e-2), "unit": unit, "dataset": "v"}
        with dp.Ledger.open(home / "v.ledger", **terms) as book:
            model = make(**price, ledger=book)
            foreseen = attempt(lambda: str(model.preview(rows, targets, **users)))
            assert foreseen[0] == "result" or added, foreseen
            error = attempt(lambda: type(model.fit(rows, targets, **users)).__name__)
            assert error[0] == "result" or added, error
            shows = [each for each in ("released", "explain", "coefficients") if hasattr(model, each)]
            said = [
                attempt(getattr(model, each), refused="released nothing that intervals follow from") for each in shows
            ]
            kept = {k: v for k, v in model.__getstate__().items() if k not in {"ledger", "bits"}}
            predicted = [
                attempt(lambda each=each: getattr(model, each)([[0.1, 0.2]]))  # type: ignore[misc]
                for each in ("predict", "predict_proba", "transform", "decision_function")
                if hasattr(model, each)
            ]
            return [foreseen, error, said, sorted(kept), predicted, str(book.remaining())]

    return drive


def tried(name: str, kind: str, *, apart: bool = False, step: int = 1) -> list[Difference]:
    """Every odd row that there is, or one in so many."""
    entry = f"{name}, {kind}"
    # What objective perturbation rounds was made private by its random slope, so it may move by more than it says.
    measured = "objective" not in name
    sooner = measured and "None" not in name
    price = {"rho": 1} if sooner else {"epsilon": 30, "delta": 1e-3}
    odds = dict(list(odd_examples(kind).items())[::step])
    return compared(entry, fitted(EVERY[name], kind, price), odds, apart=apart, measured=measured)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if "None, bounds" in name else []) for name in EVERY]
)
def test_no_row_is_told_by_any_estimator(name: str) -> None:
    no_differences(tried(name, "list"))


def counts_persons(name: str) -> bool:
    """Whether an estimator fits so to the rows of persons."""
    found = "classes=None" in name or name == "StandardScaler()"
    return not found


PERSONS = [name for name in EVERY if counts_persons(name)]


@pytest.mark.parametrize("name", PERSONS)
def test_no_person_is_told_by_any_estimator(name: str) -> None:
    perturbs = "objective" in name
    drive = fitted(EVERY[name], "list", {"epsilon": 30, "delta": 1e-3} if perturbs else {"rho": 1}, owned=3)
    no_differences(compared(f"{name}, persons", drive, odd_examples("list"), measured=not perturbs))


PURE = [name for name in EVERY if not any(word in name for word in ("classes=None", "descent", "intervals"))]
"""What is fitted for an epsilon alone."""


@pytest.mark.parametrize("owned", [None, 2])
@pytest.mark.parametrize("name", PURE)
def test_nobody_is_told_by_any_estimator_at_a_pure_price(name: str, owned: int | None) -> None:
    if owned is not None and not counts_persons(name):
        pytest.skip("it finds bounds of rows alone")
    drive = fitted(EVERY[name], "list", {"epsilon": 30, "delta": 0}, owned=owned)
    perturbs = "objective" in name or "Additive" in name
    few = dict(list(odd_examples("list").items())[::3])
    no_differences(compared(f"{name}, pure, {owned}", drive, few, measured=not perturbs))


SCALER = next(name for name in PERSONS if name.startswith("StandardScaler(bounds"))


@functools.cache
def without_odd_names() -> Base:
    return Base(SCALER, lambda home: fitted(EVERY[SCALER], "list", {"rho": 1}, owned=2)(home, ()))


@pytest.mark.parametrize("odd", VALUES)
def test_no_odd_name_of_a_person_is_told(odd: str) -> None:
    drive = fitted(EVERY[SCALER], "list", {"rho": 1}, owned=2, odd_user=VALUES[odd]())
    entry, more = f"{SCALER}, a person called {odd}", {"one more": ([0.2, 0.4], 1)}
    no_differences(compared(entry, drive, more, first=without_odd_names()))


def takes(name: str, kind: str) -> bool:
    """Whether an estimator says that it takes such rows."""
    if kind == "sparse" and "bounds" in name:
        return False  # they would move zeros
    return kind != "sparse" or bool(EVERY[name]().__sklearn_tags__().input_tags.sparse)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_row_is_told_by_any_kind_of_rows(kind: str) -> None:
    few = (
        "StandardScaler(bounds",
        "NaiveBayes(classes=[0, 1])",
        "LinearRegression(solver=moments)",
        "LogisticRegression(solver=output, classes=[0, 1])",
    )
    chosen = [name for name in EVERY if name.startswith(few) and takes(name, kind)]
    assert chosen
    no_differences([each for name in chosen for each in tried(name, kind)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step"),
    [
        (SCALER, 1),
        ("LinearRegression(solver=moments)", 1),
        ("LogisticRegression(solver=descent, classes=None)", 8),
        pytest.param("LogisticRegression(solver=descent, classes=None)", 1, marks=pytest.mark.long),
    ],
)
def test_no_single_row_moves_anything_further_than_was_charged(name: str, step: int) -> None:
    no_differences(tried(name, "array", apart=True, step=step))
