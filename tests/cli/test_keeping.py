"""No command gives budget back: not for a new name, nor for a ledger that was deleted, put back or altered."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from defocus.ledger.entries import canonical, digest

QUESTION = ("SELECT COUNT(*) AS n FROM visits", "--epsilon", 1)
COMMANDS = {
    "query": ("query", *QUESTION),
    "preview": ("preview", *QUESTION),
    "export": ("export", "kept", "kept.csv"),
    "budget": ("budget",),
    "history": ("history",),
    "check": ("check",),
}


@pytest.fixture
def spent(home: Path, defocus: Callable[..., Any]) -> Path:
    """A folder in which half of the budget was spent, with an older copy of the ledger."""
    assert defocus("query", *QUESTION, "--request", "kept").code == 0
    shutil.copy(home / "visits.ledger", home / "older")
    assert defocus("query", *QUESTION, "--request", "again").code == 0
    return home


@pytest.fixture
def refused(spent: Path, defocus: Callable[..., Any]) -> Callable[..., None]:
    """Runs every command, none of which may do its work, or leave anything behind."""

    def run(words: str) -> None:
        before = {path.name for path in spent.iterdir()}
        for name, command in COMMANDS.items():
            ran = defocus(*command)
            told = " ".join((ran.out + ran.err).split())
            assert ran.code == 1, (name, told)
            assert words in told, (name, told)
        assert {path.name for path in spent.iterdir()} == before

    return run


def tamper(home: Path, *statements: str, **values: str) -> None:
    """Change the file as someone would who can write to it, triggers out of the way."""
    with sqlite3.connect(home / "visits.ledger") as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement, values)
    connection.close()


def rewritten(home: Path, number: int, **changes: Any) -> tuple[str, str]:
    """The text of an entry with something changed, and the hash of that."""
    with sqlite3.connect(home / "visits.ledger") as connection:
        (body,) = connection.execute("SELECT body FROM ledger_entries WHERE sequence = ?", (number,)).fetchone()
    connection.close()
    text = canonical(json.loads(body) | changes)
    return text, digest(text)


def test_every_command_works_where_nothing_was_done(spent: Path, defocus: Callable[..., Any]) -> None:
    del spent
    for name, command in COMMANDS.items():
        assert defocus(*command).code == (1 if name == "query" else 0), name


def test_a_new_name_is_no_new_budget(spent: Path, defocus: Callable[..., Any]) -> None:
    file, files = spent / "defocus.toml", {path.name for path in spent.iterdir()}
    for name in ("stays", "nights", "beds"):
        text = file.read_text(encoding="utf-8")
        file.write_text(f'name = "{name}"\n' + text.partition("\n")[2], encoding="utf-8")
        ran = defocus("query", f"SELECT COUNT(*) AS n FROM {name}", "--epsilon", 1)  # noqa: S608  # nothing is there to inject
        assert ran.code == 1
        assert "The budget does not cover" in " ".join(ran.err.split())
    assert {path.name for path in spent.iterdir()} == files


def test_a_renamed_file_is_no_new_budget(spent: Path, refused: Callable[..., None]) -> None:
    (spent / "visits.parquet").rename(spent / "stays.parquet")
    file = spent / "defocus.toml"
    file.write_text(file.read_text(encoding="utf-8").replace("visits.parquet", "stays.parquet"), encoding="utf-8")
    refused("There is no ledger stays.ledger yet")


def test_a_deleted_ledger_is_missed_by_every_command(spent: Path, refused: Callable[..., None]) -> None:
    (spent / "visits.ledger").unlink()
    refused("vouches for a ledger of 5 entries, but there is none")


def test_an_older_copy_is_noticed_by_every_command(spent: Path, refused: Callable[..., None]) -> None:
    shutil.copy(spent / "older", spent / "visits.ledger")
    refused("ends at entry 2 and no longer holds entry 4 as it was")


def test_an_altered_amount_is_noticed_by_every_command(spent: Path, refused: Callable[..., None]) -> None:
    text, _ = rewritten(spent, 1, cost=[0.0])
    tamper(spent, "UPDATE ledger_entries SET body = :text WHERE sequence = 1", text=text)
    refused("Entry 1 was altered")


def test_an_altered_entry_with_its_hash_fixed_up_is_noticed_by_every_command(
    spent: Path, refused: Callable[..., None]
) -> None:
    text, hashed = rewritten(spent, 1, cost=[0.0])
    tamper(spent, "UPDATE ledger_entries SET body = :text, hash = :hash WHERE sequence = 1", text=text, hash=hashed)
    refused("does not follow entry 1")


def test_another_first_entry_is_noticed_by_every_command(spent: Path, refused: Callable[..., None]) -> None:
    text, hashed = rewritten(spent, 0, who="Eve")
    tamper(spent, "UPDATE ledger_entries SET body = :text, hash = :hash WHERE sequence = 0", text=text, hash=hashed)
    refused("does not follow entry 0")


def test_a_last_entry_taken_away_is_noticed_by_every_command(spent: Path, refused: Callable[..., None]) -> None:
    _, hashed = rewritten(spent, 2)
    tamper(
        spent,
        "DELETE FROM ledger_entries WHERE sequence > 2",
        "UPDATE ledger_head SET sequence = 2, hash = :hash",
        hash=hashed,
    )
    refused("an older copy was put back, or its history was rewritten")


def test_an_anchor_that_was_garbled_is_noticed_by_every_command(spent: Path, refused: Callable[..., None]) -> None:
    (spent / "visits.ledger.anchor").write_text("5:abc", encoding="utf-8")
    refused("does not hold an anchor")


def test_the_anchor_of_another_ledger_is_noticed_by_every_command(spent: Path, refused: Callable[..., None]) -> None:
    text = f"defocus ledger anchor 1\n2:{'ab' * 32}\n"
    (spent / "visits.ledger.anchor").write_text(text, encoding="utf-8")
    refused("no longer holds entry 2 as it was")


def test_an_anchor_that_was_deleted_is_made_again_by_the_next_that_writes(
    spent: Path, defocus: Callable[..., Any]
) -> None:
    (spent / "visits.ledger.anchor").unlink()
    for name in ("preview", "export", "budget", "history", "check"):
        assert defocus(*COMMANDS[name]).code == 0
    assert not (spent / "visits.ledger.anchor").exists()
    assert defocus(*COMMANDS["query"]).code == 1
    assert "\n4:" in (spent / "visits.ledger.anchor").read_text(encoding="utf-8")


def test_without_ledger_and_anchor_nobody_can_tell(spent: Path, defocus: Callable[..., Any]) -> None:
    for path in spent.glob("visits.ledger*"):
        path.unlink()
    assert "nothing was released yet" in defocus("budget").out
    assert defocus("history").code == 1
    assert defocus("export", "kept", "kept.csv").code != 0
    assert not list(spent.glob("visits.ledger*"))
    assert defocus(*COMMANDS["query"]).code == 0


def test_a_draft_keeps_its_ledger_and_anchor_under_any_name(home: Path, defocus: Callable[..., Any]) -> None:
    said = ("--unit", "patient", "--budget", 1, "--force")
    assert defocus("init", "visits.parquet", *said).code == 0
    text = (home / "defocus.toml").read_text(encoding="utf-8")
    assert 'ledger = "visits.ledger"' in text
    assert 'anchor_file = "visits.ledger.anchor"' in text
    assert defocus(*COMMANDS["query"]).code == 0
    assert defocus("init", "visits.parquet", "--name", "stays", *said).code == 1
    assert defocus("query", "SELECT COUNT(*) AS n FROM stays", "--epsilon", 0.1).code == 1
    assert [path.name for path in home.glob("*.ledger")] == ["visits.ledger"]


def test_a_trained_model_is_charged_to_the_ledger_of_its_data(home: Path, defocus: Callable[..., Any]) -> None:
    (home / "patients.csv").write_text("age,ill\n" + "30,no\n70,yes\n" * 50, encoding="utf-8")
    text = (
        'name = "{name}"\ndata = "patients.csv"\nout = "{name}.json"\n'
        'epsilon = 1\ndelta = 1e-6\n[unit]\nrows = true\n[model]\nkind = "logistic"\n'
        '[target]\ncolumn = "ill"\nvalues = ["no", "yes"]\n[features]\nage = [18, 90]\n'
    )
    for name, code in (("one", 0), ("two", 1), ("three", 1)):
        (home / "train.toml").write_text(text.format(name=name), encoding="utf-8")
        assert defocus("train", "train.toml", "--preview").code == 0
        assert defocus("train", "train.toml").code == code, name
    assert (home / "patients.ledger.anchor").exists()
    (home / "patients.ledger").unlink()
    for more in (("--preview",), ()):
        ran = defocus("train", "train.toml", *more)
        assert ran.code == 1
        assert "vouches for a ledger" in " ".join(ran.err.split())
