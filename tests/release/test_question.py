"""One way for a question to become an answer, whatever room asks it."""

import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.waiting import HANGS

from defocus.errors import (
    BudgetExceededError,
    DefocusError,
    EngineError,
    InvalidParameterError,
    MissingExtraError,
    NotDeclaredError,
    NotRecordedError,
    QuestionFailedError,
)
from defocus.ledger import Ledger, Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Approximate, Event, Gaussian, Laplace
from defocus.privacy.units import rows
from defocus.release.question import noted, released, settled, silence


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


@pytest.fixture
def receipt(ledger: Ledger) -> Receipt:
    return ledger.charge(Laplace(20), purpose="count", request="one")


def settle(receipt: Receipt, problem: BaseException | None = None) -> str:
    def compute(paid: Receipt) -> str:
        warnings.warn("the largest value is 12", stacklevel=1)
        if problem is not None:
            raise problem
        return f"paid by {paid.sequence}"

    def failed(why: str) -> DefocusError:
        return QuestionFailedError(charge=receipt.sequence, why=why)

    return settled(compute, receipt, failed=failed, what="question")


def test_what_is_computed_is_returned_without_a_warning(receipt: Receipt) -> None:
    assert settle(receipt) == "paid by 1"


@pytest.mark.parametrize(
    "problem", [ValueError("ada is ill"), MemoryError("12"), InvalidParameterError("ada", fix="b")]
)
def test_a_failure_is_withheld_and_attached_to_nothing(receipt: Receipt, problem: Exception) -> None:
    with pytest.raises(QuestionFailedError, match="may depend on private values") as caught:
        settle(receipt, problem)
    assert "ada" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (EngineError("The engine ran out of memory.", fix="wait."), "ran out of memory"),
        (MissingExtraError("Counting", package="numba", extra="graph"), "needs the package numba"),
    ],
)
def test_what_we_worded_ourselves_about_the_machine_is_told(receipt: Receipt, problem: Exception, told: str) -> None:
    with pytest.raises(QuestionFailedError, match=told) as caught:
        settle(receipt, problem)
    assert caught.value.__context__ is None


def test_who_interrupts_is_told_that_the_charge_stays(receipt: Receipt) -> None:
    with pytest.raises(KeyboardInterrupt) as stopped:
        settle(receipt, KeyboardInterrupt("ada"))
    assert stopped.value.__notes__ == ["The question was charged (entry 1) before it was interrupted; that stays."]
    assert stopped.value.__context__ is None
    assert stopped.value.args == ()


def test_what_is_shown_is_noted_and_kept_under_the_name_of_the_request(ledger: Ledger, receipt: Receipt) -> None:
    made = object()
    assert noted(made, [1, 2], receipt, ledger=ledger, description="two", keep=True) is made
    recalled = ledger.recall("one")
    assert recalled is not None
    assert recalled.value == [1, 2]


def test_what_cannot_be_noted_is_handed_over(ledger: Ledger, receipt: Receipt, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any, **_named: Any) -> None:
        raise InvalidParameterError("The disk is full.", fix="make room.")

    monkeypatch.setattr(Ledger, "record", refuse)
    with pytest.raises(NotRecordedError, match="disk is full") as caught:
        noted("answer", 3, receipt, ledger=ledger, description="", keep=False)
    assert caught.value.release == "answer"


def test_nothing_is_warned_of_inside_and_everything_is_as_before_outside() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        with silence():
            warnings.warn("the largest value is 12", stacklevel=1)
            assert np.isinf(np.array([1.0]) / 0).all()
        assert list(warnings.filters) == before
        assert not seen
        warnings.warn("public", stacklevel=1)
    assert [str(each.message) for each in seen] == ["public"]


def test_warnings_that_are_errors_are_silent_too_and_failures_end_the_silence() -> None:
    before = list(warnings.filters)

    def fail() -> None:
        with silence():
            warnings.warn("an error elsewhere", stacklevel=1)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(warnings.filters) == before


def test_no_thread_ends_the_silence_of_another() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        inside, ended = threading.Event(), threading.Event()

        def other() -> None:
            with silence():
                inside.set()
                ended.wait(HANGS)
                warnings.warn("private", stacklevel=1)

        with silence():
            thread = threading.Thread(target=other)
            thread.start()
            assert inside.wait(HANGS)
        ended.set()
        thread.join()
        assert list(warnings.filters) == before
    assert not seen


def test_filters_of_others_are_left_alone() -> None:
    with warnings.catch_warnings():
        warnings.resetwarnings()
        with silence():
            warnings.simplefilter("ignore")
        assert [each[:3] for each in warnings.filters] == [("ignore", None, Warning)]
