"""What a ledger is opened with: a place, terms that stay as they are, patience, and whether to write."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from defocus.engines import files, origins
from defocus.errors import (
    InvalidParameterError,
    LedgerMismatchError,
    LedgerUnavailableError,
)
from defocus.graphs import edge_files, edge_texts
from defocus.ledger import Ledger
from defocus.ledger.creation import DATA, anchor_file_of, beside, place_of
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


@pytest.mark.parametrize("said", [{}, {"dataset": "visits"}, {"read_only": True}])
def test_a_path_with_a_slip_leaves_no_file_behind(tmp_path: Path, said: dict[str, Any]) -> None:
    with pytest.raises(LedgerUnavailableError, match="There is no ledger"):
        Ledger.open(tmp_path / "visist.ledger", **said)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"budget": Budget(2)}, "budget: the ledger has Budget(epsilon=1), you gave Budget(epsilon=2)"),
        ({"budget": Budget(1, 1e-9)}, "Budget(epsilon=1, delta=1e-09)"),
        ({"unit": rows()}, "unit: the ledger has everything about one patient, added or removed, you gave one row"),
        ({"unit": user("patient", replace=True)}, "replaced by another"),
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


TERMS: dict[str, Any] = {"unit": rows(), "budget": Budget(1)}


def made(path: Path) -> Path:
    Ledger.open(path, dataset="some", **TERMS).close()
    return path


def test_a_ledger_is_called_after_the_file_the_folder_or_the_table(tmp_path: Path) -> None:
    (tmp_path / "days").mkdir()
    assert beside(tmp_path / "visits.csv.gz") == tmp_path / "visits.ledger"
    assert beside(str(tmp_path / "days")) == tmp_path / "days.ledger"
    assert beside(tmp_path / "clinic.duckdb", table="main.stays") == tmp_path / "stays.ledger"
    (tmp_path / "odd[1].csv").touch()
    assert beside(tmp_path / "odd[1].csv") == tmp_path / "odd[1].ledger"


def test_links_lead_to_the_ledger_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "name.csv").symlink_to(tmp_path / "visits.csv")
    assert beside(tmp_path / "other" / "name.csv") == tmp_path / "visits.ledger"


@pytest.mark.parametrize("data", [["a.csv", "b.csv"], "days/*.csv", "postgresql://host/clinic", 3])
def test_data_without_a_place_has_its_ledger_beside_the_file_that_describes_it(tmp_path: Path, data: object) -> None:
    assert beside(data) is None
    assert beside(data, file=tmp_path / "clinic.toml") == tmp_path / "clinic.ledger"
    assert beside(data, table="public.stays", file=tmp_path / "clinic.toml") == tmp_path / "stays.ledger"


def test_a_ledger_that_nothing_claims_may_be_that_of_renamed_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lost = made(tmp_path / "visits.ledger")
    for terms in (TERMS, TERMS | {"budget": Budget(2)}):
        with pytest.raises(LedgerMismatchError, match=r"stays\.ledger yet.*visits\.ledger") as refused:
            beside("stays.csv", **terms)
        assert 'ledger="visits.ledger"' in refused.value.fix
    assert beside(tmp_path / "stays.csv") == tmp_path / "stays.ledger"
    assert beside(tmp_path / "stays.csv", **TERMS | {"unit": user("patient")}) == tmp_path / "stays.ledger"
    lost.write_bytes(b"garbled")
    with pytest.raises(LedgerMismatchError, match=r"visits\.ledger"):
        beside(tmp_path / "stays.csv", **TERMS)
    lost.unlink()  # its anchor still says that there was one
    with pytest.raises(LedgerMismatchError, match=r"visits\.ledger"):
        beside(tmp_path / "stays.csv", **TERMS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("visits.parquet", ""),
        ("visits.toml", 'data = ["beds.csv", "rooms.csv"]'),
        ("other.toml", 'data = "beds.csv"\nledger = "visits.ledger"'),
        ("other.toml", 'data = "b*.csv"\nname = "visits"'),
        ("other.toml", 'data = "postgresql://host/clinic"\ntable = "public.visits"'),
        ("other.toml", 'data = "stays.csv"\ntable = "visits"'),
    ],
)
def test_a_ledger_that_belongs_to_other_data_is_nobody_elses(tmp_path: Path, name: str, text: str) -> None:
    made(tmp_path / "visits.ledger")
    for there in ("beds.csv", "stays.csv"):
        (tmp_path / there).touch()
    (tmp_path / name).write_text(text, encoding="utf-8")
    file = tmp_path / "stays.toml"
    assert beside(tmp_path / "stays.csv", **TERMS, file=file) == tmp_path / "stays.ledger"
    with pytest.raises(LedgerMismatchError):  # but what the file itself said before was its own
        beside(tmp_path / "stays.csv", **TERMS, file=tmp_path / name)


@pytest.mark.parametrize("name", ["visits.py", "visits.ipynb", "visits.toml", "other.toml", "visits.md"])
def test_what_is_no_data_has_no_ledger(tmp_path: Path, name: str) -> None:
    made(tmp_path / "visits.ledger")
    (tmp_path / name).write_text('name = "visits"\ndata = "visits.csv"', encoding="utf-8")
    with pytest.raises(LedgerMismatchError, match=r"visits\.ledger"):
        beside(tmp_path / "stays.csv", **TERMS)


@pytest.mark.parametrize(
    "data",
    [
        "days/link.csv",
        "days",
        "days/deeper/visits.csv",
        pytest.param(["days/visits.csv", "days/empty.csv"], id="list"),
        "days/v*.csv",
    ],
)
def test_the_same_file_by_another_way_has_no_second_ledger(tmp_path: Path, data: str | list[str]) -> None:
    days = tmp_path / "days"
    (days / "deeper").mkdir(parents=True)
    (days / "visits.csv").touch()
    (days / "empty.csv").touch()
    made(days / "visits.ledger")
    if "deeper" in data:
        (days / "visits.csv").rename(days / "deeper" / "visits.csv")
    elif "link" in data:
        (days / "link.csv").hardlink_to(days / "visits.csv")
    given = [str(tmp_path / one) for one in data] if isinstance(data, list) else str(tmp_path / data)
    with pytest.raises(LedgerMismatchError, match=r"visits\.ledger"):
        beside(given, **TERMS, file=None if "deeper" in data else days / "defocus.toml")


def test_a_link_to_data_that_is_gone_has_no_ledger(tmp_path: Path) -> None:
    made(tmp_path / "visits.ledger")
    (tmp_path / "visits.csv").symlink_to("nowhere.csv")
    with pytest.raises(LedgerMismatchError, match=r"visits\.ledger"):
        beside(tmp_path / "stays.csv", **TERMS)


def test_a_file_has_no_ledger_beside_that_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "days").mkdir()
    (tmp_path / "days" / "visits.csv").touch()
    made(tmp_path / "days.ledger")
    with pytest.raises(LedgerMismatchError, match=r"days\.ledger"):
        beside(tmp_path / "days" / "visits.csv", **TERMS)


def test_a_copied_dataset_file_about_many_files_has_no_second_ledger(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").touch()
    for name in ("defocus.toml", "copy.toml"):
        (tmp_path / name).write_text('data = "v*.csv"', encoding="utf-8")
    made(tmp_path / "defocus.ledger")
    with pytest.raises(LedgerMismatchError, match=r"defocus\.ledger"):
        beside(str(tmp_path / "v*.csv"), **TERMS, file=tmp_path / "copy.toml")


def test_every_file_that_can_be_opened_claims_its_ledger() -> None:
    endings = (*files._FORMATS, *origins._DATABASES, *edge_texts.SEPARATED, *edge_files._TYPED)
    assert all(ending.endswith(DATA) for ending in endings)


def test_a_ledger_beside_the_dataset_file_is_found_where_the_data_is_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "books").mkdir()
    made(tmp_path / "books" / "old.ledger")
    with pytest.raises(LedgerMismatchError, match=r"old\.ledger") as refused:
        beside(tmp_path / "data" / "visits.csv", **TERMS, file=tmp_path / "books" / "defocus.toml")
    assert 'ledger = "../data/visits.ledger" in defocus.toml' in refused.value.fix


def test_files_that_are_no_ledgers_are_nobodys_budget(tmp_path: Path) -> None:
    (tmp_path / "accounts.ledger").write_text("2026/11/14 bread", encoding="utf-8")
    (tmp_path / "empty.ledger").touch()
    assert beside(tmp_path / "visits.csv", **TERMS) == tmp_path / "visits.ledger"
