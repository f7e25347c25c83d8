"""Models that take the rows of a table, with its ledger, unit, persons, bounds and classes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import defocus as dp
from defocus.errors import (
    BudgetExceededError,
    CheckpointError,
    DefocusError,
    InvalidParameterError,
    NotDeclaredError,
    UnfitDataError,
)
from defocus.learning import KMeans, LinearRegression, LogisticRegression, NaiveBayes, StandardScaler, Trainer
from defocus.learning.data import tensors_of
from defocus.learning.examples import PrivateExamples, owners
from defocus.noise.testing import seeded

N = 300
RNG = np.random.default_rng(0)
PATIENT = RNG.integers(0, 100, N)
X = np.column_stack([RNG.integers(18, 90, N), RNG.integers(0, 30, N)]).astype(float)
ILL = X[:, 0] > 50
PRICE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
BOUNDS = ([18, 0], [90, 30])


@pytest.fixture
def book(tmp_path: Path) -> Iterator[dp.Ledger]:
    terms: Any = {"budget": dp.Budget(50, 1e-4), "unit": dp.user("patient"), "dataset": "hospital"}
    with dp.Ledger.open(tmp_path / "h.ledger", **terms) as ledger:
        yield ledger


@pytest.fixture
def stays(book: dp.Ledger) -> dp.tables.Table:
    columns = {"patient": PATIENT, "age": X[:, 0], "days": X[:, 1], "ill": ILL, "ward": np.where(ILL, "A", "B")}
    table = dp.open(pa.table(columns), ledger=book, name="stays")
    return table.declare(age=(18, 90), days=(0, 30), ward=["A", "B"])


def charges(ledger: dp.Ledger) -> int:
    return sum(entry.kind == "charge" for entry in ledger.entries())


@pytest.mark.parametrize(
    ("make", "aim", "known"),
    [
        (LogisticRegression, ("ill", ILL), {"bounds": BOUNDS, "classes": [False, True]}),
        (NaiveBayes, ("ward", np.where(ILL, "A", "B")), {"bounds": BOUNDS, "classes": ["A", "B"]}),
        (LinearRegression, ("days", X[:, 1]), {"bounds": BOUNDS, "target": (0, 30)}),
        (KMeans, (None, None), {"bounds": BOUNDS}),
        (StandardScaler, (None, None), {"bounds": BOUNDS}),
    ],
)
def test_a_fit_to_a_table_is_the_fit_to_its_rows(
    make: Any, aim: Any, known: Any, stays: dp.tables.Table, book: dp.Ledger
) -> None:
    target, y = aim
    told = make(**PRICE, bits=seeded(3)).fit(stays.examples(["age", "days"], target))
    plain = make(**PRICE, **known, bits=seeded(3), ledger=book).fit(X, y, users=PATIENT)
    assert told.event_ == plain.event_
    for name, value in plain.released().items():
        assert np.array_equal(told.released()[name], value), name
    for how in ("predict", "transform"):
        if hasattr(plain, how):
            assert np.array_equal(getattr(told, how)(X[:5]), getattr(plain, how)(X[:5]))
    assert charges(book) == 2
    assert told.ledger is None


def test_rows_of_a_table_of_rows_are_counted_each(tmp_path: Path) -> None:
    frame = pa.table({"age": X[:, 0], "days": X[:, 1]})
    terms: Any = {"unit": dp.rows(), "budget": dp.Budget(5, 1e-5), "ledger": tmp_path / "r.ledger", "name": "r"}
    with dp.open(frame, **terms) as table:
        told = StandardScaler(**PRICE, bits=seeded(3)).fit(table.declare(age=(18, 90)).examples(["age"]))
        found = StandardScaler(**PRICE, bits=seeded(3)).fit(table.examples(["age"]))  # which are rows, so that it may
        plain = StandardScaler(**PRICE, bits=seeded(3), bounds=(18, 90), ledger=table.ledger).fit(X[:, :1])
    assert told.mean_.tolist() == plain.mean_.tolist()
    assert found.low_[0] < found.high_[0]


def test_a_filter_tightens_bounds_and_wider_ones_may_be_given(tmp_path: Path) -> None:
    frame = pa.table({"age": X[:, 0]})
    terms: Any = {"unit": dp.rows(), "budget": dp.Budget(5, 1e-5), "ledger": tmp_path / "f.ledger", "name": "f"}
    with dp.open(frame, **terms) as table:
        old = table.declare(age=(18, 90)).where("age > 40").examples(["age"])
        assert old.input_bounds == ([40.0], [90.0])
        StandardScaler(**PRICE, bounds=(18, 90)).fit(old)
        with pytest.raises(DefocusError, match="bounds="):
            StandardScaler(**PRICE, bounds=(18, 80)).fit(old)


def test_a_part_is_charged_alone(tmp_path: Path) -> None:
    frame = pa.table({"age": X[:, 0], "day": np.where(ILL, "mon", "tue")})
    terms: Any = {"unit": dp.rows(), "budget": dp.Budget(2, 1e-5), "ledger": tmp_path / "p.ledger", "name": "p"}
    with dp.open(frame, **terms, parts="day") as table:
        StandardScaler(**PRICE, bounds=(18, 90)).fit(table.part("mon").examples(["age"]))
        assert table.part("tue").remaining().epsilon > table.part("mon").remaining().epsilon


@pytest.mark.parametrize(
    ("settings", "given", "what"),
    [
        ({"ledger": "other.ledger"}, {}, "ledger="),
        ({"bounds": (0, 1)}, {}, "bounds="),
        ({"classes": ["A", "C"]}, {}, "classes="),
        ({"classes": 5}, {}, "classes="),
        ({}, {"y": ILL}, "y="),
        ({}, {"users": PATIENT}, "users="),
        ({"unit": dp.rows()}, {}, "unit"),
        ({"budget": dp.Budget(3)}, {}, "budget"),
    ],
)
def test_what_is_said_otherwise_beside_a_table_is_refused(
    settings: Any, given: Any, what: str, stays: dp.tables.Table, book: dp.Ledger
) -> None:
    with pytest.raises(DefocusError) as refused:
        LogisticRegression(**PRICE, **settings).fit(stays.examples(["age", "days"], "ward"), **given)
    assert what in f"{refused.value}"
    assert charges(book) == 0


def test_what_is_said_alike_is_fine(stays: dp.tables.Table) -> None:
    examples = stays.examples(["age", "days"], "ward")
    known: dict[str, Any] = {"bounds": BOUNDS, "classes": ["B", "A"], "unit": dp.user("patient"), "max_iter": 2}
    for ledger in (examples.ledger, stays.ledger, stays.ledger.where):
        LogisticRegression(**PRICE, **known, ledger=ledger).fit(examples)


def test_what_the_table_does_not_declare_must_be_said(stays: dp.tables.Table, book: dp.Ledger) -> None:
    raw = stays.derive(both="CAST(ward AS DOUBLE)")
    for model in (LogisticRegression(**PRICE), NaiveBayes(**PRICE), KMeans(2, **PRICE)):
        with pytest.raises(NotDeclaredError, match=r"declare it, table\.declare"):
            model.fit(raw.examples(["age", "both"], "ward"))
    with pytest.raises(NotDeclaredError, match="target="):
        LinearRegression(**PRICE).fit(raw.examples(["age"], "both"))
    with pytest.raises(NotDeclaredError, match="classes="):
        NaiveBayes(**PRICE).fit(stays.examples(["age"], "days"))
    assert charges(book) == 0
    LogisticRegression(**PRICE, norm=100.0, max_iter=2).fit(raw.examples(["age", "both"], "ward"))
    NaiveBayes(**PRICE, bounds=([18, 18], [90, 120])).fit(raw.examples(["age", "both"], "ward"))
    assert charges(book) == 2


def trainer(data: Any, **more: Any) -> Trainer:
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = {"epsilon": 2, "delta": 1e-6, "batch_size": 20, "steps": 3, "bits": seeded(1), **more}
    return Trainer(model, torch.nn.CrossEntropyLoss(), optimizer, data, **given)


def test_a_trainer_takes_ledger_unit_and_users_from_a_table(stays: dp.tables.Table, book: dp.Ledger) -> None:
    run = trainer(stays.examples(["age", "days"], "ward"), size=50)
    assert run.plan.size == 50
    assert "everything about one patient" in run.explain()
    run.fit(progress=False)
    assert charges(book) == 1


def test_how_many_rows_of_a_table_there_are_is_told_to_nobody(
    stays: dp.tables.Table, book: dp.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[int] = []
    read = type(stays.examples("age")).read_grouped

    def counted(self: Any) -> Any:
        rows = read(self)
        numbers.append(len(rows[0]) - 1)
        return rows

    monkeypatch.setattr(type(stays.examples("age")), "read_grouped", counted)
    told = []
    for kept in ("age > 50", "age > 1000", "age < 1000"):
        some = stays.where(kept).examples(["age", "days"], "ward")
        with pytest.raises(NotDeclaredError, match="How many units") as refused:
            trainer(some)
        assert "size=" in refused.value.fix
        for sampling in ("fixed size", "shuffled"):
            with pytest.raises(InvalidParameterError, match="is private"):
                trainer(some, size=20, sampling=sampling)
        run = trainer(some, size=20, epsilon=0.5)
        told.append((repr(run), run.explain()))
        assert set(numbers) <= {0}  # those of empty tables, whose columns have the same types
    assert len(set(told)) == 1
    trainer(stays.examples(["age", "days"], "ward"), size=20, epsilon=0.5).fit(progress=False)
    assert numbers[-1] == N
    empty = trainer(stays.where("age > 1000").examples(["age", "days"], "ward"), size=20, epsilon=0.5)
    assert empty.fit(progress=False).steps == 3
    assert charges(book) == 2


def test_a_run_on_a_table_is_resumed_with_the_same_rows(stays: dp.tables.Table, tmp_path: Path) -> None:
    some = stays.where("age > 50").examples(["age", "days"], "ward")
    run = trainer(some, size=20)
    for batch in run.batches():
        run.step(batch)
        run.save(tmp_path / "run")
        break
    run.close()
    for other in (stays.examples(["age", "days"], "ward"), stays.where("age > 1000").examples(["age", "days"], "ward")):
        with pytest.raises(CheckpointError):
            trainer(other, size=20).resume(tmp_path / "run")
    again = trainer(some, size=20)
    again.resume(tmp_path / "run")
    assert again.fit(progress=False).steps == 3


def test_a_fit_that_is_refused_or_recalled_reads_no_row(
    stays: dp.tables.Table, book: dp.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = stays.examples(["age", "days"], "ward")
    numbers: list[int] = []
    read = type(examples).read_grouped

    def counted(self: Any) -> Any:
        rows = read(self)
        numbers.append(len(rows[0]) - 1)
        return rows

    monkeypatch.setattr(type(examples), "read_grouped", counted)
    for make in (LogisticRegression, NaiveBayes):
        with pytest.raises(BudgetExceededError):
            make(epsilon=1000, delta=1e-6).fit(examples)
    assert set(numbers) == {0}
    known = {**PRICE, "request": "May"}
    first = NaiveBayes(**known).fit(examples)
    assert numbers[-1] == N
    numbers.clear()
    again = NaiveBayes(**known).fit(examples)
    assert set(numbers) == {0}
    assert all(np.array_equal(again.released()[name], value) for name, value in first.released().items())
    assert charges(book) == 1


def test_tensors_of_a_table(stays: dp.tables.Table) -> None:
    (inputs, target), users = tensors_of(stays.examples(["age", "days"], "ward"))
    assert (inputs.dtype, target.dtype) == (torch.float32, torch.int64)
    assert torch.equal(target == 0, inputs[:, 0] > 50)  # places among the declared values
    assert users is not None
    pairs = sorted(zip(users, inputs[:, 0].tolist(), strict=True))
    assert pairs == sorted(zip(PATIENT.tolist(), X[:, 0].tolist(), strict=True))
    numbers = tensors_of(stays.examples(["age"], "days"))[0][1]
    assert (numbers.dtype, numbers.shape) == (torch.float32, (N, 1))
    odd = stays.derive(odd="CASE WHEN age > 50 THEN age END").examples(["odd"], "ward")
    assert tensors_of(odd)[0][0].sum() == X[ILL, 0].sum()  # NULL is zero
    left = stays.derive(odd="CASE WHEN age > 50 THEN days END")
    assert tensors_of(left.examples(["age"], "odd"))[0][1].isnan().sum() == (~ILL).sum()
    whole = stays.derive(whole="CASE WHEN age > 50 THEN 1 END")
    assert (tensors_of(whole.examples(["age"], "whole"))[0][1] == -1).sum() == (~ILL).sum()
    few = stays.declare(ward=["B"])
    assert (tensors_of(few.examples(["age"], "ward"))[0][1] == -1).sum() == ILL.sum()


def test_a_trainer_refuses_what_it_cannot_take_from_a_table(stays: dp.tables.Table) -> None:
    examples = stays.examples(["age", "days"], "ward")
    for name, value in (("unit", dp.rows()), ("users", PATIENT), ("ledger", "other.ledger")):
        with pytest.raises(InvalidParameterError, match=f"{name}= was given beside"):
            trainer(examples, **{name: value})
    with pytest.raises(UnfitDataError, match="no target"):
        trainer(stays.examples(["age", "days"]), size=50)
    with pytest.raises(UnfitDataError, match="not declared"):
        trainer(stays.derive(code="upper(ward)").examples(["age", "days"], "code"), size=50)
    with pytest.raises(InvalidParameterError, match="no run on it is a scratch run"):
        trainer(examples, size=50, scratch="a try")
    with pytest.raises(InvalidParameterError, match="Training protects rows or users"):
        trainer((torch.zeros(4, 2), torch.zeros(4).long()))


def test_only_what_says_everything_is_taken_for_examples(stays: dp.tables.Table) -> None:
    assert isinstance(stays.examples("age"), PrivateExamples)
    others: list[Any] = [stays, X, stays.schema]
    assert not any(isinstance(other, PrivateExamples) for other in others)
    assert not isinstance(pa.table({"ledger": [1], "unit": [2]}).to_pandas(), PrivateExamples)


def test_owners_are_numbered_and_nobody_is_none_of_them() -> None:
    assert owners(np.array([7, 7, 3]), 3).tolist() == [0, 0, 1]
    assert owners([None, float("nan"), "a", {}], 4).tolist() == [-1, -1, 0, -1]
