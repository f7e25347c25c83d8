"""One data set has one ledger, whatever it is called and however it is opened."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import defocus as dp
from defocus.errors import BudgetExceededError, LedgerDamagedError, LedgerError, LedgerMismatchError
from defocus.ledger import Ledger

SAID: dict[str, Any] = {"unit": dp.user("patient"), "budget": dp.Budget(1)}
FILE = 'name = "{name}"\ndata = "{data}"\n[unit]\ncolumn = "patient"\n[budget]\nepsilon = 1\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a table of which the whole budget was spent through its dataset file."""
    pq.write_table(pa.table({"patient": [1, 2, 3], "days": [1.0, 2.0, 3.0]}), tmp_path / "visits.parquet")
    spend(described(tmp_path, "visits"))
    return tmp_path


def described(home: Path, name: str, data: str = "visits.parquet", file: str = "defocus.toml") -> Path:
    path = home / file
    path.write_text(FILE.format(name=name, data=data), encoding="utf-8")
    return path


def spend(data: Path, **said: Any) -> None:
    with dp.open(data, **said) as table:
        table.agg(n=dp.count()).release(epsilon=1, purpose="all of it")


def ledgers(home: Path) -> list[str]:
    return sorted(path.name for path in home.rglob("*.ledger"))


def test_three_names_in_the_file_are_one_budget(home: Path) -> None:
    for name in ("stays", "nights", "beds"):
        with pytest.raises(BudgetExceededError):
            spend(described(home, name))
    with pytest.raises(BudgetExceededError):
        spend(described(home, "visits"))
    assert ledgers(home) == ["visits.ledger"]


def test_another_dataset_file_about_the_same_data_shares_its_budget(home: Path) -> None:
    (home / "mine").mkdir()
    for file in ("other.toml", "mine/defocus.toml"):
        data = "visits.parquet" if "/" not in file else "../visits.parquet"
        with pytest.raises(BudgetExceededError):
            spend(described(home, "visits", data, file))
        with pytest.raises(BudgetExceededError):
            spend(described(home, "other", data, file))
    assert ledgers(home) == ["visits.ledger"]


def test_a_name_of_ones_own_is_no_budget_of_ones_own(home: Path) -> None:
    for name in ("stays", "nights"):
        with pytest.raises(BudgetExceededError):
            spend(home / "visits.parquet", name=name, **SAID)
    with pytest.raises(BudgetExceededError):
        spend(home / "visits.parquet", **SAID)
    (home / "link.parquet").symlink_to(home / "visits.parquet")
    with pytest.raises(LedgerError):
        spend(home / "link.parquet", **SAID)
    assert ledgers(home) == ["visits.ledger"]


def test_the_table_of_a_database_is_found_under_any_spelling(tmp_path: Path) -> None:
    import duckdb  # noqa: PLC0415  # only here

    with duckdb.connect(tmp_path / "clinic.duckdb") as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS patient")
    spend(tmp_path / "clinic.duckdb", table="visits", **SAID)
    for more in ({"table": "main.visits"}, {"table": "visits", "name": "stays"}):
        with pytest.raises(LedgerError):
            spend(tmp_path / "clinic.duckdb", **more, **SAID)
    assert ledgers(tmp_path) == ["visits.ledger"]


def test_renamed_data_does_not_leave_its_budget_behind(home: Path) -> None:
    (home / "visits.parquet").rename(home / "stays.parquet")
    with pytest.raises(LedgerMismatchError, match=r"stays\.ledger yet, .*: visits\.ledger"):
        spend(described(home, "visits", "stays.parquet"))
    with pytest.raises(LedgerMismatchError, match=r"visits\.ledger"):
        spend(home / "stays.parquet", **SAID)
    with pytest.raises(BudgetExceededError):
        spend(home / "stays.parquet", ledger=home / "visits.ledger", name="visits", **SAID)


def test_other_data_in_the_folder_has_a_budget_of_its_own(home: Path) -> None:
    shutil.copy(home / "visits.parquet", home / "beds.parquet")
    spend(home / "beds.parquet", **SAID)
    assert ledgers(home) == ["beds.ledger", "visits.ledger"]


def test_the_ledger_that_an_earlier_version_called_after_the_name_is_not_left_behind(home: Path) -> None:
    for path in home.glob("visits.ledger*"):
        path.rename(home / path.name.replace("visits", "stays"))
    with pytest.raises(LedgerMismatchError, match=r"stays\.ledger") as refused:
        spend(described(home, "stays"))
    assert 'ledger = "stays.ledger" in defocus.toml' in refused.value.fix


def test_a_deleted_ledger_is_missed(home: Path) -> None:
    (home / "visits.ledger").unlink()
    for act in (
        lambda: spend(home / "defocus.toml"),
        lambda: spend(home / "visits.parquet", **SAID),
        lambda: dp.open(home / "visits.parquet"),
        lambda: spend(described(home, "other")),
    ):
        with pytest.raises(LedgerDamagedError, match="a ledger of 3 entries, but there is none"):
            act()
    assert ledgers(home) == []


def test_an_older_copy_is_not_charged(tmp_path: Path) -> None:
    pq.write_table(pa.table({"patient": [1, 2]}), tmp_path / "visits.parquet")
    dp.open(described(tmp_path, "visits")).close()
    shutil.copy(tmp_path / "visits.ledger", tmp_path / "backup")
    spend(tmp_path / "defocus.toml")
    shutil.copy(tmp_path / "backup", tmp_path / "visits.ledger")
    with pytest.raises(LedgerDamagedError, match="older copy"):
        spend(tmp_path / "defocus.toml")


def test_another_place_of_the_ledger_has_another_anchor(home: Path) -> None:
    file = described(home, "visits")
    file.write_text(f'ledger = "visits.ledger"\nanchor_file = "far.anchor"\n{file.read_text()}', encoding="utf-8")
    (home / "visits.ledger.anchor").rename(home / "far.anchor")
    with pytest.raises(BudgetExceededError):
        spend(file)
    with dp.open(file, ledger=home / "elsewhere.ledger") as table:
        assert len(table.ledger) == 1
    assert (home / "elsewhere.ledger.anchor").exists()


def test_a_ledger_on_a_server_is_followed_beside_the_dataset_file(home: Path, server: str) -> None:
    address = f"{server}&schema=one_ledger"
    (home / "books").mkdir()
    file = described(home, "visits", "../visits.parquet", "books/defocus.toml")
    file.write_text(f'ledger = "{address}"\n{file.read_text()}', encoding="utf-8")
    spend(file)
    anchor = home / "books" / "visits.ledger.anchor"
    assert "\n2:" in anchor.read_text()
    text = anchor.read_text()
    anchor.write_text(text.replace("\n2:", "\n9:"))
    with pytest.raises(LedgerDamagedError, match="no longer holds entry 9"):
        dp.open(file)
    anchor.unlink()
    dp.open(file).close()  # as on another machine, where nobody has opened it yet
    assert anchor.read_text() == text


def test_a_graph_in_a_file_has_one_ledger(tmp_path: Path) -> None:
    pq.write_table(pa.table({"u": [0, 1], "v": [1, 2]}), tmp_path / "friends.parquet")
    said: dict[str, Any] = {"unit": dp.edge(), "budget": dp.Budget(1), "nodes": 3}
    with dp.open_graph(tmp_path / "friends.parquet", **said) as graph:
        graph.edges().release(epsilon=1, purpose="all of it")
    with pytest.raises(LedgerMismatchError):
        dp.open_graph(tmp_path / "friends.parquet", name="calls", **said)
    assert ledgers(tmp_path) == ["friends.ledger"]
    with Ledger.open(tmp_path / "friends.ledger", read_only=True) as ledger:
        assert len(ledger) == 3
