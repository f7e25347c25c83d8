"""Releases of plans: charged first, unbiased, with the predicted error, and refused without a charge."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from defocus import Budget, rows, user
from defocus import workloads as w
from defocus.errors import BudgetExceededError, InvalidParameterError, MismatchedDomainError, UnfitDataError
from defocus.ledger import Ledger
from defocus.noise.testing import seeded

PRICE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "a.ledger", budget=Budget(rho=3), unit=rows(), dataset="visits") as made:
        yield made


def charges(book: Ledger) -> int:
    return sum(entry.kind == "charge" for entry in book.entries())


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    "workload",
    [w.prefix(12), w.kron(w.prefix(4), w.identity(3)), w.marginals([2, 3, 2], up_to=2)],
    ids=["matrix", "product", "marginals"],
)
def test_errors_have_the_predicted_variance_and_no_other(workload: Any, noise: str) -> None:
    plan = w.plan(workload, **PRICE, noise=noise)
    x, bits, runs = 50 * np.arange(12), seeded(11), 400
    measure = plan.measurement
    truth = workload.answer(x)
    errors = np.array([measure.strategy.answers(workload, measure.sample(x, bits)) - truth for _ in range(runs)])
    ratio = float((errors**2).sum(axis=1).mean() / plan.variances().sum())
    spread = float((errors**2).sum(axis=1).std() / plan.variances().sum()) / runs**0.5
    assert abs(ratio - 1) < 4.5 * spread
    assert abs(ratio - 1.21) > 4.5 * spread  # noise 10 % off
    assert np.abs(errors.mean(axis=0) / np.sqrt(plan.variances() / runs)).max() < 4.5
    for confidence in (0.5, 0.95):
        held = (np.abs(errors) <= plan.intervals(confidence)).mean(axis=0)
        assert held.min() > confidence - 4.5 * (confidence * (1 - confidence) / runs) ** 0.5
        assert noise == "laplace" or held.max() < confidence + 4.5 * (confidence * (1 - confidence) / runs) ** 0.5


def test_a_release_is_charged_once_and_carries_intervals(book: Ledger) -> None:
    plan = w.plan(w.prefix(5), **PRICE, noise="gaussian")
    answers = plan.release([100, 50, 0, 3, 7], ledger=book, purpose="ages", bits=seeded(1))
    assert charges(book) == 1
    assert answers.release.event == plan.event
    low, high = answers.interval(0.999999)
    assert (low <= [100, 150, 150, 153, 160]).all()
    assert (high >= [100, 150, 150, 153, 160]).all()
    assert "least squares" in str(answers)


def test_a_plan_is_previewed_like_any_other_question(book: Ledger) -> None:
    plan = w.plan(w.prefix(5), **PRICE, noise="gaussian")
    free = plan.preview()
    assert (free.prospect, free.fits, free.event) == (None, None, plan.event)
    assert free.error == pytest.approx(plan.error.rmse)
    assert plan.intervals().min() <= free.interval <= plan.intervals().max()
    known = plan.preview(ledger=book)
    assert known.fits
    assert "covers it" in str(known)
    assert charges(book) == 0
    plan.release([1, 2, 3, 4, 5], ledger=book, purpose="ages", bits=seeded(1))
    assert book.remaining() == known.after


def test_an_explanation_says_how_records_outside_the_domain_are_read(book: Ledger) -> None:
    plan = w.plan(w.identity(4), **PRICE)
    words = plan.release(w.records([[9], [1]]), ledger=book, purpose="ages", bits=seeded(2)).explain()
    assert "a code outside its range counts as the nearest one inside" in words
    assert "nothing was bounded or clipped" not in words


def test_one_release_answers_other_questions_free_of_charge(book: Ledger) -> None:
    answers = w.plan(w.prefix(4), **PRICE).release([9, 8, 7, 6], ledger=book, purpose="ages", bits=seeded(2))
    cells = answers.ask(w.identity(4))
    assert cells.values.cumsum() == pytest.approx(answers.values, rel=1e-9)
    low, high = cells.interval(0.9)
    assert ((low + high) / 2).tolist() == pytest.approx(cells.values.tolist())
    planned = w.plan(w.identity(4), **PRICE, noise="laplace", strategy=w.strategy(np.eye(4)))
    assert (high - low).max() > 0.5 * planned.intervals(0.9).max()
    assert charges(book) == 1
    with pytest.raises(InvalidParameterError, match="A question is a workload, but it is str"):
        answers.ask("x")  # type: ignore[arg-type]
    with pytest.raises(MismatchedDomainError):
        answers.ask(w.identity(5))


def test_a_named_request_is_recalled_by_an_equal_plan_and_by_no_other(book: Ledger) -> None:
    """Both strategies have columns of one length, hence equal events; their rows mean different things."""
    halves, cells = w.strategy([[1, 1, 0, 0], [0, 0, 1, 1]]), w.strategy(np.eye(4)[[1, 0, 3, 2]])
    total = w.total(4)
    plans = [w.plan(total, **PRICE, noise="laplace", strategy=one) for one in (halves, halves, cells)]
    first = plans[0].release([9, 8, 7, 6], ledger=book, purpose="all", bits=seeded(2), request="all of them")
    again = plans[1].release([0, 0, 0, 0], ledger=book, purpose="all", request="all of them")
    assert again.values.tolist() == first.values.tolist()
    asked_otherwise = w.plan(w.explicit([[1, 1, 1, 1], [1, 1, 0, 0]]), **PRICE, noise="laplace", strategy=halves)
    for other in (plans[2], asked_otherwise):
        assert other.event == plans[0].event
        with pytest.raises(InvalidParameterError, match="to another question"):
            other.release([9, 8, 7, 6], ledger=book, purpose="all", request="all of them")
    assert charges(book) == 1


def test_least_squares_answers_agree_with_each_other(book: Ledger) -> None:
    plan = w.plan(w.marginals([3, 4, 2], ways=2), **PRICE, noise="gaussian")
    answers = plan.release(np.arange(24).reshape(3, 4, 2), ledger=book, purpose="tables", bits=seeded(3))
    np.testing.assert_allclose(answers.table((0, 1)).sum(axis=1), answers.table((0, 2)).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(answers.table((0, 1)).sum(axis=0), answers.table((1, 2)).sum(axis=1), rtol=1e-9)


def test_intervals_of_later_questions_are_those_of_a_plan_for_them(book: Ledger) -> None:
    halves = w.strategy([[1, 1, 0, 0], [0, 0, 1, 1]])
    answers = w.plan(w.total(4), **PRICE, noise="laplace", strategy=halves).release(
        [9, 8, 7, 6], ledger=book, purpose="ages", bits=seeded(2)
    )
    later = w.explicit([[1, 1, 0, 0]])
    low, high = answers.ask(later).interval(0.9)
    planned = w.plan(later, **PRICE, noise="laplace", strategy=halves).intervals(0.9)
    assert (high - low) / 2 == pytest.approx(planned)


def test_a_table_has_its_axes_in_the_order_they_are_named(book: Ledger) -> None:
    plan = w.plan(w.marginals([3, 4, 2], ways=2), **PRICE, noise="gaussian")
    answers = plan.release(np.arange(24), ledger=book, purpose="tables", bits=seeded(3))
    assert answers.table((1, 0)).tolist() == answers.table((0, 1)).T.tolist()
    for missing in ((0, 3), (0, 0), (), 1, "01"):
        with pytest.raises(InvalidParameterError, match="There is no marginal over") as refusal:
            answers.table(missing)  # type: ignore[arg-type]
        assert "workload.sets()" in refusal.value.fix


def test_answers_are_shown_in_short_and_as_a_table_for_notebooks(book: Ledger) -> None:
    answers = w.plan(w.ranges(50), **PRICE).release([5] * 50, ledger=book, purpose="<ages>", bits=seeded(1))
    assert repr(answers) == "<answer: <workload of 1275 queries over 50 cells>>"
    page = answers._repr_html_()
    assert "&lt;ages&gt;" in page
    assert "95 % interval" in page
    assert "1275 entries, 275 of them not shown" in page
    assert np.isnan(answers.nonnegative()["answer"].low).all()


@pytest.mark.parametrize("workload", [w.prefix(24), w.marginals([3, 4, 2], ways=2)], ids=["prefix", "marginals"])
def test_without_negatives_the_total_stays_and_bias_is_declared(book: Ledger, workload: Any) -> None:
    plan = w.plan(workload, **PRICE, noise="gaussian")
    made = plan.release(np.full(24, 2), ledger=book, purpose="few", nonnegative=True, bits=seeded(4))
    assert made.values.min() >= 0
    assert "biased" in made.processing[0]
    with pytest.raises(InvalidParameterError, match="no interval"):
        made.interval()


def test_records_and_their_histogram_are_the_same_data() -> None:
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(0, n, 500) for n in (3, 4, 2)], axis=1)
    x = np.zeros((3, 4, 2), np.int64)
    np.add.at(x, tuple(codes.T), 1)
    for workload in (w.marginals([3, 4, 2], up_to=3), w.kron(w.prefix(3), w.identity(4), w.total(2))):
        strategy = w.plan(workload, **PRICE, noise="gaussian").measurement.strategy
        assert strategy.measure(w.records(codes)).tolist() == strategy.measure(x).tolist()


def test_codes_outside_their_range_count_as_the_nearest() -> None:
    strategy = w.plan(w.marginals([3, 2], ways=1), **PRICE, noise="gaussian").measurement.strategy
    wild, tame = w.records(np.array([[-7, 9], [1, 1]])), w.records(np.array([[0, 1], [1, 1]]))
    assert strategy.measure(wild).tolist() == strategy.measure(tame).tolist()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ([1, 2, 3], MismatchedDomainError),
        (np.zeros((2, 2), np.int64), MismatchedDomainError),
        (np.array([1.0, 2.0, 3.0, 4.0]), UnfitDataError),
        ("abcd", UnfitDataError),
        (np.array([True, False, True, True]), UnfitDataError),
        (w.records(np.zeros((5, 2), np.int64)), MismatchedDomainError),
    ],
)
def test_unfit_data_is_refused_and_nothing_is_charged(book: Ledger, data: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        w.plan(w.prefix(4), **PRICE).release(data, ledger=book, purpose="x")
    assert charges(book) == 0


@pytest.mark.parametrize("odd", [None, 3.5, float("nan"), "3", True, 2**70, -(10**400), Decimal("1e99"), [3]], ids=repr)
def test_no_count_of_a_list_is_refused_whatever_it_is(book: Ledger, odd: Any) -> None:
    plan = w.plan(w.prefix(4), **PRICE)
    plan.release([1, 2, 3, odd], ledger=book, purpose="x")
    assert charges(book) == 1
    with pytest.raises(MismatchedDomainError):
        plan.release([1, 2, odd], ledger=book, purpose="x")


def test_no_count_of_an_array_is_too_large() -> None:
    measure = w.plan(w.identity(2), **PRICE, total=2**40).measurement.strategy.measure
    assert measure(np.array([2**64 - 1, 1], np.uint64)).tolist() == measure([2**63 - 1, 1]).tolist()


def test_a_ledger_that_protects_something_else_is_refused(tmp_path: Path) -> None:
    terms: dict[str, Any] = {"budget": Budget(3, 1e-5), "unit": user("id"), "dataset": "visits"}
    with Ledger.open(tmp_path / "b.ledger", **terms) as book:
        with pytest.raises(InvalidParameterError, match="plan protects one row") as refusal:
            w.plan(w.prefix(4), **PRICE).release([1, 2, 3, 4], ledger=book, purpose="x")
        assert "contribution" in refusal.value.fix
        assert charges(book) == 0
        plan = w.plan(w.prefix(4), **PRICE, unit=book.unit, contribution=4)
        plan.release([1, 2, 3, 4], ledger=book, purpose="x", bits=seeded(6))
        assert charges(book) == 1


def test_a_budget_that_is_gone_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    terms: dict[str, Any] = {"budget": Budget(0.5, 1e-6), "unit": rows(), "dataset": "visits"}
    with Ledger.open(tmp_path / "c.ledger", **terms) as book:
        with pytest.raises(BudgetExceededError):
            w.plan(w.prefix(4), **PRICE).release([1, 2, 3, 4], ledger=book, purpose="x")
        assert charges(book) == 0


@pytest.mark.parametrize("codes", [np.zeros(3, np.int64), np.zeros((2, 2)), "abc", np.zeros((3, 0), np.int64)])
def test_records_are_tables_of_integers(codes: Any) -> None:
    with pytest.raises(UnfitDataError, match="two-dimensional"):
        w.records(codes)
