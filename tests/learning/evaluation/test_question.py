"""Evaluations: charged before the rows are looked at, with the noise that was charged and intervals that hold."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn import metrics
from sklearn.linear_model import LinearRegression, LogisticRegression

import defocus as dp
from defocus.errors import (
    BudgetExceededError,
    DefocusError,
    DependentExamplesError,
    InvalidParameterError,
    NotDeclaredError,
    QuestionFailedError,
    UnfitDataError,
)
from defocus.learning import EvaluationAnswer, evaluate
from defocus.learning.evaluation.cells import Layout
from defocus.mechanisms import Laplace
from defocus.noise.testing import seeded

N = 3000
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
Y = (RNG.random(N) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
GROUP = np.where(X[:, 1] > 0, "A", "B")
MODEL = LogisticRegression().fit(X[:200], Y[:200])


@pytest.fixture
def book(tmp_path: Path) -> Iterator[dp.Ledger]:
    terms: Any = {"budget": dp.Budget(1000, 1e-4), "unit": dp.rows(), "dataset": "rows"}
    with dp.Ledger.open(tmp_path / "rows.ledger", **terms) as ledger:
        yield ledger


@pytest.fixture
def persons(tmp_path: Path) -> Iterator[dp.Ledger]:
    terms: Any = {"budget": dp.Budget(1000, 1e-4), "unit": dp.user("patient"), "dataset": "persons"}
    with dp.Ledger.open(tmp_path / "persons.ledger", **terms) as ledger:
        yield ledger


def charges(ledger: dp.Ledger) -> int:
    return sum(entry.kind == "charge" for entry in ledger.entries())


def single(answer: dp.learning.EvaluationAnswer, name: str) -> float:
    return float(answer[name].values[0])


def test_measures_are_those_of_scikit_learn_up_to_noise(book: dp.Ledger) -> None:
    answer = evaluate(MODEL, X, Y, ledger=book, expected_rows=N).release(epsilon=100, bits=seeded(1))
    chances = MODEL.predict_proba(X)[:, 1]
    guess = MODEL.predict(X)
    assert single(answer, "accuracy") == pytest.approx(metrics.accuracy_score(Y, guess), abs=1e-3)
    assert single(answer, "auc") == pytest.approx(metrics.roc_auc_score(Y, chances), abs=2e-3)
    assert single(answer, "brier") == pytest.approx(metrics.brier_score_loss(Y, chances), abs=2e-3)
    assert single(answer, "recall") == pytest.approx(metrics.recall_score(Y, guess), abs=1e-3)
    assert answer["rows"].values[0] == N
    confusion = answer.confusion["rows"].values
    assert confusion[[0, 1, 3, 4]].tolist() == metrics.confusion_matrix(Y, guess).ravel().tolist()
    precision = metrics.precision_score(Y, guess, average=None)
    assert answer.classes["precision"].values == pytest.approx(precision, abs=1e-3)
    assert answer.classes["recall"].values == pytest.approx(metrics.recall_score(Y, guess, average=None), abs=1e-3)


def test_a_threshold_is_held_exactly(book: dp.Ledger) -> None:
    answer = evaluate(MODEL, X, Y, ledger=book, threshold=0.313).release(epsilon=100, bits=seeded(1))
    guess = (MODEL.predict_proba(X)[:, 1] >= 0.313).astype(int)
    assert answer.confusion["rows"].values[[0, 1, 3, 4]].tolist() == metrics.confusion_matrix(Y, guess).ravel().tolist()
    at = answer.roc.keys["threshold"].index(0.313)
    assert answer.roc["recall"].values[at] == pytest.approx(metrics.recall_score(Y, guess), abs=1e-3)
    assert answer.roc["recall"].values[[0, -1]].tolist() == [1, 0]


def test_it_is_charged_once_and_before_the_model_sees_a_row(book: dp.Ledger) -> None:
    asked_at: list[int] = []

    def model(rows: Any) -> Any:
        asked_at.append(charges(book))
        return 1 / (1 + np.exp(-rows[:, 0].clip(-50, 50)))

    asked = evaluate(model, X, Y, ledger=book, classes=[0, 1])
    assert set(asked_at) == {0}
    preview = asked.preview(epsilon=1)
    assert preview.fits
    asked_at.clear()
    answer = asked.release(epsilon=1)
    assert set(asked_at) == {1}
    assert charges(book) == 1
    assert answer.receipt.event == preview.event == Laplace(scale=1).event
    assert "epsilon 1" in answer.explain()


def test_a_preview_foretells_the_error_of_the_noise(book: dp.Ledger) -> None:
    asked = evaluate(MODEL, X, Y, ledger=book, expected_rows=N, buckets=20)
    foretold = {column.name: column.by_size[0][1] for column in asked.preview(epsilon=0.5).columns}
    answer = asked.release(epsilon=0.5, bits=seeded(2))
    for name in ("accuracy", "auc", "recall"):
        assert foretold[name] == pytest.approx(answer[name].errors[0], rel=0.4), name


def test_the_noise_has_the_scale_that_was_charged(book: dp.Ledger) -> None:
    """The cells of rows that are all in one cell, of many groups: all others are pure noise."""
    names = [f"g{i}" for i in range(60)]
    asked = evaluate(MODEL, X[:1], Y[:1], ledger=book, groups=["g0"], group_names=names, buckets=40)
    cells = asked.release(epsilon=0.5, bits=seeded(3)).cells
    variance = Laplace(scale=2).variance
    assert len(cells) == 61 * 3 * 41
    assert np.mean(cells**2) == pytest.approx(variance, rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "size"), [(1.0, 400), (0.3, 3000)])
def test_intervals_hold_what_the_measures_are_on_many_rows(epsilon: float, size: int, book: dp.Ledger) -> None:
    """With fresh rows and fresh noise each time, 95 % of the intervals hold; those of buckets hold more."""
    rng, bits = np.random.default_rng(7), seeded(7)
    many = rng.normal(size=(400_000, 2))
    labels = (rng.random(len(many)) < 1 / (1 + np.exp(-2 * many[:, 0]))).astype(int)
    chances, guess = MODEL.predict_proba(many)[:, 1], MODEL.predict(many)
    truth = {
        "accuracy": metrics.accuracy_score(labels, guess),
        "recall": metrics.recall_score(labels, guess),
        "selection_rate": guess.mean(),
        "auc": metrics.roc_auc_score(labels, chances),
        "brier": metrics.brier_score_loss(labels, chances),
    }
    asked = evaluate(MODEL, X, Y, ledger=book, expected_rows=size)
    _, layout, noise = asked._planned(book, epsilon, None, None)
    held, runs = dict.fromkeys(truth, 0), 400
    for _ in range(runs):
        some = rng.integers(0, len(many), size)
        exact = layout.counted(chances[some, None], labels[some], None, None)
        receipt: Any = None
        cells = np.asarray(noise.mechanism.sample(exact, bits), dtype=float)
        answer = EvaluationAnswer(cells, layout, noise, "", receipt)
        for column in answer.columns:
            if column.name in truth:
                held[column.name] += bool(column.low[0] <= truth[column.name] <= column.high[0])
    for name, number in held.items():
        assert number >= 0.92 * runs, name
        assert number <= (1.0 if name in {"auc", "brier"} else 0.98) * runs, name


def test_groups_and_gaps(book: dp.Ledger) -> None:
    asked = evaluate(MODEL, X, Y, ledger=book, groups=GROUP, group_names=["A", "B"])
    answer = asked.release(epsilon=50, bits=seeded(1))
    right = MODEL.predict(X) == Y
    shares = [right[name == GROUP].mean() for name in ("A", "B")]
    assert list(answer.groups.keys["group"]) == ["A", "B", "(other)"]
    assert answer.groups["accuracy"].values[:2] == pytest.approx(shares, abs=2e-3)
    assert math.isnan(answer.groups["accuracy"].values[2])
    assert answer.groups["rows"].values.sum() == pytest.approx(N, abs=5)
    assert list(answer.gaps.keys["group"]) == ["B"]
    assert answer.gaps["accuracy"].values[0] == pytest.approx(shares[1] - shares[0], abs=4e-3)
    positive = MODEL.predict(X) == 1
    gap = positive[GROUP == "B"].mean() - positive[GROUP == "A"].mean()
    assert answer.gaps["selection_rate"].values[0] == pytest.approx(gap, abs=4e-3)
    assert answer.gaps["accuracy"].low[0] < 0 < answer.gaps["accuracy"].high[0]
    with pytest.raises(InvalidParameterError, match="no groups"):
        _ = evaluate(MODEL, X, Y, ledger=book).release(epsilon=1).gaps


def test_persons_count_once_however_many_rows_they_have(persons: dp.Ledger) -> None:
    """One person with all the wrong rows is one person."""
    wrong = np.flatnonzero(MODEL.predict(X) != Y)
    users = np.arange(N)
    users[wrong] = N + 1
    answer = evaluate(MODEL, X, Y, ledger=persons, users=users).release(epsilon=100, bits=seeded(1))
    assert answer["rows"].values[0] == pytest.approx(N - len(wrong) + 1, abs=1)
    assert single(answer, "accuracy") > 0.998
    assert "everything about one patient" in answer.explain()
    nobody = evaluate(MODEL, X, Y, ledger=persons, users=[None] * N).release(epsilon=100, bits=seeded(1))
    assert abs(nobody["rows"].values[0]) < 1


def test_the_rows_of_a_table(persons: dp.Ledger) -> None:
    columns = {"patient": np.arange(N), "a": X[:, 0], "b": X[:, 1], "ill": Y.astype(bool), "ward": GROUP}
    table = dp.open(pa.table(columns), ledger=persons, name="stays").declare(a=(-4, 4), b=(-4, 4), ward=["A", "B"])
    answer = evaluate(MODEL, table.examples(["a", "b"], "ill", group="ward")).release(epsilon=100, bits=seeded(1))
    assert single(answer, "accuracy") == pytest.approx((MODEL.predict(X) == Y).mean(), abs=1e-3)
    assert answer.groups["rows"].values[:2] == pytest.approx([(GROUP == "A").sum(), (GROUP == "B").sum()], abs=3)
    some = evaluate(MODEL, table.where("ward = 'A'").examples(["a", "b"], "ill")).release(epsilon=100, bits=seeded(1))
    assert some["rows"].values[0] == pytest.approx((GROUP == "A").sum(), abs=3)
    numbers = evaluate(lambda rows: rows[:, 0], table.examples(["a", "b"], "b"))
    assert numbers.layout.kind == "number"
    for more in ({"y": Y}, {"users": range(N)}, {"groups": GROUP}, {"unit": dp.rows()}):
        with pytest.raises(InvalidParameterError, match="beside examples of a table"):
            evaluate(MODEL, table.examples(["a", "b"], "ill"), **more)
    with pytest.raises(InvalidParameterError, match="target is missing"):
        evaluate(MODEL, table.examples(["a", "b"]))


def test_several_classes(book: dp.Ledger) -> None:
    y = np.where(X[:, 0] + X[:, 1] > 0.8, "high", np.where(X[:, 0] + RNG.normal(0, 0.5, N) > 0, "middle", "low"))
    model = LogisticRegression().fit(X[:300], y[:300])
    answer = evaluate(model, X, y, ledger=book).release(epsilon=100, bits=seeded(1))
    guess = model.predict(X)
    assert single(answer, "accuracy") == pytest.approx((guess == y).mean(), abs=1e-3)
    names = ["high", "low", "middle"]
    exact = metrics.confusion_matrix(y, guess, labels=names)
    assert answer.confusion["rows"].values[:-1].reshape(3, 4)[:, :3] == pytest.approx(exact, abs=1)
    recalls = metrics.recall_score(y, guess, average=None, labels=names)
    assert answer.classes["recall"].values == pytest.approx(recalls, abs=2e-3)
    assert 0 <= single(answer, "calibration_error") < 0.1
    top = model.predict_proba(X).max(axis=1)
    assert answer.calibration["rows"].values.sum() == pytest.approx(N, abs=3)
    at_least = np.array(answer.calibration.keys["score from"])
    shares = answer.calibration["share"].values
    assert shares[-1] == pytest.approx((guess == y)[top >= at_least[-1]].mean(), abs=5e-3)
    assert "auc" not in answer.names
    with pytest.raises(InvalidParameterError, match="two classes"):
        _ = answer.roc


def test_models_that_name_classes_have_no_calibration(book: dp.Ledger) -> None:
    class Named:
        def predict(self, rows: Any) -> Any:
            return (np.asarray(rows)[:, 0] > 0).astype(int)

    answer = evaluate(Named(), X, Y, ledger=book, classes=[0, 1]).release(epsilon=100, bits=seeded(1))
    guess = Named().predict(X)
    assert single(answer, "accuracy") == pytest.approx((guess == Y).mean(), abs=1e-3)
    assert single(answer, "auc") == pytest.approx(metrics.roc_auc_score(Y, guess), abs=1e-3)
    assert not {"brier", "calibration_error"} & set(answer.names)


def test_numbers(book: dp.Ledger) -> None:
    y = 50 + 10 * X[:, 0] + RNG.normal(0, 5, N)
    model = LinearRegression().fit(X[:200], y[:200])
    asked = evaluate(model, X, y, ledger=book, target=(0, 100), groups=GROUP, group_names=["A", "B"])
    answer = asked.release(epsilon=500, bits=seeded(1))
    guess = model.predict(X)
    assert single(answer, "mae") == pytest.approx(metrics.mean_absolute_error(y, guess), abs=0.05)
    assert single(answer, "rmse") == pytest.approx(metrics.root_mean_squared_error(y, guess), abs=0.05)
    assert single(answer, "r2") == pytest.approx(metrics.r2_score(y, guess), abs=0.02)
    assert list(answer.gaps.keys["group"]) == ["B"]
    assert answer["mae"].low[0] < 4 < answer["mae"].high[0]
    with pytest.raises(InvalidParameterError, match="no classes"):
        _ = answer.confusion
    assert asked.preview(epsilon=1).columns[0].name == "mae"


def test_odd_rows_have_an_outcome(book: dp.Ledger) -> None:
    rows = X.astype(object)
    rows[0, 1], rows[1, 0] = "nonsense", np.inf
    labels: list[Any] = Y.tolist()
    labels[2:5] = [7, None, {}]
    groups: list[Any] = GROUP.tolist()
    groups[5:7] = [None, []]
    with pytest.warns(UserWarning, match="object"):
        asked = evaluate(MODEL, rows, labels, ledger=book, groups=groups, group_names=["A", "B"])
    answer = asked.release(epsilon=100, bits=seeded(1))
    assert answer["left_out"].values[0] == 5
    assert answer["rows"].values[0] == N - 5
    assert answer.groups["rows"].values[2] == 2
    assert answer.confusion["rows"].values[-1] == 3


def test_sparse_rows(book: dp.Ledger) -> None:
    answer = evaluate(MODEL, scipy.sparse.csr_matrix(X), Y, ledger=book).release(epsilon=100, bits=seeded(1))
    assert single(answer, "accuracy") == pytest.approx((MODEL.predict(X) == Y).mean(), abs=1e-3)


def test_no_rows_at_all_are_refused_only_by_shape(book: dp.Ledger) -> None:
    with pytest.raises(UnfitDataError):
        evaluate(MODEL, X[:0], Y[:0], ledger=book)


def test_an_answer_is_recalled_by_its_request_and_by_no_other_question(book: dp.Ledger) -> None:
    asked = evaluate(MODEL, X, Y, ledger=book)
    first = asked.release(epsilon=1, request="May")
    again = asked.release(epsilon=1, request="May")
    assert charges(book) == 1
    assert np.array_equal(first.cells, again.cells)
    assert str(first) == str(again)
    other = LogisticRegression().fit(X[:50], Y[:50])
    for question, price in (
        (evaluate(other, X, Y, ledger=book), 1),
        (evaluate(MODEL, X, Y, ledger=book, threshold=0.4), 1),
        (asked, 2),
    ):
        with pytest.raises(InvalidParameterError, match="another question"):
            question.release(epsilon=price, request="May")
    assert charges(book) == 1


def test_what_goes_wrong_after_the_charge_is_not_told(book: dp.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("patient 17")

    monkeypatch.setattr(Layout, "counted", broken)
    with pytest.raises(QuestionFailedError) as failure:
        evaluate(MODEL, X, Y, ledger=book).release(epsilon=1)
    assert "17" not in str(failure.value)
    assert failure.value.__context__ is None
    assert charges(book) == 1


def test_what_cannot_be_paid_for_is_refused(tmp_path: Path) -> None:
    asked = evaluate(MODEL, X, Y, ledger=tmp_path / "new.ledger", budget=dp.Budget(1))
    assert not (tmp_path / "new.ledger").exists()
    asked.release(epsilon=0.7)
    with pytest.raises(BudgetExceededError):
        asked.release(epsilon=0.7)
    preview = asked.preview(epsilon=0.7)
    assert preview.fits is False


def test_purposes_of_the_data_are_held(tmp_path: Path) -> None:
    terms: Any = {"budget": dp.Budget(10), "unit": dp.user("patient"), "dataset": "hospital"}
    with dp.Ledger.open(tmp_path / "h.ledger", **terms) as ledger:
        view = ledger.data("survey", unit=dp.rows(per_person=1), purposes=["care"])
        asked = evaluate(MODEL, X, Y, ledger=view)
        with pytest.raises(InvalidParameterError, match="named purposes"):
            asked.release(epsilon=1, purpose="curiosity")
        assert asked.release(epsilon=1, purpose="care").receipt.purpose == "care"
        many = evaluate(MODEL, X, Y, ledger=ledger.data("stays", unit=dp.rows(per_person=4)), buckets=20)
        few = evaluate(MODEL, X, Y, ledger=view, buckets=20)
        noise = [each.preview(epsilon=0.5).columns[0].by_size[2][1] for each in (many, few)]
        assert noise[0] == pytest.approx(4 * noise[1], rel=0.02)


@pytest.mark.parametrize(
    ("more", "problem", "words"),
    [
        ({"classes": [0, 1], "target": (0, 1)}, NotDeclaredError, "Either the classes"),
        ({"groups": GROUP}, NotDeclaredError, "groups there are is private"),
        ({"groups": GROUP[:5], "group_names": ["A", "B"]}, UnfitDataError, "one group for each row"),
        ({"groups": np.zeros((N, 2)), "group_names": [0, 1]}, UnfitDataError, "one group for each row"),
        ({"groups": np.zeros(N), "group_names": ["A", "B"]}, UnfitDataError, "labels are numbers"),
        ({"users": np.arange(N)}, InvalidParameterError, "whose each row is"),
        ({"threshold": 1}, InvalidParameterError, "threshold"),
        ({"expected_rows": 0}, InvalidParameterError, "expected_rows"),
        ({"classes": ["a", "b"]}, InvalidParameterError, "classes"),
        ({"ledger": None}, NotDeclaredError, "in memory"),
        ({"unit": dp.user("id")}, InvalidParameterError, "protects"),
    ],
)
def test_what_is_said_wrongly_is_refused_before_a_charge(
    more: dict[str, Any], problem: type[DefocusError], words: str, book: dp.Ledger
) -> None:
    with pytest.raises(problem, match=words):
        evaluate(MODEL, X, Y, **{"ledger": book, **more})
    assert charges(book) == 0


def test_prices_and_buckets_are_checked_before_a_charge(book: dp.Ledger) -> None:
    asked = evaluate(MODEL, X, Y, ledger=book)
    for price in ({}, {"epsilon": 1, "rho": 1}, {"rho": 1, "delta": 1e-6}, {"epsilon": -1}):
        with pytest.raises(InvalidParameterError):
            asked.release(**price)
    huge = evaluate(MODEL, X, Y, ledger=book, groups=GROUP, group_names=["A", "B"], buckets=9000)
    assert huge.release(rho=0.5).asked == dp.Budget(rho=0.5)
    names = [f"g{i}" for i in range(300)]
    with pytest.raises(InvalidParameterError, match="cells"):
        evaluate(MODEL, X, Y, ledger=book, groups=GROUP, group_names=names, buckets=9000).release(epsilon=1)


def test_a_model_that_mixes_rows_is_refused_before_a_charge(book: dp.Ledger) -> None:
    with pytest.raises(DependentExamplesError):
        evaluate(lambda rows: (rows[:, 0] > np.median(rows[:, 0])) * 1.0, X, Y, ledger=book, classes=[0, 1])
    assert charges(book) == 0


def test_a_ledger_of_persons_asks_whose_the_rows_are(persons: dp.Ledger) -> None:
    with pytest.raises(InvalidParameterError, match="nobody said whose each row is"):
        evaluate(MODEL, X, Y, ledger=persons)


def test_answers_are_shown_in_every_way(book: dp.Ledger, tmp_path: Path) -> None:
    answer = evaluate(MODEL, X, Y, ledger=book, groups=GROUP, group_names=["A", "B"]).release(epsilon=1)
    for each in (answer, answer.confusion, answer.classes, answer.calibration, answer.roc, answer.groups, answer.gaps):
        assert len(each.to_arrow()) == len(each)
        assert each.to_dict()["receipt"]["sequence"] == 1
        assert "intervals hold noise, sampling" in str(each)
        each.to_parquet(tmp_path / "answer.parquet")
    pytest.importorskip("matplotlib")
    assert len(answer.plot().axes) == 2
    assert len(answer.plot("accuracy").axes) == 1
    assert answer.groups.plot().axes
