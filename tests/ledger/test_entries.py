import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import LedgerDamagedError
from defocus.ledger.entries import CHARGE, NO_HASH, Entry, amounts_in, amounts_out, canonical, digest, read_body

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
