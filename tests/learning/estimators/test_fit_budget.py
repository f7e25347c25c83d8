"""Charges: before anything random, once for each fit, and refused with a remedy."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from defocus import Budget, Ledger, rows, user
from defocus.errors import BudgetExceededError, DefocusError, InvalidParameterError, QuestionFailedError
from defocus.learning import LinearRegression, LogisticRegression, NaiveBayes, StandardScaler
from defocus.learning.estimators.fit_budget import DEFAULT, FitBudget, Sum, fit_budget, planned
from defocus.noise import Bits
from defocus.privacy.accounting import account

X = np.linspace(-0.5, 0.5, 40).reshape(20, 2)
Y = np.arange(20) % 2


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "a.ledger", budget=Budget(3, 1e-5), unit=rows(), dataset="people") as ledger:
        yield ledger


def test_a_plan_divides_the_budget_as_the_shares_say() -> None:
    one, two = planned(FitBudget(Budget(rho=0.5), None, rows()), [Sum(1024, 3, 0.1), Sum(64, 1, 0.9, times=3)]).noises
    ratios = [float(noise.sigma) / float(noise.sensitivity) for noise in (one, two)]
    assert 1 / (2 * ratios[0] ** 2) == pytest.approx(0.5 * 0.1, rel=1e-4)
    assert 3 / (2 * ratios[1] ** 2) == pytest.approx(0.5 * 0.9, rel=1e-4)


@pytest.mark.parametrize("budget", [Budget(0.1, 1e-5), Budget(3, 1e-6), Budget(rho=0.01)])
def test_a_plan_uses_its_budget_and_no_more(budget: Budget) -> None:
    event = planned(FitBudget(budget, None, rows()), [Sum(1 << 20, 100, 0.9, times=400), Sum(1 << 10, 1, 0.1)]).event
    loss = account(event, method="zcdp" if budget.rho is not None else "pld")
    assert budget.covers(loss)
    spent = loss.rho() if budget.rho is not None else loss.epsilon(budget.delta)
    assert spent > 0.999 * float(budget.rho or budget.epsilon or 0)


def test_noise_doubles_where_a_row_is_replaced() -> None:
    added, replaced = (
        planned(FitBudget(Budget(1, 1e-6), None, rows(replace=way)), [Sum(1024, 3)]).noises[0] for way in (False, True)
    )
    assert float(replaced.sigma) == pytest.approx(2 * float(added.sigma), rel=1e-4)


def test_a_fit_is_charged_before_it_draws_a_bit(book: Ledger) -> None:
    @final
    class Broken(Bits):
        def words(self, n: int) -> Any:
            raise OSError(f"no entropy for {n}, and a secret 12345")

        def integer(self, nbits: int) -> int:
            raise OSError(f"no entropy for {nbits}, and a secret 12345")

    before = len(book)
    with pytest.raises(QuestionFailedError) as caught:
        LinearRegression(ledger=book, bits=Broken()).fit(X, Y)
    assert len(book) == before + 1
    assert "12345" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_every_fit_is_charged_also_of_clones_and_again(book: Ledger) -> None:
    model = NaiveBayes(ledger=book, budget=Budget(0.5, 1e-6), classes=[0, 1], purpose="who is ill")
    model.fit(X, Y)
    first = book.spent()
    model.fit(X, Y)
    second = book.spent()
    assert second != first
    assert all(b >= a for a, b in zip(first, second, strict=True))
    copied = clone(model)
    assert copied.ledger is book
    copied.fit(X, Y)
    assert book.spent() != second
    charges = [entry for entry in book.entries() if entry.kind == "charge"]
    assert len(charges) == 3
    assert {entry.purpose for entry in charges} == {"who is ill"}
    assert copied.receipt_.event == copied.event_
    assert book.verify().ok


def test_a_fit_that_the_ledger_cannot_pay_for_is_refused_before_it_looks(book: Ledger) -> None:
    before = len(book)
    with pytest.raises(BudgetExceededError):
        LogisticRegression(ledger=book, budget=Budget(10, 1e-6), classes=[0, 1]).fit(X, Y)
    assert len(book) == before


def test_a_fit_may_take_the_whole_budget_of_a_ledger(book: Ledger) -> None:
    model = LogisticRegression(ledger=book, budget=Budget(3, 1e-5), classes=[0, 1], steps=20).fit(X, Y)
    assert model.receipt_ is not None


def test_without_a_ledger_there_is_no_receipt_but_an_event() -> None:
    model = LinearRegression().fit(X, Y)
    assert model.receipt_ is None
    assert DEFAULT.covers(account(model.event_))


def test_classes_are_found_on_a_ledger_within_what_was_asked(book: Ledger) -> None:
    wide, labels = np.tile(X, (200, 1)), np.tile(Y, 200)
    model = NaiveBayes(ledger=book, budget=Budget(1, 1e-6)).fit(wide, labels)
    assert model.classes_.tolist() == [0, 1]
    assert Budget(1, 1e-6).covers(account(model.event_))


def test_a_model_in_a_file_keeps_what_it_learned_and_names_its_ledger(book: Ledger) -> None:
    model = LinearRegression(ledger=book, budget=Budget(1, 1e-6)).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 # our own
    assert (again.predict(X) == model.predict(X)).all()
    assert again.receipt_ == model.receipt_
    assert again.ledger == book.where
    before = len(book)
    again.fit(X, Y)
    assert len(book) == before + 2
    with pytest.raises(DefocusError, match="no ledger"):
        again.set_params(ledger=f"{book.where}.elsewhere").fit(X, Y)
    assert not Path(f"{book.where}.elsewhere").exists()


def test_a_search_in_several_processes_charges_every_fit_to_one_ledger(book: Ledger) -> None:
    model = NaiveBayes(ledger=book, budget=Budget(0.1, 1e-7), classes=[0, 1], who="Ada")
    # Scores on private rows are not paid for: only what was charged is looked at here.
    GridSearchCV(model, {"bins": [2, 4]}, cv=2, n_jobs=2, refit=False).fit(X, Y)
    charges = [entry for entry in book.entries() if entry.kind == "charge"]
    assert len(charges) == 4
    assert {entry.who for entry in charges} == {"Ada"}


def test_a_fit_says_what_it_promises_to_whom_and_where_that_stands(book: Ledger) -> None:
    words = LinearRegression(ledger=book, budget=Budget(1, 1e-6)).fit(X, Y).explain()
    assert "one row, added or removed: epsilon 1 at delta 1e-06" in words
    assert "discrete_gaussian" in words
    assert "receipt" in words
    with pytest.raises(NotFittedError):
        LinearRegression().explain()


@pytest.mark.parametrize(
    ("budget", "ledger", "words"),
    [
        (1.0, None, "Budget"),
        ("1", None, "Budget"),
        (Budget(1e-6, 0.5), None, "Epsilon comes first"),
        (None, 7, "Ledger.open"),
    ],
)
def test_refuses_what_is_no_budget_or_no_ledger_and_says_what_to_write(budget: Any, ledger: Any, words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        fit_budget(budget, ledger)


def test_refuses_a_budget_without_delta_and_a_ledger_of_persons(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="has no delta"):
        StandardScaler(budget=Budget(1), bounds=(0, 1)).fit(X)
    with (
        Ledger.open(tmp_path / "b", budget=Budget(1, 1e-6), unit=user("patient"), dataset="visits") as ledger,
        pytest.raises(InvalidParameterError, match="one row of everything about one person"),
    ):
        LinearRegression(ledger=ledger).fit(X, Y)
