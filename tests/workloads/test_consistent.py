"""Marginals of one histogram: consistent, not negative, close, and made of what was released alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from defocus import Budget, rows
from defocus import workloads as w
from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger
from defocus.noise.testing import seeded
from defocus.workloads.consistent import consistent_tables

SIZES = (4, 6, 3, 5)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "a.ledger", budget=Budget(rho=3), unit=rows(), dataset="people") as made:
        yield made


def people(number: int = 3000) -> Any:
    """Attributes that follow each other, so that most cells of a table are empty."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 4, number)
    second = np.minimum(first + rng.integers(0, 2, number) * 2, 5)
    third = np.minimum(second // 2, 2)
    return np.stack([first, second, third, np.minimum(first + third, 4)], axis=1)


def agree(answers: Any) -> None:
    for left in answers.workload.sets():
        for right in answers.workload.sets():
            shared = tuple(i for i in left if i in right)
            sums = [
                answers.table(each).sum(axis=tuple(a for a, i in enumerate(each) if i not in shared))
                for each in (left, right)
            ]
            assert sums[0] == pytest.approx(sums[1], rel=1e-9)


@pytest.mark.parametrize("price", [{"rho": 0.01}, {"rho": 1}, {"epsilon": 1}])
def test_tables_are_those_of_one_histogram_and_not_negative(book: Ledger, price: dict[str, Any]) -> None:
    plan = w.plan(w.marginals(SIZES, ways=2), **price)
    answers = plan.release(w.records(people()), ledger=book, purpose="pairs", consistent=True, bits=seeded(2))
    assert (answers.values >= 0).all()
    agree(answers)
    assert answers.table((0, 1)).sum() == pytest.approx(answers.ask(w.marginals(SIZES, [()])).values[0])
    assert "one histogram" in answers.processing[0]
    assert not answers.unbiased
    assert np.isnan(answers["answer"].low).all()
    assert answers.nonnegative(consistent=True).values.tolist() == answers.values.tolist()


@pytest.mark.parametrize("rho", [0.002, 0.05, 5])
def test_they_are_closer_than_least_squares_and_than_table_by_table(rho: float) -> None:
    plan = w.plan(w.marginals(SIZES, ways=3), rho=rho, noise="gaussian")
    measure, bits = plan.measurement, seeded(3)
    exact = measure.strategy.measure(w.records(people()))
    truth = measure.strategy.answers(plan.workload, exact)
    found = []
    for _ in range(5):
        noisy = exact + measure.sample(w.records(people()[:0]), bits)
        plain = measure.strategy.answers(plan.workload, noisy)
        fitted = consistent_tables(plan.workload, measure.strategy, noisy, measure.noise.variance)  # type: ignore[arg-type]
        found.append([np.abs(each - truth).sum() for each in (fitted, np.maximum(plain, 0), plain)])
    one, clipped, plain = np.mean(found, axis=0)
    assert one < 0.8 * clipped < clipped < plain


def test_where_noise_is_small_the_fit_is_the_truth() -> None:
    plan = w.plan(w.marginals(SIZES, ways=3), rho=1e5, noise="gaussian", total=10**5)
    measure = plan.measurement
    data = w.records(people())
    fitted = consistent_tables(plan.workload, measure.strategy, measure.sample(data, seeded(1)), measure.noise.variance)  # type: ignore[arg-type]
    truth = measure.strategy.answers(plan.workload, measure.strategy.measure(data))
    assert np.abs(fitted - truth).max() < 12


def test_sets_of_several_orders_single_values_and_no_set_at_all(book: Ledger) -> None:
    data = w.records(np.c_[people(), np.zeros(3000, np.int64)])
    for sets in ([()], [(4,)], [(0, 1, 2, 3, 4)], [(0,), (1, 2), (0, 1), (3, 4)]):
        plan = w.plan(w.marginals([*SIZES, 1], sets), rho=0.1)
        answers = plan.release(data, ledger=book, purpose="several", consistent=True, bits=seeded(2))
        assert (answers.values >= 0).all()
        agree(answers)


def test_nobody_is_nobody(book: Ledger) -> None:
    plan = w.plan(w.marginals(SIZES, ways=2), rho=0.001)
    for seed in range(4):
        answers = plan.release(np.zeros(360, int), ledger=book, purpose="empty", consistent=True, bits=seeded(seed))
        assert (answers.values >= 0).all()
        assert np.isfinite(answers.values).all()


def test_too_many_cells_are_refused_before_the_charge_with_a_remedy(book: Ledger) -> None:
    plan = w.plan(w.marginals([10] * 8, ways=2), rho=0.1)
    data = w.records(np.zeros((50, 8), np.int64))
    with pytest.raises(InvalidParameterError, match="100000000 cells") as refusal:
        plan.release(data, ledger=book, purpose="pairs", consistent=True)
    assert "answer.ask" in refusal.value.fix
    assert len(book) == 1
    few = plan.release(data, ledger=book, purpose="pairs").ask(w.marginals([10] * 8, [(0, 1), (2, 5)]))
    agree(few.nonnegative(consistent=True))


@pytest.mark.parametrize("wrong", [1, "yes", None])
def test_consistent_is_true_or_false(book: Ledger, wrong: Any) -> None:
    plan = w.plan(w.marginals(SIZES, ways=2), rho=0.1)
    with pytest.raises(InvalidParameterError, match="consistent"):
        plan.release(np.zeros(360, int), ledger=book, purpose="x", consistent=wrong)
    assert len(book) == 1


def test_other_workloads_are_consistent_by_themselves(book: Ledger) -> None:
    plan = w.plan(w.prefix(4), rho=0.01)
    one, other = (
        plan.release([9, 0, 0, 1], ledger=book, purpose="x", nonnegative=True, consistent=both, bits=seeded(1))
        for both in (True, False)
    )
    assert one.values.tolist() == other.values.tolist()
