"""Releases are linked to what paid for them, and found again when they are asked for again."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from defocus.errors import (
    InvalidParameterError,
)
from defocus.ledger import Ledger, Receipt
from defocus.privacy.events import Laplace, Sampled

Opener = Callable[..., Ledger]


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


def test_receipts_travel_between_processes(opened: Opener) -> None:
    receipt = opened().charge(Sampled(Laplace(4), 0.5), purpose="count")
    assert pickle.loads(pickle.dumps(receipt)) == receipt  # noqa: S301  # our own
    assert isinstance(receipt, Receipt)
    assert receipt.to_dict()["purpose"] == "count"
