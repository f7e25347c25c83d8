"""An entry that somebody adds from outside, hashed and linked as it should be, can only ever spend."""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from defocus.errors import LedgerDamagedError
from defocus.ledger import Ledger, Parts, verify
from defocus.ledger.entries import canonical, digest
from defocus.ledger.parts import key_of
from defocus.privacy.events import Pure
from defocus.privacy.units import rows

Opener = Callable[..., Ledger]
Tampering = Callable[..., None]
DIVIDED: dict[str, Any] = {"unit": rows(), "parts": Parts("day", "text", "rows")}


def charged(ledger: Ledger, *parts: str) -> Ledger:
    """With a fifth of the budget spent on everybody, and a fifth on the parts."""
    for labels in ((), parts):
        ledger.charge(Pure(Fraction(1, 5)), purpose="a fifth", parts=labels)
    return ledger


def append(ledger: Ledger, tampering: Tampering, change: dict[str, Any]) -> None:
    """Add the newest charge once more, changed."""
    number, body = len(ledger), json.loads(list(ledger.entries())[-1].body)
    text = canonical(body | {"sequence": number, "previous": ledger.anchor().hash} | change)
    tampering(
        "INSERT INTO ledger_entries (sequence, hash, kind, body) VALUES (:number, :hash, 'charge', :body)",
        *["INSERT INTO ledger_parts (part, sequence) VALUES (:part, :number)"] * len(body.get("parts", ())),
        "UPDATE ledger_head SET sequence = :number, hash = :hash",
        number=number,
        hash=digest(text),
        body=text,
        part=key_of("Monday"),
    )


def tally(common: float, heaviest: float) -> dict[str, Any]:
    return {"tally": {"common": [0.0, common], "heaviest": [0.0, heaviest], "parts": 1}}


@pytest.mark.parametrize(
    "change",
    [{"spent": [0.0, 0.0]}, {"spent": [0.0]}, {"spent": []}, {"spent": ["0"]}, tally(0.0, 0.0) | {"parts": {}}],
)
def test_it_gives_nothing_back(opened: Opener, tampering: Tampering, change: dict[str, Any]) -> None:
    append(charged(opened()), tampering, change)
    for options in ({}, {"read_only": True}):
        with pytest.raises(LedgerDamagedError):
            opened(**options)


@pytest.mark.parametrize(
    "change", [tally(0.0, 0.2), tally(0.2, 0.0), {"parts": {"Monday": [0.0, 0.1]}}, {"spent": [0.0, 0.3]}]
)
def test_it_gives_nothing_back_to_a_part(opened: Opener, tampering: Tampering, change: dict[str, Any]) -> None:
    append(charged(opened(**DIVIDED), "Monday"), tampering, change)
    with pytest.raises(LedgerDamagedError, match=r"Entry 3 of .* less was spent"):
        opened(**DIVIDED)


def test_it_can_spend_and_a_wrong_price_is_found_by_a_look_at_everything(
    opened: Opener, tampering: Tampering, where: str
) -> None:
    append(charged(opened()), tampering, {"spent": [0.0, 0.9]})
    assert opened().spent() == (0.0, 0.9)
    assert "does not carry the sum" in str(verify(where))


def test_the_head_is_the_last_entry_also_for_readers(opened: Opener, tampering: Tampering) -> None:
    charged(opened())
    tampering(
        "UPDATE ledger_head SET sequence = 0, hash = (SELECT hash FROM ledger_entries WHERE sequence = 0) WHERE one = 1"
    )
    for options in ({}, {"read_only": True}):
        with pytest.raises(LedgerDamagedError, match="ends at entry 2, but its head is elsewhere"):
            opened(**options)
