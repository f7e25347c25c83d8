"""Drafting a dataset file from a terminal, and checking it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from defocus.tables.dataset_file import read


def test_init_writes_a_draft_that_says_what_is_left_to_decide(defocus: Callable[..., Any], home: Path) -> None:
    assert defocus("init", "visits.parquet").code == 2  # the file is there already
    ran = defocus("init", "visits.parquet", "--out", "draft.toml")
    assert ran.code == 1
    assert "left to decide" in ran.out
    text = (home / "draft.toml").read_text(encoding="utf-8")
    assert "patient" in text
    assert "epsilon" in text
    done = defocus("init", "visits.parquet", "--out", "draft.toml", "--force", "--unit", "patient", "--budget", 1)
    assert done.code == 0
    assert defocus("check", "--dataset", "draft.toml").code == 0
    assert defocus("init", "visits.parquet", "--out", "x.toml", "--unit", "patient", "--rows").code == 2


def test_check_names_what_does_not_fit(defocus: Callable[..., Any], home: Path) -> None:
    file = home / "defocus.toml"
    file.write_text(file.read_text(encoding="utf-8").replace("columns.days", "columns.dayz"), encoding="utf-8")
    ran = defocus("check")
    assert ran.code == 1
    assert "days" in ran.out


@pytest.mark.usefixtures("home")
def test_a_draft_that_cannot_be_written_is_told(defocus: Callable[..., Any]) -> None:
    ran = defocus("init", "visits.parquet", "--out", "nowhere/draft.toml")
    assert ran.code == 2
    assert "could not be written" in ran.err


def test_rows_can_be_protected_alone(defocus: Callable[..., Any], home: Path) -> None:
    words = ("--out", "draft.toml", "--rows", "--budget", 1, "--budget-delta", 1e-7, "--name", "stays")
    assert defocus("init", "visits.parquet", *words).code == 0
    dataset = read(home / "draft.toml")
    assert dataset.unit.column is None
    assert (dataset.name, dataset.budget.delta) == ("stays", 1e-7)


def test_on_a_terminal_it_asks_for_what_only_the_owner_knows(
    defocus: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def prompt(text: str, **how: Any) -> Any:
        asked.append(text)
        return how["default"]

    monkeypatch.setattr("typer.prompt", prompt)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert defocus("init", "visits.parquet", "--out", "draft.toml").code == 0
    assert len(asked) == 2
    assert read(home / "draft.toml").unit.column == "patient"


@pytest.mark.usefixtures("home")
def test_a_file_that_is_not_there_is_told(defocus: Callable[..., Any]) -> None:
    ran = defocus("check", "--dataset", "other.toml")
    assert ran.code == 1
    assert "defocus init" in ran.out


@pytest.mark.slow
def test_a_database_is_drafted_from_its_address(defocus: Callable[..., Any], home: Path, server: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE TABLE drafted (patient INT, days DOUBLE PRECISION)")
    words = ("--table", "drafted", "--out", "draft.toml", "--unit", "patient", "--budget", 1)
    ran = defocus("init", server, *words)
    assert (ran.code, ran.err) == (0, "")
    dataset = read(home / "draft.toml")
    assert (dataset.data, dataset.table, dataset.name) == ((server,), "drafted", "drafted")
    assert dataset.ledger_place == str(home / "drafted.ledger")
    assert defocus("query", "SELECT COUNT(*) AS n FROM drafted", "-d", "draft.toml", "--epsilon", 0.5).code == 0


@pytest.mark.parametrize(
    "address",
    ["postgresql://reader:hush@host/hospital", "postgresql://host/hospital?password=hush", "postgres://[hush"],
)
def test_a_password_is_not_written_to_a_file_that_is_public(
    defocus: Callable[..., Any], home: Path, address: str
) -> None:
    ran = defocus("init", address, "--table", "visits", "--out", "draft.toml")
    assert ran.code == 2
    assert "PGPASSWORD" in ran.err
    assert "hush" not in ran.err + ran.out
    assert not (home / "draft.toml").exists()


def test_check_compares_the_file_with_its_ledger(defocus: Callable[..., Any], home: Path) -> None:
    assert defocus("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", 0.5).code == 0
    assert defocus("check").code == 0
    file = home / "defocus.toml"
    file.write_text(file.read_text(encoding="utf-8").replace("epsilon = 2", "epsilon = 3"), encoding="utf-8")
    ran = defocus("check")
    assert ran.code == 1
    assert "Budget(epsilon=2" in ran.out
