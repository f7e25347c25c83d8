import dataclasses
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus import mechanisms
from defocus.errors import InvalidParameterError, LedgerDamagedError
from defocus.ledger.entries import (
    CHARGE,
    NO_HASH,
    Entry,
    amounts_in,
    amounts_out,
    canonical,
    digest,
    fingerprint,
    plain,
    read_body,
    stored_event,
)
from defocus.privacy.events import Event, Gaussian, Laplace, Pure, Sampled, compose
from defocus.privacy.wire import from_wire

amounts = st.lists(st.floats(0, 1e9) | st.just(math.inf), max_size=4).map(tuple)


@given(who=st.text(), spent=amounts, cost=amounts, sequence=st.integers(0, 10**9))
def test_an_entry_is_read_back_as_it_was_written(
    who: str, spent: tuple[float, ...], cost: tuple[float, ...], sequence: int
) -> None:
    content = {"event": {"kind": "Pure", "epsilon": 1}, "cost": amounts_out(cost), "request": None}
    entry = Entry(sequence, CHARGE, "2026-01-01", who, "why", NO_HASH, spent, content)
    again = read_body(entry.body)
    assert again.body == entry.body
    assert again.hash == entry.hash
    assert again.spent == spent
    assert amounts_in(again.content["cost"]) == cost
    assert entry.to_dict()["hash"] == entry.hash


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sequence", 8),
        ("time", "later"),
        ("who", "Eve"),
        ("purpose", "other"),
        ("previous", "f" * 64),
        ("spent", (0.5,)),
    ],
)
def test_every_field_changes_the_hash(field: str, value: Any) -> None:
    entry = Entry(7, CHARGE, "2026", "Ada", "why", NO_HASH, (1.0,), {"event": {}, "cost": [1.0], "request": None})
    assert dataclasses.replace(entry, **{field: value}).hash != entry.hash
    for part, other in (("event", {"kind": "x"}), ("cost", [2.0]), ("request", "r")):
        assert dataclasses.replace(entry, content=dict(entry.content) | {part: other}).hash != entry.hash


def test_the_hash_of_a_known_body_never_changes() -> None:
    assert digest('{"a":1}') == "f3d46d41ed3b4f4aa2f80619f99440efd0e0180a8487fb10548e285d9ba7ced1"


def test_bodies_are_ascii_so_that_every_database_keeps_them() -> None:
    assert canonical({"who": "患者 \ud800"}).isascii()


@pytest.mark.parametrize(
    "body", [None, 3, b"{}", "", "{", "[1]", '{"kind":["charge"]}', '{"a":1e999}', '{"a":1,"a":1}']
)
def test_what_is_no_entry_is_refused(body: Any) -> None:
    with pytest.raises(LedgerDamagedError, match="To fix"):
        read_body(body)


@pytest.mark.parametrize("value", [None, "x", [True], ["1"], [-1.0], [math.nan], [1e308], {}])
def test_amounts_are_lists_of_numbers_of_at_least_zero(value: Any) -> None:
    with pytest.raises(LedgerDamagedError):
        amounts_in(value)


def test_infinite_amounts_are_null_in_json() -> None:
    assert json.dumps(amounts_out((1.0, math.inf))) == "[1.0, null]"


@dataclass(frozen=True)
class Pair:
    left: int
    right: Any


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_equal_values_have_equal_digests_in_any_container(values: list[int]) -> None:
    assert fingerprint(values) == fingerprint(tuple(values)) == fingerprint(np.array(values, dtype=np.int64))


@given(st.integers(), st.integers())
def test_different_numbers_have_different_digests(a: int, b: int) -> None:
    assert (fingerprint(a) == fingerprint(b)) == (a == b)


def test_what_is_kept_is_json() -> None:
    kept = plain({"a": Pair(1, np.float64(0.5)), "b": (Fraction(1, 3), None, True, np.int32(4))})
    assert kept == {"a": {"left": 1, "right": 0.5}, "b": ["1/3", None, True, 4]}


ODD = [object(), {1: 2}, b"x", float("nan"), float("inf"), {1}]


@pytest.mark.parametrize(
    "value", [*ODD, pytest.param("x" * (1 << 21), id="2 MiB"), pytest.param(10**5000, id="5001 digits")]
)
def test_what_cannot_be_kept_is_refused_but_still_has_a_digest(value: Any) -> None:
    with pytest.raises(InvalidParameterError, match="keep=True"):
        plain(value)
    assert len(fingerprint(value)) == 64


def test_nesting_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidParameterError, match="nested"):
        plain(endless)
    assert len(fingerprint(endless)) == 64


@pytest.mark.parametrize("event", [Pure(0.1), Laplace(Fraction(1, 3)), 7 * Sampled(Gaussian(1.5), 0.01) + Pure(1)])
def test_what_is_stored_reads_back_as_the_same_event(event: Event) -> None:
    assert from_wire(json.loads(json.dumps(stored_event(event)))) == event


def test_an_event_of_a_foreign_class_is_refused() -> None:
    class Mine(Event):
        pass

    with pytest.raises(InvalidParameterError, match="not an event a ledger can store"):
        stored_event(Mine())


def test_an_endless_event_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="several parts"):
        stored_event(compose(Pure(Fraction(1, 10**80 + n)) for n in range(12_000)))


def test_a_mechanism_in_place_of_its_event_is_named_as_one() -> None:
    with pytest.raises(InvalidParameterError, match="got the mechanism Laplace") as refusal:
        stored_event(mechanisms.Laplace(scale=2))
    assert "mechanism.event" in refusal.value.fix
    with pytest.raises(InvalidParameterError, match="got the class Laplace"):
        stored_event(Laplace)
