"""Who approved a charge, what was tuned on raw data, and charges for one purpose only."""

from pathlib import Path

import pytest

from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger
from defocus.ledger.entries import TUNING
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Laplace
from defocus.privacy.units import user


def opened(home: Path, **more: object) -> Ledger:
    where = home / "a.ledger"
    return Ledger.open(where, budget=Budget(10), unit=user("patient"), dataset="visits", **more)  # type: ignore[arg-type]


def test_a_charge_says_who_approved_it_and_others_say_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as book:
        book.charge(Laplace(2), purpose="a count", who="Ada")
        book.approved("Olga").about().data("visits").charge(Laplace(2), purpose="a count", who="Ada")
        first, second = list(book.entries())[1:]
        assert "approved_by" not in first.content
        assert second.content["approved_by"] == "Olga"
        assert book.verify().ok
        for bad in ("", "a\nb", "x" * 300):
            with pytest.raises(InvalidParameterError):
                book.approved(bad)
    with opened(tmp_path) as again:  # every link is checked
        assert len(again) == 3
        assert "approved by Olga" in str([str(cell) for cell in again.table().columns[4].cells])


def test_a_charge_with_another_approver_is_another_entry(tmp_path: Path) -> None:
    with opened(tmp_path) as book:
        book.approved("Olga").charge(Laplace(2), purpose="a count")
        entry = list(book.entries())[1]
    altered = entry.body.replace("Olga", "Otto")
    assert altered != entry.body
    assert entry.hash not in altered


def test_tuning_is_an_entry_that_costs_nothing_and_is_verified(tmp_path: Path) -> None:
    with opened(tmp_path) as book:
        before = book.spent()
        entry = book.note_tuning("stays are cut at 30 days", why="the 99th percentile", who="Ada")
        receipt = book.charge(Laplace(2), purpose="a count")
        assert (entry.kind, receipt.sequence) == (TUNING, 2)
        assert book.spent() != before
        assert book.verify().ok
        assert "not protected" in str([str(cell) for cell in book.table().columns[4].cells])
        with pytest.raises(InvalidParameterError):
            book.note_tuning("", why="x")
    with opened(tmp_path) as again:
        assert [each.kind for each in again.entries()] == ["genesis", "tuning", "charge"]


def test_what_was_paid_under_a_name_is_found_whether_answered_or_not(tmp_path: Path) -> None:
    with opened(tmp_path) as book:
        first = book.charge(Laplace(2), purpose="a count", request="May")
        assert book.paid("May") == first
        assert book.recall("May") is None
        book.record(first, 3, keep=True)
        second = book.charge(Laplace(2), purpose="a count", request="May")
        assert book.paid("May") == second
        assert book.paid("June") is None
        other = book.data("lab", unit=user("patient"))
        assert other.paid("May") is None


def test_a_ledger_for_one_purpose_is_charged_for_no_other(tmp_path: Path) -> None:
    with opened(tmp_path, purposes=["research", "planning"]) as book:
        research = book.only_for("research")
        assert research.purposes == ("research",)
        assert research.purpose_of(None, "") == "research"
        research.charge(Laplace(2), purpose="research")
        for each in (research, research.about(), research.approved("Olga")):
            with pytest.raises(InvalidParameterError, match="named purposes only"):
                each.charge(Laplace(2), purpose="planning")
        with pytest.raises(InvalidParameterError, match="named purposes only"):
            book.only_for("sale")
        with pytest.raises(InvalidParameterError, match="named purposes only"):
            research.only_for("planning")
        assert len(book) == 2
