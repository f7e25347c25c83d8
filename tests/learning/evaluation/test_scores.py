"""What a model says about a row depends on that row alone, or the model is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from defocus.errors import DependentExamplesError, InvalidParameterError, UnfitModelError
from defocus.learning.evaluation.cells import Layout
from defocus.learning.evaluation.scores import Scorer, scorer, scoring_of

TWO, THREE = np.array([0, 1]), np.array(["a", "b", "c"])
X = np.column_stack([np.linspace(-1, 1, 3000), np.zeros(3000)])


def tried(model: Any, classes: Any = TWO) -> Scorer:
    return scorer(scoring_of(model, classes, 2, None, limits=(0.0, 1.0)), 2, None)


def layout(edges: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)) -> Layout:
    return Layout("score", (0, 1), edges, 0.5, (), persons=False)


def logistic(rows: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(rows, -50, 50).sum(axis=1)))


class Remembering:
    """Normalises by all it has seen."""

    seen = 0.0

    def __call__(self, rows: Any) -> Any:
        self.seen = 0.9 * self.seen + float(np.nan_to_num(rows).clip(-9, 9).mean())
        return logistic(rows - self.seen)


def noisy(rows: Any) -> Any:
    return logistic(rows) * np.random.default_rng().uniform(0.5, 1, len(rows))


def normalised(rows: Any) -> Any:
    return logistic(rows - rows.mean(axis=0))


def polluted(rows: Any) -> Any:
    return logistic(rows) * (0 if np.isnan(rows).any() else 1)


def large(rows: Any) -> Any:
    return logistic(rows) * (1 if len(rows) < 500 else 0.9)


@pytest.mark.parametrize("model", [normalised, large])
def test_a_model_that_mixes_rows_is_refused(model: Callable[[Any], Any]) -> None:
    with pytest.raises(DependentExamplesError, match="depends on the rows beside it"):
        tried(model)


def test_rows_that_are_no_numbers_never_go_with_others() -> None:
    rows = np.array([[0.3, 0.0], [np.nan, 0.0], [0.4, 0.0]])
    said = tried(polluted).scores(rows, layout().near)[:, 0]
    assert said[[0, 2]].tolist() == logistic(rows)[[0, 2]].tolist()
    assert np.isnan(said[1])


def test_rows_go_together_as_far_as_rounding_is_small() -> None:
    """Sums of huge numbers depend on their order; such rows go alone, and the others together."""

    def single(rows: Any) -> Any:
        return logistic(rows.astype(np.float32) * np.float32(7) - 5 * rows.astype(np.float32))

    def coarse(rows: Any) -> Any:
        return logistic(rows) + 1e-9 * np.abs(rows[:, 0]).clip(0, 1e4) * (len(rows) > 1)

    def scaled(rows: Any) -> Any:
        return logistic(rows) if len(rows) == 1 or np.abs(rows).max() < 100 else np.full(len(rows), 0.1)

    assert tried(logistic).reach.tolist() == [1e4, 1e4]
    assert tried(coarse).reach.tolist() == [50, 50]
    assert tried(scaled).reach.tolist() == [50, 50]
    assert tried(single).reach.min() > 0
    rows = np.array([[0.3, 0.0], [5000.0, 0.0], [-0.2, 0.1]])
    assert tried(scaled).scores(rows, layout().near)[:, 0].tolist() == logistic(rows).tolist()


@pytest.mark.parametrize("model", [Remembering(), noisy])
def test_a_model_that_says_something_else_the_next_time_is_refused(model: Callable[[Any], Any]) -> None:
    with pytest.raises((UnfitModelError, DependentExamplesError)):
        tried(model)


def test_a_model_that_keeps_something_and_answers_row_by_row_is_refused() -> None:
    model = Remembering()
    with pytest.raises(UnfitModelError, match="asked about the same row again"):
        tried(lambda rows: model(rows) if len(rows) == 1 else [])


def test_dropout_is_refused_in_training_mode_and_fine_in_eval_mode() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1), torch.nn.Sigmoid())

    def model(rows: Any) -> Any:
        return net(torch.tensor(rows, dtype=torch.float32))

    with pytest.raises(UnfitModelError):
        tried(model)
    net.eval()
    found = tried(model)
    assert found.scoring.kind == "score"
    assert np.isfinite(found.scores(X, layout().near)).all()


def test_a_model_that_fails_on_every_row_or_is_none_is_refused() -> None:
    with pytest.raises(UnfitModelError, match="synthetic row of 2 numbers"):
        tried(lambda rows: rows / 0 + None)
    with pytest.raises(InvalidParameterError, match="predict_proba"):
        tried(3)


def test_bounds_say_where_synthetic_rows_lie() -> None:
    def picky(rows: Any) -> Any:
        if (rows < 18).any():
            raise ValueError
        return np.full(len(rows), 0.5)

    scoring = scoring_of(picky, TWO, 2, None, limits=(0.0, 1.0))
    with pytest.raises(UnfitModelError):
        scorer(scoring, 2, None)
    ends = np.array([18.0, 18.0]), np.array([90.0, 90.0])
    assert scorer(scoring_of(picky, TWO, 2, ends, limits=(0.0, 1.0)), 2, ends).scoring.kind == "score"


@pytest.mark.parametrize("step", [1e-10, 1e-9, 3e-8])
def test_rounding_of_a_batch_moves_no_row_to_another_bucket(step: float) -> None:
    """A model whose last digits depend on how many rows it gets: 3e-8 is too much for rows to go together."""

    def wobbling(rows: Any) -> Any:
        return (rows[:, 0] + 1) / 2 + step * (len(rows) - 1)

    cells = layout()
    found = tried(wobbling)
    assert found.reach.any() == (step < 1e-8)
    at_edges = np.column_stack([np.repeat([-0.5, 0.0, 0.5], 400), np.zeros(1200)]) - 1e-12
    together = np.searchsorted(cells.inner, found.scores(at_edges, cells.near)[:, 0], side="right")
    alone = [np.searchsorted(cells.inner, wobbling(row[None])[0], side="right") for row in at_edges]
    assert together.tolist() == alone
    assert (np.searchsorted(cells.inner, wobbling(at_edges), side="right") != alone).any()


def test_only_rows_near_an_edge_are_asked_alone() -> None:
    calls: list[int] = []

    def model(rows: Any) -> Any:
        calls.append(len(rows))
        return logistic(rows)

    found = tried(model)
    calls.clear()
    found.scores(X, layout().near)
    assert sorted(set(calls)) == [1, 3000 % 1024, 1024]
    assert calls.count(1) < 10


def test_a_row_that_fails_leaves_the_others_their_scores() -> None:
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    rows = X[:50].copy()
    rows[3] = np.nan
    rows[7, 0] = np.inf
    said = tried(model).scores(rows, layout().near)[:, 0]
    assert np.flatnonzero(np.isnan(said)).tolist() == [3, 7]
    assert said[0] == pytest.approx(model.predict_proba(X[:1])[0, 1])


def test_a_model_that_exits_on_a_row_has_no_score_there() -> None:
    def exiting(rows: Any) -> Any:
        if (rows[:, 0] == 0.123).any():
            raise SystemExit
        return logistic(rows)

    rows = np.array([[0.1, 0.0], [0.123, 0.0], [0.2, 0.0]])
    assert np.isnan(tried(exiting).scores(rows, layout().near)[:, 0]).tolist() == [False, True, False]


def test_classes_that_are_named_are_asked_row_by_row() -> None:
    calls: list[int] = []

    class Named:
        def predict(self, rows: Any) -> Any:
            calls.append(len(rows))
            return THREE[(np.nan_to_num(rows).sum(axis=1) > 0).astype(int)]

    found = tried(Named(), THREE)
    assert not found.reach.any()
    calls.clear()
    said = found.scores(X, layout().near)
    assert set(calls) == {1}
    assert set(said[:, 0].tolist()) == {0.0, 1.0}


def test_probabilities_follow_the_classes_that_the_model_names() -> None:
    class Reversed:
        def __init__(self, classes: list[Any]) -> None:
            self.classes_ = np.array(classes)

        def predict_proba(self, rows: Any) -> Any:
            return np.tile([0.7, 0.3], (len(rows), 1))

    assert tried(Reversed([1, 0])).scores(X[:1], layout().near)[0, 0] == 0.7
    chances = tried(Reversed(["c", "a"]), THREE).scores(X[:1], lambda said: np.full(len(said), False))
    assert chances[0].tolist() == [0.3, 0.0, 0.7]
    with pytest.raises(InvalidParameterError, match="not declared"):
        tried(Reversed([0, 2]))


def test_functions_may_give_scores_probabilities_or_classes() -> None:
    kinds = {
        "scores": (logistic, TWO, "score"),
        "a column of scores": (lambda rows: logistic(rows)[:, None], TWO, "score"),
        "two probabilities": (lambda rows: np.column_stack([1 - logistic(rows), logistic(rows)]), TWO, "score"),
        "probabilities": (lambda rows: np.tile([0.2, 0.3, 0.5], (len(rows), 1)), THREE, "chances"),
        "classes": (lambda rows: ["a"] * len(rows), THREE, "labels"),
    }
    for name, (model, classes, kind) in kinds.items():
        assert tried(model, classes).scoring.kind == kind, name


def test_a_model_is_known_again_by_what_it_says() -> None:
    other = LogisticRegression().fit(X, X[:, 0] > 0.5)
    assert tried(logistic).fingerprint == tried(lambda rows: logistic(1.0 * rows)).fingerprint
    assert tried(logistic).fingerprint != tried(other).fingerprint


def test_a_model_cannot_change_the_rows() -> None:
    def writing(rows: Any) -> Any:
        said = logistic(rows)
        rows[:] = 0
        return said

    rows = X[:5].copy()
    tried(writing).scores(rows, layout().near)
    assert np.array_equal(rows, X[:5])


def test_a_plain_product_is_no_mixing_of_rows() -> None:
    """Huge numbers of both signs add up differently in another order, which is rounding."""
    weights = np.sin(np.arange(100.0))

    def product(rows: Any) -> Any:
        return 1 / (1 + np.exp(-(rows @ weights - 1.5)))

    found = scorer(scoring_of(product, TWO, 100, None, limits=(0.0, 1.0)), 100, None)
    assert found.reach.min() >= 50
