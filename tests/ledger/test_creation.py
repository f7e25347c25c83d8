"""What a ledger is opened with: a place, terms that stay as they are, patience, and whether to write."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from defocus.errors import (
    InvalidParameterError,
    LedgerMismatchError,
    LedgerUnavailableError,
)
from defocus.ledger import Ledger
from defocus.ledger.creation import anchor_file_of, place_of
from defocus.ledger.sqlite import SqliteFile
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Approximate, Laplace
from defocus.privacy.units import rows, user


@pytest.mark.parametrize("budget", [Budget(1e-6, 0.9), Budget(1, 0.5)])
def test_no_ledger_is_made_for_a_budget_that_promises_nothing(tmp_path: Path, budget: Budget) -> None:
    with pytest.raises(InvalidParameterError, match="may be broken altogether"):
        Ledger.open(tmp_path / "a", dataset="visits", unit=rows(), budget=budget)
    assert not (tmp_path / "a").exists()


Opener = Callable[..., Ledger]


def test_a_link_is_followed_once_when_the_ledger_is_opened(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    place = place_of(tmp_path / "link" / "a.ledger", timeout=1, read_only=False)
    assert isinstance(place, SqliteFile)
    assert place.path == tmp_path / "real" / "a.ledger"


@pytest.mark.parametrize("path", [3, "", b"a", "a\0b"])
def test_an_anchor_file_must_be_a_path(path: Any) -> None:
    with pytest.raises(InvalidParameterError, match="anchor_file"):
        anchor_file_of(path, SqliteFile(Path("a.ledger"), 1.0), "a.ledger")


@pytest.mark.parametrize("path", ["missing/anchor", ".", pytest.param("x" * 5000, id="long")])
def test_an_anchor_file_needs_a_directory(tmp_path: Path, path: str) -> None:
    with pytest.raises(LedgerUnavailableError, match="To fix"):
        anchor_file_of(tmp_path / path, SqliteFile(tmp_path / "a.ledger", 1.0), tmp_path / "a.ledger")


def test_a_ring_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(LedgerUnavailableError, match="To fix"):
        place_of(tmp_path / "a" / "x.ledger", timeout=1, read_only=False)


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


def test_who_makes_a_ledger_may_choose_how_releases_are_added_up(opened: Opener) -> None:
    ledger = opened(budget=Budget(1, 1e-6), filter="basic")
    for _ in range(10):
        ledger.charge(Approximate(Fraction(1, 10), 1e-7), purpose="find groups")
    assert ledger.terms.filter == "basic/1"
    assert opened(filter="Basic", budget=None).terms.filter == "basic/1"
    assert opened(filter=None, budget=None).terms.filter == "basic/1"
    with pytest.raises(LedgerMismatchError, match="filter: the ledger has basic, you gave union"):
        opened(budget=None, filter="union")
