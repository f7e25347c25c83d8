"""One way for a question to become an answer, whatever room asks it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from defocus.errors import BudgetExceededError, InvalidParameterError, NotDeclaredError, QuestionFailedError
from defocus.ledger import Ledger, Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Approximate, Event, Gaussian, Laplace
from defocus.privacy.units import rows
from defocus.release.answering import released


@pytest.fixture
def pure(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "pure.ledger", budget=Budget(1), unit=rows(), dataset="visits") as book:
        yield book


def ask(
    ledger: Ledger,
    event: Event | None = None,
    *,
    asked: Budget | None = None,
    facts: str = "f",
    request: str | None = None,
    calls: list[int] | None = None,
    problem: Exception | None = None,
) -> tuple[int, int]:
    """An answer is its number and the entry that paid for it."""
    seen = [] if calls is None else calls

    def compute(receipt: Receipt) -> tuple[int, int]:
        seen.append(len(ledger))
        if problem is not None:
            raise problem
        return 41 + len(seen), receipt.sequence

    def read(record: Any, receipt: Receipt) -> tuple[int, int]:
        return record["n"], receipt.sequence

    return released(
        compute,
        Laplace(10) if event is None else event,
        asked=Budget(0.1) if asked is None else asked,
        replan=lambda delta: Laplace(10) if not delta else Approximate(0.1, delta),
        ledger=ledger,
        question="how many?",
        facts=facts,
        purpose="count",
        who="Ada",
        request=request,
        written=lambda answer: {"n": answer[0]},
        read=read,
    )


def test_the_charge_is_there_before_anything_is_computed(ledger: Ledger) -> None:
    calls: list[int] = []
    assert ask(ledger, calls=calls) == (42, 1)
    assert calls == [2]
    assert ledger.remaining().epsilon == pytest.approx(2.9, rel=1e-6)


def test_a_failure_stays_charged(ledger: Ledger) -> None:
    with pytest.raises(QuestionFailedError, match=r"charged \(entry 1\)"):
        ask(ledger, problem=ValueError("private"))
    assert ledger.remaining().epsilon == pytest.approx(2.9, rel=1e-6)


def test_the_same_request_is_answered_again_for_nothing(ledger: Ledger) -> None:
    calls: list[int] = []
    first = ask(ledger, request="r", calls=calls)
    assert ask(ledger, request="r", calls=calls) == first
    assert len(calls) == 1
    assert ledger.remaining().epsilon == pytest.approx(2.9, rel=1e-6)


@pytest.mark.parametrize("other", [{"facts": "g"}, {"event": Laplace(20)}])
def test_a_kept_answer_to_another_question_or_with_other_noise_is_refused(ledger: Ledger, other: Any) -> None:
    ask(ledger, request="r")
    with pytest.raises(InvalidParameterError, match="another question or with other noise") as caught:
        ask(ledger, request="r", **other)
    assert caught.value.fix == "give the new request another name."


def test_a_question_that_does_not_fit_is_refused_before_any_charge_with_what_would(pure: Ledger) -> None:
    calls: list[int] = []
    with pytest.raises(BudgetExceededError):
        ask(pure, Laplace(0.5), asked=Budget(2), calls=calls)
    assert not calls
    assert len(pure) == 1


def test_a_delta_is_not_taken_where_the_budget_has_none(pure: Ledger) -> None:
    with pytest.raises(NotDeclaredError, match="has no delta") as caught:
        ask(pure, Gaussian(100), asked=Budget(0.1, 1e-6))
    assert caught.value.fix.startswith("leave delta= out")


def test_noise_is_paid_as_the_pair_that_was_asked_for_where_only_that_fits_and_recalled_as_the_same(
    ledger: Ledger,
) -> None:
    ledger.charge(Approximate(0.5, 5e-7), purpose="before")
    asked = Budget(2.4, 5e-7)
    first = ask(ledger, Gaussian(2), asked=asked, request="all")
    assert not ledger.admits(Laplace(2))
    recalled = ledger.recall("all")
    assert recalled is not None
    assert recalled.receipt.event == Approximate(2.4, 5e-7)
    assert ask(ledger, Gaussian(2), asked=asked, request="all") == first
