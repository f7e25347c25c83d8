import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local.shuffling.making import parties, protocol_parties

from defocus.errors import DefocusError, EpsilonTooLargeError, InvalidParameterError, UnsupportedEventError
from defocus.ledger import Ledger
from defocus.local import oracle
from defocus.local.domains import Categories, Interval
from defocus.local.shuffling import (
    Crowds,
    Key,
    MultiMessageHistogram,
    MultiMessageSum,
    Round,
    protocol_from_json,
    protocol_to_json,
)
from defocus.local.shuffling.rounds import Protocol
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


PROTOCOLS: tuple[Protocol, ...] = (
    MultiMessageSum(Interval(Fraction(1, 3), 10), users=300, epsilon=1, delta=1e-6),
    MultiMessageHistogram(Categories.of(["a", "b"], outside="other"), users=300, epsilon=Fraction(3, 2), delta=1e-6),
    Crowds(16, users=300, epsilon=1, delta=1e-6, threshold=40),
)


@pytest.mark.parametrize("asked", PROTOCOLS, ids=lambda asked: type(asked).__name__)
def test_a_round_of_a_protocol_travels_and_charges_for_its_honest_users(asked: Protocol) -> None:
    described, _, _ = protocol_parties(asked, users=350)
    again = Round.from_json(described.to_json())
    assert again == described
    assert again.digest == described.digest
    assert again.event == asked.event
    assert again.honest == 300
    assert {len(again.report(value)) for value in (0, 1, "a", None, float("nan"), "é" * 40)} == {again.envelope_length}


@pytest.mark.parametrize("asked", PROTOCOLS, ids=lambda asked: type(asked).__name__)
def test_a_batch_of_fewer_users_than_a_protocol_counts_on_is_not_described(asked: Protocol) -> None:
    with pytest.raises(InvalidParameterError, match="counts on 300 honest users"):
        protocol_parties(asked, users=299)
    one, other = Key.generate().public, Key.generate().public
    with pytest.raises(InvalidParameterError, match="counts on 300 honest users"):
        Round(asked, 300, one, other, honest=200)


def test_users_on_the_other_side_are_not_counted_on() -> None:
    described, _, _ = parties(users=500)
    careful = Round(described.design, 500, described.shuffler, described.analyser, honest=400)
    assert careful.event == Shuffled(RandomizedResponse(2, 5), 400)
    assert Round.from_json(careful.to_json()) == careful
    assert careful.digest != described.digest
    with pytest.raises(InvalidParameterError, match="honest"):
        Round(described.design, 500, described.shuffler, described.analyser, honest=501)


def test_a_message_of_a_protocol_promises_nothing_by_itself() -> None:
    described, _, _ = protocol_parties(PROTOCOLS[0])
    with pytest.raises(EpsilonTooLargeError):
        Round.from_json(described.to_json(), at_most=100)
    with pytest.raises(InvalidParameterError, match="no single reports"):
        described.envelopes(oracle("k-rr", 5, 2).encode([1]))
    for messages in ((), (b"\0",), (b"\0",) * 9999, (b"\0\0",) * described.messages_per_user):
        with pytest.raises(InvalidParameterError, match="every device of this round sends"):
            described.enclosed(messages)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "mean"},
        {"users": 301},
        {"levels": 10**6},
        {"delta": 0},
        {"more": 1},
        {"domain": {"kind": "categories"}},
    ],
)
def test_a_changed_description_of_a_protocol_is_refused(change: dict[str, object]) -> None:
    described, _, _ = protocol_parties(PROTOCOLS[0])
    data = json.loads(described.to_json())
    data["protocol"] |= change
    with pytest.raises(DefocusError):
        Round.from_json(json.dumps(data))


def test_an_envelope_that_no_request_can_carry_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="more than 524288"):
        protocol_parties(MultiMessageSum(Interval(0, 1), users=100, epsilon=1, delta=1e-6, levels=4096))


@pytest.mark.parametrize("asked", PROTOCOLS, ids=lambda asked: type(asked).__name__)
def test_a_protocol_travels_by_itself(asked: Protocol) -> None:
    assert protocol_from_json(protocol_to_json(asked)) == asked
    for text in ("", "{}", "[]", protocol_to_json(asked).replace("users", "user")):
        with pytest.raises(DefocusError):
            protocol_from_json(text)
