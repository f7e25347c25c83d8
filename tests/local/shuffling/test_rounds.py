import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local.shuffling.making import parties

from defocus.errors import DefocusError, EpsilonTooLargeError, InvalidParameterError, UnsupportedEventError
from defocus.ledger import Ledger
from defocus.local import oracle
from defocus.local.shuffling import Key, Round
from defocus.privacy import Budget, RandomizedResponse, Shuffled, rows


def test_a_round_travels_as_json_and_keeps_its_digest() -> None:
    described, _, _ = parties()
    again = Round.from_json(described.to_json())
    assert again == described
    assert again.digest == described.digest


def test_the_event_counts_on_the_threshold() -> None:
    described, _, _ = parties(users=500)
    assert described.event == Shuffled(RandomizedResponse(2, 5), 500)


def test_all_envelopes_are_equally_long() -> None:
    described, _, _ = parties()
    asked = oracle("k-rr", 4, 2)
    assert {len(e) for e in described.envelopes(asked.encode([0, 1, 2, 3]))} == {described.envelope_length}


def test_one_party_cannot_be_both() -> None:
    key = Key.generate().public
    with pytest.raises(InvalidParameterError, match="who says what"):
        Round(oracle("k-rr", 4, 2).design, 10, key, key)


def test_reports_of_another_design_are_refused() -> None:
    described, _, _ = parties()
    with pytest.raises(InvalidParameterError, match="another design"):
        described.envelopes(oracle("k-rr", 5, 2).encode([1]))


@given(text=st.text(max_size=60) | st.binary(max_size=60))
def test_what_is_no_description_is_refused(text: str | bytes) -> None:
    with pytest.raises(DefocusError):
        Round.from_json(text)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"users": 0},
        {"users": "9"},
        {"shuffler": "00"},
        {"analyser": "zz"},
        {"design": {}},
        {"format": 1},
    ],
)
def test_a_changed_description_is_refused(change: dict[str, object]) -> None:
    described, _, _ = parties()
    with pytest.raises(DefocusError):
        Round.from_json(json.dumps(json.loads(described.to_json()) | change))


def test_a_ledger_of_replaced_values_charges_a_round_and_one_of_persons_added_refuses(tmp_path: Path) -> None:
    described, _, _ = parties(users=5000)
    budget = Budget(1, 1e-6)
    kept = Ledger.open(tmp_path / "kept.sqlite", dataset="a poll", unit=rows(replace=True), budget=budget)
    for number in range(20):
        kept.charge(described.event, purpose=f"round {number}")
    assert 0.1 < kept.remaining().epsilon < 1
    other = Ledger.open(tmp_path / "other.sqlite", dataset="a poll", unit=rows(), budget=budget)
    with pytest.raises(UnsupportedEventError, match="replace=True"):
        other.charge(described.event, purpose="first round")


def test_a_device_has_a_limit_of_its_own_for_what_a_report_says_without_the_crowd() -> None:
    described, _, _ = parties(epsilon=2)
    assert Round.from_json(described.to_json(), at_most=2) == described
    with pytest.raises(EpsilonTooLargeError):
        Round.from_json(described.to_json(), at_most=1)
