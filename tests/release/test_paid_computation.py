"""One way to charge for a computation on private values, whatever room asks for it."""

import hashlib
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
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
    ReleaseFailedError,
)
from defocus.ledger import Ledger, Receipt
from defocus.mechanisms import Laplace as Noise
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Approximate, Event, Gaussian, Laplace
from defocus.privacy.units import rows
from defocus.release import release
from defocus.release.charge import spendable
from defocus.release.paid_computation import perform, silence


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

    return perform(
        Laplace(10) if event is None else event,
        compute,
        ledger=ledger,
        purpose="count",
        description="how many?",
        written=lambda answer: {"n": answer[0]},
        read=read,
        facts=facts,
        who="Ada",
        request=request,
        asked=Budget(0.1) if asked is None else asked,
        replan=lambda delta: Laplace(10) if not delta else Approximate(0.1, delta),
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


def test_an_answer_that_an_older_version_kept_has_its_facts_within(ledger: Ledger) -> None:
    digest = hashlib.sha256(b"f").hexdigest()
    receipt = ledger.charge(Laplace(10), purpose="count", request="r")
    ledger.record(receipt, {"n": 5, "facts": digest}, keep=True)
    assert ask(ledger, request="r") == (5, 1)
    with pytest.raises(InvalidParameterError, match="another question"):
        ask(ledger, request="r", facts="g")


def test_an_answer_of_a_mechanism_is_not_taken_for_that_of_a_question(ledger: Ledger) -> None:
    release(Noise(scale=10), 7, ledger=ledger, purpose="count", request="r")
    with pytest.raises(InvalidParameterError, match="another question"):
        ask(ledger, request="r")


def test_a_question_that_does_not_fit_is_refused_before_any_charge_with_what_would(pure: Ledger) -> None:
    calls: list[int] = []
    with pytest.raises(BudgetExceededError):
        ask(pure, Laplace(0.5), asked=Budget(2), calls=calls)
    assert not calls
    assert len(pure) == 1


def test_a_delta_is_not_taken_where_the_budget_has_none(pure: Ledger) -> None:
    with pytest.raises(NotDeclaredError, match="has no delta") as caught:
        spendable(0.1, 1e-6, pure)
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


def settle(ledger: Ledger, problem: BaseException | None = None, **more: Any) -> str:
    def compute(paid: Receipt) -> str:
        warnings.warn("the largest value is 12", stacklevel=1)
        if problem is not None:
            raise problem
        return f"paid by {paid.sequence}"

    return str(
        perform(
            Laplace(20), compute, ledger=ledger, purpose="count", description="two", written=lambda _: [1, 2], **more
        )
    )


def test_what_is_computed_is_returned_without_a_warning(ledger: Ledger) -> None:
    assert settle(ledger) == "paid by 1"


@pytest.mark.parametrize(
    "problem",
    [ValueError("ada is ill"), MemoryError("12"), InvalidParameterError("ada", fix="b"), BaseException("ada panics")],
)
def test_a_failure_is_withheld_and_attached_to_nothing(ledger: Ledger, problem: BaseException) -> None:
    with pytest.raises(QuestionFailedError, match="may depend on private values") as caught:
        settle(ledger, problem)
    assert "ada" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_room_words_its_own_failure_and_is_told_the_charge(ledger: Ledger) -> None:
    def failed(charge: int, why: str) -> DefocusError:
        return ReleaseFailedError(charge=charge, mechanism=why[:10])

    with pytest.raises(ReleaseFailedError, match=r"The reason .*\(entry 1\)"):
        settle(ledger, ValueError("ada"), failed=failed)


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (EngineError("The engine ran out of memory.", fix="wait."), "ran out of memory"),
        (MissingExtraError("Counting", package="numba", extra="graph"), "needs the package numba"),
    ],
)
def test_what_we_worded_ourselves_about_the_machine_is_told(ledger: Ledger, problem: Exception, told: str) -> None:
    with pytest.raises(QuestionFailedError, match=told) as caught:
        settle(ledger, problem)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(("stop", "left"), [(KeyboardInterrupt, ()), (SystemExit, (1,))])
def test_who_interrupts_is_told_that_the_charge_stays(
    ledger: Ledger, stop: type[BaseException], left: tuple[int, ...]
) -> None:
    with pytest.raises(stop) as stopped:
        settle(ledger, stop("ada"), what="fit")
    assert stopped.value.__notes__ == ["The fit was charged (entry 1) before it was interrupted; that stays."]
    assert stopped.value.__context__ is None
    assert stopped.value.args == left


def test_what_is_shown_is_noted_and_kept_under_the_name_of_the_request(ledger: Ledger) -> None:
    settle(ledger)
    assert list(ledger.entries())[-1].content["value"] is None
    settle(ledger, request="one")
    recalled = ledger.recall("one")
    assert recalled is not None
    assert recalled.value == [1, 2]
    settle(ledger, request="one")  # nothing reads it: it is charged again
    assert len(ledger) == 7


def test_what_cannot_be_computed_is_refused_before_the_charge_and_what_is_recalled_is_not_checked(
    ledger: Ledger,
) -> None:
    def refuse() -> None:
        raise InvalidParameterError("No number.", fix="pass one.")

    more: dict[str, Any] = {"request": "one", "read": lambda kept, _: str(kept)}
    with pytest.raises(InvalidParameterError, match="No number"):
        settle(ledger, check=refuse, **more)
    assert len(ledger) == 1
    settle(ledger, **more)
    assert settle(ledger, check=refuse, **more) == "[1, 2]"


def test_what_cannot_be_noted_is_handed_over(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any, **_named: Any) -> None:
        raise InvalidParameterError("The disk is full.", fix="make room.")

    monkeypatch.setattr(Ledger, "record", refuse)
    with pytest.raises(NotRecordedError, match="disk is full") as caught:
        settle(ledger)
    assert caught.value.release == "paid by 1"


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


def test_one_bar_shows_that_it_is_at_work_unless_the_computation_has_its_own(
    pure: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    bars: list[str] = []

    @contextmanager
    def bar(progress: object, doing: str = "computing") -> Iterator[None]:
        assert progress is None
        bars.append(f"{doing} begins")
        yield
        bars.append("is gone")

    monkeypatch.setattr("defocus.release.paid_computation.shown", bar)
    ask(pure, request="r")
    assert bars == ["computing begins", "is gone"]
    ask(pure, request="r")  # recalled
    with pytest.raises(QuestionFailedError):
        ask(pure, problem=ValueError("a private value"))
    assert len(bars) == 4  # also where it fails
