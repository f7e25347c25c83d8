"""A dataset file beside a ledger that was made before."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import defocus as dp
from defocus.tables.comparing import compared
from defocus.tables.datasets import read

FILE = """name = "visits"
data = "visits"
[unit]
rows = true
[budget]
epsilon = 1
[parts]
column = "day"
[columns.day]
kind = "date"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file about a folder with one day, and its ledger."""
    (tmp_path / "visits" / "day=2026-11-14").mkdir(parents=True)
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "visits" / "day=2026-11-14" / "0.parquet")
    made = tmp_path / "defocus.toml"
    made.write_text(FILE, encoding="utf-8")
    assert compared(read(made)) == ([], [])
    assert not (tmp_path / "visits.ledger").exists()
    dp.open(made).close()
    return made


def changed(file: Path, old: str, new: str) -> tuple[list[str], list[str]]:
    assert old in FILE
    file.write_text(FILE.replace(old, new), encoding="utf-8")
    return compared(read(file))


def test_a_file_that_says_what_its_ledger_does_is_as_it_should_be(file: Path) -> None:
    assert compared(read(file)) == ([], [])


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("epsilon = 1", "epsilon = 2", "the ledger has Budget(epsilon=1), you gave Budget(epsilon=2)"),
        ('name = "visits"', 'name = "stays"\nledger = "visits.ledger"', "the ledger has visits, you gave stays"),
        ('"date"', '"text"', 'declare types={"day": "date"}'),
        ('[columns.day]\nkind = "date"\n', "", 'declare types={"day": "date"}'),
    ],
)
def test_what_contradicts_the_ledger_is_told(file: Path, old: str, new: str, told: str) -> None:
    (problem,), notes = changed(file, old, new)
    assert told in problem
    assert notes == []


def test_a_file_without_the_parts_of_its_ledger_is_told(file: Path) -> None:
    problems, (note,) = changed(file, '[parts]\ncolumn = "day"\n', "")
    assert problems == []
    assert "charged to everybody" in note


def test_a_ledger_that_cannot_be_reached_is_told(file: Path) -> None:
    problems, (note,) = changed(
        file, 'name = "visits"', 'name = "visits"\nledger = "postgresql://nobody@127.0.0.1:1/none"'
    )
    assert problems == []
    assert note.startswith("the ledger was not compared")


def test_a_ledger_that_is_none_contradicts_the_file(file: Path) -> None:
    (file.parent / "visits.ledger").write_bytes(b"no database, although it is long enough to be one" * 100)
    problems, notes = compared(read(file))
    assert len(problems) + len(notes) == 1
