"""Charges: before anything random, once for each fit, and refused with a remedy."""

import pickle
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from defocus import Budget, Ledger, rows, user
from defocus.errors import (
    BudgetExceededError,
    DefocusError,
    InvalidParameterError,
    LedgerMismatchError,
    QuestionFailedError,
    UnfitDataError,
)
from defocus.learning import AdditiveModel, LinearRegression, LogisticRegression, NaiveBayes, StandardScaler
from defocus.learning.estimators.fit_budget import FitBudget, Sum, deviation, planned
from defocus.mechanisms import Laplace
from defocus.noise import Bits
from defocus.privacy.accounting import account

X = np.linspace(-0.5, 0.5, 40).reshape(20, 2)
Y = np.arange(20) % 2


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "a.ledger", budget=Budget(3, 1e-5), unit=rows(), dataset="people") as ledger:
        yield ledger


def test_a_plan_divides_the_budget_as_the_shares_say() -> None:
    one, two = planned(
        FitBudget(Budget(rho=0.5), "a.ledger", rows()), [Sum(1024, 3, 0.1), Sum(64, 1, 0.9, times=3)]
    ).noises
    ratios = [deviation(noise) / float(noise.sensitivity) for noise in (one, two)]
    assert 1 / (2 * ratios[0] ** 2) == pytest.approx(0.5 * 0.1, rel=1e-4)
    assert 3 / (2 * ratios[1] ** 2) == pytest.approx(0.5 * 0.9, rel=1e-4)


@pytest.mark.parametrize("budget", [Budget(0.1, 1e-5), Budget(3, 1e-6), Budget(rho=0.01), Budget(0.3)])
def test_a_plan_uses_its_budget_and_no_more(budget: Budget) -> None:
    event = planned(
        FitBudget(budget, "a.ledger", rows()), [Sum(1 << 20, 100, 0.9, times=400), Sum(1 << 10, 1, 0.1)]
    ).event
    loss = account(event, method="zcdp" if budget.rho is not None else "pld")
    assert budget.covers(loss)
    spent = loss.rho() if budget.rho is not None else loss.epsilon(budget.delta)
    assert spent > 0.999 * float(budget.rho or budget.epsilon or 0)


def test_a_pure_plan_divides_epsilon_by_the_cube_roots_of_squared_shares() -> None:
    sums = [Sum(1024, 4, 0.1), Sum(64, 1, 0.9, times=3)]
    noises = planned(FitBudget(Budget(Fraction(1, 2)), "a.ledger", rows()), sums).noises
    parts = [float(noise.epsilon) for noise in noises if isinstance(noise, Laplace)]
    assert [noise.sensitivity for noise in noises] == [2048, 64]
    assert parts[0] + 3 * parts[1] == pytest.approx(0.5, rel=1e-5)
    assert 3 * parts[1] / parts[0] == pytest.approx((3 * 0.9**2 / 0.1**2) ** (1 / 3), rel=1e-6)


def test_noise_doubles_where_a_row_is_replaced() -> None:
    added, replaced = (
        planned(FitBudget(Budget(1, 1e-6), "a.ledger", rows(replace=way)), [Sum(1024, 3)]).noises[0]
        for way in (False, True)
    )
    assert deviation(replaced) == pytest.approx(2 * deviation(added), rel=1e-4)


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
    model = NaiveBayes(ledger=book, epsilon=0.5, delta=1e-6, classes=[0, 1], purpose="who is ill")
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
        LogisticRegression(ledger=book, epsilon=10, delta=1e-6, classes=[0, 1]).fit(X, Y)
    assert len(book) == before


def test_a_fit_may_take_the_whole_budget_of_a_ledger(book: Ledger) -> None:
    model = LogisticRegression(ledger=book, epsilon=3, delta=1e-5, classes=[0, 1], max_iter=20).fit(X, Y)
    assert model.receipt_ is not None


def test_a_fit_costs_epsilon_one_at_the_delta_of_the_ledger_by_default(book: Ledger, tmp_path: Path) -> None:
    model = LinearRegression(ledger=book).fit(X, Y)
    assert model.event_ == LinearRegression(ledger=book, epsilon=1, delta=1e-5).fit(X, Y).event_
    with Ledger.open(tmp_path / "rho", budget=Budget(rho=1), unit=rows(), dataset="people") as other:
        told = LinearRegression(ledger=other).fit(X, Y)
    assert told.event_ == LinearRegression(epsilon=1, delta=1e-6).fit(X, Y).event_


def test_a_ledger_is_made_if_its_total_is_given_and_holds_it_later(tmp_path: Path) -> None:
    place = tmp_path / "new.ledger"
    model = NaiveBayes(epsilon=0.5, classes=[0, 1], ledger=place, budget=Budget(2, 1e-6), unit=rows(replace=True))
    with pytest.raises(DefocusError, match="no ledger"):
        clone(model).set_params(budget=None).fit(X, Y)
    assert not place.exists()
    model.fit(X, Y)
    clone(model).set_params(budget=None, unit=None).fit(X, Y)
    with Ledger.open(place) as made:
        assert (made.budget, made.unit, made.dataset) == (Budget(2, 1e-6), rows(replace=True), "new")
        assert len([entry for entry in made.entries() if entry.kind == "charge"]) == 2
    with pytest.raises(LedgerMismatchError, match="budget"):
        clone(model).set_params(budget=Budget(3, 1e-6)).fit(X, Y)
    with pytest.raises(InvalidParameterError, match="the ledger protects one row, replaced"):
        clone(model).set_params(unit=rows()).fit(X, Y)


def test_classes_are_found_on_a_ledger_within_what_was_asked(book: Ledger) -> None:
    wide, labels = np.tile(X, (200, 1)), np.tile(Y, 200)
    model = NaiveBayes(ledger=book, epsilon=1, delta=1e-6).fit(wide, labels)
    assert model.classes_.tolist() == [0, 1]
    assert Budget(1, 1e-6).covers(account(model.event_))


def test_a_model_in_a_file_keeps_what_it_learned_and_names_its_ledger(book: Ledger) -> None:
    model = LinearRegression(ledger=book, epsilon=1, delta=1e-6).fit(X, Y)
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


@pytest.mark.slow
def test_a_search_in_several_processes_charges_every_fit_to_one_ledger(book: Ledger) -> None:
    model = NaiveBayes(ledger=book, epsilon=0.1, delta=1e-7, classes=[0, 1], who="Ada")
    # Scores on private rows are not paid for: only what was charged is looked at here.
    GridSearchCV(model, {"n_bins": [2, 4]}, cv=2, n_jobs=2, refit=False).fit(X, Y)
    charges = [entry for entry in book.entries() if entry.kind == "charge"]
    assert len(charges) == 4
    assert {entry.who for entry in charges} == {"Ada"}


def test_a_fit_says_what_it_promises_to_whom_and_where_that_stands(book: Ledger) -> None:
    words = LinearRegression(ledger=book, epsilon=1, delta=1e-6).fit(X, Y).explain()
    assert "one row, added or removed: epsilon 1 at delta 1e-06" in words
    assert "discrete_gaussian" in words
    assert "receipt" in words
    assert "held to norm 1" in words
    bounded = LinearRegression(ledger=book, epsilon=1, delta=1e-6, bounds=(-1, 1)).fit(X, Y).explain()
    assert "held to norm" not in bounded
    with pytest.raises(NotFittedError):
        LinearRegression().explain()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": "1"}, "epsilon"),
        ({"epsilon": 1e-6, "delta": 0.5}, "Epsilon comes first"),
        ({"epsilon": 1, "rho": 1}, "or rho"),
        ({"rho": 1, "delta": 1e-6}, "or rho"),
        ({"ledger": 7}, "Ledger.open"),
        ({"budget": 3}, "Budget"),
        ({"unit": "rows"}, "unit"),
    ],
)
def test_refuses_what_is_no_price_or_no_ledger_and_says_what_to_write(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        LinearRegression(**given).fit(X, Y)


def test_a_ledger_without_delta_pays_for_a_pure_fit_and_refuses_what_needs_one(tmp_path: Path) -> None:
    y = (Y > 0.5).astype(int)
    with Ledger.open(tmp_path / "b", budget=Budget(1), unit=rows(), dataset="visits") as ledger:
        for model, words in (
            (LinearRegression(solver="descent"), "Descent looks at the data 400 times.*\n?.*leave solver= out"),
            (LinearRegression(intervals=True), "rest on Gaussian noise.*\n?.*delta=1e-6"),
            (LogisticRegression(classes=[0, 1], solver="descent"), "Descent looks"),
            (LogisticRegression(classes=[0, 1], intervals=True), "rest on Gaussian noise"),
            (LogisticRegression(), "no delta to find them with.*\n?.*declare them"),
            (AdditiveModel(), "declare them"),
            (NaiveBayes(), "declare them"),
        ):
            with pytest.raises(DefocusError, match=words):
                model.set_params(ledger=ledger).fit(X, y)
        assert not any(entry.kind == "charge" for entry in ledger.entries())
        model = LogisticRegression(ledger=ledger, classes=[0, 1]).fit(X, y)
        assert "method:  objective perturbation with Laplace noise" in model.explain()
        assert Budget(1).covers(account(model.event_))
        with pytest.raises(BudgetExceededError):
            LinearRegression(ledger=ledger, epsilon=0.1).fit(X, Y)


def test_refuses_a_ledger_of_persons_where_nobody_said_whose_a_row_is(tmp_path: Path) -> None:
    with (
        Ledger.open(tmp_path / "b", budget=Budget(1, 1e-6), unit=user("patient"), dataset="visits") as ledger,
        pytest.raises(InvalidParameterError, match="users=…\\); or make one row of everything about one person"),
    ):
        LinearRegression(ledger=ledger).fit(X, Y)


@pytest.fixture
def persons(tmp_path: Path) -> Iterator[Ledger]:
    terms: Any = {"budget": Budget(9, 1e-5), "unit": user("patient"), "dataset": "visits"}
    with Ledger.open(tmp_path / "persons", **terms) as ledger:
        yield ledger


def test_a_fit_with_users_is_charged_to_a_ledger_of_persons_and_to_a_view_of_it(persons: Ledger) -> None:
    users = np.arange(len(X)) // 3
    for ledger in (persons, persons.data("stays", unit=user("pid"))):
        model = NaiveBayes(ledger=ledger, epsilon=1, delta=1e-6, classes=[0, 1]).fit(X, Y, users=users)
        assert str(ledger.unit) in model.explain()
    assert [entry.kind for entry in persons.entries()].count("charge") == 2
    with pytest.raises(InvalidParameterError, match="but the unit is all rows of one person"):
        NaiveBayes(ledger=persons.data("people", unit=rows(per_person=2)), classes=[0, 1]).fit(X, Y, users=users)


@pytest.mark.parametrize(
    ("model", "fix"),
    [
        (NaiveBayes(), "classes="),
        (AdditiveModel(), "classes="),
        (LogisticRegression(), "classes="),
        (StandardScaler(), "bounds="),
    ],
)
def test_ways_that_are_proven_for_rows_alone_are_refused_with_users(persons: Ledger, model: Any, fix: str) -> None:
    made = clone(model).set_params(ledger=persons, epsilon=1, delta=1e-6)
    with pytest.raises(DefocusError) as refused:
        made.fit(X, Y, users=np.arange(len(X)))
    assert fix in refused.value.fix
    assert all(entry.kind != "charge" for entry in persons.entries())


def test_users_are_refused_by_their_shape_and_type_alone(persons: Ledger) -> None:
    model = StandardScaler(ledger=persons, epsilon=1, delta=1e-6, bounds=(0, 1))
    for users in ([1, 2], np.zeros((len(X), 1)), np.zeros(len(X), complex), "a", 7):
        with pytest.raises(UnfitDataError, match="users="):
            model.fit(X, users=users)
    odd: list[Any] = [None, float("nan"), [1], {}, object(), "a", 2**70, 1.5, b"a", *range(len(X) - 9)]
    model.fit(X, users=odd)
    assert [entry.kind for entry in persons.entries()].count("charge") == 1


def test_a_person_who_is_replaced_moves_sums_twice_as_far() -> None:
    once, twice = (
        planned(FitBudget(Budget(rho=1), "a.ledger", unit), [Sum(8, 1)]).noises[0].sensitivity
        for unit in (user("id"), user("id", replace=True))
    )
    assert (once, twice) == (8, 16)
