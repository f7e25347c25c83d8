import json
from typing import Any

import pytest

from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger
from defocus.ledger.store import Store
from defocus.mechanisms import Grid, Laplace
from defocus.release import preview


def test_a_preview_is_free_and_says_error_cost_and_whether_it_fits(ledger: Ledger) -> None:
    before = ledger.anchor()
    found = preview(Laplace(scale=2), ledger=ledger, grid=Grid("0.5"))
    assert found.error == Laplace(scale=2).error / 2
    assert found.interval == 3
    assert found.fits is True
    assert ledger.anchor() == before
    text = str(found)
    for words in (
        "Laplace(scale=2",
        "0.96 (± 3.0)",
        "expected absolute error",
        "with 95 % probability",
        "epsilon 0.5",
        "covers it",
    ):
        assert words in text


def test_a_preview_looks_at_the_ledger_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, real = [], Store.connection

    def counted(store: Store, **how: Any) -> Any:
        looked.append(how)
        return real(store, **how)

    monkeypatch.setattr(Store, "connection", counted)
    assert preview(Laplace(scale=2), ledger=ledger).fits
    assert looked == [{"write": False}]


def test_a_preview_of_too_much_says_that_it_does_not_fit(ledger: Ledger) -> None:
    found = preview(Laplace(scale=0.1), ledger=ledger)
    assert found.fits is False
    assert "does not cover it" in str(found)


def test_a_preview_needs_no_ledger() -> None:
    found = preview(Laplace(scale=2), confidence=0.99)
    assert (found.promise, found.fits, found.remaining) == (None, None, None)
    assert found.interval == Laplace(scale=2).interval(0.99)
    assert "with 99 % probability" in str(found)
    assert "as an event: discrete_laplace(2)" in found.explain()
    assert "<table>" in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict()))["event"] == "discrete_laplace(2)"


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, float("nan"), "0.9", True])
def test_a_confidence_must_lie_between_zero_and_one(confidence: Any) -> None:
    with pytest.raises(InvalidParameterError, match="confidence"):
        preview(Laplace(scale=2), confidence=confidence)


@pytest.mark.parametrize("mechanism", [None, Laplace, 3])
def test_a_preview_needs_a_mechanism(mechanism: Any) -> None:
    with pytest.raises(InvalidParameterError, match="mechanism"):
        preview(mechanism)
