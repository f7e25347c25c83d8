"""Charging: what fits is charged and stays, what does not is refused, whoever asks at once."""

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.errors import (
    BudgetExceededError,
    InvalidParameterError,
)
from defocus.ledger import Ledger, entries, verify
from defocus.ledger.filter import Guard
from defocus.privacy.budgets import Budget
from defocus.privacy.events import NOTHING, Approximate, DiscreteLaplace, Event, Laplace, Pure
from defocus.privacy.units import rows

Opener = Callable[..., Ledger]


def fits(ledger: Ledger, event: Event, most: int = 1000) -> int:
    """How often the filter admits ``event``, asked of the filter and not of the ledger."""
    guard = Guard.of(ledger.terms)
    spent, times = guard.start, 0
    while times < most and guard.admits(spent, event):
        spent, times = guard.add(spent, guard.cost(event)), times + 1
    return times


def test_a_charge_gives_a_receipt_and_is_there_when_the_ledger_is_opened_again(opened: Opener) -> None:
    ledger = opened()
    receipt = ledger.charge(Laplace(4), purpose="number of visits", who="Ada")
    ledger.close()
    again = opened()
    (genesis, entry) = again.entries()
    assert (genesis.kind, entry.kind, entry.who, entry.purpose) == ("genesis", "charge", "Ada", "number of visits")
    assert entry.hash == receipt.hash
    assert entry.spent == again.spent() == receipt.spent
    assert again.events() == Laplace(4)


def test_exactly_as_many_charges_are_admitted_as_the_filter_allows(opened: Opener) -> None:
    ledger = opened(budget=Budget(1))
    expected = fits(ledger, Pure(Fraction(1, 8)))
    assert expected == 8
    for _ in range(expected):
        ledger.charge(Pure(Fraction(1, 8)), purpose="slice")
    with pytest.raises(BudgetExceededError):
        ledger.charge(Pure(Fraction(1, 8)), purpose="one too many")


def test_a_refusal_gives_requested_remaining_and_difference_and_charges_nothing(opened: Opener) -> None:
    ledger = opened(budget=Budget(1))
    ledger.charge(Pure(Fraction(3, 4)), purpose="most of it")
    before = (ledger.anchor(), ledger.spent())
    with pytest.raises(BudgetExceededError) as refused:
        ledger.charge(Pure(Fraction(1, 2)), purpose="too much")
    assert refused.value.requested == pytest.approx(0.5)
    assert refused.value.remaining == pytest.approx(0.25)
    assert refused.value.difference == pytest.approx(0.25)
    for word in ("requested", "remaining", "difference", "To fix"):
        assert word in str(refused.value)
    assert (ledger.anchor(), ledger.spent()) == before
    assert ledger.verify().ok
    assert pickle.loads(pickle.dumps(refused.value)).remaining == refused.value.remaining  # noqa: S301  # our own


def test_nothing_costs_nothing(opened: Opener) -> None:
    ledger = opened()
    ledger.charge(NOTHING, purpose="a dry run")
    assert ledger.spent() == Guard.of(ledger.terms).start
    assert ledger.verify().ok


@pytest.mark.parametrize("event", [None, 1.0, "laplace", Laplace, object()])
def test_only_events_are_charged(opened: Opener, event: Any) -> None:
    ledger = opened()
    with pytest.raises(InvalidParameterError, match="an event"):
        ledger.charge(event, purpose="wrong")
    assert len(ledger) == 1


def test_an_event_that_cannot_be_stored_exactly_is_refused(opened: Opener) -> None:
    ledger = opened()
    for scale in (10**5000, Fraction(10**5000, 3)):
        with pytest.raises(InvalidParameterError, match="To fix"):
            ledger.charge(DiscreteLaplace(scale), purpose="odd numbers")
    assert len(ledger) == 1


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "  ",
        "line\nbreak",
        "tab\there",
        "\x1b[2Jgone",
        "nul\0",
        "\ud800",
        "turn \u202e around",
        "line\u2028separator",
        pytest.param("x" * 1_000_000, id="a million characters"),
        None,
        7,
        b"bytes",
    ],
)
def test_hostile_purposes_and_names_are_refused_with_a_remedy_and_nothing_is_charged(opened: Opener, bad: Any) -> None:
    ledger = opened()
    with pytest.raises(InvalidParameterError, match="To fix"):
        ledger.charge(Laplace(4), purpose=bad)
    if bad is not None:
        with pytest.raises(InvalidParameterError, match="To fix"):
            ledger.charge(Laplace(4), purpose="fine", who=bad)
        with pytest.raises(InvalidParameterError, match="To fix"):
            ledger.charge(Laplace(4), purpose="fine", request=bad)
    assert len(ledger) == 1


def test_the_clock_may_go_backwards(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened()
    ledger.charge(Laplace(10), purpose="now")

    class Yesterday(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> "Yesterday":
            return cls(1999, 12, 31, tzinfo=tz or UTC)

    monkeypatch.setattr(entries, "datetime", Yesterday)
    ledger.charge(Laplace(10), purpose="before now")
    found = ledger.verify()
    assert found.ok
    assert found.notes == ("the clock went back before entry 2",)


def test_a_ledger_is_not_pickled(opened: Opener) -> None:
    with pytest.raises(InvalidParameterError, match="open it there"):
        pickle.dumps(opened())


def test_threads_share_a_ledger_and_cannot_overspend(opened: Opener) -> None:
    ledger = opened(budget=Budget(1))
    start = threading.Barrier(8)

    def grab() -> int:
        start.wait()
        won = 0
        for _ in range(3):
            try:
                ledger.charge(Pure(Fraction(1, 10)), purpose="slice")
                won += 1
            except BudgetExceededError:
                pass
        return won

    with ThreadPoolExecutor(8) as pool:
        won = sum(future.result() for future in [pool.submit(grab) for _ in range(8)])
    assert won == fits(ledger, Pure(Fraction(1, 10)))
    assert ledger.verify().ok


def test_two_ledger_objects_on_one_place_see_each_other(opened: Opener) -> None:
    one, two = opened(), opened()
    one.charge(Pure(Fraction(1, 2)), purpose="half")
    assert two.spent() == one.spent()
    two.charge(Pure(Fraction(1, 2)), purpose="other half")
    with pytest.raises(BudgetExceededError):
        one.charge(Pure(Fraction(1, 100)), purpose="more")


def test_history_table_and_page_show_the_entries(opened: Opener) -> None:
    from rich.console import Console  # noqa: PLC0415

    ledger = opened()
    ledger.record(ledger.charge(Laplace(4), purpose="number of visits", who="Ada"), 17, keep=True)
    assert [row["kind"] for row in ledger.history()] == ["genesis", "charge", "release"]
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(ledger.table())
    text = console.export_text()
    console.file.close()
    for shown in (text, ledger._repr_html_()):
        assert "number of visits" in shown
        assert "Ada" in shown
        assert "17" in shown
    assert "visits" in repr(ledger)


def test_long_ledgers_are_read_in_batches(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened()
    for number in range(12):
        ledger.charge(Pure(Fraction(1, 100)), purpose=f"step {number}")
    monkeypatch.setattr("defocus.ledger.ledger._BATCH", 5)
    monkeypatch.setattr("defocus.ledger.verification._BATCH", 5)
    assert [entry.sequence for entry in ledger.entries()] == list(range(13))
    assert ledger.verify().entries == 13


def test_the_fixed_sequence_bound_is_labelled_and_not_above_the_sum(opened: Opener) -> None:
    ledger = opened(budget=Budget(10, 1e-6))
    for _ in range(5):
        ledger.charge(Laplace(1), purpose="count")
    bound = ledger.fixed_sequence()
    assert 0 < bound.epsilon <= 5
    assert bound.delta == 1e-6
    assert "fixed" in str(bound)
    assert ledger.fixed_sequence(0).epsilon == 5


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 40), max_size=6))
def test_spent_is_the_sum_of_the_costs_of_what_was_charged(steps: list[int]) -> None:
    import tempfile  # noqa: PLC0415

    with (
        tempfile.TemporaryDirectory() as home,
        Ledger.open(f"{home}/a", budget=Budget(1), unit=rows(), dataset="d") as ledger,
    ):
        guard = Guard.of(ledger.terms)
        expected = guard.start
        for step in steps:
            event = Pure(Fraction(step, 100))
            try:
                ledger.charge(event, purpose="step")
            except BudgetExceededError:
                assert not guard.admits(expected, event)
            else:
                expected = guard.add(expected, guard.cost(event))
        assert ledger.spent() == expected
        assert ledger.verify().ok


def test_verify_by_path_matches_verify_by_object(opened: Opener, where: str) -> None:
    ledger = opened()
    ledger.charge(Laplace(4), purpose="count")
    assert verify(where, ledger.anchor()).to_dict() == ledger.verify(ledger.anchor()).to_dict()


def test_a_first_release_may_spend_the_whole_budget_with_its_delta(opened: Opener) -> None:
    ledger = opened(budget=Budget(1, 1e-6))
    ledger.charge(Approximate(Fraction(1, 2), 5e-7), purpose="find groups")
    ledger.charge(Approximate(Fraction(1, 2), 5e-7), purpose="find groups again")
    assert str(ledger.remaining()) == "nothing"
    assert ledger.verify().ok
    with pytest.raises(BudgetExceededError):
        ledger.charge(Pure(0.01), purpose="one more")
