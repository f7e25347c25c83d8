"""After a charge: silence, withheld reasons, and what a ledger cannot note is not lost."""

import warnings
from typing import Any

import pytest

from defocus.errors import (
    DefocusError,
    EngineError,
    InvalidParameterError,
    MissingExtraError,
    NotRecordedError,
    QuestionFailedError,
)
from defocus.ledger import Ledger, Receipt
from defocus.privacy.events import Laplace
from defocus.release.settling import noted, settled


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
