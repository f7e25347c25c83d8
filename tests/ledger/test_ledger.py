import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.errors import (
    BudgetExceededError,
    InvalidParameterError,
    LedgerDamagedError,
    LedgerMismatchError,
    LedgerUnavailableError,
)
from defocus.ledger import Anchor, Ledger, Receipt, entries, verify
from defocus.ledger.guards import Guard
from defocus.privacy.budgets import Budget
from defocus.privacy.events import NOTHING, Approximate, DiscreteLaplace, Event, Laplace, Pure, Sampled
from defocus.privacy.units import rows, user

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


def test_an_existing_ledger_opens_without_repeating_its_terms(opened: Opener) -> None:
    opened(budget=Budget(2, 1e-6), unit=user("patient", replace=True), dataset="visits 2026")
    ledger = opened(budget=None, unit=None, dataset=None)
    assert (ledger.budget, ledger.unit, ledger.dataset) == (
        Budget(2, 1e-6),
        user("patient", replace=True),
        "visits 2026",
    )


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"budget": Budget(2)}, "budget: the ledger has Budget(epsilon=1), you gave Budget(epsilon=2)"),
        ({"budget": Budget(1, 1e-9)}, "Budget(epsilon=1, delta=1e-09)"),
        ({"unit": rows()}, "unit: the ledger has everything about one patient, added or removed, you gave one row"),
        ({"unit": user("patient", replace=True)}, "replaced by another"),
        ({"dataset": "claims"}, "dataset: the ledger has visits, you gave claims"),
    ],
)
def test_opening_with_other_terms_is_refused_and_says_what_differs(
    opened: Opener, changed: dict[str, Any], named: str
) -> None:
    opened()
    with pytest.raises(LedgerMismatchError) as refused:
        opened(**changed)
    assert named in refused.value.what
    assert "a second budget" in refused.value.fix


@pytest.mark.parametrize("left_out", ["budget", "unit", "dataset"])
def test_a_new_ledger_needs_all_its_terms(opened: Opener, left_out: str) -> None:
    with pytest.raises(LedgerUnavailableError, match=f"give {left_out}= as well"):
        opened(**{left_out: None})
    with pytest.raises(LedgerUnavailableError, match="new ledger, give dataset=, unit= and budget="):
        opened(dataset=None, unit=None, budget=None)


@pytest.mark.parametrize("bad", [{"budget": 1.0}, {"unit": "patient"}, {"dataset": ""}, {"dataset": 3}])
def test_terms_of_the_wrong_kind_are_refused(opened: Opener, bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match="To fix"):
        opened(**bad)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "3", True])
def test_a_timeout_must_be_a_positive_number(opened: Opener, timeout: object) -> None:
    with pytest.raises(InvalidParameterError, match="timeout"):
        opened(timeout=timeout)


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


@pytest.mark.parametrize(
    "odd",
    [
        "'; DROP TABLE ledger_entries; --",
        "%s %(x)s :name {0} $1",
        "[bold red]markup[/]",
        "<script>alert(1)</script>",
        "患者数 für Zoë 👩‍⚕️",
        '"quotes" \\ and \\n slashes',
    ],
)
def test_odd_but_honest_text_is_stored_as_it_is_and_never_taken_for_code(opened: Opener, odd: str) -> None:
    ledger = opened()
    receipt = ledger.charge(Laplace(4), purpose=odd, who=odd, request=odd)
    ledger.record(receipt, odd, description=odd, keep=True)
    (_, charge, _) = ledger.entries()
    assert (charge.who, charge.purpose) == (odd, odd)
    recalled = ledger.recall(odd)
    assert recalled is not None
    assert recalled.value == odd
    assert "<script>" not in ledger._repr_html_()
    assert ledger.verify().ok


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


def test_a_release_is_linked_to_its_charge_and_a_charge_pays_for_one_only(opened: Opener) -> None:
    ledger = opened()
    receipt = ledger.charge(Laplace(4), purpose="count")
    entry = ledger.record(receipt, np.array([3, 4]), description="two counts")
    assert entry.content["charge"] == receipt.sequence
    assert entry.content["value"] is None
    assert len(entry.content["digest"]) == 64
    assert entry.spent == receipt.spent
    with pytest.raises(InvalidParameterError, match="already paid"):
        ledger.record(receipt, 5)
    assert ledger.verify().ok


def test_a_receipt_of_another_ledger_is_not_recorded(opened: Opener, tmp_path: Path) -> None:
    ledger, other = opened(), opened(where=str(tmp_path / "other.ledger"))
    receipt = other.charge(Laplace(4), purpose="elsewhere")
    ledger.charge(Laplace(4), purpose="here")
    with pytest.raises(InvalidParameterError, match="not given by this ledger"):
        ledger.record(receipt, 5)


def test_a_repeated_request_finds_the_recorded_answer(opened: Opener) -> None:
    ledger = opened()
    assert ledger.recall("visits by year") is None
    receipt = ledger.charge(Laplace(4), purpose="count", request="visits by year")
    assert ledger.recall("visits by year") is None
    ledger.record(receipt, [10, 20], keep=True)
    before = ledger.anchor()
    recalled = opened().recall("visits by year")
    assert recalled is not None
    assert recalled.value == [10, 20]
    assert recalled.receipt == receipt
    assert ledger.anchor() == before


def test_a_ledger_opened_for_reading_refuses_to_charge(opened: Opener) -> None:
    opened().charge(Laplace(4), purpose="count")
    reader = opened(read_only=True)
    assert len(reader) == 2
    assert reader.verify().ok
    with pytest.raises(LedgerUnavailableError, match="reading only"):
        reader.charge(Laplace(4), purpose="count")


def test_a_missing_ledger_is_not_made_by_opening_it_for_reading(opened: Opener) -> None:
    with pytest.raises(LedgerUnavailableError, match="no ledger"):
        opened(read_only=True)
    with pytest.raises(LedgerUnavailableError, match="no ledger"):
        opened(budget=None)


def test_a_closed_ledger_says_so(opened: Opener) -> None:
    with opened() as ledger:
        pass
    with pytest.raises(LedgerUnavailableError, match="closed"):
        ledger.spent()


def test_a_ledger_is_not_pickled(opened: Opener) -> None:
    with pytest.raises(InvalidParameterError, match="open it there"):
        pickle.dumps(opened())


def test_receipts_travel_between_processes(opened: Opener) -> None:
    receipt = opened().charge(Sampled(Laplace(4), 0.5), purpose="count")
    assert pickle.loads(pickle.dumps(receipt)) == receipt  # noqa: S301  # our own
    assert isinstance(receipt, Receipt)
    assert receipt.to_dict()["purpose"] == "count"


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


def test_readers_never_mistake_a_charge_made_meanwhile_for_an_older_copy(opened: Opener, tmp_path: Path) -> None:
    ledger = opened(anchor_file=tmp_path / "anchor", timeout=60)
    done = threading.Event()

    def read() -> int:
        seen = 0
        while not done.is_set():
            with opened(anchor_file=tmp_path / "anchor") as other:
                seen = max(seen, ledger.anchor().sequence, other.anchor().sequence)
        return seen

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for _ in range(15):
            ledger.charge(Pure(Fraction(1, 1000)), purpose="meanwhile")
        done.set()
        assert all(reader.result() <= 15 for reader in readers)


def test_two_ledger_objects_on_one_place_see_each_other(opened: Opener) -> None:
    one, two = opened(), opened()
    one.charge(Pure(Fraction(1, 2)), purpose="half")
    assert two.spent() == one.spent()
    two.charge(Pure(Fraction(1, 2)), purpose="other half")
    with pytest.raises(BudgetExceededError):
        one.charge(Pure(Fraction(1, 100)), purpose="more")


def test_an_anchor_file_follows_every_entry(opened: Opener, tmp_path: Path) -> None:
    file = tmp_path / "anchor"
    ledger = opened(anchor_file=file)
    receipt = ledger.charge(Laplace(4), purpose="count")
    assert str(receipt.anchor) in file.read_text()
    entry = ledger.record(receipt, 3)
    assert str(Anchor(entry.sequence, entry.hash)) in file.read_text()
    assert opened(anchor_file=file).verify().anchored


def test_a_missing_anchor_file_is_refused_once_the_ledger_exists(opened: Opener, tmp_path: Path) -> None:
    file = tmp_path / "anchor"
    opened(anchor_file=file)
    file.unlink()
    with pytest.raises(LedgerDamagedError, match="missing"):
        opened(anchor_file=file)
    opened().anchor().save(file)
    opened(anchor_file=file)


def test_an_anchor_file_without_its_ledger_stops_a_new_one_from_taking_its_place(
    opened: Opener, tmp_path: Path
) -> None:
    file = tmp_path / "anchor"
    Anchor(5, "ab" * 32).save(file)
    with pytest.raises(LedgerDamagedError, match="vouches for a ledger"):
        opened(anchor_file=file)


def test_the_anchor_of_another_ledger_is_noticed_at_opening_and_at_charging(opened: Opener, tmp_path: Path) -> None:
    file = tmp_path / "anchor"
    ledger = opened(anchor_file=file)
    Anchor(5, "ab" * 32).save(file)
    for act in (lambda: ledger.charge(Laplace(4), purpose="count"), lambda: opened(anchor_file=file), ledger.spent):
        with pytest.raises(LedgerDamagedError, match="older copy"):
            act()
    assert len(opened()) == 1


def test_a_charge_whose_anchor_cannot_be_written_stays_but_gives_no_receipt(opened: Opener, tmp_path: Path) -> None:
    ledger = opened(anchor_file=tmp_path / "anchor")
    (tmp_path / "anchor.new").mkdir()
    with pytest.raises(LedgerUnavailableError, match="already committed stays"):
        ledger.charge(Laplace(4), purpose="count")
    assert len(ledger) == 2


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


def test_who_makes_a_ledger_may_choose_how_releases_are_added_up(opened: Opener) -> None:
    ledger = opened(budget=Budget(1, 1e-6), by="basic")
    for _ in range(10):
        ledger.charge(Approximate(Fraction(1, 10), 1e-7), purpose="find groups")
    assert ledger.terms.filter == "basic/1"
    assert opened(by=None, budget=None).terms.filter == "basic/1"
    with pytest.raises(LedgerMismatchError, match="by: the ledger has basic, you gave union"):
        opened(budget=None, by="union")
