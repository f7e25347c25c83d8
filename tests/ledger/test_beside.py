"""Where a ledger is kept if nobody says: where its data is, whatever that is called."""

from pathlib import Path
from typing import Any

import pytest

from defocus.errors import LedgerMismatchError
from defocus.ledger import Ledger
from defocus.ledger.beside import beside
from defocus.privacy.budgets import Budget
from defocus.privacy.units import rows, user

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


def test_a_ledger_that_nothing_claims_may_be_that_of_renamed_data(tmp_path: Path) -> None:
    lost = made(tmp_path / "visits.ledger")
    with pytest.raises(LedgerMismatchError, match=r"stays\.ledger yet.*visits\.ledger") as refused:
        beside(tmp_path / "stays.csv", **TERMS)
    assert 'ledger="visits.ledger"' in refused.value.fix
    assert beside(tmp_path / "stays.csv") == tmp_path / "stays.ledger"
    for other in ({"unit": user("patient")}, {"budget": Budget(2)}):
        assert beside(tmp_path / "stays.csv", **TERMS | other) == tmp_path / "stays.ledger"
    lost.unlink()  # its anchor still says that there was one
    with pytest.raises(LedgerMismatchError, match=r"visits\.ledger"):
        beside(tmp_path / "stays.csv", **TERMS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("visits.parquet", ""),
        ("visits.toml", ""),
        ("other.toml", 'ledger = "visits.ledger"'),
        ("other.toml", 'name = "visits"'),
        ("other.toml", 'table = "public.visits"'),
    ],
)
def test_a_ledger_that_belongs_to_other_data_is_nobody_elses(tmp_path: Path, name: str, text: str) -> None:
    made(tmp_path / "visits.ledger")
    (tmp_path / name).write_text(text, encoding="utf-8")
    file = tmp_path / "stays.toml"
    assert beside(tmp_path / "stays.csv", **TERMS, file=file) == tmp_path / "stays.ledger"
    with pytest.raises(LedgerMismatchError):  # but what the file itself said before was its own
        beside(tmp_path / "stays.csv", **TERMS, file=tmp_path / name)


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
